"""Integer noise: two samplers of the same distributions behind one small interface.

No floating-point noise is ever released (float Laplace on counts leaks through its rounding).
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Size = int | tuple[int, ...]
IntArray = NDArray[np.int64]


class Sampler(Protocol):
    """Draws integer noise. ``secure`` says whether the draws protect real people."""

    @property
    def secure(self) -> bool:
        """True for operating-system randomness that cannot be seeded."""

    def discrete_laplace(self, scale: float, size: Size) -> IntArray:
        """P(x) proportional to exp(-|x| / scale) on the integers."""

    def discrete_gaussian(self, sigma: float, size: Size) -> IntArray:
        """P(x) proportional to exp(-x² / (2 sigma²)) on the integers."""

    def binomial(self, trials: int, probability: float, size: Size) -> IntArray:
        """Sum of ``trials`` independent bits."""
