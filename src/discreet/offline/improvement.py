"""What a release says of logged episodes, and where that allows a better policy than behaviour.

**Rows.** A row is a slot (h, s, a), or a state (h, s) with all its slots added up: what behaviour
does there, whatever its probabilities are. Sums and variances are those of
`discreet.learners.estimate`, with the noise that flow consistency leaves on the visits: without
constraints, N of a row has the noise of its C released counters, C·sigma² (C = S, or 1 at a
collapsed last step). At the first step the layer sums to n. Later the slots of a state sum to what
flows in, which is measured by one counter of each of the K rows of the layer before. So with k
slots, O = k·C·sigma² (out), I = K·sigma² (in) and share = I/(I + O), a state's visits keep the
variance share·O and a slot's C·sigma²·(1 - (1 - share)/k). Further constraints make them smaller
still; with equal layers this is share = 1/2. Only visits beyond two standard deviations are
certain; the lower-order term has the reach 2·(steps left).

**Steps are pooled** where the caller declares stationary dynamics and the data do not contradict
it. A step at which few people take an action adds noise and hardly any evidence, so each step
enters with the weight w = m/(m + sigma²/0.1), m the visits that the pooled model predicts there.
Two passes: the first model is pooled without weights. Behaviour is never pooled: what it does may
change from step to step. The gate: of every row (s, a), each component x_h of its estimated
transitions has one value per step, with information I_h = N²/(F + D·x² + M·max(x, 0.01)), where the
step saw the row at all (N > sqrt D). Around their weighted mean, the sum over steps and components
of I_h·(x_h - mean)² is, if the row is stationary, the chi-square of multinomial counts, with one
degree of freedom less than there are next states for each step but one. Mean rewards have
N²/(G + D/4 + M·max(r(1 - r), 0.01)) and one degree for each step but one. The limits of z
are 2g for all rows together and 4g for one, g = 1 + 0.15·ln+(users/1e4): small biases that many
users make visible are tolerated. The gate refuses what the data contradict. It cannot see a
difference below the noise, or at a step where hardly anybody took the action: a declaration remains
the word of who gives it.

**The value of behaviour at one step.** *Own step*: all slots of a state added up. No probabilities
of behaviour are needed, and none are known. *With a pool* (rows of actions summed over steps), the
same value is also sum b_a·Q_a, where b_a is the share of slot a at this step and Q_a its pooled
value. Its variance is

    sum b_a²·v_a + [N·sum b_a·(Q_a - V_b)² + sum D_a·(Q_a - V_b)²] / (N - 2·sqrt D)² + outside:

that of the pooled rows, that of the shares (sampled, and noisy), and that of slots that are not
known, whose value is taken as uniform: (their share, two standard deviations up)²·(H - h)²/12.
Whichever variance is smaller is used. What is won later (`kept_gain`) is carried back through
behaviour in the same two ways; slots that are not known then add nothing. Shares that are *told*
(public: a trial, a rule, an algorithm) have no variance, and a state whose slots are all known is
then known even if nobody is seen in it at this step.

**Pessimistic improvement relative to behaviour.** Pessimism about values alone is not safe: it
avoids states that are badly covered even where behaviour does well in them. Here every comparison
is with behaviour in the same state, backward over steps, with V_b the estimated value of behaviour,
var its variance, and Delta a pessimistic estimate of what has been won by later deviations:

* *deviate* to a slot a that is known: r_a + P_a·(V_b' + Delta') - V_b minus ``width`` standard
  deviations, of variance v_a + max(v_b - b_a²·v_a, 0) + sum (P_a - P_b)²·var', where b_a is the
  estimated share of a in behaviour (its part of v_b is the same data, not new noise);
* *defer*: P_b·Delta' minus ``width`` standard deviations, at least 0; 0 where behaviour is unknown.

The larger one is taken, ties defer. States in which behaviour is unknown get the mean value of
their layer with the variance of a uniform value, and always defer.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.estimate import (
    NOISE,
    TOTAL,
    VISIT_VARIANCE,
    VISITS,
    CountSums,
    ReleasedRows,
    RowSums,
    next_value,
    reward_square,
    weight_of,
)
from discreet.learners.pooling import LEAST_SPREAD
from discreet.offline.release import OTHER
from discreet.privacy.projection.flow import consistent_flow
from discreet.privacy.projection.measurements import Measurements
from discreet.privacy.statistics import PrivateCounts

EASE = 0.1
_PASSES = 2
_TIE = 1e-9


class SlotRows(NamedTuple):
    """Rows, and what is known of their rewards.

    Attributes:
        rows: sums and variances.
        anchor: the mean reward at which noise on the visits does not move the mean.
        drawn: 1 where the mean reward is estimated from people's rewards, 0 where it is known.
    """

    rows: RowSums
    anchor: FloatArray
    drawn: FloatArray

    def layer(self, step: int) -> "SlotRows":
        """The rows of one step."""
        return SlotRows(
            RowSums(*(array[step] for array in self.rows)), self.anchor[step], self.drawn[step]
        )

    @property
    def visits(self) -> FloatArray:
        return self.rows.visits

    @property
    def certain(self) -> FloatArray:
        """Visits that noise does not explain: two standard deviations below those counted."""
        return self.rows.certain(2)

    @property
    def known(self) -> BoolArray:
        """Rows in which somebody was, beyond the noise."""
        return np.asarray(self.certain > 0.5)

    @property
    def probabilities(self) -> FloatArray:
        """Estimated P, ``[..., S]``; zeros where nobody was."""
        return self.rows.transitions / _some(self.visits)[..., None]

    @property
    def means(self) -> FloatArray:
        """Estimated mean rewards, as they are: noise can push them out of [0, 1]."""
        return self.rows.rewards / _some(self.visits)

    def ahead(self, following: FloatArray, reach: float) -> tuple[FloatArray, FloatArray]:
        """P·f and its variance; ``reach`` is the largest value that is at stake."""
        mean, square = next_value(self.rows, self.probabilities, following, 2 * reach)
        return mean, square / _some(self.certain) ** 2

    def value(
        self, rewards: FloatArray, following: FloatArray, reach: float
    ) -> tuple[FloatArray, FloatArray]:
        """P·f, with the variance of r + P·f for mean rewards in [0, 1]."""
        mean, square = next_value(self.rows, self.probabilities, following, 2 * reach)
        sampling, noise = self.drawn * self.rows.sampling, self.rows.reward_noise
        square = square + reward_square(
            sampling, noise, self.rows.visit_variance, rewards, self.anchor
        )
        return mean, np.maximum(square, 0.0) / _some(self.certain) ** 2


class Evidence(NamedTuple):
    """All rows of a release.

    Attributes:
        users: n.
        released: the slots as they were released, made consistent.
        slots: their sums ``[H, S, K]``.
        anchor: ``[H, S, K]``, of `SlotRows`.
        drawn: ``[H, S, K]``.
        behaviour: rows ``[H, S]``.
        support: ``bool[H, S, K]``.
        pooled: sums ``[1, S, K]`` over steps, or None.
        stationary: ``bool[S, K]``, the slots whose rows are taken from ``pooled``.
        told: ``[H, S, K]``, what behaviour does, if it is public.
    """

    users: int
    released: ReleasedRows
    slots: CountSums
    anchor: FloatArray
    drawn: FloatArray
    behaviour: SlotRows
    support: BoolArray
    pooled: CountSums | None = None
    stationary: BoolArray | None = None
    told: FloatArray | None = None

    def at(self, step: int) -> SlotRows:
        """The rows ``[S, K]`` to use at a step."""
        own = SlotRows(self.slots.layer(step), self.anchor[step], self.drawn[step])
        if self.pooled is None or self.stationary is None:
            return own
        chosen, over_steps = self.stationary, self.pooled.layer(0)
        masks = (chosen[..., None], *[chosen] * (len(over_steps) - 1))
        pairs = zip(masks, over_steps, own.rows, strict=True)
        return SlotRows(
            RowSums(*(np.where(mask, pooled, step_) for mask, pooled, step_ in pairs)),
            np.where(chosen, self.anchor[0], own.anchor),
            np.where(chosen, self.drawn[0], own.drawn),
        )

    @property
    def visits(self) -> FloatArray:
        """``[H, S, K]``, of the slots."""
        return self.slots.reward_sums[..., VISITS]

    @property
    def visit_variance(self) -> FloatArray:
        """``[H, S, K]``, the noise on them."""
        return self.slots.reward_sums[..., VISIT_VARIANCE]

    @property
    def shares(self) -> FloatArray:
        """``[H, S, K]``, the share of each slot in what behaviour does: as told, or estimated."""
        if self.told is not None:
            return self.told
        return self.visits / _some(self.behaviour.visits)[..., None]

    @property
    def initial(self) -> FloatArray:
        """``[S]``, the estimated distribution of first states."""
        first: FloatArray = self.behaviour.visits[0] / self.users
        return first


def gather(counts: PrivateCounts, given_rewards: FloatArray, *, last_transitions: bool) -> Evidence:
    """The evidence of one release in slots; ``given_rewards[H, S, K]`` are NaN where not public.

    ``last_transitions``: transitions of the last step mean next states (see `release`).
    """
    support, variance = counts.support, counts.noise_variance
    noise, rows = variance["transitions"], np.nonzero(support)
    columns = np.full(len(support), float(support.shape[1]))
    if not last_transitions:
        columns[-1] = 1.0
    transitions = _consistent(counts, noise, columns)
    visits, known = transitions.sum(axis=-1), given_rewards[rows]
    public, centre = ~np.isnan(known), counts.centre
    rewards = np.where(public, np.nan_to_num(known) * visits, 0.0)
    if counts.row_rewards is not None:
        rewards = np.where(public, rewards, counts.row_rewards + centre * visits)
    released = ReleasedRows(
        rows,
        transitions,
        visits,
        rewards,
        sampling=visits,
        reward_sampling=visits,
        noise=noise,
        reward_noise=np.where(public, 0.0, variance.get("rewards", 0.0)),
        visit_variance=noise * slot_factors(support, columns)[rows],
    )
    slots = CountSums.empty(*support.shape)
    slots.add(released, 1.0, 1.0)
    everywhere = ~np.isnan(given_rewards)
    anchor = np.where(everywhere, np.nan_to_num(given_rewards), centre)
    drawn = np.where(everywhere, 0.0, 1.0)
    behaviour = _behaviour(slots, support, columns, anchor, drawn, noise)
    return Evidence(counts.users, released, slots, anchor, drawn, behaviour, support)


def _consistent(counts: PrivateCounts, noise: float, columns: FloatArray) -> FloatArray:
    """Flow-consistent transitions ``[R, S]``.

    A collapsed last row has one true counter y of variance sigma². The projection sees S counters
    y/S of variance sigma²/S, whose sum has the same solution.
    """
    rows = np.array(counts.row_transitions, np.float64)
    steps, states = np.nonzero(counts.support)[0], rows.shape[1]
    single = (columns < states)[steps]
    rows[single] = rows[single, :1] / states
    if not noise:
        return rows
    variance = np.broadcast_to((noise * columns / states)[:, None, None], counts.support.shape)
    start = counts.support[0].any(axis=1)
    return consistent_flow(
        rows,
        users=counts.users,
        support=counts.support,
        start=start,
        variance=variance,
        measurements=Measurements(counts.row_visits, counts.noise_variance.get("visits", 1.0)),
    ).transitions


def _behaviour(
    slots: CountSums,
    support: BoolArray,
    columns: FloatArray,
    anchor: FloatArray,
    drawn: FloatArray,
    noise: float,
) -> SlotRows:
    """All slots of a state added up; no probabilities of behaviour are needed.

    Known rewards leave the noise of who took which action: D·(r - mean)² for each slot.
    """
    layers = [slots.layer(step) for step in range(len(support))]
    rows = RowSums(*(np.stack(arrays) for arrays in zip(*layers, strict=True)))
    visits, rewards = rows.visits.sum(axis=2), rows.rewards.sum(axis=2)
    means, public = rewards / _some(visits), drawn == 0
    mixing = rows.visit_variance * public * (anchor - means[..., None]) ** 2
    some_drawn, centre = (support & ~public).any(axis=2), (anchor * ~public).max()
    return SlotRows(
        RowSums(
            rows.transitions.sum(axis=2),
            visits,
            rewards,
            sampling=visits,
            noise=noise * support.sum(axis=2),
            reward_noise=(rows.reward_noise + mixing).sum(axis=2),
            visit_variance=noise * state_factors(support, columns),
        ),
        np.where(some_drawn, centre, means),
        np.ones(visits.shape),
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
    out = support.sum(axis=2) * columns[:, None]
    inflow = np.empty_like(out)
    inflow[1:] = support.sum(axis=(1, 2))[:-1, None]
    inflow[0] = out[0].sum() - out[0]  # the others of the first layer, whose sum is n
    return out, inflow / np.maximum(inflow + out, 1e-300)


def _some(visits: FloatArray) -> FloatArray:
    return np.maximum(visits, 1e-9)


def pooled(evidence: Evidence, named: BoolArray) -> Evidence:
    """The evidence with rows summed over steps, where the data do not contradict it."""
    released, weight = evidence.released, np.ones(evidence.support.shape)
    model = _over_steps(evidence, weight)
    noise = float(released.noise)
    if noise > 0:
        for _ in range(_PASSES):
            weight = weight_of(_predicted(evidence, model), noise, EASE)
            model = _over_steps(evidence, weight)
    return evidence._replace(pooled=model, stationary=stationary_rows(evidence, named))


def _over_steps(evidence: Evidence, weight: FloatArray) -> CountSums:
    sums = CountSums.empty(1, *evidence.support.shape[1:])
    weights = weight[evidence.support]
    sums.add(evidence.released, weights, weights)
    return sums


def _predicted(evidence: Evidence, model: CountSums) -> FloatArray:
    rows, shares = model.layer(0), evidence.shares
    probabilities = rows.transitions / _some(rows.visits)[..., None]
    visits, state = np.zeros(shares.shape), evidence.initial
    for step, share in enumerate(shares):
        visits[step] = state[:, None] * share
        state = np.einsum("sk,skt->t", visits[step], probabilities)
        state = state / max(float(state.sum()), 1e-12)
    return evidence.users * visits


def stationary_rows(evidence: Evidence, tested: BoolArray) -> BoolArray:
    """``bool[S, K]``: the rows that may be pooled; none if all rows together contradict it.

    ``tested[H, S, K]`` marks the rows that stand for one declared action.
    """
    visits, visit_variance = evidence.visits, evidence.visit_variance
    seen = (visits > np.sqrt(visit_variance)) & (visits > 0) & tested
    divisor, slots = np.maximum(visits, 1e-9), evidence.slots
    squares, freedoms = np.zeros((2, *tested.shape[1:])), np.zeros((2, *tested.shape[1:]))
    noise = slots.transition_sums[..., NOISE]
    for state in range(
        slots.transitions.shape[1]
    ):  # one after the other: no array of all of them is made
        counted = np.where(slots.number >= 0, slots.transitions[slots.number, state], 0.0)
        shares = counted / divisor
        spread = noise + visit_variance * shares**2 + visits * np.maximum(shares, LEAST_SPREAD)
        square, freedom = _chi_square(shares, visits, spread, seen)
        squares[0] += square
        freedoms[0] += freedom * (state > 0)  # shares add up to one
    means = slots.reward_sums[..., TOTAL] / divisor
    inside = np.clip(means, 0, 1)
    spread = slots.reward_sums[..., NOISE] + visit_variance / 4
    spread = spread + visits * np.maximum(inside * (1 - inside), LEAST_SPREAD)
    squares[1], freedoms[1] = _chi_square(means, visits, spread, seen & (evidence.drawn > 0))
    limit = 1 + 0.15 * max(0.0, math.log(max(evidence.users, 1) / 1e4))
    passed: BoolArray = np.ones(tested.shape[1:], np.bool_)
    for square, freedom in zip(squares, freedoms, strict=True):
        if _normal(square.sum(), freedom.sum()) >= 2 * limit:
            return np.zeros_like(passed)
        passed &= _normal(square, freedom) < 4 * limit
    return passed


def _chi_square(
    values: FloatArray, visits: FloatArray, spread: FloatArray, seen: BoolArray
) -> tuple[FloatArray, FloatArray]:
    weight = np.where(seen, visits**2 / np.maximum(spread, 1e-300), 0.0)
    mean = (weight * values).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    square: FloatArray = (weight * (values - mean) ** 2).sum(axis=0)
    freedom = np.maximum(seen.sum(axis=0) - 1.0, 0.0)
    return np.where(freedom > 0, square, 0.0), freedom


def _normal(value: FloatArray, freedom: FloatArray) -> FloatArray:
    some = np.maximum(freedom, 1.0)
    z = ((value / some) ** (1 / 3) - (1 - 2 / (9 * some))) / np.sqrt(2 / (9 * some))
    return np.where(freedom > 0, z, -np.inf)


class Behaviour(NamedTuple):
    """Behaviour at one step: is it known, P_b, the value V_b of the row, and the row's variance."""

    known: BoolArray
    probabilities: FloatArray
    values: FloatArray
    variance: FloatArray


