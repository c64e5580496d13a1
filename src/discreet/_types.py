"""Names of the array types that signatures share: one home for all of them."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = FloatArray
Ints: TypeAlias = IntArray
"""Short, for the signatures of kernels and of what calls them."""
BoolArray: TypeAlias = NDArray[np.bool_]
Int32Array: TypeAlias = NDArray[np.int32]
"""Column numbers of sparse rows: half the memory of `IntArray`."""
WordArray: TypeAlias = NDArray[np.uint64]
"""States of random generators, and raw random words."""
FourWords: TypeAlias = tuple[WordArray, WordArray, WordArray, WordArray]
"""The states of many generators of four words each: generator j has word j of every array."""
ByteArray: TypeAlias = NDArray[np.uint8]
"""Sealed envelopes, a row for each."""
NumberArray: TypeAlias = NDArray[Any]
"""An array that keeps whatever numbers it was given."""
