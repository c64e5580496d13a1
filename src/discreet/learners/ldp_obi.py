"""LDP-OBI (Garcelon, Perchet, Pike-Burke and Pirotta, 2021, Algorithm 2).

Stationary counts R, N^r and N^p, summed over the steps. Before episode k (equation 4), alpha > 1:

    r = R~/(N~^r + alpha·c2),   p(s') = N~^p(s,a,s')/(N~^p(s,a) + alpha·c3)

(signed, of mass below one: allowed). Proposition 4, with log = ln(4·pi²·S·A·H·k³/(3·failure)):

    beta_r = sqrt(2·log/(N~^r + alpha·c2)) + ((alpha+1)·c2 + c1)/(N~^r + alpha·c2)
    beta_p = sqrt(14·S·log/(N~^p + alpha·c3)) + (S·c4 + (alpha+1)·c3)/(N~^p + alpha·c3)

and with h from 0 (equation 5): Q = r + p·V + (H-h)·beta_p + beta_r, greedy without a cap,
V = min(H - h, max Q). Where a denominator is not positive nothing is known and Q is infinite.

**What the multipliers may scale.** In beta_r, c2 + c1 pays for the noise; alpha·c2 pays for the
alpha·c2 visits that the denominator has too many, and these bias r downwards in every run. The same
holds for S·c4 + c3 and alpha·c3. ``privacy_scale`` multiplies what pays for noise and never what
pays for the bias. So the visits that nobody made count as visits of the largest value,

    r + alpha·c2/(N~^r + alpha·c2) = (R~ + alpha·c2)/(N~^r + alpha·c2),

and a pair that nobody has tried is worth the cap, whatever the multipliers.

**The constants c1..c4** (the paper's appendix F is not part of its text). c1, c2, c4 bound the
noise on one cumulative counter, c3 the noise on a sum of S of them, all counters, all episodes
together with probability 1 - failure. A union bound over the counters of a release and over the K
episodes leaves each event f = failure/(K·counters): ``union="known"``, since K is known. Algorithm
2 sums over an unknown number: f = 3·failure/(2·pi²·k²·counters), ``union="printed"``. The noise
of k users on one counter is a sum of k independent draws X of the randomiser, so by Chernoff, for
every t > 0,

    P(|sum| > x) <= 2·exp(k·ln E[e^(tX)] - t·x)   ⇒   c(k) = min_t (k·ln E[e^(tX)] + ln(2/f))/t,

with the exact moment generating function of the discrete noise (`privacy.mechanisms.noise`):
Laplace ln E[e^(tX)] = -ln(1 - sinh²(t/2)/sinh²(1/(2b))), Gaussian at most t²·sigma²/2; bounded
noise and randomised response by their own distributions. So c1 = c2 = c4 = c(k); and because the S
noises of N~^p(s, a, .) are independent, c3 = c(S·k) for additive noise (for the others c3 = S·c4).
For the Laplace randomiser c(k) is about b·sqrt(4·k·ln(2/f)) with b = 6H/eps, the scale of Table 1;
its caption has sqrt(k·H)/eps, less by sqrt(H), and c3 = sqrt(S)·c4 for all randomisers.

Deviations: the H-th transition is counted as well unless ``literal`` (the state after the last step
is observed); V is capped as printed, and ties (rare without a cap on Q) are broken at random.

Regret H³·S²·A·sqrt(K)/eps up to logarithms for the Laplace randomiser, ``constants="theory"``.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discreet._jit import inlined, kernel
from discreet._types import Floats, Ints
from discreet.errors import InvalidInputError
from discreet.learners.base import ContinualLearner
from discreet.learners.continual import backward_induction, break_ties, planner
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import NoisyBonusSettings


@dataclass(frozen=True, kw_only=True)
class LdpObiSettings(NoisyBonusSettings):
    """How sure the bonuses are.

    Attributes:
        alpha: multiplies c2 and c3 in the denominators; above one (Algorithm 2, Proposition 4).
        union: how episodes share the failure probability: ``"known"`` (failure/K) or ``"printed"``
            (3·failure/(2·pi²·k²), Algorithm 2).
        literal: count the transitions of the first H - 1 steps alone under local privacy, as
            Section 4.1 does; False counts the last one, too.
    """

    stationary: bool | None = None
    literal: bool = False
    alpha: float = 2.0
    union: Literal["known", "printed"] = "known"

    PRACTICAL: ClassVar[Mapping[str, object]] = {
        "bonus_scale": 0.02,
        "privacy_scale": 0.1,
        "error_scale": 0.01,
    }

    @property
    def last_transitions(self) -> bool:
        return not self.literal

    def check(self) -> None:
        super().check()
        if not self.alpha > 1:
            raise InvalidInputError(
                f"Expected alpha > 1, got alpha={self.alpha!r}: with less, noise can turn the "
                f"denominators of the estimates negative; the default is 2."
            )


class LdpObi(ContinualLearner):
    """Optimistic backward induction on signed private estimates."""

    name = "ldp-obi"
    summary = "optimism on signed estimates from local reports, four randomisers"
    settings_type = LdpObiSettings
    paper = "002"
    settings: LdpObiSettings

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._grid: tuple[Ints, Floats, Floats] | None = None

    def noise_bounds(self, users: Ints) -> tuple[Floats, Floats]:
        """c1 = c2 = c4 and c3 after that many users."""
        grid, one, many = self._bounds(users)
        at = np.searchsorted(grid, users)  # rounded up: a bound at a later time is one now
        return one[at], many[at]

    def _bounds(self, users: Ints) -> tuple[Ints, Floats, Floats]:
        scale, printed = self.settings.error_scale, self.settings.union == "printed"
        episodes = self.problem.episodes
        summed = self.mechanism.summed_noise()
        if not printed and summed is None:
            times = np.unique(users)
            one = scale * self.error_bounds(times, self._failure(episodes))
            return times, one, self.problem.shape.states * one
        if users.max(initial=0) > episodes:
            raise InvalidInputError(
                f"Expected at most {episodes} users, the episodes of the run, got {users.max()}: "
                f"no bound is known beyond; plan a longer run."
            )
        if self._grid is None:
            grid, states = _time_grid(episodes), self.problem.shape.states
            if not printed and summed is not None:
                noise, copies = summed
                failure = self._failure(episodes)
                one = noise.sum_bounds(copies * grid, failure)
                many = noise.sum_bounds(states * copies * grid, failure)
            else:  # a failure probability of its own at each time
                one, many = np.zeros((2, len(grid)))
                for i, k in enumerate(grid):
                    failure = self._failure(2 * math.pi**2 * (k + 1.0) ** 2 / 3)
                    if summed is None:
                        one[i] = self.mechanism.error_bound(int(k), failure)
                        many[i] = states * one[i]
                    else:
                        noise, copies = summed
                        terms = float(copies * k)
                        one[i] = noise.bound({1.0: 1 * terms}, failure)
                        many[i] = noise.bound({1.0: states * terms}, failure)
            bounds = scale * np.append(0.0, one), scale * np.append(0.0, many)
            self._grid = np.append(0, grid), *bounds
        return self._grid

    def _failure(self, episodes: float) -> float:
        return self.settings.failure / (episodes * self.mechanism.cells)

    def coefficients(self, users: Ints) -> Floats:
        """alpha·c2, alpha·c3, the factors of beta_r and beta_p, root and linear."""
        shape, settings = self.problem.shape, self.settings
        S, A, H = shape.states, shape.actions, shape.horizon
        factor = 4 * math.pi**2 * S * A * H / (3 * settings.failure)
        scales = settings.alpha, settings.bonus_scale, settings.privacy_scale
        return bonus_rows(users, self._bounds(users), S, factor, scales)

    def planner(self) -> Callable[..., None]:
        return signed_values


def _time_grid(episodes: int) -> Ints:
    dense = np.arange(1, min(episodes, 400) + 1)
    sparse = np.geomspace(400, max(episodes, 400), 1 + int(201 * math.log(max(episodes / 400, 1))))
    return np.unique(np.append(dense, np.minimum(np.ceil(sparse), episodes).astype(np.int64)))


_SHIFT_R, _SHIFT_P, _ROOT_R, _LINEAR_R, _ROOT_P, _LINEAR_P = range(6)


@kernel
def bonus_rows(
    counts: Ints,
    bounds: tuple[Ints, Floats, Floats],
    states: int,
    factor: float,
    scales: tuple[float, float, float],
) -> Floats:
    """Coefficients before each release: see `LdpObi.coefficients`.

    ``counts`` of users are quick if in order; ``bounds`` are times in order, none before the last
    of them, with c and c3 up to each; ``factor`` multiplies k³ in the logarithm.
    """
    grid, one, many = bounds
    alpha, bonus, privacy = scales
    rows = np.empty((counts.size, 6))
    at = 0
    for i in range(counts.size):
        if i == 0 or counts[i] < counts[i - 1]:
            at = np.searchsorted(grid, counts[i])
        while grid[at] < counts[i]:  # rounded up: a bound at a later time is one now
            at += 1
        c, c3, k = one[at], many[at], counts[i] + 1.0
        log = np.log(factor * (k * k * k))
        rows[i, _SHIFT_R] = alpha * c
        rows[i, _SHIFT_P] = alpha * c3
        rows[i, _ROOT_R] = bonus * np.sqrt(2 * log)
        rows[i, _LINEAR_R] = alpha * c + privacy * (c + c)
        rows[i, _ROOT_P] = bonus * np.sqrt(14 * states * log)
        rows[i, _LINEAR_P] = alpha * c3 + privacy * (states * c + c3)
    return rows


@inlined
def _estimate(
    row: Floats, transitions: Floats, visits: Floats, rewards: Floats, model: Floats
) -> None:
    """``model[:, g]`` = p, then r + beta_r (infinite: unknown), then beta_p.

    In one pass: for the few pairs of local privacy, several that vectorise take longer.
    """
    groups, states, choices = visits.shape
    shift_r, root_r, linear_r = row[_SHIFT_R], row[_ROOT_R], row[_LINEAR_R]
    shift_p, root_p, linear_p = row[_SHIFT_P], row[_ROOT_P], row[_LINEAR_P]
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                x = s * choices + a
                for_r, for_p = visits[g, s, a] + shift_r, shift_p
                for t in range(states):
                    for_p += transitions[g, s, a, t]
                known = min(for_r, for_p) > 0.0
                both = 1.0 / (for_r * for_p)  # one division for two reciprocals
                of_r, of_p = both * for_p, both * for_r
                reward = rewards[g, s, a] * of_r + (root_r * np.sqrt(of_r) + linear_r * of_r)
                beta_p = root_p * np.sqrt(of_p) + linear_p * of_p
                model[states, g, x] = reward if known else np.inf
                model[states + 1, g, x] = beta_p if known else 0.0
                share = of_p if known else 0.0
                for t in range(states):
                    model[t, g, x] = transitions[g, s, a, t] * share


@planner
def signed_values(
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
    """Optimistic backward induction with signed estimates; no step is worth more than one."""
    _estimate(row, transitions, visits, rewards, model)
    if backward_induction(memory, model, values, actions, 1.0):
        break_ties(memory, actions, rng)


SPECS = by_name(LearnerSpec.of_continual(LdpObi, paper="Garcelon et al. 2021, Algorithm 2"))
