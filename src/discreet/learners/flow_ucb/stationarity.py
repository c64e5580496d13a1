"""The gate on stationarity: steps are pooled where released counts do not contradict it.

Post-processing of releases: it costs no privacy. Every component of a row (s, a), the share of one
next state or the mean reward, has one value x_h per step with the information I_h = N²/V, where
V = F + M·max(p(1 - p), 0.01) with the pooled share p, of the steps whose visits are certain
(N > sqrt D). Of rewards, F is G + D·max(c, 1 - c)² (`Planner.doubted`): G + D/4 where they are
centred, and G + D where they are not. If the row is stationary, the sum of I_h·(x_h - mean)² over
steps and components is a chi-square; so is, for each step, its difference from all others together,
which finds a single odd step. Wilson and Hilferty make both a normal z; the larger is the row's.

Transitions of a row are pooled if z of all rows together is below 2g and its own below 4g, with
g = 1 + 0.15·ln+(t/1e4): small biases that many users make visible are tolerated. Rows above 4g are
odd and stand alone; they say nothing about the others, so that they are not counted among all rows
together. More than a tenth of the rows, or two of the first few, are no exception any more: then
nothing is pooled. In a problem of fewer than ten rows, none may be odd.
Rewards are pooled if, besides, their own z are below the same limits. A mean reward is at least
zero and at most one. Of a row that few visit the projection takes visits away, up to a standard
deviation in every batch (`settings.hiding`), and what the others were paid is left to those who
remain: a mean outside of [0, 1] is taken nearer to it, by as much as that explains. (On a grid of
48 states means of 1.05 to 2 made a stationary problem look odd, for good.)

The gate cannot see a difference at a step where hardly anybody was: that is what `own_step` is for.

Compiled chi-squares over steps (equations in `gate`).

The own-step check: what is pooled is not believed where checking is cheap.

A gate can only contradict what was seen. If a step pays more, or leads elsewhere, than the same
(s, a) at other steps, and nobody takes the action there because pooled counts say that it is not
worth it, pooling would hide that for ever. So a state is *due* at a step once checking costs a
vanishing share of the users so far: to see its reward above the noise takes

    need = max(2·sqrt(sigma_r² + sigma_t²·factor_h·max(c, 1 - c)²), 2)   visits

(`visits_to_see`; c = 1/2 where rewards are centred, which makes that factor_h/4), and it is due if
need <= 3e-3·t·(its occupancy under the greedy route), or need·V <= 3e-3·t·rho, where rho > 0.01 is
the largest chance of being there under any policy, by chances that stand out of their noise, and V
the greedy value, all that checking can cost. Where it is due,

- a pooled reward counts as never seen until this step's own is known (its noise is below half of
  its visits, and it was visited twice): the reward's own sums with no visits, and a batch that
  makes it known (`sizing`); those who do not explore take the pooled one for what it is;
- an own reward that exceeds the pooled one by its standard deviation is used instead. On the
  greedy route, once checking is ten times cheaper than it has to be (10·need <=
  3e-3·t·occupancy), any excess is enough while the own reward is hardly known, and half a standard
  deviation once it is known to 0.2;
- once the own reward is known, own transitions that lead to more than the pooled ones by two
  standard deviations are used instead, and the own reward with them.

The largest chances take H²·S³·A/2 multiplications: above `CHANCE_WORK` only the greedy route's
states can become due.

Compiled comparison of each step with all steps pooled (rule in `own_step`).
"""

import math

import numpy as np

from discreet._jit import kernel
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.flow_ucb.estimate import (
    BIAS,
    COLUMNS,
    DOUBT,
    NOISE,
    SAMPLING,
    TIGHT,
    TOTAL,
    VISITS,
    Belief,
    Evidence,
    Pooled,
    row_model,
    visits_to_see,
)
from discreet.learners.flow_ucb.planning import TIE, Planner, Route, mean_reward

GLOBAL_LIMIT = 2.0
"""Of z of all rows that are not odd, in units of g. Inherited."""
ROW_LIMIT = 4.0
"""Of z of one row, in units of g: larger, since there are many rows. Inherited."""
TOLERANCE = 0.15
"""By how much g grows as users grow by a factor e, from `TOLERATED_FROM` on. Inherited."""
TOLERATED_FROM = 1e4
"""Users up to whom the limits are those of chance. Inherited."""
ODD_ROWS = 0.1
"""Share of rows that may be odd in a problem that is stationary else. A tenth and a quarter were
compared; the figures were not kept."""


