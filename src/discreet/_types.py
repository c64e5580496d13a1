"""Names of the array types that signatures use: one home for all of them."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Int32Array: TypeAlias = NDArray[np.int32]
"""Column numbers of sparse rows: half the memory of `IntArray`."""
WordArray: TypeAlias = NDArray[np.uint64]
"""States of random generators, and raw random words."""