class Later(NamedTuple):
    """What follows a step, ``[S]`` each: V_b, its variance, Delta."""

    values: FloatArray
    variance: FloatArray
    gain: FloatArray


class Actions(NamedTuple):
    """The slots of one step: rows ``[S, K]``, P and mean rewards."""

    rows: SlotRows
    probabilities: FloatArray
    rewards: FloatArray


def action_rows(evidence: Evidence, step: int, given_rewards: FloatArray) -> Actions:
    """The slots of a step, with known rewards in the place of estimates."""
    rows = evidence.at(step)
    estimated = np.clip(rows.means, 0, 1)
    rewards = np.where(np.isnan(given_rewards), estimated, given_rewards)
    return Actions(rows, rows.probabilities, rewards)


def own_step(rows: SlotRows, later: Later, left: int) -> Behaviour:
    """From the rows ``[S]`` of the step; clipped rewards would favour poor states, so they stay."""
    probabilities, means = rows.probabilities, rows.means
    inside = np.clip(means, 0, 1)
    mean, variance = rows.value(inside, later.values, float(left))
    return Behaviour(rows.known, probabilities, means + mean, variance)


def with_pool(
    own: Behaviour, evidence: Evidence, step: int, actions: Actions, later: Later, left: int
) -> Behaviour:
    """The better known of ``own`` and of what pooled rows say, state by state."""
    rows, probabilities, rewards = actions
    mean, variance = rows.value(rewards, later.values, float(left))
    values, state = rewards + mean, evidence.behaviour.layer(step)
    certain = np.maximum(state.certain, 1e-9)
    known = rows.known & evidence.support[step]
    inside = evidence.shares[step] * known
    total = np.maximum(inside.sum(axis=1), 1e-9)
    shares = inside / total[:, None]
    value = (shares * values).sum(axis=1)
    noise = evidence.visit_variance[step]
    apart = (values - value[:, None]) ** 2
    mixing = state.visits * (shares * apart).sum(axis=1) + (noise * known * apart).sum(axis=1)
    unseen = np.sqrt((noise * ~known * evidence.support[step]).sum(axis=1)) / certain
    if evidence.told is not None:
        mixing, unseen = np.zeros_like(mixing), np.zeros_like(unseen)
    outside = np.clip(1 - total + 2 * unseen, 0, 1) ** 2 * left**2 / 12
    variance = np.where(known, variance, 0.0)
    spread = (shares**2 * variance).sum(axis=1) + mixing / certain**2 + outside
    better = own.known & (total > 0.5) & (spread < own.variance)
    better |= ~own.known & _whole(evidence, step, known)
    return Behaviour(
        own.known | better,
        np.where(
            better[:, None], np.einsum("sk,skt->st", shares, probabilities), own.probabilities
        ),
        np.where(better, value, own.values),
        np.where(better, spread, own.variance),
    )