def nothing_pooled(evidence: Evidence) -> Pooled:
    rows = evidence.number.shape[1:]
    return Pooled(np.zeros(rows, np.bool_), np.zeros(rows, np.bool_))


def everything_pooled(evidence: Evidence) -> Pooled:
    """All steps alike: declared, not found."""
    rows = evidence.number.shape[1:]
    return Pooled(np.ones(rows, np.bool_), np.ones(rows, np.bool_))


def pooled_rows(evidence: Evidence, users: int, doubted: float, hiding: float) -> Pooled:
    """The rows that may be pooled.

    Args:
        evidence: of every step.
        users: who told it.
        doubted: `Planner.doubted`.
        hiding: standard deviations of visits that the projection may have taken in every batch.
    """
    moves, gains = (np.empty((*evidence.number.shape[1:], 3)) for _ in range(2))
    move_scores(evidence.number, evidence.transitions, evidence.moves, moves)
    gain_scores(evidence.gains, _lost(evidence, doubted, hiding), doubted, gains)
    tolerance = 1 + TOLERANCE * max(0.0, math.log(max(users, 1) / TOLERATED_FROM))
    limit = ROW_LIMIT * tolerance
    moved = _all_rows(moves, limit) < GLOBAL_LIMIT * tolerance
    rewarded = moved and _all_rows(gains, limit) < GLOBAL_LIMIT * tolerance
    return Pooled(moved & (moves[..., 2] < limit), rewarded & (gains[..., 2] < limit))


def _lost(evidence: Evidence, doubted: float, hiding: float) -> FloatArray:
    """``[H, S, A]``: what sums of rewards may be off by, since visits are missing behind them.

    At the last step, which releases no transitions, as much as one step before.
    """
    visits: FloatArray = hiding * evidence.moves[..., BIAS]
    visits[-1] = visits[max(len(visits) - 2, 0)]
    return math.sqrt(doubted) * visits


def _all_rows(scores: FloatArray, limit: float) -> float:
    """The z of all rows that are not odd; infinite if too many are."""
    compared, odd = scores[..., 1] > 0, scores[..., 2] >= limit
    few = ODD_ROWS * odd.size < 1
    if odd.sum() > (0.0 if few else max(1.0, ODD_ROWS * compared.sum())):
        return math.inf
    square, freedom, _ = scores[compared & ~odd].sum(axis=0)
    return float(normal(square, freedom)) if freedom > 0 else -math.inf


LEAST_SPREAD = 0.01
"""Of p(1 - p), so that what never happened is not taken for certain. Inherited."""


@kernel
def normal(square: float, freedom: float) -> float:
    """The standard normal that is as unlikely as this chi-square (Wilson and Hilferty, 1931)."""
    part = 2.0 / (9.0 * freedom)
    return float((np.cbrt(square / freedom) - (1.0 - part)) / np.sqrt(part))


@kernel
def component(counts: FloatArray, sums: FloatArray, steps: int, alone: FloatArray) -> float:
    """Chi-square of one component over ``steps`` steps; adds each step against the others."""
    visits, sampling, noise = sums[VISITS], sums[SAMPLING], sums[NOISE]
    total, all_visits = 0.0, 0.0
    for k in range(steps):
        total += counts[k]
        all_visits += visits[k]
    share = min(max(total / all_visits, 0.0), 1.0)
    spread = max(share * (1.0 - share), LEAST_SPREAD)
    information, weighted = 0.0, 0.0
    for k in range(steps):
        each = visits[k] ** 2 / (noise[k] + sampling[k] * spread)
        information += each
        weighted += each * counts[k] / visits[k]
    mean, square = weighted / information, 0.0
    for k in range(steps):
        each = visits[k] ** 2 / (noise[k] + sampling[k] * spread)
        value = counts[k] / visits[k]
        square += each * (value - mean) ** 2
        others = information - each
        if others > 1e-9 * each:
            mean_others = (weighted - each * value) / others
            alone[k] += each * others / information * (value - mean_others) ** 2
    return square


