"""What flow-ucb has learnt: weighted sums over batches, and the variances they carry.

What flow-ucb believes: evidence with steps pooled where they may be, and a model of it.

Compiled sums and models of flow-ucb's rows (`belief`).

The noise on a state's visits, which follow from the flow, by step.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._plain import JsonObject, Plain
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.base import Problem
from discreet.learners.flow_ucb.sizing import ReleaseTerms, credit
from discreet.privacy.plans import BatchPlan
from discreet.privacy.postprocess.valid_counts_kernels import valid_row

COLUMNS = 5
VISITS, SAMPLING, NOISE, DOUBT, BIAS = range(COLUMNS)
"""The columns of a row of evidence: the weighted visits N; the sampling weight M, the sum of w²·n;
the noise variance F (of transitions) or G (of rewards), the sum of w²·sigma²; the variance D of the
visits; of transitions, the sum of w·sigma, which is how far projected noise can lean one way."""
TOTAL = BIAS
"""Of rewards, the weighted sum stands there."""


class Observed(NamedTuple):
    """What a batch showed of the rows it played, after the projection onto flows.

    Attributes:
        rows: steps, states and actions, ``[R]`` each.
        transitions: ``[R, S]``.
        visits: ``[R]``.
        rewards: ``[R]``, sums.
        expected: ``[R]``, the visits that the model predicted before the batch.
    """

    rows: tuple[IntArray, ...]
    transitions: FloatArray
    visits: FloatArray
    rewards: FloatArray
    expected: FloatArray

    def only(self, kept: BoolArray) -> "Observed":
        rows = tuple(axis[kept] for axis in self.rows)
        return Observed(rows, *(array[kept] for array in self[1:]))


class Evidence(NamedTuple):
    """Weighted sums over batches; the first axis is H long, or 1 if declared stationary.

    Transitions and rewards have weights of their own, since their noise differs: ``moves`` and
    ``gains`` hold five columns each. The sums of ``transitions[R, S]`` are filled row by row, as
    (h, s, a) are visited for the first time, and ``number[h, s, a]`` says where (-1: nowhere). The
    room for all rows is reserved, the memory is used as rows are filled.
    """

    number: IntArray
    transitions: FloatArray
    moves: FloatArray
    gains: FloatArray

    @classmethod
    def empty(cls, layers: int, states: int, actions: int) -> "Evidence":
        number = np.full((layers, states, actions), -1, np.int64)
        sums = [np.zeros((layers, states, actions, COLUMNS)) for _ in cls._fields[2:]]
        return cls(number, np.zeros((number.size, states)), *sums)

    @property
    def filled(self) -> FloatArray:
        """The rows of ``transitions`` that are in use."""
        return self.transitions[: self.number.max() + 1]

    def places(self, rows: tuple[IntArray, ...], filled: BoolArray) -> IntArray:
        """Where the transitions of ``rows`` are kept; ``filled`` ones get a place if new."""
        new = np.zeros(self.number.shape, np.bool_)
        new[tuple(axis[filled] for axis in rows)] = True
        new &= self.number < 0
        self.number[new] = self.number.max() + 1 + np.arange(new.sum())
        return self.number[rows]

    def add(self, batch: Observed, terms: ReleaseTerms) -> None:
        """Add a batch with each row's credit, and the variances that it carries.

        Reports that show only a part of the visits add variance to every visit; half of it is left
        in a state's total, which the flow measures twice: coming in and going out. Variances are of
        as many visits as were expected, if fewer were seen: noise made them fewer.
        `sizing.expected_row` predicts the same of a batch to come.
        """
        steps, states, actions = batch.rows
        noise, per_visit = terms.noise, terms.per_visit
        seen = np.maximum(batch.visits, batch.expected)
        doubt = noise * terms.factors[steps] + per_visit * seen / 2
        moved = credit(batch.expected, noise, terms.ease)
        if not terms.last_transitions:
            moved = np.where(steps == len(terms.factors) - 1, 0.0, moved)
        gained = credit(batch.expected, terms.reward_noise, terms.ease)
        rows = (steps * 0 if len(self.number) == 1 else steps, states, actions)
        places = self.places(rows, np.asarray(batch.transitions.any(axis=-1)) & (moved > 0))
        add_rows(places, moved, batch.transitions, self.transitions)
        moves = _columns(moved, batch.visits, seen * (1 + per_visit), noise, doubt)
        moves[:, BIAS] = moved * math.sqrt(noise)
        gains = _columns(gained, batch.visits, seen, terms.reward_noise, doubt)
        gains[:, NOISE] += gained**2 * seen * terms.reward_per_visit
        gains[:, TOTAL] = gained * batch.rewards
        np.add.at(self.moves, rows, moves)
        np.add.at(self.gains, rows, gains)

    def to_dict(self) -> dict[str, Plain]:
        """Plain values, without the rows that are not in use."""
        kept = self._replace(transitions=self.filled)
        return {name: array.tolist() for name, array in kept._asdict().items()}

    @classmethod
    def from_dict(cls, data: JsonObject) -> "Evidence":
        evidence = cls.empty(*np.shape(data["number"]))
        for name, array in evidence._asdict().items():
            values = np.array(data[name], array.dtype)
            array[: len(values)] = values.reshape(len(values), *array.shape[1:])
        return evidence


def _columns(
    weight: FloatArray, visits: FloatArray, varied: FloatArray, noise: float, doubt: FloatArray
) -> FloatArray:
    """What rows add to the columns that moves and gains have in common."""
    sums = np.zeros((weight.size, COLUMNS))
    sums[:, VISITS] = weight * visits
    sums[:, SAMPLING] = weight**2 * varied
    sums[:, NOISE] = weight**2 * noise
    sums[:, DOUBT] = weight**2 * doubt
    return sums


LEAN = 0.2
"""The projection onto counts that are not negative leans one way, batch after batch: this share of
a standard deviation does not average out. Inherited from the rule set that was the start; what it
is worth is the variant ``no-lean`` of the ablation."""

POSITIVE = 1 / math.sqrt(2 * math.pi)
"""Mean of the positive part of a normal variable, in standard deviations."""
SEEN = 2.0
"""Times the visits that projected noise explains from which somebody was seen. Not varied."""


class Pooled(NamedTuple):
    """Which rows are taken to be the same at every step.

    Attributes:
        moves: ``bool[S, A]``, where transitions are pooled.
        gains: ``bool[S, A]``, where rewards are.
    """

    moves: BoolArray
    gains: BoolArray


class Belief(NamedTuple):
    """Rows as the planner reads them, in the layout of `Evidence`.

    A row is *alone* where neither its transitions nor its rewards are pooled: then its error is
    independent of that of every other row.

    Attributes:
        number: ``[L, S, A]``, the row of ``probabilities`` that belongs there, -1 for none.
        probabilities: ``[R, S]``, where rows lead.
        moves: ``[L, S, A, 5]``, the sums behind them; their noise holds the lean, but
            for a step's own rows (`own_step`).
        gains: ``[L, S, A, 5]``, sums of rewards.
        pooled_moves: ``bool[L, S, A]``, whose sums are those of all steps.
        pooled_gains: likewise.
    """

    number: IntArray
    probabilities: FloatArray
    moves: FloatArray
    gains: FloatArray
    pooled_moves: BoolArray
    pooled_gains: BoolArray


def believed(evidence: Evidence, pooled: Pooled) -> Belief:
    """The model of the evidence, with the rows in ``pooled`` summed over steps."""
    number = np.empty_like(evidence.number)
    count = numbered(evidence.number, pooled.moves, number)
    probabilities = np.empty((count, evidence.transitions.shape[1]))
    models(
        evidence.number,
        evidence.transitions,
        evidence.moves,
        pooled.moves,
        number,
        probabilities,
    )
    moves = _summed(evidence.moves, pooled.moves)
    moves[..., NOISE] += (LEAN * moves[..., BIAS]) ** 2
    return Belief(
        number,
        probabilities,
        moves,
        _summed(evidence.gains, pooled.gains),
        np.broadcast_to(pooled.moves, number.shape).copy(),
        np.broadcast_to(pooled.gains, number.shape).copy(),
    )


def unseen_states(belief: Belief) -> FloatArray:
    """``[L, S]``: 1 where visits are no more than projected noise explains, 0 from `SEEN` times on.

    Linear between, and by the action that was seen most. Projected noise looks like visits: of each
    of the S counters that lead to a state the positive part stays, `POSITIVE` standard deviations
    in the mean, and at least one is allowed for. Where the transitions of the last step are its
    own, they may not have been released: what counts is how often its rewards were seen, against
    the noise of the same action one step before.
    """
    nothing = max(1.0, POSITIVE * belief.number.shape[1]) * belief.moves[..., BIAS]
    visits = belief.moves[..., VISITS].copy()
    if len(visits) > 1:
        own = ~belief.pooled_moves[-1]
        visits[-1, own] = belief.gains[-1, own, VISITS]
        nothing[-1, own] = nothing[-2, own]
    seen = (visits / np.maximum(nothing, 1e-9)).max(axis=-1)
    unseen: FloatArray = np.clip(SEEN - seen, 0.0, 1.0)
    return unseen


def _summed(sums: FloatArray, pooled: BoolArray) -> FloatArray:
    """Sums over steps where they are pooled, each step's own elsewhere."""
    return np.where(pooled[None, :, :, None], sums.sum(axis=0)[None], sums)


