"""UCBVI, DP-UCBVI, Private-UCB-VI, Private-UCB-PO and PUCB: optimism with five printed bonuses.

**UCBVI** (Azar, Osband and Munos, 2017), with L = ln(5·S·A·T/failure), T = K·H, and N' the visits
at the next step:

- Hoeffding (their bonus 1): b = 7·H·L/sqrt(N);
- Bernstein (their bonus 2): b = sqrt(8·L·Var_P(V)/N) + 14·H·L/(3N)
  + sqrt(8·sum_s' P(s')·min(100²·H³·S²·A·L²/N'(s'), H²)/N).

Deviation: their rewards are known, ours are estimated, so sqrt(2·L/N) is added ("reward").

**DP-UCBVI** (Qiao and Wang, 2023, Algorithm 1), with iota = ln(30·H·S·A·T/failure) and E a bound on
the noise (below), equation 31:

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

**Private-UCB-VI and -PO** (Chowdhury and Zhou, 2022). Let E bound the noise of every counter at
that time, D = max(1, N~ + E), r = R~/D and P = N~(s,a,s')/D (signed). Since N <= D and
D - N <= 2E where D > 1,

    |r - r*|        <= |R~ - R|/D + |R - r*·N|/D + r*·(D - N)/D <= L_c/sqrt(D) + 3E/D,
    |(P - P*)·V*|   <= H·L_c/sqrt(D) + H·(S·E + 2E)/D,
    |P - P*|_1      <= L_p/sqrt(D) + (S·E + 2E)/D,

with L_c = sqrt(2·ln(4·S·A·T/failure)) and L_p = sqrt(4·S·ln(6·S·A·T/failure)), T = K·H (their
Lemma; costs there, rewards here). Where D = 1 the printed bonus exceeds H: Q is the cap, also when
multipliers shrink the bonus. VI acts greedily on
Q = min(H - h, max(0, r + P·V + bonus)) with the first two lines as bonus. PO *evaluates* its
current policy with bonus |r - r*| + H·|P - P*|_1, plays it, and then moves it by mirror ascent,
pi ∝ pi·exp(rate·Q), rate = sqrt(2·ln A/(H²·K)), starting from the uniform policy.

**PUCB** (Vietri et al., 2020) privatises UBEV. P = N~(s,a,s')/N~, r = R~/N~ and

    Q = H                                                                  if N~ <= 2E,
    Q = min(H, r + P·V + (H+1)·sqrt(2·ln(T/failure')/(N~ - E))
                 + (1 + S·H)·(3E/N~ + 2E²/N~²))                             otherwise,

failure' = failure/(9·S·A·H). The paper's text was not at hand, so the width does not rest on it:
where every counter is within E of the truth and N~ > 2E, N >= N~ - E > 0 and for 0 <= V <= H

    |R~/N~ - R/N|             <= |R~ - R|/N~ + (R/N)·|N - N~|/N~        <= 2E/N~,
    |sum V·(N~(s')/N~ - N(s')/N)| <= H·S·E/N~ + H·E/N~,

together at most (2 + H·(S + 1))·E/N~ <= (1 + S·H)·2E/N~, which the last term exceeds; and by
Hoeffding R/N and sum V*·N(s')/N are within sqrt(ln(2/f)/(2N)) and H times that of their means, a
half of the root term. The learner is optimistic whatever the paper printed.

In these three E is the exact bound on the actual noise after k users (probability
failure/(3·counters·K) per counter and time), not the printed worst case.

Regret up to logarithms, for ``constants="theory"``: VI sqrt(S·A·H³·T) + S²·A·H³/eps, PO and PUCB
sqrt(S²·A·H³·T) + S²·A·H³/eps (central); S²·A·sqrt(H⁵·T)/eps instead of the last term (local).

**All of them** differ only in how counts become a model and in the factors of

    b(h,s,a) = VARIANCE·sqrt(Var_P(V)/N) + ROOT/sqrt(N - SHIFT) + LINEAR/N + SQUARE/N²
               + sqrt(CORRECTION·sum_s' P(s')·min(NEAR/N'(s') + NEAR2/N'(s')², H²) / N),

so a learner is a row of factors per release (`Column` names them), and one kernel plans for all.
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
from discreet.learners.continual import break_ties, greedy, planner
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import BonusSettings, NoisyBonusSettings, not_negative
from discreet.mdp.policies import uniform_policy
from discreet.privacy.projection.valid_counts import valid_row


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

    A subclass says which `coefficients` a release has.
    """

    settings: OptimistSettings

    def log(self, factor: int) -> float:
        """ln(factor·S·A·T/failure)."""
        shape, episodes = self.problem.shape, self.problem.episodes
        total = factor * shape.states * shape.actions * episodes * shape.horizon
        return math.log(total / self.settings.failure)

    def planner(self) -> Callable[..., None]:
        return optimistic_policy

    def table(self, users: Ints, **columns: Floats | float) -> Floats:
        """Coefficients by name (see `Column`)."""
        columns |= {"remaining": self.settings.cap == "remaining", "clip": self.settings.clip}
        table = np.zeros((len(users), len(Column)))
        for name, value in columns.items():
            table[:, Column[name.upper()]] = value
        return table


