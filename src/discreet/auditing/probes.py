"""Samplers that do not draw: they look at how a mechanism uses its noise.

`PresetSampler` answers with prescribed numbers and remembers the distribution of each draw: with
it the noise of any additive mechanism is read off its real code path, as a matrix.
`ScriptedSampler` answers draws of finite support with prescribed values: with it all outcomes of a
small mechanism can be visited, each with its probability. Both write down how they were called:
what is drawn, in which order and how much of it may not depend on anybody's data. Both come in two
kinds, because code may ask a sampler whether it is ``secure`` and then go another way.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.auditing import pairs
from discreet.errors import UnsupportedError
from discreet.privacy.sampling.samplers import Size

_FINE = 1.5e5
_SEED = 256, 16
"""Weights and size of a draw that seeds a dealer: see `ScriptedSampler`."""


@dataclass(frozen=True)
class Noise:
    """The distribution of one scalar draw: a kind with parameters, summed over ``copies``."""

    kind: str
    scale: float
    copies: int = 1
    trials: int = 0
    table: bytes = b""

    @property
    def exact(self) -> bool:
        """Whether `pair` serves. Noise of very many steps is continuous to nine digits."""
        return self.kind == "table" or (self.copies == 1 and self.scale <= _FINE)

    @property
    def symmetric(self) -> bool:
        return self.kind in ("laplace", "gaussian")

    @property
    def largest(self) -> int | None:
        """The largest value that can be drawn, None if there is none."""
        if self.kind == "binomial":
            return self.trials
        return self.copies * (len(self.table) // 8 - 1) if self.kind == "table" else None

    @property
    def mean(self) -> float:
        if self.kind == "binomial":
            return self.trials * self.scale
        if self.kind == "table":
            masses = np.frombuffer(self.table)
            return self.copies * float(masses @ np.arange(masses.size))
        return 0.0

    @property
    def variance(self) -> float:
        if self.kind == "binomial":
            return self.trials * self.scale * (1 - self.scale)
        if self.kind == "table":
            masses = np.frombuffer(self.table)
            apart = np.arange(masses.size) - self.mean / self.copies
            return self.copies * float(masses @ apart**2)
        if self.kind == "laplace":
            return self.copies * 0.5 / math.sinh(0.5 / self.scale) ** 2
        values = np.arange(-60, 61)
        weights = np.exp(-(values**2) / (2 * self.scale**2))
        small = float(weights @ values**2 / weights.sum())
        return self.copies * (small if self.scale < 4 else self.scale**2)

    def pair(self, shift: int) -> pairs.Pair:
        """What an attacker learns when this noise hides a move by ``shift``."""
        if self.kind == "binomial":
            return pairs.binomial(self.trials, self.scale, shift)
        if self.kind == "table":
            return pairs.table(_copies(np.frombuffer(self.table), self.copies), shift)
        if self.copies > 1:
            raise UnsupportedError("Sums of unbounded draws are audited as bounds only.")
        pair = pairs.laplace if self.kind == "laplace" else pairs.gaussian
        return pair(self.scale, abs(shift))


def _copies(masses: FloatArray, times: int) -> FloatArray:
    """The distribution of a sum of ``times`` draws, without ends that hold less than 1e-40."""
    total = np.ones(1)
    while times:
        if times & 1:
            total = _trimmed(np.convolve(total, masses))
        times >>= 1
        masses = _trimmed(np.convolve(masses, masses)) if times else masses
    return total


def _trimmed(masses: FloatArray) -> FloatArray:
    low = int(np.searchsorted(np.cumsum(masses), 1e-40))
    high = int(np.searchsorted(np.cumsum(masses[::-1]), 1e-40))
    return masses[low : masses.size - high]


@dataclass
class PresetSampler:
    """Draw number i is ``values[i]``, zero beyond their end; distributions are remembered."""

    values: IntArray
    secure: bool = False
    noises: list[Noise] = field(default_factory=list)
    calls: list[tuple[object, ...]] = field(default_factory=list)

    @classmethod
    def still(cls, *, secure: bool = False) -> "PresetSampler":
        return cls(np.zeros(0, np.int64), secure)

    def _answer(self, noise: Noise, size: Size) -> IntArray:
        answer = np.zeros(size, np.int64)
        first = len(self.noises)
        self.calls.append((noise, answer.shape))
        self.noises.extend([noise] * answer.size)
        given = self.values[first : first + answer.size]
        answer.flat[: given.size] = given
        return answer

    def discrete_laplace(self, scale: float, size: Size) -> IntArray:
        return self._answer(Noise("laplace", float(scale)), size)

    def discrete_gaussian(self, sigma: float, size: Size) -> IntArray:
        return self._answer(Noise("gaussian", float(sigma)), size)

    def binomial(self, trials: int | IntArray, probability: float, size: Size) -> IntArray:
        if np.ndim(trials):
            raise UnsupportedError("Bits drawn per unit of data are audited by enumeration.")
        return self._answer(Noise("binomial", float(probability), trials=int(trials)), size)

    def laplace_sum(self, scale: float, users: int, size: Size) -> IntArray:
        return self._answer(Noise("laplace", float(scale), int(users)), size)

    def gaussian_sum(self, sigma: float, users: int, size: Size) -> IntArray:
        return self._answer(Noise("gaussian", float(sigma), int(users)), size)

    def table(self, weights: IntArray, size: Size) -> IntArray:
        if len(weights) == 1:  # nothing is left to draw
            return np.zeros(size, np.int64)
        return self.table_sum(weights, 1, size)

    def table_sum(self, weights: IntArray, users: int, size: Size) -> IntArray:
        masses = np.asarray(weights) / np.sum(weights)
        return self._answer(Noise("table", 1.0, int(users), table=masses.tobytes()), size)

    def scatter(self, balls: int, probability: float, cells: int) -> IntArray:
        """Whoever wants more than the calls reads `categories`."""
        return self._answer(Noise("scatter", float(probability), trials=int(balls)), cells)

    def permutation(self, length: int) -> IntArray:
        self.calls.append(("permutation", length))
        return np.arange(length, dtype=np.int64)


@dataclass
class ScriptedSampler:
    """Draws follow ``script`` (indices into their supports); beyond its end the first value.

    Only scalar draws number ``first`` to ``last`` are visited in all their values, which is
    everything unless said otherwise; the others are the middle of their supports. A draw that seeds
    a dealer (16 bytes) stands for all seeds: in audited shapes there is one next state, and nothing
    is left to deal.
    """

    script: list[int]
    secure: bool = False
    first: int = 0
    last: int = 1 << 62
    taken: list[int] = field(default_factory=list)
    options: list[int] = field(default_factory=list)
    calls: list[tuple[object, ...]] = field(default_factory=list)
    draws: int = 0
    log_probability: float = 0.0

    def _scalar(self, probabilities: FloatArray) -> int:
        support = np.flatnonzero(probabilities)
        self.draws += 1
        if not self.first < self.draws <= self.last:
            return int(support[support.size // 2])
        place = len(self.taken)
        choice = self.script[place] % support.size if place < len(self.script) else 0
        self.taken.append(choice)
        self.options.append(support.size)
        value = int(support[choice])
        self.log_probability += math.log(probabilities[value])
        return value

    def _many(self, probabilities: FloatArray, size: Size) -> IntArray:
        count = math.prod((size,) if isinstance(size, int) else size)
        values = [self._scalar(probabilities) for _ in range(count)]
        return np.array(values, np.int64).reshape(size)

    def binomial(self, trials: int | IntArray, probability: float, size: Size) -> IntArray:
        if np.ndim(trials):
            self.calls.append(("bits", float(probability), size))
            each = np.broadcast_to(trials, size)
            drawn = [self._scalar(_binomial(int(n), float(probability))) for n in each.ravel()]
            return np.array(drawn, np.int64).reshape(each.shape)
        self.calls.append(("binomial", int(trials), float(probability), size))
        return self._many(_binomial(int(trials), float(probability)), size)

    def table(self, weights: IntArray, size: Size) -> IntArray:
        self.calls.append(("table", np.asarray(weights).tobytes(), size))
        if (len(weights), size) == _SEED:
            return np.zeros(size, np.int64)
        return self._many(weights / weights.sum(), size)

    def table_sum(self, weights: IntArray, users: int, size: Size) -> IntArray:
        self.calls.append(("table_sum", np.asarray(weights).tobytes(), users, size))
        masses = np.ones(1)
        for _ in range(users):
            masses = np.convolve(masses, weights / weights.sum())
        return self._many(masses, size)

    def permutation(self, length: int) -> IntArray:
        """The identity: what is audited must not depend on the order."""
        self.calls.append(("permutation", length))
        return np.arange(length, dtype=np.int64)

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedError(f"{name!r} has an infinite support and cannot be enumerated.")


@functools.lru_cache(maxsize=256)
def _binomial(trials: int, probability: float) -> FloatArray:
    from scipy import stats

    masses: FloatArray = stats.binom.pmf(np.arange(trials + 1), trials, probability)
    return masses


class TooManyError(UnsupportedError):
    """All outcomes would take too long to list."""


def outcomes(
    run: Callable[[Any], bytes],
    limit: int = 1 << 17,
    start: Callable[[list[int]], ScriptedSampler] = ScriptedSampler,
) -> dict[bytes, float]:
    """The exact distribution of what ``run(sampler)`` returns, over all draws of the sampler."""
    distribution: dict[bytes, float] = {}
    script: list[int] = []
    for _ in range(limit):  # depth-first over the tree of draws
        sampler = start(script)
        seen = run(sampler)
        distribution[seen] = distribution.get(seen, 0.0) + math.exp(sampler.log_probability)
        script = list(sampler.taken)
        while script and script[-1] + 1 == sampler.options[len(script) - 1]:
            script.pop()
        if not script:
            return distribution
        script[-1] += 1
    raise TooManyError(f"More than {limit:,} outcomes; audit a smaller shape.")
