"""UCBVI (Azar, Osband and Munos, 2017) and DP-UCBVI (Qiao and Wang, 2023, Algorithm 1).

**UCBVI**, with L = ln(5·S·A·T/failure), T = K·H, and N' the visits at the next step:

- Hoeffding (their bonus 1): b = 7·H·L/sqrt(N);
- Bernstein (their bonus 2): b = sqrt(8·L·Var_P(V)/N) + 14·H·L/(3N)
  + sqrt(8·sum_s' P(s')·min(100²·H³·S²·A·L²/N'(s'), H²)/N).

Deviation: their rewards are known, ours are estimated, so sqrt(2·L/N) is added ("reward").

**DP-UCBVI**, with iota = ln(30·H·S·A·T/failure) and E a bound on the noise (below), equation 31:

    b = 2·sqrt(Var_P(V)·iota/N)                                             "variance"
      + sqrt(2·iota/N)                                                      "reward"
      + 20·H·S·E·iota/N                                                     "privacy"
      + 4·sqrt(iota)·sqrt(sum_s' P(s')·min{1000²·H³·S·A·iota²/N'(s')
            + 1000²·H⁴·S⁴·A²·E²·iota⁴/N'(s')²
            + 1000²·H⁶·S⁴·A²·iota⁴/N'(s')², H²} / N)                        "correction"

Q = min(Q of the episode before, H, r + P·V + b). Counts become a model by the post-processing of
their Section 5.1.1 (valid distributions, visits that never underestimate). The correction belongs
to V at the next step; at the last step that is zero, and so is the term. The privacy term is at
least 2·H·iota/(3N): the remainder of Bernstein's inequality, which the proof (Lemma B.6) absorbs
into it because E >= 1 there; without noise it would be lost, and runs would lock in.

E is the bound of the *actual* noise at that time: Lemma 5.4 asks for |noise| <= E/4 on every
counter and at all times with probability 1 - failure/3, so E_k = 4·(the bound that one counter's
noise after k users exceeds with probability failure/(3·counters·K)).

Regret: sqrt(S·A·H²·T) + S²·A·H³/eps (central), sqrt(S·A·H²·T) + S²·A·sqrt(H⁵·T)/eps (local) up to
logarithms, proven for ``constants="theory"`` and time-inhomogeneous counts; with practical
constants nothing is proven. The guarantee of the release holds whatever the constants.

**Both, and `private_ucb`,** differ only in how counts become a model and in the factors of b:

    b(h,s,a) = VARIANCE·sqrt(Var_P(V)/N) + ROOT/sqrt(N - SHIFT) + LINEAR/N + SQUARE/N²
               + sqrt(CORRECTION·sum_s' P(s')·min(NEAR/N'(s') + NEAR2/N'(s')², H²) / N).

So a learner computes one row of factors per release (`Column` names them). `Optimist` reads them as
above; `optimistic_policy` is its compiled form, which tests hold equal to it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Literal, get_args

import numpy as np

from discreet._jit import inlined
from discreet._types import Floats, Ints
from discreet.learners.base import FORBIDDEN, ContinualLearner
from discreet.learners.continual import break_ties, choose, greedy, planner, three_statistics
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import BonusSettings, NoisyBonusSettings
from discreet.mdp.policies import DeterministicPolicy, Policy
from discreet.privacy.projection.valid_counts import valid_counts, valid_row
from discreet.privacy.statistics import PrivateCounts


@dataclass(frozen=True, eq=False)
class Model:
    """Estimates; the first axis has length H, or 1 for stationary counts."""

    transitions: Floats  # [G, S, A, S], perhaps signed or of mass below one
    rewards: Floats  # [G, S, A]
    visits: Floats  # [G, S, A], the N of the bonus

    def step(self, h: int) -> int:
        return h if len(self.visits) > 1 else 0


@dataclass(frozen=True, kw_only=True)
class OptimistSettings(BonusSettings):
    """How far optimism goes.

    Attributes:
        clip: a Q value never exceeds that of the episode before.
        cap: the most that a value may be: H (``"horizon"``), or the number of steps that are left
            (``"remaining"``).
    """

    clip: bool = False
    cap: Literal["horizon", "remaining"] = "remaining"


class Optimist(ContinualLearner):
    """Q(h,s,a) = min(cap, max(0, r + P·V + b)), V = max Q, greedy policy, random ties.

    A subclass says how far noise goes (`errors`) and which `coefficients` a release has.
    """

    settings: OptimistSettings

    def errors(self, users: Ints) -> Floats:
        """What the noise of all counters stays below at all times, up to failure/3."""
        failure = self.settings.failure / (3 * self.mechanism.cells * self.problem.episodes)
        return self.error_bounds(users, failure)

    def model(self, counts: PrivateCounts) -> Model:
        """Estimates from private counts: valid distributions, or signed ratios."""
        transitions, visits, sums = three_statistics(counts)
        row = self.coefficients(np.array([counts.users]))[0]
        if row[Column.MODEL] == 0:
            valid = valid_counts(transitions, visits, float(row[Column.ERROR]))
            transitions, visits = valid.transitions, valid.visits
        elif row[Column.MODEL] == 1:
            visits = np.maximum(1.0, visits + row[Column.ERROR])
        n = np.where(visits == 0, 1.0, visits)
        rewards = sums / n
        if row[Column.MODEL] == 0:
            rewards = np.clip(rewards, 0.0, 1.0)
        return Model(transitions / n[..., None], rewards, visits)

    def bonus(self, h: int, model: Model, values: Floats, users: int) -> Floats:
        """``[S, A]``: given the values of step h + 1; infinite where nothing is known."""
        row = dict(zip(Column, self.coefficients(np.array([users]))[0].tolist(), strict=True))
        horizon, n = self.problem.shape.horizon, model.visits[model.step(h)]
        P = model.transitions[model.step(h)]
        spread = np.maximum(0.0, expected(P, values**2) - expected(P, values) ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            bonus = row[Column.VARIANCE] * np.sqrt(spread / n)
            bonus += row[Column.ROOT] / np.sqrt(n - row[Column.SHIFT])
            bonus += (row[Column.LINEAR] + row[Column.SQUARE] / n) / n
            if row[Column.CORRECTION] > 0 and h < horizon - 1:
                near = model.visits[model.step(h + 1)].sum(axis=-1)
                ceiling = row[Column.NEAR] / near + row[Column.NEAR2] / near**2
                ceiling = np.where(near > 0, np.minimum(ceiling, horizon**2), horizon**2)
                bonus += np.sqrt(row[Column.CORRECTION] * expected(P, ceiling) / n)
        return np.where(n > row[Column.MINIMUM], bonus, np.inf)

    def next_policy(self, counts: PrivateCounts) -> Policy:
        shape = self.problem.shape
        model = self.model(counts)
        values = np.zeros(shape.states)
        actions = np.zeros(shape.visits[:2], np.int64)
        for h in reversed(range(shape.horizon)):
            self.q[h] = self.q_values(h, model, values, counts.users)
            for s in range(shape.states):
                actions[h, s] = choose(self.q[h, s], self.rng)
            values = np.max(self.q[h], axis=-1)
        return DeterministicPolicy(actions)

    def q_values(self, h: int, model: Model, values: Floats, users: int) -> Floats:
        """The optimistic Q values of step h."""
        cap = self.problem.shape.horizon - (h if self.settings.cap == "remaining" else 0)
        g = model.step(h)
        plain = model.rewards[g] + expected(model.transitions[g], values)
        q = np.clip(plain + self.bonus(h, model, values, users), 0.0, cap)
        return self.possible(h, np.minimum(q, self.q[h]) if self.settings.clip else q)

    def log(self, factor: int) -> float:
        """ln(factor·S·A·T/failure)."""
        shape, episodes = self.problem.shape, self.problem.episodes
        total = factor * shape.states * shape.actions * episodes * shape.horizon
        return math.log(total / self.settings.failure)

    def state(self) -> dict[str, Floats]:
        return {"q": self.q}

    def planner(self) -> Callable[..., None] | None:
        return optimistic_policy

    def table(self, users: Ints, **columns: Floats | float) -> Floats:
        """Coefficients by name (see `Column`)."""
        columns |= {"remaining": self.settings.cap == "remaining", "clip": self.settings.clip}
        table = np.zeros((len(users), len(Column)))
        for name, value in columns.items():
            table[:, Column[name.upper()]] = value
        return table


def expected(transitions: Floats, values: Floats) -> Floats:
    """P·V, summed from the first state to the last: what ties must tie in the kernels too."""
    total = np.zeros(transitions.shape[:-1])
    for t, value in enumerate(values):
        total += transitions[..., t] * value
    return total


@dataclass(frozen=True, kw_only=True)
class ClippedSettings(OptimistSettings):
    """As UCBVI and DP-UCBVI are printed: Q never grows, and its cap is H."""

    clip: bool = True
    cap: Literal["horizon", "remaining"] = "horizon"

    PRACTICAL: ClassVar[Mapping[str, object]] = {"clip": False, "cap": "remaining"}


UcbviTerm = Literal["variance", "reward", "linear", "correction"]


@dataclass(frozen=True, kw_only=True)
class UcbviSettings(ClippedSettings):
    """Settings of `Ucbvi`.

    Attributes:
        bonus: ``"bernstein"`` (their bonus 2) or ``"hoeffding"`` (their bonus 1).
        terms: the terms of the Bernstein bonus that are used.
    """

    bonus: Literal["bernstein", "hoeffding"] = "bernstein"
    terms: tuple[UcbviTerm, ...] = get_args(UcbviTerm)

    PRACTICAL: ClassVar[Mapping[str, object]] = {
        **ClippedSettings.PRACTICAL,
        "bonus_scale": 0.01,
        "terms": ("variance", "reward", "linear"),
    }


class Ucbvi(Optimist):
    """UCBVI on exact counts."""

    name = "ucbvi"
    summary = "optimistic value iteration, Hoeffding or Bernstein bonuses, no privacy"
    settings_type = UcbviSettings
    settings: UcbviSettings

    def coefficients(self, users: Ints) -> Floats:
        (H, S, A), log = self.problem.shape.visits, self.log(5)
        scale, terms = self.settings.bonus_scale, self.settings.terms
        if self.settings.bonus == "hoeffding":
            return self.table(users, root=scale * 7 * H * log)
        return self.table(
            users,
            variance=scale * math.sqrt(8 * log) * ("variance" in terms),
            root=scale * math.sqrt(2 * log) * ("reward" in terms),
            linear=scale * 14 * H * log / 3 * ("linear" in terms),
            correction=scale**2 * 8 * ("correction" in terms),
            near=100**2 * H**3 * S**2 * A * log**2,
        )


DpUcbviTerm = Literal["variance", "reward", "privacy", "correction"]


@dataclass(frozen=True, kw_only=True)
class DpUcbviSettings(NoisyBonusSettings, ClippedSettings):
    """Settings of `DpUcbvi`.

    Attributes:
        terms: the terms of the bonus that are used.
    """

    terms: tuple[DpUcbviTerm, ...] = get_args(DpUcbviTerm)

    PRACTICAL: ClassVar[Mapping[str, object]] = {
        **ClippedSettings.PRACTICAL,
        "bonus_scale": 0.1,
        "privacy_scale": 2e-5,
        "error_scale": 0.2,
        "terms": ("variance", "reward", "privacy"),
    }


class DpUcbvi(Optimist):
    """DP-UCBVI on private counts."""

    name = "dp-ucbvi"
    summary = "UCBVI with private Bernstein bonuses, four terms, each with a switch"
    settings_type = DpUcbviSettings
    settings: DpUcbviSettings

    def errors(self, users: Ints) -> Floats:
        return 4 * self.settings.error_scale * super().errors(users)

    def coefficients(self, users: Ints) -> Floats:
        H, S, A = self.problem.shape.visits
        iota, E = self.log(30 * H), self.errors(users)
        terms, scale = self.settings.terms, self.settings.bonus_scale
        printed = self.settings.privacy_scale * 20 * H * S * E * iota
        return self.table(
            users,
            error=E,
            variance=scale * 2 * math.sqrt(iota) * ("variance" in terms),
            root=scale * math.sqrt(2 * iota) * ("reward" in terms),
            linear=np.maximum(printed, scale * 2 * H * iota / 3) * ("privacy" in terms),
            correction=scale**2 * 16 * iota * ("correction" in terms),
            near=1000**2 * H**3 * S * A * iota**2,
            near2=1000**2 * H**4 * S**4 * A**2 * iota**4 * (E**2 + H**2),
        )


class Column(IntEnum):
    """Coefficients of one release."""

    VARIANCE = 0
    ROOT = 1
    LINEAR = 2
    SQUARE = 3
    CORRECTION = 4
    NEAR = 5
    NEAR2 = 6
    SHIFT = 7
    MINIMUM = 8
    """With this many visits or fewer, Q is the cap."""
    ERROR = 9
    """How far a count may be off: enters the estimates."""
    MODEL = 10
    """0: valid distributions; 1: denominators max(1, N + ERROR); 2: denominators N."""
    REMAINING = 11
    """1: values are capped by the number of remaining steps; 0: by H."""
    CLIP = 12
    """1: Q never grows over the episodes."""
    RATE = 13
    """Step size of policy optimisation."""


# Plain integers for the kernels: compiled code does not index by enum.
_VARIANCE, _ROOT, _LINEAR, _SQUARE, _CORRECTION, _NEAR, _NEAR2, _SHIFT, _MINIMUM = range(9)
_ERROR, _MODEL, _REMAINING, _CLIP, _RATE = range(9, 14)

_ROUNDING = 1e-9
"""More than rounding can take from a sum of shares or add to N: what is at the cap stays there."""


@inlined
def _bonus(root: float, shift: float, linear: float, square: float, n: float) -> float:
    return float(root / np.sqrt(n - shift) + (linear + square / n) / n)


@inlined
def _least_optimism(row: Floats, visits: Floats, rewards: Floats, model: Floats) -> None:
    """``model[S+6]``: what r and `_bonus` are at least, from noisy visits and rewards alone.

    Neither rises with N, and `estimate` makes N at most n: its row sums to at most visits +
    error/4 (to zero where that is negative), and all shares together are error/2.
    """
    error = row[_ERROR]
    root, shift, linear, square = row[_ROOT], row[_SHIFT], row[_LINEAR], row[_SQUARE]
    visited, earned = visits.reshape(visits.size), rewards.reshape(visits.size)
    least = model[visits.shape[1] + 6].reshape(visits.size)
    for x in range(visits.size):
        high = visited[x] + error / 4
        n = error / 2 + (high if high > 0.0 else 0.0)
        mean = earned[x] / n
        mean = mean if mean > 0.0 else 0.0
        least[x] = (mean if mean < 1.0 else 1.0) + _bonus(root, shift, linear, square, n)


@inlined
def _at_cap(model: Floats, g: int, ahead: Floats, cap: float) -> bool:
    """Is Q the cap at all pairs, whatever the rows of group g are made to be?

    The mean of the values ahead is at least the least of them, and all else adds to it. What is
    not a number is not known.
    """
    states = ahead.size
    least = ahead[0]
    for t in range(1, states):
        least = ahead[t] if ahead[t] < least else least
    needed = cap * (1 + _ROUNDING) - least
    known = 0
    for x in range(model.shape[2]):
        known += int(model[states + 6, g, x] >= needed)
    return bool(known == model.shape[2])


@inlined
def estimate(
    row: Floats,
    transitions: Floats,
    visits: Floats,
    rewards: Floats,
    model: Floats,
    first: int,
    last: int,
    room: Floats,
) -> None:
    """``model[:, g]`` = P[0..S-1], r and the bonus that needs no values, N, factor of the rest.

    Of groups ``first`` to before ``last`` (all of them, where rows are signed). All that does not
    depend on the step is computed here, once for all steps of pooled counts. What stands
    where N is at most MINIMUM is never used.
    """
    states = visits.shape[1]
    table = model.reshape(model.shape[0], visits.size)  # pairs of all groups in line
    begin, end = first * model.shape[2], last * model.shape[2]
    optimism, total = table[states, begin:end], table[states + 1, begin:end]
    if row[_MODEL] == 0.0:
        error, share = row[_ERROR], row[_ERROR] / (2 * states)
        for g in range(first, last):
            for s in range(states):
                for a in range(visits.shape[2]):
                    x = s * visits.shape[2] + a
                    low, high = visits[g, s, a] - error / 4, visits[g, s, a] + error / 4
                    valid_row(transitions[g, s, a], low, high, room)
                    n = 0.0
                    for t in range(states):
                        n += room[t] + share
                        model[t, g, x] = room[t] + share
                    model[states, g, x] = rewards[g, s, a]
                    model[states + 1, g, x] = n
        for t in range(states + 1):
            shares = table[t, begin:end]
            for x in range(total.size):  # not times 1/N: what is certain is one exactly
                shares[x] /= total[x]
        for x in range(total.size):
            mean = optimism[x] if optimism[x] > 0.0 else 0.0
            optimism[x] = mean if mean < 1.0 else 1.0
    else:
        for g in range(model.shape[1]):
            for s in range(states):
                for a in range(visits.shape[2]):
                    x, n = s * visits.shape[2] + a, visits[g, s, a]
                    if row[_MODEL] == 1.0:
                        n = max(1.0, n + row[_ERROR])
                    for t in range(states):
                        model[t, g, x] = transitions[g, s, a, t] / n
                    model[states, g, x] = rewards[g, s, a] / n
                    model[states + 1, g, x] = n
    root, shift, linear, square = row[_ROOT], row[_SHIFT], row[_LINEAR], row[_SQUARE]
    variance = row[_VARIANCE]
    rest = table[states + 2, begin:end]
    for x in range(total.size):
        optimism[x] += _bonus(root, shift, linear, square, total[x])
        rest[x] = variance / np.sqrt(total[x])


@inlined
def _correction(row: Floats, model: Floats, group: int, x: int, choices: int, most: float) -> float:
    states = model.shape[2] // choices
    following = group + 1 if model.shape[1] > 1 else 0
    total = 0.0
    for t in range(states):
        near = 0.0
        for b in range(choices):
            near += model[states + 1, following, t * choices + b]
        ceiling = most
        if near > 0.0:
            ceiling = min(ceiling, row[_NEAR] / near + row[_NEAR2] / (near * near))
        total += model[t, group, x] * ceiling
    return float(np.sqrt(row[_CORRECTION] * total / model[states + 1, group, x]))


@inlined
def _optimistic(row: Floats, model: Floats, values: Floats, h: int, g: int, cap: float) -> None:
    """``model[S+3, g]`` = min(cap, max(0, r + P·V + b)), or the cap where too little is known.

    All pairs at once, so that it vectorises. Two more rows of ``model`` are room for squares of
    the values ahead and for the corrections.
    """
    horizon, states = values.shape[0] - 1, values.shape[1]
    pairs = model.shape[2]
    minimum = row[_MINIMUM]
    for x in range(pairs):
        model[states + 3, g, x] = 0.0
        model[states + 4, g, x] = 0.0
        model[states + 5, g, x] = 0.0
    for t in range(states):
        value = values[h + 1, t]
        for x in range(pairs):
            ahead = model[t, g, x] * value
            model[states + 3, g, x] += ahead
            model[states + 4, g, x] += ahead * value
    if row[_CORRECTION] > 0.0 and h < horizon - 1:
        most = float(horizon * horizon)
        for x in range(pairs):
            if model[states + 1, g, x] > minimum:
                extra = _correction(row, model, g, x, pairs // states, most)
                model[states + 5, g, x] = extra
    for x in range(pairs):
        mean = model[states + 3, g, x]
        spread = model[states + 4, g, x] - mean * mean
        spread = spread if spread > 0.0 else 0.0
        new = model[states, g, x] + mean + model[states + 2, g, x] * np.sqrt(spread)
        new += model[states + 5, g, x]
        new = new if new > 0.0 else 0.0
        model[states + 3, g, x] = new if new < cap and model[states + 1, g, x] > minimum else cap


@inlined
def _play_and_move(
    rate: float, memory: Floats, h: int, probabilities: Floats, values: Floats
) -> None:
    _, _, states, choices = memory.shape
    for s in range(states):
        value = 0.0
        total = 0.0
        for a in range(choices):
            weight = memory[1, h, s, a]
            probabilities[h, s, a] = weight
            value += weight * memory[0, h, s, a]
            memory[1, h, s, a] = weight * np.exp(rate * memory[0, h, s, a])
            total += memory[1, h, s, a]
        for a in range(choices):
            memory[1, h, s, a] /= total
        values[h, s] = value


@planner
def optimistic_policy(
    row: Floats,
    transitions: Floats,
    visits: Floats,
    rewards: Floats,
    memory: Floats,
    model: Floats,
    values: Floats,
    actions: Ints,
    probabilities: Floats,
    rng: np.random.Generator,
) -> None:
    """Greedy for the optimistic Q values in ``memory[0]`` (start it at H).

    With a policy in ``memory[1]`` (start it uniform): that one, moved for the next user.

    Rows that cannot be seen are left as they are: while noise outweighs the users, nearly all
    values are at their cap because of the visits alone.
    """
    horizon, states = actions.shape
    groups = model.shape[1]
    choices, clip, moves = memory.shape[3], row[_CLIP] == 1.0, memory.shape[0] > 1
    # Noise on valid distributions must outweigh users: signed rows have no least mean, and the
    # correction asks for N of all rows one step ahead.
    noisy = row[_ERROR] > 0.0 and row[_SHIFT] == 0.0
    skips = noisy and row[_MODEL] == 0.0 and row[_CORRECTION] == 0.0
    if skips:
        _least_optimism(row, visits, rewards, model)
    values[horizon, :] = 0.0
    close = False
    estimated = groups  # the model has groups from here on
    for h in range(horizon - 1, -1, -1):
        g = h if groups > 1 else 0
        cap = float(horizon - h) if row[_REMAINING] == 1.0 else float(horizon)
        if skips and _at_cap(model, g, values[h + 1], cap):
            model[states + 3, g, :] = cap
        else:
            if g < estimated:
                first = g if skips else 0  # all at once where none can be left out
                estimate(row, transitions, visits, rewards, model, first, g + 1, values[h])
                estimated = first
            _optimistic(row, model, values, h, g, cap)
        for s in range(states):
            for a in range(choices):
                q, before = model[states + 3, g, s * choices + a], memory[0, h, s, a]
                memory[0, h, s, a] = min(q, before) if clip or before == FORBIDDEN else q
        if moves:
            _play_and_move(row[_RATE], memory, h, probabilities, values)
        else:
            for s in range(states):
                close |= greedy(memory, h, s, actions, values)
    if close:
        break_ties(memory, actions, rng)


SPECS = by_name(
    LearnerSpec.of_continual(Ucbvi, paper="Azar, Osband and Munos 2017", trusts=("none",)),
    LearnerSpec.of_continual(DpUcbvi, paper="Qiao and Wang 2023, Algorithm 1"),
)
