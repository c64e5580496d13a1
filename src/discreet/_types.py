"""Names of the array types that signatures share: one home for all of them."""

from collections.abc import Mapping, Sequence
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
ByteArray: TypeAlias = NDArray[np.uint8]
"""Sealed envelopes, a row for each."""
NumberArray: TypeAlias = NDArray[Any]
"""An array that keeps whatever numbers it was given."""


# What the checks of models, learners, mechanisms and studies have in common.


class Checked:
    """What a check found: sentences in ``problems``, none if all is well."""

    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """No problems."""
        return not self.problems


# Names of the types of plain values, for modules that load without NumPy.


Plain: TypeAlias = bool | int | float | str | Sequence["Plain"] | Mapping[str, "Plain"] | None
"""What JSON and TOML can say."""
JsonObject: TypeAlias = Mapping[str, Any]
"""An object of JSON or TOML as it was read: what its values are, who reads them checks."""
