"""Sequences of adversarial losses: chosen in advance, computed block by block from a seed.

A sequence over K episodes is never held in memory: `LossSequence.block` returns the losses of a few
episodes, always the same ones whatever the order and the size of the blocks.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._types import FloatArray, IntArray
from discreet.errors import InvalidInputError
from discreet.mdp._arrays import unit_interval
from discreet.mdp.layered import LayeredMDP

_CHUNK = 512
"""Episodes drawn from one random stream; block boundaries inside it do not change the values."""


class LossSequence(ABC):
    """Losses in [0, 1] for every (h, x, a) of a layered MDP and every one of K episodes.

    Losses of places without a state are 0.
    """

    mdp: LayeredMDP
    episodes: int

    def block(self, first: int, last: int) -> FloatArray:
        """``float64[last - first, H, W, A]``: losses of the episodes first, ..., last - 1."""
        _validate.count(0, first=first, last=last)
        if not first <= last <= self.episodes:
            raise InvalidInputError(
                f"Expected a block inside the {self.episodes} episodes, got {first} to {last}."
            )
        losses = self._losses(first, last)
        losses[:, ~self.mdp.present] = 0
        return losses

    @abstractmethod
    def _losses(self, first: int, last: int) -> FloatArray: ...

    def total(self, first: int = 0, last: int | None = None) -> FloatArray:
        """``float64[H, W, A]``: the sum over episodes, for the best policy in hindsight."""
        end = self.episodes if last is None else last
        total = np.zeros(self.mdp.shape.visits)
        for start in range(first, end, _CHUNK):
            total += self.block(start, min(start + _CHUNK, end)).sum(axis=0)
        return total


@dataclass(frozen=True, eq=False)
class BlendedLosses(LossSequence):
    """Losses drawn around a mean that moves between two extremes.

    The mean of episode k is ``(1 - w_k) * means + w_k * other``, both ``float64[H, W, A]``, with
    ``w_k = weight(k)`` in [0, 1]. Losses are bits with that mean, independent over episodes and
    pairs, or with ``noisy=False`` the mean.
    """

    mdp: LayeredMDP
    episodes: int
    means: FloatArray
    other: FloatArray
    weight: Callable[[IntArray], FloatArray]
    seed: int = 0
    noisy: bool = True

    def __post_init__(self) -> None:
        _validate.count(episodes=self.episodes)
        _validate.count(0, seed=self.seed)
        for name in ("means", "other"):
            means, expected = getattr(self, name), self.mdp.shape.visits
            if means.shape != expected:
                raise InvalidInputError(
                    f"Expected {name} of shape {expected} (H, W, A), got shape {means.shape}."
                )
            object.__setattr__(self, name, unit_interval(means, name))

    def expected(self, first: int, last: int) -> FloatArray:
        """``float64[last - first, H, W, A]``: the means that the losses are drawn around."""
        weights = self.weight(np.arange(first, last))[:, None, None, None]
        blend: FloatArray = (1 - weights) * self.means + weights * self.other
        return blend

    def _losses(self, first: int, last: int) -> FloatArray:
        expected = self.expected(first, last)
        if not self.noisy:
            return expected
        for chunk in range(first // _CHUNK, -(-last // _CHUNK)):
            low, high = max(first, chunk * _CHUNK), min(last, (chunk + 1) * _CHUNK)
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(chunk,)))
            draws = rng.random((high - chunk * _CHUNK, *self.mdp.shape.visits))
            part = expected[low - first : high - first]
            part[...] = draws[low - chunk * _CHUNK :] < part
        return expected


def stochastic_losses(
    mdp: LayeredMDP,
    episodes: int,
    *,
    means: ArrayLike | None = None,
    seed: int = 0,
    noisy: bool = True,
) -> BlendedLosses:
    """Losses with fixed means (by default drawn uniformly from the seed).

    >>> from discreet.mdp import RiverSwim
    >>> layered = LayeredMDP.from_tabular(RiverSwim(states=4, horizon=6))
    >>> stochastic_losses(layered, 10**9, seed=1).block(5, 7).shape
    (2, 6, 4, 2)
    """
    center, _ = _centers(mdp, means, None, seed)
    return BlendedLosses(mdp, episodes, center, center, partial(_switch, (), episodes), seed, noisy)


def switching_losses(
    mdp: LayeredMDP,
    episodes: int,
    *,
    means: ArrayLike | None = None,
    other: ArrayLike | None = None,
    switches: tuple[float, ...] = (0.35,),
    seed: int = 0,
    noisy: bool = True,
) -> BlendedLosses:
    """Losses whose optimum switches abruptly: ``means`` first, then ``other``, and back again.

    By default means are drawn uniformly, and the other ones are 1 - means, which reverses every
    preference; ``switches`` are increasing fractions of K.
    """
    times = np.asarray(switches, np.float64)
    if times.ndim != 1 or (np.diff(times, prepend=0, append=1) < 0).any():
        raise InvalidInputError(
            f"Expected switches to be increasing fractions of the episodes, got {switches!r}."
        )
    weight = partial(_switch, tuple(times), episodes)
    center, opposite = _centers(mdp, means, other, seed)
    return BlendedLosses(mdp, episodes, center, opposite, weight, seed, noisy)


def drifting_losses(
    mdp: LayeredMDP,
    episodes: int,
    *,
    means: ArrayLike | None = None,
    other: ArrayLike | None = None,
    cycles: float = 3.0,
    seed: int = 0,
    noisy: bool = True,
) -> BlendedLosses:
    """Losses whose mean swings between ``means`` and ``other`` like a sine, ``cycles`` times."""
    _validate.positive(cycles=cycles)
    center, opposite = _centers(mdp, means, other, seed)
    weight = partial(_sine, float(cycles), episodes)
    return BlendedLosses(mdp, episodes, center, opposite, weight, seed, noisy)


def _switch(switches: tuple[float, ...], episodes: int, k: IntArray) -> FloatArray:
    """0 before the first switch, 1 after it, 0 after the second, and so on."""
    passed = np.searchsorted(np.array(switches) * episodes, k, side="right")
    return (passed % 2).astype(np.float64)


def _sine(cycles: float, episodes: int, k: IntArray) -> FloatArray:
    """From 0 up to 1 and back, ``cycles`` times over all episodes."""
    swing: FloatArray = (1 - np.cos(2 * np.pi * cycles * k / episodes)) / 2
    return swing


def _centers(
    mdp: LayeredMDP, means: ArrayLike | None, other: ArrayLike | None, seed: int
) -> tuple[FloatArray, FloatArray]:
    if means is None:
        _validate.count(0, seed=seed)
        # One spawn key deeper than the chunks: the means and the draws never share a stream.
        sequence = np.random.SeedSequence(seed, spawn_key=(0, 0))
        means = np.random.default_rng(sequence).random(mdp.shape.visits)
    center = np.asarray(means, np.float64)
    return center, 1 - center if other is None else np.asarray(other, np.float64)