ROUNDING = 1e-12
"""Sums of the same numbers in other orders differ by less, as a part of them."""


@kernel
def add_rows(
    numbers: IntArray, weight: FloatArray, transitions: FloatArray, total: FloatArray
) -> None:
    """Add each row, times its weight, to row ``numbers[i]`` of the total; -1 for nowhere."""
    for i in range(numbers.size):
        if numbers[i] >= 0:
            for j in range(total.shape[1]):
                if transitions[i, j] != 0.0:
                    total[numbers[i], j] += weight[i] * transitions[i, j]


@kernel
def row_model(counts: FloatArray, visits: float, out: FloatArray) -> None:
    """The distribution nearest to the counts of one row; anything is as likely without visits.

    Counts whose sum is the visits but for rounding stay as they are: zeros stay zero.
    """
    if visits <= 0.0:
        out[:] = 1.0 / out.size
        return
    total = 0.0
    for count in counts:
        total += max(count, 0.0)
    if abs(total - visits) <= ROUNDING * visits:
        for j in range(out.size):
            out[j] = max(counts[j], 0.0) / visits
        return
    valid_row(counts, visits, visits, out)
    for j in range(out.size):
        out[j] /= visits


@kernel
def numbered(number: IntArray, pooled: BoolArray, out: IntArray) -> int:
    """Number the rows of a model: one for all steps of a pooled (s, a); returns how many."""
    layers, states, actions = number.shape
    count = 0
    for s in range(states):
        for a in range(actions):
            first = -1
            for h in range(layers):
                out[h, s, a] = -1
                if number[h, s, a] < 0:
                    continue
                if not pooled[s, a] or first < 0:
                    out[h, s, a] = count
                    first = count
                    count += 1
            if pooled[s, a]:
                for h in range(layers):
                    out[h, s, a] = first
    return count