@kernel
def row_chi_square(
    counts: FloatArray, sums: FloatArray, steps: int, alone: FloatArray
) -> tuple[float, float, float]:
    """Of ``counts[component, step]``: the chi-square, its degrees of freedom and the worst z.

    ``sums[column, step]`` has the columns of the evidence.
    """
    if steps < 2:
        return 0.0, 0.0, -np.inf
    components = counts.shape[0]
    alone[:steps] = 0.0
    square = 0.0
    for j in range(components):
        square += component(counts[j], sums, steps, alone)
    freedom = float(components * (steps - 1))
    worst = normal(square, freedom)
    for k in range(steps):
        worst = max(worst, normal(alone[k], float(components)))
    return square, freedom, worst


@kernel
def row_score(counts: FloatArray, sums: FloatArray, steps: int, out: FloatArray) -> None:
    """Chi-square, degrees of freedom and worst z of a row with ``sums[column, step]``."""
    out[0], out[1], out[2] = row_chi_square(counts, sums, steps, np.empty(counts.shape[1]))


@kernel
def _put(row: FloatArray, step: int, out: FloatArray) -> None:
    """``out[:, step] = row``, without the comparison of shapes that is compiled for seconds."""
    for i in range(row.size):
        out[i, step] = row[i]


@kernel
def move_scores(
    number: IntArray, transitions: FloatArray, moves: FloatArray, out: FloatArray
) -> None:
    """``out[s, a]``: chi-square, degrees of freedom and worst z of transitions."""
    layers, states, actions = number.shape
    counts, sums = np.empty((states, layers)), np.empty((COLUMNS, layers))
    for s, a in np.ndindex(states, actions):
        steps = 0
        for h in range(layers):
            row = moves[h, s, a]
            if number[h, s, a] >= 0 and row[VISITS] > np.sqrt(row[DOUBT]):
                _put(transitions[number[h, s, a]], steps, counts)
                _put(row, steps, sums)
                steps += 1
        row_score(counts, sums, steps, out[s, a])


@kernel
def possible_total(total: float, visits: float, lost: float) -> float:
    """A sum of rewards, nearer to what its visits could have paid by up to ``lost``."""
    if total < 0.0:
        return min(total + lost, 0.0)
    if total > visits:
        return max(total - lost, visits)
    return total


@kernel
def gain_scores(gains: FloatArray, lost: FloatArray, doubted: float, out: FloatArray) -> None:
    """``out[s, a]``: chi-square, degrees of freedom and worst z of rewards.

    Args:
        gains: of every step.
        lost: ``[H, S, A]``, by how much sums may be off because visits are missing behind them.
        doubted: how much of the variance of visits is in that of rewards.
        out: to be filled.
    """
    layers, states, actions = gains.shape[:3]
    counts, sums = np.empty((1, layers)), np.empty((COLUMNS, layers))
    for s, a in np.ndindex(states, actions):
        steps = 0
        for h in range(layers):
            row = gains[h, s, a]
            if row[VISITS] > np.sqrt(row[DOUBT]):
                counts[0, steps] = possible_total(row[TOTAL], row[VISITS], lost[h, s, a])
                _put(row, steps, sums)
                sums[NOISE, steps] += doubted * row[DOUBT]
                steps += 1
        row_score(counts, sums, steps, out[s, a])


CHECKING = 3e-3
"""Share of the users so far that checking may cost, along the greedy route and off it. Inherited
for the route; off it 1e-3 was, and three times that costs 0.96 to 1.00 of its regret. Before checks
ended with one batch, three times as many cost four times the regret on chains."""
LEAST_CHANCE = 0.01
"""Where fewer can come than this share of all users, nobody is sent. Inherited."""
SURPRISE = 1.0
"""Standard deviations by which an own reward has to exceed the pooled one. Inherited; measured:
alone, it misses a single odd reward now and then, hence `LATER`."""
LATER = 10.0
"""On the greedy route any excess of an own reward is followed up once checking is so much cheaper
(of one that is known well: `SHARP_SURPRISE`).
Measured, with RiverSwim in view."""
CHANCE_WORK = 5e7
"""Multiplications: a limit of time, not of statistics."""