def kept_gain(rows: SlotRows, behaviour: Behaviour, gain: FloatArray, width: float) -> FloatArray:
    """``[S]``, a lower bound of P_b·Delta by the rows of the step; 0 where behaviour is unknown."""
    most = float(gain.max())
    if most <= 0:
        return np.zeros(len(gain))
    mean, variance = rows.ahead(gain, most)
    kept = np.maximum(mean - width * np.sqrt(variance), 0)
    return np.where(behaviour.known, kept, 0.0)


def kept_gain_of_pool(
    evidence: Evidence, step: int, actions: Actions, gain: FloatArray, width: float
) -> FloatArray:
    """``[S]``, the same by pooled rows."""
    most, rows = float(gain.max()), actions.rows
    if most <= 0:
        return np.zeros(len(gain))
    mean, variance = rows.ahead(gain, most)
    state, support = evidence.behaviour.layer(step), evidence.support[step]
    known = rows.known & support
    shares = evidence.shares[step] * known
    value = (shares * mean).sum(axis=1)
    # Shares of all slots add up to one: only differences between them can be wrong.
    apart = mean - np.where((known | ~support).all(axis=1), value, 0.0)[:, None]
    noise = evidence.visit_variance[step] * known + state.visits[:, None] * shares
    mixing = (noise * apart**2).sum(axis=1) / np.maximum(state.certain, 1e-9) ** 2
    if evidence.told is not None:
        mixing = np.zeros_like(mixing)
    spread = (shares**2 * np.where(known, variance, 0.0)).sum(axis=1) + mixing
    kept = np.maximum(value - width * np.sqrt(spread), 0)
    return np.where(state.known | _whole(evidence, step, known), kept, 0.0)


