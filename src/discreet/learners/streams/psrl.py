"""PSRL (Osband, Russo and Van Roy, 2013) and LDP-PSRL (Garcelon et al., 2021, Section 6).

Before every episode one model is drawn from the posterior and its optimal policy is played:

    P(.|s,a) ~ Dirichlet(prior + n(s,a,.)),
    r(s,a)   ~ Normal(mu, 1/(lambda·tau)),  tau ~ Gamma(a, rate b)          (Normal-Gamma)

with lambda = 1 + n, mu = (1/2 + n·m)/lambda, a = 1 + n/2 and
b = 1 + n·m·(1 - m)/2 + n·(m - 1/2)²/(2·lambda) for n visits of mean reward m: the conjugate update
from the prior (mu, lambda, a, b) = (1/2, 1, 1, 1); rewards are bits, so m also gives their squares.

**LDP-PSRL** feeds private counts: n(s,a,s') = max(0, N~), n = max(0, N~), n·m = R~ clipped to
[0, n], so that all parameters stay valid (decided here: the paper's appendix is not public text).
As printed, the posterior takes noisy counts at face value: it is far too sure of itself while the
noise exceeds the counts. With ``privacy_scale`` c > 0 counts are shrunk to the sample size that
matches their noise: an estimate from n visits has variance about 1/n + c·v/n² with v the noise
variance, so n becomes n_eff = n²/(n + c·v) and counts are scaled by n_eff/n.

No regret bound is proven for LDP-PSRL; PSRL has Bayesian regret H·S·sqrt(A·T) up to logarithms.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discreet import _validate
from discreet._types import Floats, Ints
from discreet.learners.base import StreamLearner
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import StreamSettings, not_negative
from discreet.learners.streams.loop import choose, three_statistics
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.statistics import PrivateCounts


@dataclass(frozen=True, kw_only=True)
class PsrlSettings(StreamSettings):
    """Settings of `Psrl`; printed and practical ones are the same.

    Attributes:
        prior: of every transition, in visits.
    """

    prior: float = 1.0

    def check(self) -> None:
        super().check()
        _validate.positive(prior=self.prior)


@dataclass(frozen=True, kw_only=True)
class LdpPsrlSettings(PsrlSettings):
    """Settings of `LdpPsrl`.

    Attributes:
        privacy_scale: c, how much the noise shrinks the counts; as printed not at all.
    """

    stationary: bool | None = None
    privacy_scale: float = 0.0

    PRACTICAL: ClassVar[Mapping[str, object]] = {"privacy_scale": 0.1}

    def check(self) -> None:
        """Noise never adds certainty."""
        super().check()
        not_negative(privacy_scale=self.privacy_scale)


class Psrl(StreamLearner):
    """Posterior sampling on (private) counts."""

    name = "psrl"
    summary = "posterior sampling, no privacy"
    settings_type: ClassVar[type[PsrlSettings]] = PsrlSettings
    settings: PsrlSettings

    def next_policy(self, counts: PrivateCounts) -> DeterministicPolicy:
        shape = self.problem.shape
        transitions, rewards = self.draw_model(counts)
        values = np.zeros(shape.states)
        actions = np.zeros(shape.visits[:2], np.int64)
        for h in reversed(range(shape.horizon)):
            g = h if len(rewards) > 1 else 0
            q = rewards[g].copy()
            for t in range(shape.states):
                q += transitions[g, ..., t] * values[t]
            for s in range(shape.states):
                actions[h, s] = choose(q[s], self.rng)
            values = q.max(axis=-1)
        return DeterministicPolicy(actions)

    def draw_model(self, counts: PrivateCounts) -> tuple[Floats, Floats]:
        """One model of the posterior: transitions ``[G,S,A,S]`` and rewards ``[G,S,A]``."""
        steps, visits, sums = three_statistics(counts)
        prior, noise = self.coefficients(np.array([counts.users]))[0].tolist()
        transitions, rewards = np.zeros_like(steps), np.zeros_like(visits)
        for index in np.ndindex(visits.shape):
            n = max(0.0, float(visits[index]))
            share = n / (n + noise) if n > 0 else 0.0  # n_eff / n
            gammas = [
                self.rng.standard_gamma(prior + share * max(0.0, count))
                for count in steps[index].tolist()
            ]
            transitions[index] = np.array(gammas) / sum(gammas)
            total = share * min(n, max(0.0, float(sums[index])))
            rewards[index] = self._draw_reward(share * n, total)
        return transitions, rewards

    def _draw_reward(self, n: float, total: float) -> float:
        mean = total / n if n > 0 else 0.5
        lam = 1 + n
        mu = (0.5 + total) / lam
        b = 1 + n * mean * (1 - mean) / 2 + n * (mean - 0.5) ** 2 / (2 * lam)
        tau = self.rng.standard_gamma(1 + n / 2) / b
        return float(mu + self.rng.standard_normal() / math.sqrt(lam * tau))

    def coefficients(self, users: Ints) -> Floats:
        """The prior and c·v, the noise that shrinks the counts."""
        table = np.zeros((len(users), 2))
        table[:, 0] = self.settings.prior
        if self.noise_share:
            table[:, 1] = self.noise_share * self._noise_variances(users)
        return table

    @property
    def noise_share(self) -> float:
        """c, how much the noise shrinks the counts."""
        return 0.0

    def _noise_variances(self, times: Ints) -> Floats:
        """Of one visit counter; under local privacy every user adds the same noise."""
        if self.plan.guarantee.notion == "none":
            return np.zeros(len(times))
        if self.plan.guarantee.notion == "LDP":
            return times.astype(np.float64) * self.plan.noise_variance(1)["visits"]
        return np.array([self.plan.noise_variance(int(k))["visits"] if k else 0.0 for k in times])

    def planner(self) -> Callable[..., None] | None:
        """`next_policy`, compiled: the same law, other random numbers (`psrl_kernels`)."""
        from discreet.learners.streams.psrl_kernels import sampled_values

        return sampled_values

    def memory(self) -> Floats:
        """Scratch for Q, and what the compiled models are made of; its seeds come from ``rng``."""
        from discreet.learners.streams.psrl_kernels import first_memory, fresh_words

        shape = self.problem.shape
        pairs = (1 if self.plan.stationary else shape.horizon) * shape.states * shape.actions
        return first_memory(shape.visits, pairs, fresh_words(self.rng))


class LdpPsrl(Psrl):
    """PSRL on locally private counts."""

    name = "ldp-psrl"
    summary = "posterior sampling on locally private counts"
    settings_type = LdpPsrlSettings
    paper = "002"
    settings: LdpPsrlSettings

    @property
    def noise_share(self) -> float:
        return self.settings.privacy_scale


SPECS = by_name(
    LearnerSpec.of_stream(Psrl, paper="Osband, Russo and Van Roy 2013", trusts=("none",)),
    LearnerSpec.of_stream(LdpPsrl, paper="Garcelon et al. 2021, Section 6"),
)
