"""What a study knows: all its releases, pooled, and the greedy policy that follows from them.

It is post-processing of what was released, whatever the learner: reading it costs no privacy. A
release has the weight n/(n + variance of one counter), so that a small one adds little noise. The
greedy policy is the learner's own where it has one (`BatchLearner.greedy`), and otherwise that of
`discreet.learners.estimate.PolicyValue`, which also says what it is worth.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray, Plain
from discreet.learners.base import Problem
from discreet.learners.estimate import CountSums, Estimate, PolicyValue, ReleasedRows
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.statistics import PrivateCounts


class Answer(NamedTuple):
    """What a study has to say.

    Attributes:
        policy: greedy on what is known.
        known: ``bool[H, S]``, where its action is known; elsewhere none is preferred.
        value: of the policy, from where episodes begin.
    """

    policy: DeterministicPolicy
    known: BoolArray
    value: Estimate


class StudyEstimate:
    """Pooled releases of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        shape = problem.shape
        layers = 1 if problem.stationary else shape.horizon
        self._sums = CountSums.empty(layers, shape.states, shape.actions)

    def add(self, counts: PrivateCounts) -> None:
        """Take one more release in."""
        noise, rows = counts.noise_variance, np.nonzero(counts.support)
        visits, visit_variance = _visits(counts, rows[0], rows[1], self._problem)
        transitions = counts.row_transitions
        if transitions is None:
            transitions = np.zeros((len(visits), self._problem.shape.states))
        told = (rows[0] < len(counts.support) - 1) | counts.last_transitions
        rewards = np.asarray(counts.row_rewards, np.float64)
        sampling = np.maximum(visits, 0.0)
        batch = ReleasedRows(
            rows,
            np.asarray(transitions, np.float64),
            visits,
            rewards + visits / 2 if counts.centred else rewards,
            sampling=sampling,
            reward_sampling=sampling,
            noise=np.where(told, noise.get("transitions", 0.0), 0.0),
            reward_noise=noise["rewards"],
            visit_variance=visit_variance,
        )
        weight = counts.users / (counts.users + max(noise.values(), default=0.0))
        self._sums.add(batch, weight, weight)

    def answer(self, policy: DeterministicPolicy | None = None) -> Answer:
        """A policy, by default the greedy one, where it is known, and its value."""
        values = PolicyValue(self._sums, self._problem.shape.horizon, self._problem.start)
        chosen = values.greedy() if policy is None else policy
        value, known = values.of(chosen)
        return Answer(chosen, known, value)

    def state(self) -> dict[str, Plain]:
        """Plain values; copies, which later batches do not change."""
        filled = self._sums.transitions[: self._sums.number.max() + 1]
        arrays: dict[str, Any] = self._sums._replace(transitions=filled)._asdict()
        return {name: part.copy() for name, part in arrays.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        shapes = {name: part.shape for name, part in self._sums._asdict().items()}
        shapes["transitions"] = (-1, self._problem.shape.states)
        given = {name: np.reshape(state[name], shape) for name, shape in shapes.items()}
        self._sums = CountSums.from_dict(given)


def of_release(problem: Problem, counts: PrivateCounts) -> StudyEstimate:
    """What one cumulative release says (continual schedules)."""
    estimate = StudyEstimate(problem)
    if counts.users:
        estimate.add(counts)
    return estimate


def _visits(
    counts: PrivateCounts, steps: IntArray, states: IntArray, problem: Problem
) -> tuple[FloatArray, FloatArray]:
    """Visits of the supported rows and the variance of their noise, by the best measurement."""
    noise, size = counts.noise_variance, problem.shape.states
    if counts.row_visits is not None:
        return counts.row_visits, np.full(len(steps), noise["visits"])
    moves = np.asarray(counts.row_transitions)
    visits, variance = moves.sum(axis=-1), np.full(len(steps), size * noise["transitions"])
    if counts.last_transitions:
        return visits, variance
    # The last step shows no transitions: who is there came in by the step before.
    last = steps == problem.shape.horizon - 1
    before = moves[steps == problem.shape.horizon - 2]
    first = counts.users * (problem.start / problem.start.sum())
    coming = before.sum(axis=0) if len(before) else first
    shared = np.bincount(states[last], minlength=size)[states[last]]
    visits[last] = coming[states[last]] / shared
    variance[last] = len(before) * noise["transitions"] / shared**2
    return visits, variance