def _whole(evidence: Evidence, step: int, known: BoolArray) -> BoolArray:
    if evidence.told is None:
        return np.zeros(len(known), np.bool_)
    inside: BoolArray = (evidence.told[step] * known).sum(axis=1) > 1 - 1e-9
    return inside


class Improvement(NamedTuple):
    """What to do in each state.

    Attributes:
        slots: ``int64[H, S]``, the slot to deviate to, or -1 to defer.
        gain: ``[H + 1, S]``, Delta.
        behaviour: ``[H + 1, S]``, V_b.
    """

    slots: IntArray
    gain: FloatArray
    behaviour: FloatArray


def improve(
    evidence: Evidence, allowed: BoolArray, given_rewards: FloatArray, width: float
) -> Improvement:
    """Plan backward; only slots that are ``allowed[H, S, K]`` are recommended."""
    horizon, states, _ = evidence.support.shape
    slots = np.full((horizon, states), OTHER, np.int64)
    gain, values = np.zeros((horizon + 1, states)), np.zeros((horizon + 1, states))
    variance = np.zeros(states)
    for step in range(horizon - 1, -1, -1):
        left = horizon - step
        later = Later(values[step + 1], variance, gain[step + 1])
        rows = evidence.behaviour.layer(step)
        actions = action_rows(evidence, step, given_rewards[step])
        behaviour = own_step(rows, later, left)
        deferred = kept_gain(rows, behaviour, later.gain, width)
        if evidence.pooled is not None:
            behaviour = with_pool(behaviour, evidence, step, actions, later, left)
            other = kept_gain_of_pool(evidence, step, actions, later.gain, width)
            deferred = np.maximum(deferred, other)
        advantage = _advantage(evidence, step, actions, behaviour, later, width)
        advantage = np.where(allowed[step], advantage, -np.inf)
        best = advantage.argmax(axis=1)
        won = np.take_along_axis(advantage, best[:, None], axis=1)[:, 0]
        take = won > deferred + _TIE
        slots[step] = np.where(take, best, OTHER)
        gain[step] = np.minimum(np.where(take, won, deferred), left)
        values[step], variance = _behaviour_value(rows, behaviour, later, left)
    return Improvement(slots, gain, values)