@dataclass(frozen=True, kw_only=True)
class PrivateOptimistSettings(NoisyBonusSettings, OptimistSettings):
    """Of an optimist whose bonus pays for noise, too."""


class PrivateOptimist(Optimist):
    """An optimist on private counts."""

    settings: PrivateOptimistSettings

    def errors(self, users: Ints) -> Floats:
        """What the noise of all counters stays below at all times, up to failure/3."""
        failure = self.settings.failure / (3 * self.mechanism.cells * self.problem.episodes)
        return self.settings.error_scale * self.error_bounds(users, failure)


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
class DpUcbviSettings(ClippedSettings, PrivateOptimistSettings):
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


class DpUcbvi(PrivateOptimist):
    """DP-UCBVI on private counts."""

    name = "dp-ucbvi"
    summary = "UCBVI with private Bernstein bonuses, four terms, each with a switch"
    settings_type = DpUcbviSettings
    settings: DpUcbviSettings

    def errors(self, users: Ints) -> Floats:
        return 4 * super().errors(users)

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


@dataclass(frozen=True, kw_only=True)
class PrivateUcbViSettings(PrivateOptimistSettings):
    """Settings of `PrivateUcbVi`."""

    PRACTICAL: ClassVar[Mapping[str, object]] = {
        "bonus_scale": 0.05,
        "privacy_scale": 0.01,
        "error_scale": 0.2,
    }


@dataclass(frozen=True, kw_only=True)
class PrivateUcbPoSettings(PrivateOptimistSettings):
    """Settings of `PrivateUcbPo`.

    Attributes:
        rate_scale: multiplies the step size of mirror ascent; one in theory.
    """

    rate_scale: float = 1.0

    PRACTICAL: ClassVar[Mapping[str, object]] = {
        "bonus_scale": 0.02,
        "privacy_scale": 0.003,
        "error_scale": 0.2,
        "rate_scale": 20.0,
    }

    def check(self) -> None:
        super().check()
        not_negative(rate_scale=self.rate_scale)


@dataclass(frozen=True, kw_only=True)
class PucbSettings(PrivateOptimistSettings):
    """Settings of `Pucb`."""

    cap: Literal["horizon", "remaining"] = "horizon"

    PRACTICAL: ClassVar[Mapping[str, object]] = {
        "bonus_scale": 0.05,
        "privacy_scale": 0.01,
        "error_scale": 0.05,
        "cap": "remaining",
    }


class PrivateUcbVi(PrivateOptimist):
    """Value iteration with Hoeffding bonuses on private counts."""

    name = "private-ucb-vi"
    summary = "value iteration with private Hoeffding bonuses"
    settings_type: ClassVar[type[PrivateOptimistSettings]] = PrivateUcbViSettings
    settings: PrivateUcbViSettings | PrivateUcbPoSettings

    def coefficients(self, users: Ints) -> Floats:
        H, S, _ = self.problem.shape.visits
        E = self.errors(users)
        return self.table(
            users,
            model=1,
            minimum=1,
            error=E,
            root=self.settings.bonus_scale * (math.sqrt(2 * self.log(4)) + H * self.width()),
            linear=self.settings.privacy_scale * (3 * E + H * (S * E + 2 * E)),
        )

    def width(self) -> float:
        """L_c: the factor of H/sqrt(D) for the transitions."""
        return math.sqrt(2 * self.log(4))