@kernel
def models(
    number: IntArray,
    transitions: FloatArray,
    moves: FloatArray,
    pooled: BoolArray,
    places: IntArray,
    probabilities: FloatArray,
) -> None:
    """Transition probabilities ``[places, S]`` of own rows, and of pooled ones."""
    layers, states, actions = number.shape
    total = np.empty(probabilities.shape[1])
    for s in range(states):
        for a in range(actions):
            if pooled[s, a]:
                total[:] = 0.0
                visits = 0.0
                for h in range(layers):
                    if number[h, s, a] >= 0:
                        visits += moves[h, s, a, VISITS]
                        total += transitions[number[h, s, a]]
                if places[0, s, a] >= 0:
                    row_model(total, visits, probabilities[places[0, s, a]])
                continue
            for h in range(layers):
                if places[h, s, a] >= 0:
                    row_model(
                        transitions[number[h, s, a]],
                        moves[h, s, a, VISITS],
                        probabilities[places[h, s, a]],
                    )


TIGHT = 0.5
"""Standard deviation to which a reward is known that was seen: half of what rewards can differ by.
Inherited (there as "twice the noise" and "below half of the visits")."""
LEAST_VISITS = 2.0
"""That show a reward, without noise: one may be an accident. Not varied."""


def plan_factors(problem: Problem, plan: BatchPlan) -> FloatArray:
    """`visit_noise_factors` of what this plan releases."""
    return visit_noise_factors(
        problem.shape.states,
        problem.shape.horizon,
        int(problem.start.sum()),
        last_transitions=plan.last_transitions,
        look=_second_look(plan),
    )


def visit_noise_factors(
    states: int,
    horizon: int,
    starts: int,
    *,
    last_transitions: bool = True,
    look: float = 0.0,
) -> FloatArray:
    """Variance of a state's visits at each step, after flow consistency, per counter's variance.

    The visits of a layer sum to the users, which leaves 1 - 1/k of the variance with k states. They
    are measured by the ``states`` counters going out (not at the last step without its
    transitions), from step 1 on by the counters coming in, one per state of the layer before, and
    by a second look, if there is one: with one start, step 0 is exact and step 1 almost.

    >>> visit_noise_factors(states=4, horizon=3, starts=1).tolist()
    [0.0, 0.6, 1.5]

    Args:
        states: S.
        horizon: H.
        starts: the states an episode can begin in.
        last_transitions: whether the transitions of the last step are released.
        look: variance of a transition counter over that of a second look at the visits.
    """
    inside = 1 - 1 / states
    factors = np.full(horizon, inside * states / 2)
    factors[0] = (1 - 1 / starts) * states
    factors[1:2] = inside / (1 / starts + 1 / states)
    if not last_transitions:
        factors[-1] = inside * (starts if horizon == 2 else states)
    if look:
        free = np.full(horizon, inside)
        free[0] = 1 - 1 / starts
        factors = np.where(free > 0, factors * free / np.maximum(free + factors * look, 1e-300), 0)
    return factors


def visits_to_see(noise: tuple[float, float], factors: FloatArray, doubted: float) -> FloatArray:
    """Visits of a row at each step that show a reward of a half above its noise: at least two.

    Args:
        noise: variances of one counter of transitions and of rewards.
        factors: `visit_noise_factors`.
        doubted: `Planner.doubted`.
    """
    transitions, rewards = noise
    needed = np.sqrt(rewards + transitions * factors * doubted) / TIGHT
    return np.asarray(np.maximum(needed, LEAST_VISITS))


def _second_look(plan: BatchPlan) -> float:
    """Variance of transitions over that of visits that are released besides, if they are."""
    noise = plan.noise_variance(plan.least_users)
    return noise["transitions"] / noise["visits"] if noise.get("visits") else 0.0
