"""The own-step check: what is pooled is not believed where checking is cheap.

A gate can only contradict what was seen. If a step pays more, or leads elsewhere, than the same
(s, a) at other steps, and nobody takes the action there because pooled counts say that it is not
worth it, pooling would hide that for ever. So a state is *due* at a step once checking costs a
vanishing share of the users so far: to see its reward above the noise takes

    need = max(2·sqrt(sigma_r² + sigma_t²·factor_h·max(c, 1 - c)²), 2)   visits

(`visits_to_see`; c = 1/2 where rewards are centred, which makes that factor_h/4), and it is due if
need <= 3e-3·t·(its occupancy under the greedy candidate policy), or need·V <= 3e-3·t·rho, where rho
> 0.01 is the largest chance of being there under any policy, by chances that stand out of their
noise, and V the greedy value, all that checking can cost. Where it is due,

- a pooled reward counts as never seen until this step's own is known (its noise is below half of
  its visits, and it was visited twice): the reward's own sums with no visits, and a batch that
  makes it known (`sizing`); those who do not explore take the pooled one for what it is;
- an own reward that exceeds the pooled one by its standard deviation is used instead. On the
  greedy candidate policy, once checking is ten times cheaper than it has to be (10·need <=
  3e-3·t·occupancy), any excess is enough while the own reward is hardly known, and half a standard
  deviation once it is known to 0.2;
- once the own reward is known, own transitions that lead to more than the pooled ones by two
  standard deviations are used instead, and the own reward with them.

The largest chances take H²·S³·A/2 multiplications: above `CHANCE_WORK` only the greedy candidate
policy's states can become due.
"""

import numpy as np

from discreet._jit import kernel
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.estimate import (
    NOISE,
    SAMPLING,
    VISIT_VARIANCE,
    VISITS,
    CountSums,
    ModelEstimate,
)
from discreet.learners.flow_ucb.planning import TIE, CandidatePolicy, Planner, mean_reward
from discreet.learners.pooling import row_model

TIGHT = 0.5
"""Standard deviation to which a reward is known that was seen: half of what rewards can differ by.
Inherited (there as "twice the noise" and "below half of the visits")."""
LEAST_VISITS = 2.0
"""That show a reward, without noise: one may be an accident. Not varied."""


CHECKING = 3e-3
"""Share of the users so far that checking may cost, along the greedy candidate policy and off it.
Inherited for the candidate policy; off it 1e-3 was, and three times that costs 0.96 to 1.00 of its
regret. Before checks ended with one batch, three times as many cost four times the regret on
chains."""
LEAST_CHANCE = 0.01
"""Where fewer can come than this share of all users, nobody is sent. Inherited."""
SURPRISE = 1.0
"""Standard deviations by which an own reward has to exceed the pooled one. Inherited; measured:
alone, it misses a single odd reward now and then, hence `LATER`."""
LATER = 10.0
"""On the greedy candidate policy any excess of an own reward is followed up once checking is so
much cheaper (of one that is known well: `SHARP_SURPRISE`). Measured, with RiverSwim in view."""
CHANCE_WORK = 5e7
"""Multiplications: a limit of time, not of statistics."""

UNCHECKED, OWN_REWARDS, OWN_ROW = 1, 2, 3
"""Verdicts: the pooled reward counts as never seen; the own reward; own reward and transitions."""


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
TRANSITIONS_SURPRISE = 2.0
"""Standard deviations by which own transitions have to lead to more. Not varied."""


@kernel
def reward_known(reward_sums: FloatArray, reward_share: float, tight: float) -> bool:
    """Whether a step's own reward is known to ``tight``: above its noise, by enough visits.

    Of weighted visits N = sum w·n with M = sum w²·n, as many as N²/M count.
    """
    noise = np.sqrt(reward_sums[NOISE] + reward_share * reward_sums[VISIT_VARIANCE])
    enough = (reward_sums[VISITS] * tight) ** 2 >= LARGEST_VARIANCE * reward_sums[SAMPLING]
    enough = enough and noise < tight * reward_sums[VISITS]
    return bool(enough and reward_sums[VISITS] > np.sqrt(reward_sums[VISIT_VARIANCE]))


@kernel
def own_value(
    sums: CountSums, h: int, s: int, a: int, following: FloatArray, row: FloatArray
) -> float:
    """Mean of the next value by this step's own transitions."""
    i = sums.number[h, s, a]
    if i < 0:
        return 0.0
    row_model(sums.transitions[i], sums.transition_sums[h, s, a, VISITS], row)
    mean = 0.0
    for j in range(following.size):
        mean += row[j] * following[j]
    return mean


