"""Normal draws from one random word each: the ziggurat of Marsaglia and Tsang (2000), 256 layers.

The area under f(x) = exp(-x²/2), x >= 0, is covered by 256 layers of one area V. Layer i >= 1 is
the rectangle [0, x_i] times [f(x_i), f(x_(i+1))]; layer 0 is the rectangle [0, R] times [0, f(R)]
with the tail beyond R, and x_0 = V/f(R) is the width of a rectangle of the same area. A word names
a layer (eight bits), a sign (one) and a place x = u·x_i (52 bits). Left of x_(i+1) the whole height
of the layer lies under f, and x is taken (98.5% of the words). Otherwise x is taken with the
probability that a point above it lies under f, or comes from the tail, or all begins anew.

So every x is a point that is uniform under f, up to 52 bits of u and the rounding of the widths,
as in NumPy's own normals: total variation below 1e-15·sigma once it is rounded to integers.
"""

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray, WordArray

LAYERS = 256
TAIL = 3.6541528853610088
"""R, where the tail begins; it makes all layers fit (printed by Marsaglia and Tsang)."""


class NormalLayers(NamedTuple):
    """The layers.

    Attributes:
        widths: ``[257]``, x_i from x_0 to x_256 = 0.
        heights: ``[257]``, f(x_i); f(x_0) is not used.
        inside: ``[256]``, x_(i+1)/x_i in units of 2^-52: places below need no further question.
    """

    widths: FloatArray
    heights: FloatArray
    inside: WordArray


@lru_cache(maxsize=1)
def normal_layers() -> NormalLayers:
    """Widths from the tail upwards.

    >>> layers = normal_layers()
    >>> round(float(layers.inside[1:].mean() / 2**52), 3)  # how many words need no question
    0.985
    """
    area = TAIL * _f(TAIL) + math.sqrt(math.pi / 2) * math.erfc(TAIL / math.sqrt(2))
    widths = [area / _f(TAIL), TAIL]
    while len(widths) < LAYERS:
        widths.append(math.sqrt(-2 * math.log(area / widths[-1] + _f(widths[-1]))))
    widths.append(0.0)
    ratios = [narrow / wide for wide, narrow in pairwise(widths)]
    return NormalLayers(
        np.array(widths),
        np.array([_f(x) for x in widths]),
        np.array([int(ratio * 2.0**52) for ratio in ratios], np.uint64),
    )


def _f(x: float) -> float:
    return math.exp(-x * x / 2)
