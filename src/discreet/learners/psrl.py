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

**Compiled**, a model takes many gammas and normals. What they are made of is drawn ahead for
`AHEAD` models, in vectors, and kept in the planner's memory. A gamma is

    d·(1 + z)³  with  d = shape - 1/3  and  z = x/(3·sqrt(d))

for a normal x, if a uniform v has -ln(1 - v) > 3d·(-ln(1 + z) + z - z²/2 + z³/3) (Marsaglia and
Tsang, 2000; true for every d > 0); if not, all begins anew. The bracket is the integral of
t³/(1 + t) from 0 to z, at most z⁴/4 over the smaller of 1 and 1 + z, and the left side is at least
v. So v·min(1, 1 + z) > 3/4·d·z⁴ is enough, and is asked first: it settles all but one draw in
fourteen at shape 1, and all but one in 300 at shape 10. For shapes up to 1/3 no comparison holds,
and all begins anew.

Normals come two by two (Box and Muller, 1958) from xoshiro256++ generators (Blackman and Vigna,
2021) side by side, in loops that vectorise; the angle is drawn in (-pi/4, pi/4), and two more bits
turn it by a multiple of pi/2. Their
distribution is exact up to rounding: formulas to 1e-14, words of 52 bits.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numba
import numpy as np

from discreet import _validate
from discreet._jit import BORROWED, as_float, as_word, inlined, kernel
from discreet._types import Floats, FourWords, Ints, WordArray
from discreet.learners.base import ContinualLearner
from discreet.learners.continual import (
    backward_induction,
    break_ties,
    choose,
    planner,
    three_statistics,
)
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import ContinualSettings, not_negative
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.sampling.kernels import next_word
from discreet.privacy.statistics import PrivateCounts


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
            q = self.possible(h, q)
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
            n, total = share * n, share * min(n, max(0.0, float(sums[index])))
            m, lam = total / n if n > 0 else 0.5, 1 + n
            b = 1 + n * m * (1 - m) / 2 + n * (m - 0.5) ** 2 / (2 * lam)
            tau = self.rng.standard_gamma(1 + n / 2) / b
            normal = self.rng.standard_normal() / math.sqrt(lam * tau)
            rewards[index] = (0.5 + total) / lam + normal
        return transitions, rewards

    def coefficients(self, users: Ints) -> Floats:
        """The prior and c·v, the noise that shrinks the counts."""
        table = np.zeros((len(users), 2))
        table[:, 0] = self.settings.prior
        return table

    def planner(self) -> Callable[..., None] | None:
        """`next_policy`, compiled: the same distribution, other random numbers."""
        return sampled_values

    def memory(self) -> Floats:
        """Scratch for Q, and what the compiled models are made of; its seeds come from ``rng``."""
        shape = self.problem.shape
        pairs = (1 if self.mechanism.stationary else shape.horizon) * shape.states * shape.actions
        memory = first_memory(shape.visits, pairs, fresh_words(self.rng))
        memory[0] = super().memory()[0]
        return memory


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


_SIDE = 64
"""Generators side by side of each of three kinds: radii and turns (a normal each), uniforms."""
AHEAD = 64
"""Models whose random numbers are drawn at a time; a multiple of `_SIDE`, so that vectors are full.
"""
_WORDS = 4 * 3 * _SIDE
_ONE = np.uint64(0x3FF0000000000000)
"""The bits of 1.0."""
_MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
_BELOW_ONE = 1.0 - 2.0**-53
_LEAST = 2.0**-53
_LN2 = math.log(2.0)


def model_draws(pairs: int, states: int) -> tuple[int, int]:
    """Normals (an even number) and uniforms of one model with that many pairs (g, s, a).

    Per pair, S transitions and tau are gammas, of a normal and a uniform each; one more normal is
    for the reward.
    """
    normals = pairs * (states + 2)
    return normals + normals % 2, pairs * (states + 1)


