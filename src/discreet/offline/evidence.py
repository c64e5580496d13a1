"""What the release says of each row, with the variances it carries.

A *row* is a slot (h, s, a), or a state (h, s) with all its slots added up: what behaviour does
there, whatever its probabilities are. Of each row the evidence has the sums N (visits), T
(transitions) and R (rewards), and the variances of their noise after flow consistency.

**Noise on the visits.** Without constraints, N of a row has the noise of its C released counters,
C·sigma² (C = S, or 1 at a collapsed last step). At the first step the layer sums to n. Later the
slots of a state sum to what flows in, which is measured by one counter of each of the K rows of the
layer before. So with k slots, O = k·C·sigma² (out), I = K·sigma² (in) and share = I/(I + O), a
state's visits keep the variance share·O and a slot's C·sigma²·(1 - (1 - share)/k). Further
constraints make them smaller still; with equal layers this is share = 1/2.
"""

from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray
from discreet.mdp.counts import dense_of
from discreet.privacy.projection.flow import consistent_flow
from discreet.privacy.statistics import PrivateCounts

CENTRE = 0.5
"""Centred rewards are sums of r - 1/2."""


class Rows(NamedTuple):
    """Sums over rows and their variances, all ``[layers, ...]`` with one layer per step or one.

    Attributes:
        transitions: T, ``[..., S]``.
        visits: N.
        rewards: R, sums of rewards.
        sampling: M, visits weighted as variances are (N itself unless steps are pooled).
        transition_noise: F, variance of the noise on one entry of T.
        reward_noise: G, variance of the noise on R if N were exact.
        visit_noise: D, variance of the noise on N.
        anchor: the mean reward at which noise on N does not move the mean.
        drawn: 1 where the mean reward is estimated from people's rewards, 0 where it is known.
    """

    transitions: FloatArray
    visits: FloatArray
    rewards: FloatArray
    sampling: FloatArray
    transition_noise: FloatArray
    reward_noise: FloatArray
    visit_noise: FloatArray
    anchor: FloatArray
    drawn: FloatArray

    def layer(self, step: int) -> "Rows":
        """The rows of one step."""
        return Rows(*(array[step] for array in self))

    @property
    def certain(self) -> FloatArray:
        """Visits that noise does not explain: two standard deviations below those counted."""
        certain: FloatArray = self.visits - 2 * np.sqrt(self.visit_noise)
        return certain

    @property
    def known(self) -> BoolArray:
        """Rows in which somebody was, beyond the noise."""
        return np.asarray(self.certain > 0.5)

    @property
    def probabilities(self) -> FloatArray:
        """Estimated P, ``[..., S]``; zeros where nobody was."""
        return self.transitions / _some(self.visits)[..., None]

    @property
    def means(self) -> FloatArray:
        """Estimated mean rewards, as they are: noise can push them out of [0, 1]."""
        return self.rewards / _some(self.visits)


class Evidence(NamedTuple):
    """All rows of a release.

    Attributes:
        users: n.
        slots: rows ``[H, S, K]``.
        behaviour: rows ``[H, S]``.
        support: ``bool[H, S, K]``.
        pooled: rows ``[1, S, K]`` summed over steps, or None; behaviour is never pooled.
        stationary: ``bool[S, K]``, the slots whose rows are taken from ``pooled``.
        told: ``[H, S, K]``, what behaviour does, if it is public.
    """

    users: int
    slots: Rows
    behaviour: Rows
    support: BoolArray
    pooled: Rows | None = None
    stationary: BoolArray | None = None
    told: FloatArray | None = None

    def at(self, step: int) -> Rows:
        """The rows ``[S, K]`` to use at a step."""
        own = self.slots.layer(step)
        if self.pooled is None or self.stationary is None:
            return own
        chosen = self.stationary
        masks = (chosen[..., None], *[chosen] * (len(own) - 1))
        pairs = zip(masks, self.pooled.layer(0), own, strict=True)
        return Rows(*(np.where(mask, pooled, step_) for mask, pooled, step_ in pairs))

    @property
    def shares(self) -> FloatArray:
        """``[H, S, K]``, the share of each slot in what behaviour does: as told, or estimated."""
        if self.told is not None:
            return self.told
        return self.slots.visits / _some(self.behaviour.visits)[..., None]

    @property
    def initial(self) -> FloatArray:
        """``[S]``, the estimated distribution of first states."""
        first: FloatArray = self.behaviour.visits[0] / self.users
        return first


