"""Private-UCB-VI, Private-UCB-PO (Chowdhury and Zhou, 2022) and PUCB (Vietri et al., 2020).

**Private-UCB-VI and -PO.** Let E bound the noise of every counter at that time, D = max(1, N~ + E),
r = R~/D and P = N~(s,a,s')/D (signed). Since N <= D and D - N <= 2E where D > 1,

    |r - r*|        <= |R~ - R|/D + |R - r*·N|/D + r*·(D - N)/D <= L_c/sqrt(D) + 3E/D,
    |(P - P*)·V*|   <= H·L_c/sqrt(D) + H·(S·E + 2E)/D,
    |P - P*|_1      <= L_p/sqrt(D) + (S·E + 2E)/D,

with L_c = sqrt(2·ln(4·S·A·T/failure)) and L_p = sqrt(4·S·ln(6·S·A·T/failure)), T = K·H (their
Lemma; costs there, rewards here). Where D = 1 the printed bonus exceeds H: Q is the cap, also when
multipliers shrink the bonus. VI acts greedily on
Q = min(H - h, max(0, r + P·V + bonus)) with the first two lines as bonus. PO *evaluates* its
current policy with bonus |r - r*| + H·|P - P*|_1, plays it, and then moves it by mirror ascent,
pi ∝ pi·exp(rate·Q), rate = sqrt(2·ln A/(H²·K)), starting from the uniform policy.

**PUCB** privatises UBEV. P = N~(s,a,s')/N~, r = R~/N~ and

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

In all three E is the exact bound on the actual noise after k users (probability
failure/(3·counters·K) per counter and time), not the printed worst case.

Regret up to logarithms, for ``constants="theory"``: VI sqrt(S·A·H³·T) + S²·A·H³/eps, PO and PUCB
sqrt(S²·A·H³·T) + S²·A·H³/eps (central); S²·A·sqrt(H⁵·T)/eps instead of the last term (local).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discreet._types import Floats, Ints
from discreet.learners.dp_ucbvi import Column, Optimist, OptimistSettings
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import NoisyBonusSettings, not_negative
from discreet.mdp.policies import StochasticPolicy, uniform_policy
from discreet.privacy.statistics import PrivateCounts


@dataclass(frozen=True, kw_only=True)
class PrivateUcbViSettings(NoisyBonusSettings, OptimistSettings):
    """Settings of `PrivateUcbVi`."""

    PRACTICAL: ClassVar[Mapping[str, object]] = {
        "bonus_scale": 0.05,
        "privacy_scale": 0.01,
        "error_scale": 0.2,
    }


@dataclass(frozen=True, kw_only=True)
class PrivateUcbPoSettings(NoisyBonusSettings, OptimistSettings):
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
class PucbSettings(NoisyBonusSettings, OptimistSettings):
    """Settings of `Pucb`."""

    cap: Literal["horizon", "remaining"] = "horizon"

    PRACTICAL: ClassVar[Mapping[str, object]] = {
        "bonus_scale": 0.05,
        "privacy_scale": 0.01,
        "error_scale": 0.05,
        "cap": "remaining",
    }


class PrivateUcbVi(Optimist):
    """Value iteration with Hoeffding bonuses on private counts."""

    name = "private-ucb-vi"
    summary = "value iteration with private Hoeffding bonuses"
    settings_type: ClassVar[type[OptimistSettings]] = PrivateUcbViSettings
    settings: PrivateUcbViSettings | PrivateUcbPoSettings

    def errors(self, users: Ints) -> Floats:
        return self.settings.error_scale * super().errors(users)

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
    settings_type: ClassVar[type[OptimistSettings]] = PrivateUcbPoSettings
    settings: PrivateUcbPoSettings
    stochastic = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.policy = uniform_policy(self.problem.shape).probabilities.copy()

    @property
    def rate(self) -> float:
        """sqrt(2·ln A/(H²·K)), times ``rate_scale``; in batches K is their number."""
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

    def next_policy(self, counts: PrivateCounts) -> StochasticPolicy:
        """Play the current policy; move it for the next user."""
        shape = self.problem.shape
        current = StochasticPolicy(self.policy)
        model = self.model(counts)
        values = np.zeros(shape.states)
        for h in reversed(range(shape.horizon)):
            self.q[h] = self.q_values(h, model, values, counts.users)
            values = np.sum(self.policy[h] * self.q[h], axis=-1)
            moved = self.policy[h] * np.exp(self.rate * self.q[h])
            self.policy[h] = moved / moved.sum(axis=-1, keepdims=True)
        return current

    def state(self) -> dict[str, Floats]:
        return {**super().state(), "policy": self.policy}

    def memory(self) -> Floats:
        """Q at H, and the uniform policy."""
        return np.stack([*super().memory(), uniform_policy(self.problem.shape).probabilities])


class Pucb(Optimist):
    """UBEV on private counts."""

    name = "pucb"
    summary = "UBEV on private counts"
    settings_type: ClassVar[type[OptimistSettings]] = PucbSettings
    settings: PucbSettings

    def errors(self, users: Ints) -> Floats:
        return self.settings.error_scale * super().errors(users)

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


SPECS = by_name(
    LearnerSpec.of_continual(PrivateUcbVi, paper="Chowdhury and Zhou 2022"),
    LearnerSpec.of_continual(PrivateUcbPo, paper="Chowdhury and Zhou 2022"),
    LearnerSpec.of_continual(Pucb, paper="Vietri et al. 2020", trusts=("none", "central")),
)