UNCHECKED, OWN_GAINS, OWN_ROW = 1, 2, 3
"""Verdicts: the pooled reward counts as never seen; the own reward; own reward and transitions."""


class OwnStepCheck:
    """Applies the check to beliefs that pool steps."""

    def __init__(self, planner: Planner, factors: FloatArray) -> None:
        self.planner = planner
        self.factors = factors

    def checked(
        self,
        evidence: Evidence,
        belief: Belief,
        users: int,
        noise: tuple[float, float],
        *,
        exploring: bool,
    ) -> Belief:
        """The belief, with own-step evidence where it is due.

        Args:
            evidence: of every step.
            belief: which pools some of it.
            users: who told it.
            noise: of a batch that checks.
            exploring: pooled rewards that have to be checked count as never seen; to users who are
                not sent to find out, they are what is known.
        """
        if not users or not (belief.pooled_gains.any() or belief.pooled_moves.any()):
            return belief
        route = self.planner.greedy(belief, np.zeros(self.planner.shape.visits))
        surprise = self._surprise(belief, route, users, noise)
        verdict = np.zeros(evidence.number.shape, np.int64)
        examine(evidence, belief, surprise, route.values, self.planner.doubted, TIGHT, verdict)
        if not exploring:
            verdict[verdict == UNCHECKED] = 0
        return _with_own(evidence, belief, verdict)

    def _surprise(
        self, belief: Belief, route: Route, users: int, noise: tuple[float, float]
    ) -> FloatArray:
        """``[H, S]``: the excess of an own reward that is followed up; infinite where not due."""
        need = visits_to_see(noise, self.factors, self.planner.doubted)[:, None]
        cheap = CHECKING * users * route.occupancy
        due = need <= cheap
        if self.planner.chance_work <= CHANCE_WORK:
            chances = self.planner.largest_chances(belief)
            cost = need * self.planner.value(route)
            due |= (cost <= CHECKING * users * chances) & (chances > LEAST_CHANCE)
        return np.where(LATER * need <= cheap, 0.0, np.where(due, SURPRISE, np.inf))


def _with_own(evidence: Evidence, belief: Belief, verdict: IntArray) -> Belief:
    if not verdict.any():
        return belief
    unchecked, own, rows = verdict == UNCHECKED, verdict >= OWN_GAINS, verdict == OWN_ROW
    gains = np.where((unchecked | own)[..., None], evidence.gains, belief.gains)
    gains[unchecked, VISITS] = 0.0
    belief = belief._replace(gains=gains, pooled_gains=belief.pooled_gains & ~(unchecked | own))
    return _with_own_rows(evidence, belief, rows) if rows.any() else belief


def _with_own_rows(evidence: Evidence, belief: Belief, rows: BoolArray) -> Belief:
    """The belief with rows of some steps' own transitions."""
    from discreet.learners.flow_ucb import estimate

    own = np.empty((int(rows.sum()), belief.probabilities.shape[1]))
    for i, (place, visits) in enumerate(
        zip(evidence.number[rows], evidence.moves[rows, VISITS], strict=True)
    ):
        estimate.row_model(evidence.transitions[place], visits, own[i])
    number = belief.number.copy()
    number[rows] = len(belief.probabilities) + np.arange(len(own))
    return belief._replace(
        number=number,
        probabilities=np.concatenate([belief.probabilities, own]),
        moves=np.where(rows[..., None], evidence.moves, belief.moves),
        pooled_moves=belief.pooled_moves & ~rows,
    )


LARGEST_VARIANCE = 0.5
"""Per visit, while a reward is not known: twice the largest of a reward in [0, 1], which makes the
visits that `TIGHT` takes two. Not varied."""
USUAL_VARIANCE = 0.1
"""Per visit, where an own reward is compared with the pooled one. Not varied."""
SHARP = 0.2
"""Standard deviation down to which an own reward has to be known to count as known well (as known
at all: `TIGHT`). Measured: 0.1 and 0.2."""
SHARP_SURPRISE = 0.5
"""Standard deviations by which one that is known well has to exceed the pooled one at least. An
excess of a reward that is hardly known may be a large one; of one that is known well, it is noise
half of the time. Measured: 0, 0.5 and 1; with 1 (known to 0.1), two of 160 runs stayed with a wrong
policy where all gaps are small."""
MOVES_SURPRISE = 2.0
"""Standard deviations by which own transitions have to lead to more. Not varied."""


