"""PSRL (Osband, Russo and Van Roy, 2013) and LDP-PSRL (Garcelon et al., 2021, Section 6).

Before every episode one model is drawn from the posterior and its optimal policy is played:

    P(.|s,a) ~ Dirichlet(prior + n(s,a,.)),
    r(s,a)   ~ Normal(mu, 1/(lambda·tau)),  tau ~ Gamma(a, rate b)          (Normal-Gamma)

with lambda = 1 + n, mu = (1/2 + n·m)/lambda, a = 1 + n/2 and
b = 1 + n·m·(1 - m)/2 + n·(m - 1/2)²/(2·lambda) for n visits of mean reward m: the conjugate update
from the prior (mu, lambda, a, b) = (1/2, 1, 1, 1); rewards are bits, so m also gives their squares.

**LDP-PSRL** feeds private counts: n(s,a,s') = max(0, N~), n = max(0, N~), n·m = R~ clipped to
[0, n], so that all parameters stay valid (decided here: the copy we had lacks the appendix).
As printed, the posterior takes noisy counts at face value: it is far too sure of itself while the
noise exceeds the counts. With ``privacy_scale`` c > 0 counts are shrunk to the sample size that
matches their noise: an estimate from n visits has variance about 1/n + c·v/n² with v the noise
variance, so n becomes n_eff = n²/(n + c·v) and counts are scaled by n_eff/n.

No regret bound is proven for LDP-PSRL; PSRL has Bayesian regret H·S·sqrt(A·T) up to logarithms.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discreet import _validate
from discreet._jit import inlined
from discreet._types import Floats, Ints
from discreet.learners.base import ContinualLearner
from discreet.learners.continual import backward_induction, break_ties, planner
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import ContinualSettings, not_negative


@dataclass(frozen=True, kw_only=True)
class PsrlSettings(ContinualSettings):
    """Settings of `Psrl`; printed and practical ones are the same.

    Attributes:
        prior: the Dirichlet prior of every next state, in visits.
    """

    prior: float = 1.0

    def check(self) -> None:
        super().check()
        _validate.positive(prior=self.prior)


@dataclass(frozen=True, kw_only=True)
class LdpPsrlSettings(PsrlSettings):
    """Settings of `LdpPsrl`.

    Attributes:
        literal: count the transitions of the first H - 1 steps alone under local privacy, as
            Section 4.1 does; False counts the last one, too.
        privacy_scale: c, which shrinks counts to the sample size that matches their noise; zero as
            printed.
    """

    stationary: bool | None = None
    literal: bool = False
    privacy_scale: float = 0.0

    PRACTICAL: ClassVar[Mapping[str, object]] = {"privacy_scale": 0.1}

    @property
    def last_transitions(self) -> bool:
        return not self.literal

    def check(self) -> None:
        super().check()
        not_negative(privacy_scale=self.privacy_scale)


class Psrl(ContinualLearner):
    """Posterior sampling on (private) counts."""

    name = "psrl"
    summary = "posterior sampling, no privacy"
    settings_type: ClassVar[type[PsrlSettings]] = PsrlSettings
    settings: PsrlSettings

    def coefficients(self, users: Ints) -> Floats:
        """The prior and c·v, the noise that shrinks the counts."""
        table = np.zeros((len(users), 2))
        table[:, 0] = self.settings.prior
        return table

    def planner(self) -> Callable[..., None]:
        return sampled_values


class LdpPsrl(Psrl):
    """PSRL on locally private counts."""

    name = "ldp-psrl"
    summary = "posterior sampling on locally private counts"
    settings_type = LdpPsrlSettings
    paper = "002"
    settings: LdpPsrlSettings

    def coefficients(self, users: Ints) -> Floats:
        table, scale = super().coefficients(users), self.settings.privacy_scale
        if scale and self.mechanism.guarantee.notion == "LDP":
            table[:, 1] = scale * (users * self.mechanism.noise_variance(1)["visits"])
        elif scale and self.mechanism.guarantee.notion != "none":
            for row, count in zip(table, users.tolist(), strict=True):
                row[1] = scale * self.mechanism.noise_variance(count)["visits"] if count else 0.0
        return table


@inlined
def _draw(
    row: Floats,
    transitions: Floats,
    visits: Floats,
    rewards: Floats,
    model: Floats,
    rng: np.random.Generator,
) -> None:
    """``model[:, g]`` = p, then r, then zero: one model of the posterior."""
    groups, states, choices = visits.shape
    prior, noise = row[0], row[1]
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                x, n = s * choices + a, max(0.0, visits[g, s, a])
                share = n / (n + noise) if n > 0.0 else 0.0  # n_eff / n
                whole = 0.0
                for t in range(states):
                    gamma = rng.standard_gamma(prior + share * max(0.0, transitions[g, s, a, t]))
                    model[t, g, x] = gamma
                    whole += gamma
                for t in range(states):
                    model[t, g, x] /= whole
                total = share * min(n, max(0.0, rewards[g, s, a]))
                n *= share
                mean, lam = total / n if n > 0.0 else 0.5, 1.0 + n
                b = 1.0 + 0.5 * n * (mean * (1.0 - mean) + (mean - 0.5) ** 2 / lam)
                tau = rng.standard_gamma(1.0 + 0.5 * n) / b
                spread = 1.0 / np.sqrt(lam * tau)
                model[states, g, x] = (0.5 + total) / lam + rng.standard_normal() * spread
                model[states + 1, g, x] = 0.0


@planner
def sampled_values(
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
    """The optimal policy of one drawn model, whose rewards are not bounded."""
    _draw(row, transitions, visits, rewards, model, rng)
    if backward_induction(memory, model, values, actions, np.inf):
        break_ties(memory, actions, rng)


SPECS = by_name(
    LearnerSpec.of_continual(Psrl, paper="Osband, Russo and Van Roy 2013", trusts=("none",)),
    LearnerSpec.of_continual(LdpPsrl, paper="Garcelon et al. 2021, Section 6"),
)