def gather(counts: PrivateCounts, known_rewards: FloatArray, *, keep_last: bool) -> Evidence:
    """The evidence of one release.

    Args:
        counts: the release, in slots.
        known_rewards: ``[H, S, K]``, the mean reward where it is public, NaN elsewhere.
        keep_last: whether transitions of the last step mean next states (see `slots`).
    """
    noise = counts.noise_variance["transitions"]
    columns = np.full(len(counts.support), float(counts.support.shape[1]))
    if not keep_last:
        columns[-1] = 1.0
    transitions = _consistent(counts, noise, columns)
    slots = _slots(counts, transitions, columns, known_rewards)
    return Evidence(counts.users, slots, _behaviour(slots, counts.support, columns), counts.support)


def _consistent(counts: PrivateCounts, noise: float, columns: FloatArray) -> FloatArray:
    """Flow-consistent transitions ``[H, S, K, S]``.

    A collapsed last row has one true counter y of variance sigma². The projection sees S counters
    y/S of variance sigma²/S, whose sum has the same solution.
    """
    rows = np.array(counts.row_transitions)
    steps, states = np.nonzero(counts.support)[0], rows.shape[1]
    single = (columns < states)[steps]
    rows[single] = rows[single, :1] / states
    if noise:
        variance = np.broadcast_to((noise * columns / states)[:, None, None], counts.support.shape)
        start = counts.support[0].any(axis=1)
        rows = consistent_flow(
            rows, users=counts.users, support=counts.support, start=start, variance=variance
        ).transitions
    dense: FloatArray = dense_of(rows, counts.support)
    return dense


def _slots(
    counts: PrivateCounts, transitions: FloatArray, columns: FloatArray, known: FloatArray
) -> Rows:
    support, variance = counts.support, counts.noise_variance
    visits, noise = transitions.sum(axis=-1), variance["transitions"]
    public = ~np.isnan(known)
    rewards = np.where(public, np.nan_to_num(known) * visits, 0.0)
    if counts.rewards is not None:
        sums = counts.rewards + (CENTRE * visits if counts.centred else 0.0)
        rewards = np.where(public, rewards, sums)
    centre = CENTRE if counts.centred else 0.0
    return Rows(
        transitions,
        visits,
        rewards,
        sampling=visits,
        transition_noise=np.where(support, noise, 0.0),
        reward_noise=np.where(support & ~public, variance.get("rewards", 0.0), 0.0),
        visit_noise=noise * slot_factors(support, columns),
        anchor=np.where(public, np.nan_to_num(known), centre),
        drawn=np.where(public, 0.0, 1.0),
    )


def _behaviour(slots: Rows, support: BoolArray, columns: FloatArray) -> Rows:
    """All slots of a state added up; no probabilities of behaviour are needed.

    Known rewards leave the noise of who took which action: D·(r - mean)² for each slot.
    """
    visits, rewards = slots.visits.sum(axis=2), slots.rewards.sum(axis=2)
    means = rewards / _some(visits)
    public = slots.drawn == 0
    mixing = slots.visit_noise * public * (slots.anchor - means[..., None]) ** 2
    noise = float(slots.transition_noise.max())
    some_drawn = (support & ~public).any(axis=2)
    centre = (slots.anchor * ~public).max()
    return Rows(
        slots.transitions.sum(axis=2),
        visits,
        rewards,
        sampling=visits,
        transition_noise=slots.transition_noise.sum(axis=2),
        reward_noise=(slots.reward_noise + mixing).sum(axis=2),
        visit_noise=noise * state_factors(support, columns),
        anchor=np.where(some_drawn, centre, means),
        drawn=np.ones(visits.shape),
    )


def state_factors(support: BoolArray, columns: FloatArray) -> FloatArray:
    """``[H, S]``, variance of a state's visits per variance of a counter (module docstring).

    >>> state_factors(np.ones((3, 4, 2), bool), np.array([4.0, 4, 1])).round(2)[:, 0].tolist()
    [6.0, 4.0, 1.6]
    """
    out, share = _out_and_share(support, columns)
    return out * share


def slot_factors(support: BoolArray, columns: FloatArray) -> FloatArray:
    """``[H, S, K]``, variance of a slot's visits per variance of a counter.

    >>> slot_factors(np.ones((3, 4, 2), bool), np.array([4.0, 4, 1])).round(2)[:, 0, 0].tolist()
    [3.5, 3.0, 0.9]
    """
    share = _out_and_share(support, columns)[1]
    slots = np.maximum(support.sum(axis=2), 1)
    kept = (columns[:, None] * (1 - (1 - share) / slots))[..., None]
    return np.asarray(kept * support)