def memory_parts(memory: Floats, draws: tuple[int, int]) -> tuple[Floats, Floats, Floats, Floats]:
    """After Q: how many models are left, the generators' words, and normals and uniforms ahead."""
    kept = memory.reshape(memory.size)[memory.size // memory.shape[0] :]
    first, second = 1 + _WORDS, 1 + _WORDS + AHEAD * draws[0]
    last = second + AHEAD * draws[1]
    return kept[:1], kept[1:first], kept[first:second], kept[second:last]


def numbers_kept(pairs: int, states: int) -> int:
    """The length of all `memory_parts`."""
    return 1 + _WORDS + AHEAD * sum(model_draws(pairs, states))


def first_memory(q: tuple[int, int, int], pairs: int, words: WordArray) -> Floats:
    """Room for Q ``[H, S, A]`` and `memory_parts`; no model is left."""
    rows = -(-numbers_kept(pairs, q[1]) // math.prod(q))
    memory = np.zeros((1 + rows, *q))
    memory_parts(memory, model_draws(pairs, q[1]))[1][:] = words.view(np.float64)
    return memory


def fresh_words(rng: np.random.Generator) -> WordArray:
    return rng.integers(0, 1 << 64, _WORDS, np.uint64)


_model_draws, _memory_parts = inlined(model_draws), inlined(memory_parts)


def _fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a formula into its callers.

    The one fast-math licence is to fuse multiply and add: a third faster, not less exact.
    """
    made = numba.njit(forceinline=True, fastmath={"contract"}, error_model="numpy", **BORROWED)
    compiled: Callable[..., Any] = made(function)
    return compiled


def _fused_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    made = numba.njit(cache=True, fastmath={"contract"}, error_model="numpy", **BORROWED)
    compiled: Callable[..., Any] = made(function)
    return compiled


@_fused
def _uniform_of(word: np.uint64) -> float:
    return float(as_float((word >> np.uint64(12)) | _ONE) - _BELOW_ONE)


@kernel
def draw_uniforms(s0: WordArray, s1: WordArray, s2: WordArray, s3: WordArray, out: Floats) -> None:
    """out[j] = a uniform in (0, 1) from generator j."""
    for j in range(out.size):
        out[j] = _uniform_of(next_word(s0, s1, s2, s3, j))


@_fused_kernel
def draw_normals(radii: FourWords, turns: FourWords, first: Floats, second: Floats) -> None:
    """first[j] and second[j] = independent standard normals from generators j of both kinds.

    The logarithm of u = 2^e·m with m in [1, 2) is (e + 1/2)·ln 2 + 2·artanh((m - √2)/(m + √2)).
    """
    r0, r1, r2, r3 = radii
    t0, t1, t2, t3 = turns
    for j in range(first.size):
        u = as_word(_uniform_of(next_word(r0, r1, r2, r3, j)))
        exponent = float(np.int64(u >> np.uint64(52))) - 1023.0
        m = as_float((u & _MANTISSA) | _ONE)
        z = (m - 1.4142135623730951) / (m + 1.4142135623730951)
        w = z * z
        series = 1 / 11 + w * (1 / 13 + w * (1 / 15 + w * (1 / 17)))
        series = 1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w * series)))
        exponential = -((exponent + 0.5) * _LN2 + 2.0 * z * (1.0 + w * series))
        radius = np.sqrt(2.0 * (exponential if exponential > _LEAST else _LEAST))
        turn = next_word(t0, t1, t2, t3, j)
        x = (_uniform_of(turn) - 0.5) * (math.pi / 2)
        w = x * x
        p = 1 / 362880.0 + w * (-1 / 39916800.0 + w * (1 / 6227020800.0 - w / 1307674368000.0))
        sine = x + x * w * (-1 / 6.0 + w * (1 / 120.0 + w * (-1 / 5040.0 + w * p)))
        p = -1 / 3628800.0 + w * (1 / 479001600.0 - w / 87178291200.0)
        p = -1 / 720.0 + w * (1 / 40320.0 + w * p)
        cosine = 1.0 + w * (-0.5 + w * (1 / 24.0 + w * p))
        cosine *= float(np.int64(turn & np.uint64(2))) - 1.0
        swapped = (turn & np.uint64(1)) == np.uint64(1)
        first[j] = radius * (sine if swapped else cosine)
        second[j] = radius * (cosine if swapped else sine)


@inlined
def _some_generators(state: WordArray, first: int, count: int) -> FourWords:
    last = first + count
    return (
        state[0, first:last],
        state[1, first:last],
        state[2, first:last],
        state[3, first:last],
    )


@_fused_kernel
def draw_ahead(words: WordArray, normals: Floats, uniforms: Floats) -> None:
    """Normals, a multiple of 2·`_SIDE`, and uniforms, a multiple of `_SIDE`."""
    state = words.reshape(4, 3 * _SIDE)
    radii, turns = _some_generators(state, 0, _SIDE), _some_generators(state, _SIDE, _SIDE)
    for start in range(0, normals.size, 2 * _SIDE):
        middle = start + _SIDE
        draw_normals(radii, turns, normals[start:middle], normals[middle : middle + _SIDE])
    u0, u1, u2, u3 = _some_generators(state, 2 * _SIDE, _SIDE)
    for start in range(0, uniforms.size, _SIDE):
        draw_uniforms(u0, u1, u2, u3, uniforms[start : start + _SIDE])


@inlined
def _next_draws(memory: Floats, pairs: int, states: int) -> tuple[Floats, Floats]:
    draws = _model_draws(pairs, states)
    left, words, normals, uniforms = _memory_parts(memory, draws)
    if left[0] == 0.0:
        draw_ahead(words.view(np.uint64), normals, uniforms)
        left[0] = AHEAD
    left[0] -= 1.0
    i = int(left[0])
    each, gammas = draws
    return normals[i * each : (i + 1) * each], uniforms[i * gammas : (i + 1) * gammas]


@inlined
def _posterior(
    row: Floats, transitions: Floats, visits: Floats, rewards: Floats, model: Floats
) -> None:
    """``model[:, g]`` = shapes of the gammas of p, then of tau; mu; b/lambda.

    With N visits that earned R, noise v and D = N + v, the effective n = N²/D, n·m = N·R/D and
    n·m² = R²/D: one division per pair gives 1/D and 1/lambda = D/(D + N²).
    """
    groups, states, choices = visits.shape
    prior, noise = row[0], row[1]
    for g in range(groups):
        for s in range(states):
            for a in range(choices):
                x = s * choices + a
                visited = visits[g, s, a] if visits[g, s, a] > 0.0 else 0.0
                earned = rewards[g, s, a] if rewards[g, s, a] > 0.0 else 0.0
                earned = earned if earned < visited else visited
                below = visited + noise if visited > 0.0 else 1.0
                whole = below + visited * visited
                both = 1.0 / (below * whole)
                share, inverse = visited * (whole * both), below * (below * both)
                for t in range(states):
                    count = transitions[g, s, a, t]
                    model[t, g, x] = prior + share * (count if count > 0.0 else 0.0)
                n, total = share * visited, share * earned
                squares = earned * earned * (whole * both)
                b = 1.0 + 0.5 * (total - squares + (squares - total + 0.25 * n) * inverse)
                model[states, g, x] = 1.0 + 0.5 * n
                model[states + 1, g, x] = (0.5 + total) * inverse
                model[states + 2, g, x] = b * inverse


@inlined
def _draw_gammas(
    model: Floats, normals: Floats, uniforms: Floats, states: int, rng: np.random.Generator
) -> None:
    """In place of their shapes: the quick test for all, then the exact one for those it leaves."""
    groups, pairs = model.shape[1:]
    flat, doubtful = model.reshape(model.size), 0
    for i in range(uniforms.size):
        d = flat[i] - 1 / 3
        z = normals[i] / (3.0 * np.sqrt(d))
        grown = 1.0 + z
        least = grown if grown < 1.0 else 1.0
        sure = uniforms[i] * least > 0.75 * d * (z * z) * (z * z)
        flat[i] = d * grown * grown * grown if sure else -flat[i]
        doubtful += int(not sure)
    if doubtful == 0:
        return
    for g in range(groups):  # pair by pair, as the reference draws
        for x in range(pairs):
            for k in range(states + 1):
                if model[k, g, x] < 0.0:
                    i, shape = (k * groups + g) * pairs + x, -model[k, g, x]
                    d = shape - 1 / 3
                    z = normals[i] / (3.0 * np.sqrt(d))
                    cubic = np.log1p(z) - z + z * z / 2 - z * z * z / 3
                    if z > -1.0 and np.log1p(-uniforms[i]) < 3.0 * d * cubic:
                        model[k, g, x] = d * (1.0 + z) * (1.0 + z) * (1.0 + z)
                    else:
                        model[k, g, x] = rng.standard_gamma(shape)


@inlined
def _finish(model: Floats, normals: Floats, states: int) -> None:
    groups, pairs = model.shape[1:]
    reward_normals = (states + 1) * groups * pairs
    for g in range(groups):
        for x in range(pairs):
            total = 0.0
            for t in range(states):
                total += model[t, g, x]
            tau = model[states, g, x]
            product = total * tau
            if 1e-300 < product < 1e300:
                inverse_both = 1.0 / product  # one division for two reciprocals
                for t in range(states):
                    model[t, g, x] *= inverse_both * tau
                spread = np.sqrt(model[states + 2, g, x] * (inverse_both * total))
            else:  # gammas of a very small (or huge) prior: their reciprocal is no number
                for t in range(states):
                    model[t, g, x] /= total
                spread = np.sqrt(model[states + 2, g, x] / tau)
            normal = normals[reward_normals + g * pairs + x]
            model[states, g, x] = model[states + 1, g, x] + normal * spread
            model[states + 1, g, x] = 0.0


@partial(planner, kept=numbers_kept)
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
    states = visits.shape[1]
    normals, uniforms = _next_draws(memory, visits.size, states)
    _posterior(row, transitions, visits, rewards, model)
    _draw_gammas(model, normals, uniforms, states, rng)
    _finish(model, normals, states)
    if backward_induction(memory, model, values, actions, np.inf):
        break_ties(memory, actions, rng)


SPECS = by_name(
    LearnerSpec.of_continual(Psrl, paper="Osband, Russo and Van Roy 2013", trusts=("none",)),
    LearnerSpec.of_continual(LdpPsrl, paper="Garcelon et al. 2021, Section 6"),
)
