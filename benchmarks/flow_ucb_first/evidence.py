"""What the first flow-ucb has learnt: weighted sums over batches, and the variances they carry."""

import math
from typing import Any, NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray


class Evidence(NamedTuple):
    """Weighted sums over batches; the first axis is H long, or 1 when pooled over steps.

    Only ``transitions[R, S]`` has no such axis: it is filled row by row, as (h, s, a) are visited
    for the first time, and ``number[h, s, a]`` says where (-1: nowhere). The room for all rows is
    reserved, the memory is used as rows are filled.
    """

    number: IntArray
    transitions: FloatArray
    rewards: FloatArray
    visits: FloatArray
    sampling: FloatArray
    noise: FloatArray
    reward_noise: FloatArray
    visit_noise: FloatArray

    @classmethod
    def empty(cls, layers: int, states: int, actions: int) -> "Evidence":
        """No users yet."""
        rows = (layers, states, actions)
        return cls(
            np.full(rows, -1, np.int64),
            np.zeros((math.prod(rows), states)),
            *(np.zeros(rows) for _ in cls._fields[2:]),
        )

    @property
    def known(self) -> FloatArray:
        """The rows of ``transitions`` that are in use."""
        return self.transitions[: self.number.max() + 1]

    def places(self, rows: tuple[IntArray, ...], filled: BoolArray) -> IntArray:
        """Where the transitions of ``rows`` are kept; ``filled`` ones get a place if new."""
        fresh = np.zeros(self.number.shape, np.bool_)
        fresh[tuple(axis[filled] for axis in rows)] = True
        fresh &= self.number < 0
        self.number[fresh] = len(self.known) + np.arange(fresh.sum())
        return self.number[rows]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without the rows that are not in use."""
        arrays = self._asdict() | {"transitions": self.known}
        return {name: array.tolist() for name, array in arrays.items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Evidence":
        """The inverse of `to_dict`."""
        fresh = cls.empty(*np.shape(data["number"]))
        for name, array in fresh._asdict().items():
            values = np.array(data[name], array.dtype)
            array[: len(values)] = values.reshape(len(values), *array.shape[1:])
        return fresh