@kernel
def examine(
    sums: CountSums,
    model: ModelEstimate,
    surprise: FloatArray,
    values: FloatArray,
    reward_share: float,
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
                pooled_rewards = model.pooled_rewards[h, s, a]
                pooled_transitions = model.pooled_transitions[h, s, a] and h < horizon - 1
                if not (pooled_rewards or pooled_transitions):
                    continue
                reward_sums = sums.reward_sums[h, s, a]
                if not reward_known(reward_sums, reward_share, tight):
                    verdict[h, s, a] = UNCHECKED if pooled_rewards else 0
                    continue
                own, pooled = mean_reward(reward_sums), mean_reward(model.reward_sums[h, s, a])
                square = (
                    reward_sums[NOISE]
                    + reward_share * reward_sums[VISIT_VARIANCE]
                    + USUAL_VARIANCE * reward_sums[SAMPLING]
                )
                deviation = np.sqrt(square) / reward_sums[VISITS]
                needed = surprise[h, s]
                if deviation <= SHARP:
                    needed = max(needed, SHARP_SURPRISE)
                if pooled_rewards and own - pooled > needed * deviation:
                    verdict[h, s, a] = OWN_REWARDS
                if pooled_transitions:
                    better_transitions(sums, model, h, s, a, values[h + 1], row, verdict)


@kernel
def better_transitions(
    sums: CountSums,
    model: ModelEstimate,
    h: int,
    s: int,
    a: int,
    following: FloatArray,
    row: FloatArray,
    verdict: IntArray,
) -> None:
    """`OWN_ROW` where this step's own transitions lead to more, beyond their noise."""
    transition_sums, place = sums.transition_sums[h, s, a], model.number[h, s, a]
    if place < 0 or transition_sums[VISITS] <= np.sqrt(transition_sums[VISIT_VARIANCE]):
        return
    mean = 0.0
    for j in range(following.size):
        mean += model.probabilities[place, j] * following[j]
    variance, deviation = 0.0, 0.0
    for j in range(following.size):
        square = (following[j] - mean) ** 2
        variance += model.probabilities[place, j] * square
        deviation += square
    own = own_value(sums, h, s, a, following, row)
    spread = (
        np.sqrt(transition_sums[SAMPLING] * variance + transition_sums[NOISE] * deviation)
        / transition_sums[VISITS]
    )
    if own - mean > TRANSITIONS_SURPRISE * spread + TIE:
        verdict[h, s, a] = OWN_ROW


def visits_to_see(
    noise: tuple[float, float], factors: FloatArray, reward_share: float
) -> FloatArray:
    """Visits of a row at each step that show a reward of a half above its noise: at least two."""
    transitions, rewards = noise
    needed = np.sqrt(rewards + transitions * factors * reward_share) / TIGHT
    return np.asarray(np.maximum(needed, LEAST_VISITS))


class OwnStepCheck:
    """Applies the check to estimates that pool steps."""

    def __init__(self, planner: Planner, factors: FloatArray) -> None:
        self.planner = planner
        self.factors = factors

    def checked(
        self,
        sums: CountSums,
        model: ModelEstimate,
        users: int,
        noise: tuple[float, float],
        *,
        exploring: bool,
    ) -> ModelEstimate:
        """The estimate, with own-step evidence where it is due."""
        if not users or not (model.pooled_rewards.any() or model.pooled_transitions.any()):
            return model
        candidate = self.planner.greedy(model, np.zeros(self.planner.shape.visits))
        surprise = self._surprise(model, candidate, users, noise)
        verdict = np.zeros(sums.number.shape, np.int64)
        examine(sums, model, surprise, candidate.values, self.planner.reward_share, TIGHT, verdict)
        if not exploring:
            verdict[verdict == UNCHECKED] = 0
        return _with_own(sums, model, verdict)

    def _surprise(
        self,
        model: ModelEstimate,
        candidate: CandidatePolicy,
        users: int,
        noise: tuple[float, float],
    ) -> FloatArray:
        need = visits_to_see(noise, self.factors, self.planner.reward_share)[:, None]
        cheap = CHECKING * users * candidate.occupancy
        due = need <= cheap
        if self.planner.chance_work <= CHANCE_WORK:
            chances = self.planner.largest_chances(model)
            cost = need * self.planner.value(candidate)
            due |= (cost <= CHECKING * users * chances) & (chances > LEAST_CHANCE)
        return np.where(LATER * need <= cheap, 0.0, np.where(due, SURPRISE, np.inf))


def _with_own(sums: CountSums, model: ModelEstimate, verdict: IntArray) -> ModelEstimate:
    if not verdict.any():
        return model
    unchecked, own, rows = verdict == UNCHECKED, verdict >= OWN_REWARDS, verdict == OWN_ROW
    reward_sums = np.where((unchecked | own)[..., None], sums.reward_sums, model.reward_sums)
    reward_sums[unchecked, VISITS] = 0.0
    model = model._replace(
        reward_sums=reward_sums, pooled_rewards=model.pooled_rewards & ~(unchecked | own)
    )
    return _with_own_rows(sums, model, rows) if rows.any() else model


def _with_own_rows(sums: CountSums, model: ModelEstimate, rows: BoolArray) -> ModelEstimate:
    own = np.empty((int(rows.sum()), model.probabilities.shape[1]))
    for i, (place, visits) in enumerate(
        zip(sums.number[rows], sums.transition_sums[rows, VISITS], strict=True)
    ):
        row_model(sums.transitions[place], visits, own[i])
    number = model.number.copy()
    number[rows] = len(model.probabilities) + np.arange(len(own))
    return model._replace(
        number=number,
        probabilities=np.concatenate([model.probabilities, own]),
        transition_sums=np.where(rows[..., None], sums.transition_sums, model.transition_sums),
        pooled_transitions=model.pooled_transitions & ~rows,
    )