class PrivateUcbPo(PrivateUcbVi):
    """Policy optimisation: optimistic evaluation, then mirror ascent."""

    name = "private-ucb-po"
    summary = "private policy optimisation by mirror ascent"
    settings_type: ClassVar[type[PrivateOptimistSettings]] = PrivateUcbPoSettings
    settings: PrivateUcbPoSettings
    stochastic = True

    @property
    def rate(self) -> float:
        """sqrt(2·ln A/(H²·K)), times ``rate_scale``."""
        shape = self.problem.shape
        printed = math.sqrt(2 * math.log(shape.actions) / self.problem.episodes) / shape.horizon
        return float(self.settings.rate_scale * printed)

    def width(self) -> float:
        """L_p: |P - P*|_1 does not depend on the values ahead."""
        return math.sqrt(4 * self.problem.shape.states * self.log(6))

    def coefficients(self, users: Ints) -> Floats:
        table = super().coefficients(users)
        table[:, Column.RATE] = self.rate
        return table

    def memory(self) -> Floats:
        """Q at H, and the uniform policy."""
        return np.stack([*super().memory(), uniform_policy(self.problem.shape).probabilities])


class Pucb(PrivateOptimist):
    """UBEV on private counts."""

    name = "pucb"
    summary = "UBEV on private counts"
    settings_type: ClassVar[type[PrivateOptimistSettings]] = PucbSettings
    settings: PucbSettings

    def coefficients(self, users: Ints) -> Floats:
        H, S, _ = self.problem.shape.visits
        log = self.log(9 * H)  # ln(T/failure') with failure' = failure/(9·S·A·H)
        E, scale = self.errors(users), self.settings.privacy_scale * (1 + S * H)
        return self.table(
            users,
            model=2,
            shift=E,
            minimum=2 * E,
            root=self.settings.bonus_scale * (H + 1) * math.sqrt(2 * log),
            linear=3 * scale * E,
            square=2 * scale * E**2,
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


@inlined
def _estimate(
    row: Floats, transitions: Floats, visits: Floats, rewards: Floats, model: Floats, room: Floats
) -> None:
    """``model[:, g]`` = P[0..S-1], r and the bonus that needs no values, N, factor of the rest.

    Once for all steps of pooled counts. What stands where N is at most MINIMUM is never used. What
    is done for all pairs alike stands in loops of its own, which vectorise.
    """
    groups, states, choices = visits.shape
    error, kind = row[_ERROR], row[_MODEL]
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                x, n = s * choices + a, visits[g, s, a]
                if kind == 0.0:
                    valid_row(transitions[g, s, a], n - error / 4, n + error / 4, room)
                    n = 0.0
                    for t in range(states):
                        model[t, g, x] = room[t] + error / (2 * states)
                        n += model[t, g, x]
                else:
                    n = max(1.0, n + error) if kind == 1.0 else n
                    for t in range(states):
                        model[t, g, x] = transitions[g, s, a, t]
                model[states, g, x] = rewards[g, s, a]
                model[states + 1, g, x] = n
    table = model.reshape(model.shape[0], visits.size)
    total, means = table[states + 1], table[states]
    for t in range(states + 1):
        for x in range(total.size):  # not times 1/N: what is certain is one exactly
            table[t, x] /= total[x]
    for x in range(total.size):
        n, mean = total[x], means[x]
        if kind == 0.0:
            mean = min(max(mean, 0.0), 1.0)
        bonus = row[_ROOT] / np.sqrt(n - row[_SHIFT])
        bonus += (row[_LINEAR] + row[_SQUARE] / n) / n
        means[x] = mean + bonus
        table[states + 2, x] = row[_VARIANCE] / np.sqrt(n)


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
    """
    horizon, states = actions.shape
    choices, clip, moves = memory.shape[3], row[_CLIP] == 1.0, memory.shape[0] > 1
    _estimate(row, transitions, visits, rewards, model, values[0])
    values[horizon, :] = 0.0
    close = False
    for h in range(horizon - 1, -1, -1):
        g = h if model.shape[1] > 1 else 0
        cap = float(horizon - h) if row[_REMAINING] == 1.0 else float(horizon)
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
    LearnerSpec.of_continual(PrivateUcbVi, paper="Chowdhury and Zhou 2022"),
    LearnerSpec.of_continual(PrivateUcbPo, paper="Chowdhury and Zhou 2022"),
    LearnerSpec.of_continual(Pucb, paper="Vietri et al. 2020", trusts=("none", "central")),
)