def _out_and_share(support: BoolArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance of a state's visits by what flows out, and the share that constraints leave."""
    out = support.sum(axis=2) * columns[:, None]
    inflow = np.empty_like(out)
    inflow[1:] = support.sum(axis=(1, 2))[:-1, None]
    inflow[0] = out[0].sum() - out[0]  # the others of the first layer, whose sum is n
    return out, inflow / np.maximum(inflow + out, 1e-300)


def _some(visits: FloatArray) -> FloatArray:
    """Visits to divide by."""
    return np.maximum(visits, 1e-9)


# The variance of the estimated value of a row.
#
# The value of a row is r + P·f, where f is the value of the next states. Its estimate has the
# variance
#
#     v = [M·(Var_P f + r(1 - r)) + F·sum (f - P·f)² + G + D·(r - anchor)² + (2·reach·M/N)²]
#         / (N - 2·sqrt D)²:
#
# sampling (reward bits are Bernoulli), noise on the transition counters (it moves P·f only as far
# as
# f differs between states), noise on the rewards and on the visits, and a lower-order term for rows
# seen a few times; ``reach`` is the largest value that is at stake. Only visits that noise does not
# explain count in the denominator.


class Estimate(NamedTuple):
    """Estimated P·f of rows, and the variance of r + P·f."""

    mean: FloatArray
    variance: FloatArray


def next_value(rows: Rows, probabilities: FloatArray, values: FloatArray, reach: float) -> Estimate:
    """P·f without the reward."""
    mean, square = _next(rows, probabilities, values, reach)
    return Estimate(mean, square / _certain(rows) ** 2)


def row_value(
    rows: Rows,
    probabilities: FloatArray,
    rewards: FloatArray,
    values: FloatArray,
    reach: float,
) -> Estimate:
    """P·f, with the variance of r + P·f.

    Args:
        rows: of one step.
        probabilities: their P.
        rewards: their mean rewards in [0, 1].
        values: f, ``[S]``.
        reach: the steps left.
    """
    mean, square = _next(rows, probabilities, values, reach)
    square = square + rows.drawn * rows.sampling * rewards * (1 - rewards)
    square = square + rows.reward_noise + rows.visit_noise * (rewards - rows.anchor) ** 2
    return Estimate(mean, np.maximum(square, 0.0) / _certain(rows) ** 2)


def _next(
    rows: Rows, probabilities: FloatArray, values: FloatArray, reach: float
) -> tuple[FloatArray, FloatArray]:
    """P·f and the variance of the sum that it is divided from."""
    mean: FloatArray = probabilities @ values
    total: FloatArray = probabilities @ (values * values)
    spread = np.maximum(total - mean * mean, 0.0)
    # The sum over states of (f - P·f)², without an array of that size.
    count, first, second = len(values), values.sum(), (values * values).sum()
    distance = np.maximum(second - 2 * mean * first + count * mean * mean, 0.0)
    few = 2 * reach * rows.sampling / np.maximum(rows.visits, 1e-9)
    square = rows.sampling * spread + rows.transition_noise * distance + few * few
    return mean, square


def _certain(rows: Rows) -> FloatArray:
    return np.maximum(rows.certain, 1e-9)


# Do the data contradict stationary dynamics? A gate in front of pooling; post-processing only.
#
# Of every row (s, a), each component x_h of its estimated transitions has one value per step, with
# information I_h = N²/(F + D·x² + M·max(x, 0.01)), where the step saw the row at all (N > sqrt D).
# Around their weighted mean, the sum over steps and components of I_h·(x_h - mean)² is, if the row
# is
# stationary, the chi-square of multinomial counts, with one degree of freedom less than there are
# next states for each step but one. Mean rewards have N²/(G + D/4 + M·max(r(1 - r), 0.01)) and one
# degree for each step but one. Wilson and Hilferty make them normal z. A row is pooled if its own z
# stay below 4g and those of all rows together below 2g, with g = 1 + 0.15·ln+(n/1e4) for the small
# biases that many users make visible.
#
# The gate refuses what the data contradict. It cannot see a difference below the noise, or at a
# step where hardly anybody took the action: a declaration remains the word of who gives it.


ROW_LIMIT = 4.0
GLOBAL_LIMIT = 2.0
_LEAST_SPREAD = 0.01


class _Square(NamedTuple):
    """Chi-squares ``[S, K]`` and their degrees of freedom."""

    value: FloatArray
    freedom: FloatArray


def stationary_rows(slots: Rows, users: int, tested: BoolArray) -> BoolArray:
    """``bool[S, K]``: the rows that may be pooled; none if all rows together contradict it.

    Args:
        slots: rows ``[H, S, K]``.
        users: n.
        tested: ``bool[H, S, K]``, the rows that stand for one declared action.
    """
    limit = 1 + 0.15 * np.log(max(users / 1e4, 1.0))
    passed: BoolArray = np.ones(tested.shape[1:], np.bool_)
    for square in (_transitions(slots, tested), _rewards(slots, tested)):
        together = _normal(square.value.sum(), square.freedom.sum())
        if together >= GLOBAL_LIMIT * limit:
            return np.zeros_like(passed)
        passed &= _normal(square.value, square.freedom) < ROW_LIMIT * limit
    return passed


def _transitions(slots: Rows, tested: BoolArray) -> _Square:
    """One of the next states after the other: no array of all of them is made."""
    seen = _seen(slots, tested)
    visits = np.maximum(slots.visits, 1e-9)
    total, freedom = np.zeros(tested.shape[1:]), np.zeros(tested.shape[1:])
    for state in range(slots.transitions.shape[-1]):
        shares = slots.transitions[..., state] / visits
        noise = slots.transition_noise + slots.visit_noise * shares**2
        spread = noise + slots.sampling * np.maximum(shares, _LEAST_SPREAD)
        square = _square(shares, spread, slots.visits, seen)
        total += square.value
        freedom += square.freedom * (state > 0)  # shares add up to one
    return _Square(total, freedom)


def _rewards(slots: Rows, tested: BoolArray) -> _Square:
    means = slots.rewards / np.maximum(slots.visits, 1e-9)
    inside = np.clip(means, 0, 1)
    noise = slots.reward_noise + slots.visit_noise / 4
    spread = noise + slots.sampling * np.maximum(inside * (1 - inside), _LEAST_SPREAD)
    return _square(means, spread, slots.visits, _seen(slots, tested) & (slots.drawn > 0))


def _seen(slots: Rows, tested: BoolArray) -> BoolArray:
    """Rows that enter the test."""
    above: BoolArray = (slots.visits > np.sqrt(slots.visit_noise)) & (slots.visits > 0)
    return above & tested


def _square(shares: FloatArray, spread: FloatArray, visits: FloatArray, seen: BoolArray) -> _Square:
    """Weighted squares around the mean over steps."""
    weight = np.where(seen, visits**2 / np.maximum(spread, 1e-300), 0.0)
    mean = (weight * shares).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    value: FloatArray = (weight * (shares - mean) ** 2).sum(axis=0)
    freedom = np.maximum(seen.sum(axis=0) - 1.0, 0.0)
    return _Square(np.where(freedom > 0, value, 0.0), freedom)


def _normal(value: FloatArray, freedom: FloatArray) -> FloatArray:
    """Wilson and Hilferty's normal z of a chi-square; minus infinity without freedom."""
    some = np.maximum(freedom, 1.0)
    z = ((value / some) ** (1 / 3) - (1 - 2 / (9 * some))) / np.sqrt(2 / (9 * some))
    return np.where(freedom > 0, z, -np.inf)


# Rows summed over steps, for dynamics that the caller declares stationary.
#
# A step at which few people take an action adds noise and hardly any evidence, so each step enters
# with the credit w = m/(m + sigma²/0.1), m the visits that the pooled model predicts there: sums
# carry w, variances w². Two passes: the first model is pooled without credit. Behaviour is never
# pooled: what it does may change from step to step.


EASE = 0.1
_PASSES = 2


def pooled(evidence: Evidence, named: BoolArray) -> Evidence:
    """The evidence with rows summed over steps, where the data do not contradict it."""
    slots = evidence.slots
    credit = np.ones(slots.visits.shape)
    noise = float(slots.transition_noise.max())
    if noise > 0:
        for _ in range(_PASSES):
            visits = _predicted(evidence, _summed(slots, credit))
            credit = visits / (visits + noise / EASE)
    alike = stationary_rows(slots, evidence.users, named)
    return evidence._replace(pooled=_summed(slots, credit), stationary=alike)


def _summed(slots: Rows, credit: FloatArray) -> Rows:
    """One layer of rows: sums with the credit of each step, variances with its square."""

    def total(values: FloatArray, weight: FloatArray) -> FloatArray:
        added: FloatArray = np.einsum("hsk...,hsk->sk...", values, weight)[None]
        return added

    square = credit**2
    return Rows(
        total(slots.transitions, credit),
        total(slots.visits, credit),
        total(slots.rewards, credit),
        sampling=total(slots.sampling, square),
        transition_noise=total(slots.transition_noise, square),
        reward_noise=total(slots.reward_noise, square),
        visit_noise=total(slots.visit_noise, square),
        anchor=slots.anchor[:1],
        drawn=slots.drawn[:1],
    )


def _predicted(evidence: Evidence, model: Rows) -> FloatArray:
    """``[H, S, K]``, the visits of a run of the pooled model with the shares of each step."""
    probabilities, shares = model.probabilities[0], evidence.shares
    visits, state = np.zeros(shares.shape), evidence.initial
    for step, share in enumerate(shares):
        visits[step] = state[:, None] * share
        state = np.einsum("sk,skt->t", visits[step], probabilities)
        state = state / max(float(state.sum()), 1e-12)
    return evidence.users * visits
