"""What one run of a lockstep simulation draws per episode: a plan's own answer.

Lockstep runs keep many runs side by side (see `streams.lane_kernels`); a `LanePlan` says which
draws a user's report takes, and how what is public follows from the integers. The law is that of
the plan's own release:

* ``LAPLACE``: discrete Laplace noise on every counter, inverted from one uniform;
* ``TABLE``: any other additive law, by an alias table (Walker, 1977; Vose, 1991): column i holds i
  with probability cut[i] and other[i] otherwise;
* ``FLIPS``: randomised response. A pooled counter has H bits per user. The number of flipped ones
  among them is binomial; each visit asks one of the bits, without replacement, whether it flipped;
* ``ONE_STEP``: one false bit per category, the reported step, and whether its true bit is kept.
"""

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from discreet._types import FloatArray
from discreet.privacy.plans import StreamPlan

SILENT, LAPLACE, TABLE, FLIPS, ONE_STEP = range(5)


@dataclass(frozen=True, eq=False, kw_only=True)
class LaneNoise:
    """The draws of one run in one episode, and what becomes public.

    Public after k users is ``unit·(integers - flip·(bits·k))``; without bits, the integers.

    Attributes:
        kind: one of the constants of this module.
        draws: generators for what is drawn in every episode whatever happens in it.
        answers: generators for what the steps of the episode ask.
        scale: of the Laplace noise.
        flip: the probability of a false bit (``FLIPS``, ``ONE_STEP``).
        keep: the probability that a reported true bit is one (``ONE_STEP``).
        unit: what one unit of the integers is worth.
        bits: ``float64[cells]``, how many bits of each user are behind each counter; empty where
            nothing is to debias.
        low: value of the table's first column.
        cut: of the alias table.
        other: of the alias table.
    """

    kind: int
    draws: int = 0
    answers: int = 0
    scale: float = 0.0
    flip: float = 0.0
    keep: float = 1.0
    unit: float = 1.0
    bits: FloatArray = field(default_factory=lambda: np.zeros(0))
    low: float = 0.0
    cut: FloatArray = field(default_factory=lambda: np.ones(1))
    other: FloatArray = field(default_factory=lambda: np.zeros(1))


class LanePlan(StreamPlan):
    """A stream that can run in lockstep: no privacy, or a local randomiser on pooled counters."""

    @abstractmethod
    def lane_noise(self) -> LaneNoise:
        """What one run draws per episode."""


def sum_table(masses: FloatArray, copies: int, cells: int) -> LaneNoise:
    """The sum of ``copies`` draws on each counter; ``masses`` are those of -m .. m."""
    total = masses
    for _ in range(copies - 1):
        total = np.asarray(np.convolve(total, masses), np.float64)
    cut, other = alias_table(total)
    return LaneNoise(kind=TABLE, draws=cells, low=-float(len(total) // 2), cut=cut, other=other)


def alias_table(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns of equal probability that hold at most two values each.

    >>> cut, other = alias_table(np.array([3.0, 1.0]))
    >>> cut.tolist(), other.tolist()
    ([1.0, 0.5], [0.0, 0.0])
    """
    share = weights * (len(weights) / weights.sum())
    cut, other = np.ones(len(share)), np.arange(len(share), dtype=np.float64)
    small = [i for i, value in enumerate(share) if value < 1]
    large = [i for i, value in enumerate(share) if value >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        cut[low], other[low] = share[low], high
        share[high] -= 1 - share[low]
        (small if share[high] < 1 else large).append(high)
    return cut, np.where(cut == 1.0, 0.0, other)
