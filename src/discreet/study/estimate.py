"""What a study knows: all its releases, pooled, what they recommend, and what that is worth.

It is post-processing of what was released, whatever the learner: reading it costs no privacy. A
release has the weight n/(n + variance of one counter), so that a small one adds little noise.
Counts are used as they were released, not projected: where the visits of a row stand out of their
noise, its estimate has no bias but that of a ratio, and what noise and chance make of it has a
known variance (`learners.estimate`).

**Recommend or defer.** The action that the learner prefers (`BatchLearner.greedy`; without one, the
best of the estimate) is recommended where its value exceeds that of the default, the first possible
action (what is done today), by more than two standard errors. Elsewhere the study *defers*: the
default stays. The difference is Q(a) - Q(default), both followed by the policy that is recommended
from there on, and its variance is that of both rows (sampling and noise), and (P(a) - P(default))²
times the variance of the next states' values. States of which nothing is known are worth what the
others are on average, plus or minus (steps left)/sqrt 12: where there are many of them, as after
many small releases, a difference that lies in where actions lead comes out too small (0.20 for 0.44
with a third of the next states unknown): the study errs towards deferring.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray, Plain
from discreet.learners.base import PublicFacts
from discreet.learners.estimate import (
    CountSums,
    Estimate,
    ReleasedRows,
    action_values,
    probabilities_of,
)
from discreet.mdp.policies import DeterministicPolicy, Policy, StochasticPolicy
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.privacy.statistics import PrivateCounts

SURE = 2.0
"""Standard errors of a difference above which an action is recommended; and of the visits of a row
above which it is known."""
NORMAL = 1.96
"""Two-sided 95%."""


class Answer(NamedTuple):
    """What a study has to say; rewards in the units of who asks.

    Attributes:
        policy: an action where one is recommended, and the default where the study defers.
        defer: ``bool[H, S]``, where it does.
        alternative: ``int[H, S]``, the action that is compared with the default: the recommended
            one, or the one that comes nearest to it; the default itself where no other is possible.
        difference: ``[H, S]``, how much more the alternative earns than the default from there on.
        standard_error: ``[H, S]``, of the difference; infinite where one of the two is not known.
        value: of the policy, from where episodes begin.
        today: of what is done today, the default everywhere; by the same releases.
    """

    policy: DeterministicPolicy
    defer: BoolArray
    alternative: IntArray
    difference: FloatArray
    standard_error: FloatArray
    value: Estimate
    today: Estimate

    def in_units(self, low: float, high: float) -> "Answer":
        """The same with rewards from ``low`` to ``high`` instead of 0 to 1."""
        scale, steps = high - low, len(self.defer)
        return self._replace(
            difference=self.difference * scale,
            standard_error=self.standard_error * scale,
            value=self.value.in_units(low, high, steps),
            today=self.today.in_units(low, high, steps),
        )


class StudyEstimate:
    """Pooled releases of one problem, all of one mechanism."""

    def __init__(self, problem: PublicFacts, mechanism: BatchMechanism) -> None:
        self._problem = problem
        self._centre = mechanism.centre
        self._per_visit = mechanism.visit_variance
        self._reward_per_visit = mechanism.reward_visit_variance
        shape = problem.shape
        layers = 1 if problem.stationary else shape.horizon
        self._sums = CountSums.empty(layers, shape.states, shape.actions)

    def add(self, counts: PrivateCounts, policy: Policy | None = None) -> None:
        """Take one more release in, of users who followed a policy."""
        noise, rows = counts.noise_variance, np.nonzero(counts.support)
        shares = counts.support / np.maximum(counts.support.sum(axis=-1, keepdims=True), 1)
        if isinstance(policy, DeterministicPolicy | StochasticPolicy):
            shares = policy.distribution(self._problem.shape)
        visits, visit_variance = _visits(counts, rows, shares[rows], self._problem)
        transitions = counts.row_transitions
        if transitions is None:
            transitions = np.zeros((len(visits), self._problem.shape.states))
        told = (rows[0] < len(counts.support) - 1) | counts.last_transitions
        sampling = np.maximum(visits, 0.0)
        batch = ReleasedRows(
            rows,
            np.asarray(transitions, np.float64),
            visits,
            np.asarray(counts.row_rewards, np.float64) + counts.centre * visits,
            sampling=sampling * (1 + self._per_visit),
            reward_sampling=sampling,
            noise=np.where(told, noise.get("transitions", 0.0), 0.0),
            reward_noise=noise["rewards"] + self._reward_per_visit * sampling,
            visit_variance=visit_variance + self._per_visit * sampling,
        )
        weight = counts.users / (counts.users + max(noise.values(), default=0.0))
        self._sums.add(batch, weight, weight)

    def answer(self, preferred: DeterministicPolicy | None = None) -> Answer:
        """What is recommended in place of the default, and what that is worth.

        The interval of the value is plus and minus 1.96 standard errors by linear error
        propagation: the error of every row's r + P·V, times how often the policy visits it. Rows
        are taken as independent, errors as normal, and the policy as if it had not been chosen by
        the same data: an approximation, not a theorem. States in which the policy's action is not
        known are worth 0 in the estimate and up to all remaining rewards in the upper end.

        Args:
            preferred: what the learner would play; by default the best other action, each worth a
                standard error less than it seems.
        """
        shape, default = self._problem.shape, self._problem.shape.first
        horizon, states = default.shape
        chosen, alternative = np.zeros((2, horizon, states), np.int64)
        difference, error = np.zeros((2, horizon, states))
        ahead, spread, every = np.zeros(states), np.zeros(states), np.arange(states)
        for h in reversed(range(horizon)):
            values, variances = self._values(h, ahead)
            rows, today = self._sums.layer(h), (every, default[h])
            chances = probabilities_of(rows.transitions)
            # How far apart actions lead, less what noise and chance make of it: that is in their
            # own variances already.
            seen = np.maximum(rows.visits, 1.0)[..., None]
            doubt = rows.sampling[..., None] * chances * (1 - chances) + rows.noise[..., None]
            doubt = doubt / seen**2
            apart = (chances - chances[today][:, None]) ** 2 - doubt - doubt[today][:, None]
            apart = np.maximum(apart, 0.0) @ spread
            gaps = values - values[today][:, None]
            errors = np.sqrt(variances + variances[today][:, None] + apart)
            others = np.where(shape.mask[h], np.maximum(gaps - errors, -1e300), -np.inf)
            others[today] = -np.inf
            second = np.where(np.isinf(others).all(axis=1), default[h], others.argmax(axis=1))
            best = second if preferred is None else preferred.actions[h]
            alternative[h] = np.where(best != default[h], best, second)
            difference[h], error[h] = gaps[every, alternative[h]], errors[every, alternative[h]]
            sure = (best != default[h]) & (difference[h] > SURE * error[h])
            chosen[h] = np.where(sure, alternative[h], default[h])
            variance = variances[every, chosen[h]]
            known = np.isfinite(variance)
            typical = values[every, chosen[h]][known].mean() if known.any() else 0.0
            ahead = np.where(known, values[every, chosen[h]], typical)
            spread = chances[every, chosen[h]] ** 2 @ spread + variance
            spread = np.where(known, spread, (horizon - h) ** 2 / 12)
        policy = DeterministicPolicy(chosen)
        worth = self._worth(policy), self._worth(DeterministicPolicy(default))
        return Answer(policy, chosen == default, alternative, difference, error, *worth)

    def _values(self, h: int, ahead: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows = self._sums.layer(h)
        return action_values(rows, ahead, centre=self._centre, deviations=SURE, signed=True)

    def _worth(self, policy: DeterministicPolicy) -> Estimate:
        horizon, states = policy.actions.shape
        known = np.zeros((horizon, states), np.bool_)
        ahead, errors = np.zeros(states), np.zeros((horizon, states))
        for h in reversed(range(horizon)):
            chosen = (np.arange(states), policy.actions[h])
            values, variances = (part[chosen] for part in self._values(h, ahead))
            known[h] = np.isfinite(variances)
            ahead = np.where(known[h], values, 0.0)
            errors[h] = np.sqrt(np.where(known[h], variances, 0.0))
        share = np.asarray(self._problem.start / self._problem.start.sum())
        if len(self._sums.number) > 1:
            seen = np.maximum(self._sums.layer(0).visits.sum(axis=1), 0.0) * self._problem.start
            share = seen / seen.sum() if seen.sum() > 0 else share
        value, lost, total = float(share @ ahead), 0.0, np.zeros(self._sums.number.shape)
        for h in range(horizon):
            chosen, layer = (np.arange(states), policy.actions[h]), h if len(total) > 1 else 0
            total[layer, *chosen] += share * errors[h]  # steps that are one share their errors
            lost += float(share[~known[h]].sum()) * (horizon - h)
            moved = probabilities_of(self._sums.layer(h).transitions[chosen])
            share = np.where(known[h], share, 0.0) @ moved
        off = NORMAL * float(np.sqrt((total**2).sum()))
        value, low, high = np.clip([value, value - off, value + off + lost], 0.0, horizon)
        return Estimate(float(value), float(low), float(high))

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


def _visits(
    counts: PrivateCounts, rows: tuple[IntArray, ...], shares: FloatArray, problem: PublicFacts
) -> tuple[FloatArray, FloatArray]:
    """Visits of the supported rows and the variance of their noise, by the best measurement.

    ``shares`` are how often the policy takes the action of each row.
    """
    (steps, states, _), noise = rows, counts.noise_variance
    if counts.row_visits is not None:
        return counts.row_visits, np.full(len(steps), noise["visits"])
    moves = np.asarray(counts.row_transitions)
    visits = moves.sum(axis=-1)
    variance = np.full(len(steps), problem.shape.states * noise["transitions"])
    if counts.last_transitions:
        return visits, variance
    # The last step shows no transitions: who is there came in by the step before, and how many of
    # them took which action is known but for chance.
    last = steps == problem.shape.horizon - 1
    before = moves[steps == problem.shape.horizon - 2]
    first = counts.users * (problem.start / problem.start.sum())
    coming, share = before.sum(axis=0) if len(before) else first, shares[last]
    visits[last] = coming[states[last]] * share
    variance[last] = len(before) * noise["transitions"] * share**2
    variance[last] += np.maximum(visits[last], 0.0) * (1 - share)
    return visits, variance