@kernel
def reward_known(gains: FloatArray, doubted: float, tight: float) -> bool:
    """Whether a step's own reward is known to ``tight``: above its noise, by enough visits.

    Of weighted visits N = sum w·n with M = sum w²·n, as many as N²/M count.
    """
    noise = np.sqrt(gains[NOISE] + doubted * gains[DOUBT])
    enough = (gains[VISITS] * tight) ** 2 >= LARGEST_VARIANCE * gains[SAMPLING]
    enough = enough and noise < tight * gains[VISITS]
    return bool(enough and gains[VISITS] > np.sqrt(gains[DOUBT]))


@kernel
def own_value(
    evidence: Evidence, h: int, s: int, a: int, following: FloatArray, row: FloatArray
) -> float:
    """Mean of the next value by this step's own transitions."""
    i = evidence.number[h, s, a]
    if i < 0:
        return 0.0
    row_model(evidence.transitions[i], evidence.moves[h, s, a, VISITS], row)
    mean = 0.0
    for j in range(following.size):
        mean += row[j] * following[j]
    return mean


@kernel
def examine(
    evidence: Evidence,
    belief: Belief,
    surprise: FloatArray,
    values: FloatArray,
    doubted: float,
    tight: float,
    verdict: IntArray,
) -> None:
    """``verdict[h, s, a]``: `UNCHECKED`, `OWN_GAINS` or `OWN_ROW`; zero where nothing changes.

    ``surprise[h, s]`` is by how many standard deviations an own reward has to exceed the pooled one
    to be used instead, at least `SHARP_SURPRISE` where it is known to `SHARP`; infinite where
    nothing is due.
    """
    horizon, states, actions = verdict.shape
    row = np.empty(states)
    for h in range(horizon):
        for s in range(states):
            if np.isinf(surprise[h, s]):
                continue
            for a in range(actions):
                pooled_gains = belief.pooled_gains[h, s, a]
                pooled_moves = belief.pooled_moves[h, s, a] and h < horizon - 1
                if not (pooled_gains or pooled_moves):
                    continue
                gains = evidence.gains[h, s, a]
                if not reward_known(gains, doubted, tight):
                    verdict[h, s, a] = UNCHECKED if pooled_gains else 0
                    continue
                own, pooled = mean_reward(gains), mean_reward(belief.gains[h, s, a])
                square = gains[NOISE] + doubted * gains[DOUBT] + USUAL_VARIANCE * gains[SAMPLING]
                deviation = np.sqrt(square) / gains[VISITS]
                needed = surprise[h, s]
                if deviation <= SHARP:
                    needed = max(needed, SHARP_SURPRISE)
                if pooled_gains and own - pooled > needed * deviation:
                    verdict[h, s, a] = OWN_GAINS
                if pooled_moves:
                    better_moves(evidence, belief, h, s, a, values[h + 1], row, verdict)


@kernel
def better_moves(
    evidence: Evidence,
    belief: Belief,
    h: int,
    s: int,
    a: int,
    following: FloatArray,
    row: FloatArray,
    verdict: IntArray,
) -> None:
    """`OWN_ROW` where this step's own transitions lead to more, beyond their noise."""
    moves, place = evidence.moves[h, s, a], belief.number[h, s, a]
    if place < 0 or moves[VISITS] <= np.sqrt(moves[DOUBT]):
        return
    mean = 0.0
    for j in range(following.size):
        mean += belief.probabilities[place, j] * following[j]
    variance, deviation = 0.0, 0.0
    for j in range(following.size):
        square = (following[j] - mean) ** 2
        variance += belief.probabilities[place, j] * square
        deviation += square
    own = own_value(evidence, h, s, a, following, row)
    spread = np.sqrt(moves[SAMPLING] * variance + moves[NOISE] * deviation) / moves[VISITS]
    if own - mean > MOVES_SURPRISE * spread + TIE:
        verdict[h, s, a] = OWN_ROW