def _advantage(
    evidence: Evidence,
    step: int,
    actions: Actions,
    behaviour: Behaviour,
    later: Later,
    width: float,
) -> FloatArray:
    rows, probabilities, rewards = actions
    left = float(len(evidence.support) - step)
    mean, variance = rows.value(rewards, later.values + later.gain, left)
    shared = evidence.shares[step] ** 2 * variance
    rest = np.maximum(behaviour.variance[:, None] - shared, 0)
    moved = (probabilities - behaviour.probabilities[:, None, :]) ** 2 @ later.variance
    value = rewards + mean - behaviour.values[:, None]
    lower = value - width * np.sqrt(variance + rest + moved)
    return np.where(rows.known & behaviour.known[:, None], lower, -np.inf)


def _behaviour_value(
    rows: SlotRows, behaviour: Behaviour, later: Later, left: int
) -> tuple[FloatArray, FloatArray]:
    weight = rows.visits * behaviour.known
    total = float(weight.sum())
    typical = float(weight @ behaviour.values) / total if total > 0 else left / 2
    uniform = left**2 / 12
    spread = behaviour.variance + behaviour.probabilities**2 @ later.variance
    values = np.where(behaviour.known, behaviour.values, typical)
    return values, np.where(behaviour.known, np.minimum(spread, uniform), uniform)
