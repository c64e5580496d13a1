"""What a study knows: all its releases, pooled, and the greedy policy that follows from them.

It is post-processing of what was released, whatever the learner: reading it costs no privacy. A row
(h, s, a) keeps weighted sums of its released counters and the variance that they carry. A batch has
the weight n/(n + variance of one counter), so that a small one adds little noise.

*The greedy policy* is the learner's own where it has one (`BatchLearner.greedy`), and otherwise
backward induction over the rows that are known: those whose visits exceed twice their own noise. An
action is worth its estimate less one standard error, so that of two actions that look alike the
better known one is taken; where no action is known, none is preferred (the first one is taken, and
`Answer.known` says so).

*Its value* is estimated with the counts as they were released, below zero or not: cutting them off
at zero would add up to a value that is too high. The interval is plus and minus 1.96 standard
errors by linear error propagation: the error of every row's r + P·V, times how often the policy
visits it. Rows are taken as independent, errors as normal, and the policy as if it had not been
chosen by the same data: an approximation, not a theorem. States in which nothing is known are worth
0 in the estimate and up to all remaining rewards in the upper end.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray, Plain
from discreet.learners.base import Problem
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.statistics import PrivateCounts

_SURE = 2.0
_NORMAL = 1.96
"""Two-sided 95%."""


class Estimate(NamedTuple):
    """A value and an interval of about 95%: an approximation (module docstring)."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """As a person reads it."""
        return f"{self.value:.3f} (95% interval {self.low:.3f} to {self.high:.3f})"


class Answer(NamedTuple):
    """What a study has to say.

    Attributes:
        policy: greedy on what is known.
        known: ``bool[H, S]``, where some action is known at all.
        value: of the policy, from where episodes begin.
    """

    policy: DeterministicPolicy
    known: BoolArray
    value: Estimate


class _Rows(NamedTuple):
    """Weighted sums by row; ``number[g, s, a]`` says in which row (h, s, a) is kept, -1: none."""

    number: IntArray
    transitions: FloatArray
    visits: FloatArray
    rewards: FloatArray
    sampling: FloatArray
    transition_noise: FloatArray
    visit_noise: FloatArray
    reward_noise: FloatArray


class Knowledge:
    """Pooled releases of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        layers = 1 if problem.stationary else problem.shape.horizon
        states, actions = problem.shape.states, problem.shape.actions
        columns = (np.zeros(0) for _ in _Rows._fields[2:])
        number = np.full((layers, states, actions), -1, np.int64)
        self._rows = _Rows(number, np.zeros((0, states)), *columns)

    def add(self, counts: PrivateCounts) -> None:
        """Take one more release in."""
        noise = counts.noise_variance
        sigma = max(noise.values(), default=0.0)
        weight = counts.users / (counts.users + sigma)
        steps, states, actions = np.nonzero(counts.support)
        layers = steps if len(self._rows.number) > 1 else steps * 0
        places = self._places(layers, states, actions)
        visits, visit_noise = _visits(counts, steps, states, self._problem)
        rewards = np.asarray(counts.row_rewards, np.float64)
        moves = counts.row_transitions
        add = np.add.at
        if moves is not None:
            add(self._rows.transitions, places, weight * moves)
            told = (steps < counts.support.shape[0] - 1) | counts.last_transitions
            add(self._rows.transition_noise, places, weight**2 * noise["transitions"] * told)
        if counts.centred:
            rewards = rewards + visits / 2
        add(self._rows.visits, places, weight * visits)
        add(self._rows.rewards, places, weight * rewards)
        add(self._rows.sampling, places, weight**2 * np.maximum(visits, 0.0))
        add(self._rows.visit_noise, places, weight**2 * visit_noise)
        add(self._rows.reward_noise, places, weight**2 * noise["rewards"])

    def _places(self, *index: IntArray) -> IntArray:
        """Where rows are kept; new ones get a place."""
        rows = self._rows
        fresh = np.zeros(rows.number.shape, np.bool_)
        fresh[index] = True
        fresh &= rows.number < 0
        rows.number[fresh] = len(rows.visits) + np.arange(int(fresh.sum()))
        more = int(fresh.sum())
        grown = (np.concatenate([part, np.zeros((more, *part.shape[1:]))]) for part in rows[1:])
        self._rows = _Rows(rows.number, *grown)
        return rows.number[index]

    def answer(self, policy: DeterministicPolicy | None = None) -> Answer:
        """A policy, by default the greedy one, where it is known, and its value."""
        chosen = self._greedy() if policy is None else policy
        shape = self._problem.shape
        known = np.zeros((shape.horizon, shape.states), np.bool_)
        values, error = np.zeros(shape.states), np.zeros((shape.horizon, shape.states))
        for h in reversed(range(shape.horizon)):
            step = self._step(h, values, cut=False)
            q, deviation, sure = (part[np.arange(shape.states), chosen.actions[h]] for part in step)
            known[h] = sure
            values, error[h] = np.where(sure, q, 0.0), np.where(sure, deviation, 0.0)
        return Answer(chosen, known, self._value(chosen, known, values, error))

    def _greedy(self) -> DeterministicPolicy:
        shape = self._problem.shape
        actions = np.zeros((shape.horizon, shape.states), np.int64)
        values = np.zeros(shape.states)
        for h in reversed(range(shape.horizon)):
            q, deviation, sure = self._step(h, values, cut=True)
            actions[h] = np.argmax(np.where(sure, q - deviation, -np.inf), axis=1)
            best = (np.arange(shape.states), actions[h])
            values = np.where(sure[best], q[best], 0.0)
        return DeterministicPolicy(actions)

    def _step(
        self, h: int, ahead: FloatArray, *, cut: bool
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Values, their standard errors, and where they are known: ``[S, A]`` each.

        ``cut``: probabilities and rewards are brought into their range, for planning.
        """
        rows, horizon = self._rows, self._problem.shape.horizon
        place = rows.number[h if len(rows.number) > 1 else 0]
        if not len(rows.visits):
            nothing = np.zeros(place.shape)
            return nothing, nothing, place >= 0
        at = np.maximum(place, 0)
        n, doubt = rows.visits[at], np.sqrt(rows.visit_noise[at])
        sure = (place >= 0) & (n > np.maximum(_SURE * doubt, 0.5))
        n = np.where(sure, n, 1.0)
        mean, following = (
            np.clip(rows.rewards[at] / n, 0.0, 1.0),
            _probabilities(rows.transitions[at]),
        )
        next_value = following @ ahead
        spread = np.maximum(following @ ahead**2 - next_value**2, 0.0)
        far = ((ahead - next_value[..., None]) ** 2).sum(axis=-1)
        variance = rows.sampling[at] * (spread + mean * (1 - mean)) + rows.reward_noise[at]
        variance += rows.transition_noise[at] * far + (doubt * mean) ** 2
        lower_order = (horizon - h) * rows.sampling[at] / n
        deviation = np.sqrt(variance + lower_order**2) / n
        value = mean + next_value
        if not cut:
            value = rows.rewards[at] / n + (rows.transitions[at] @ ahead) / n
        return value, deviation, sure

    def _value(
        self, policy: DeterministicPolicy, known: BoolArray, first: FloatArray, error: FloatArray
    ) -> Estimate:
        """The value from the start states, and how far it can be off."""
        horizon = self._problem.shape.horizon
        share = self._beginnings()
        value = float(share @ first)
        lost, errors = 0.0, np.zeros(self._rows.number.shape)
        for h in range(horizon):
            layer = h if len(errors) > 1 else 0  # pooled steps share their errors: they add up
            errors[layer, np.arange(len(share)), policy.actions[h]] += share * error[h]
            lost += float(share[~known[h]].sum()) * (horizon - h)
            share = np.where(known[h], share, 0.0) @ self._moves(h, policy)
        reach = _NORMAL * math.sqrt(float((errors**2).sum()))
        value, low, high = np.clip([value, value - reach, value + reach + lost], 0.0, horizon)
        return Estimate(float(value), float(low), float(high))

    def _moves(self, h: int, policy: DeterministicPolicy) -> FloatArray:
        """``[S, S]``: from state to state under the policy."""
        rows, states = self._rows, self._problem.shape.states
        if not len(rows.visits):
            return np.zeros((states, states))
        place = rows.number[h if len(rows.number) > 1 else 0]
        at = np.maximum(place[np.arange(states), policy.actions[h]], 0)
        return _probabilities(rows.transitions[at])

    def _beginnings(self) -> FloatArray:
        """How often episodes begin in each state: as seen, or evenly where nothing was."""
        rows, start = self._rows, self._problem.start.astype(np.float64)
        if len(rows.visits) and len(rows.number) > 1:
            place = rows.number[0]
            seen = np.where(place >= 0, rows.visits[np.maximum(place, 0)], 0.0).sum(axis=1)
            seen = np.maximum(seen, 0.0) * start
            if seen.sum() > 0:
                return np.asarray(seen / seen.sum())
        return np.asarray(start / start.sum())

    def state(self) -> dict[str, Plain]:
        """Plain values; copies, which later batches do not change."""
        arrays: dict[str, Any] = {name: part.copy() for name, part in self._rows._asdict().items()}
        return arrays

    def restore(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        parts = {name: np.array(state[name], np.float64) for name in _Rows._fields}
        states = self._problem.shape.states
        parts["transitions"] = parts["transitions"].reshape(-1, states)
        number = parts.pop("number").astype(np.int64)
        self._rows = _Rows(number.reshape(self._rows.number.shape), **parts)


def of_release(problem: Problem, counts: PrivateCounts) -> Knowledge:
    """What one cumulative release says (streams)."""
    knowledge = Knowledge(problem)
    if counts.users:
        knowledge.add(counts)
    return knowledge


def _probabilities(transitions: FloatArray) -> FloatArray:
    """Rows that sum to one, from noisy counts; even ones where nothing is left."""
    kept = np.maximum(transitions, 0.0)
    total = kept.sum(axis=-1, keepdims=True)
    even = np.full_like(kept, 1 / kept.shape[-1])
    return np.where(total > 0, kept / np.where(total > 0, total, 1.0), even)


def _visits(
    counts: PrivateCounts, steps: IntArray, states: IntArray, problem: Problem
) -> tuple[FloatArray, FloatArray]:
    """Visits of the played rows and the variance of their noise, from the best look there is."""
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
    coming = before.sum(axis=0) if len(before) else counts.users * _even(problem.start)
    shared = np.bincount(states[last], minlength=size)[states[last]]
    visits[last] = coming[states[last]] / shared
    variance[last] = len(before) * noise["transitions"] / shared**2
    return visits, variance


def _even(start: BoolArray) -> FloatArray:
    return np.asarray(start / start.sum(), np.float64)
