"""What flow-ucb has learnt: weighted sums over batches, and the variances they carry."""

import math
from typing import Any, Final, NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray

VISITS: Final = 0
"""Column of the weighted visits N."""
SAMPLING: Final = 1
"""Column of the sampling weight M: the sum of w²·n."""
NOISE: Final = 2
"""Column of the noise variance F (of transitions) or G (of rewards): the sum of w²·sigma²."""
DOUBT: Final = 3
"""Column of the variance D of the visits."""
BIAS: Final = 4
"""Of transitions, the column of the sum of w·sigma: how far projected noise can lean one way."""
TOTAL: Final = 4
"""Of rewards, the column of their weighted sum."""
COLUMNS: Final = 5


class Evidence(NamedTuple):
    """Weighted sums over batches; the first axis is H long, or 1 if declared stationary.

    Transitions and rewards have weights of their own, since their noise differs: ``moves`` and
    ``gains`` hold five columns each. The sums of ``transitions[R, S]`` are filled row by row, as
    (h, s, a) are visited for the first time, and ``number[h, s, a]`` says where (-1: nowhere). The
    room for all rows is reserved, the memory is used as rows are filled.
    """

    number: IntArray
    transitions: FloatArray
    moves: FloatArray
    gains: FloatArray

    @classmethod
    def empty(cls, layers: int, states: int, actions: int) -> "Evidence":
        """No users yet."""
        rows = (layers, states, actions)
        return cls(
            np.full(rows, -1, np.int64),
            np.zeros((math.prod(rows), states)),
            np.zeros((*rows, COLUMNS)),
            np.zeros((*rows, COLUMNS)),
        )

    @property
    def known(self) -> FloatArray:
        """The rows of ``transitions`` that are in use."""
        return self.transitions[: self.number.max() + 1]

    def places(self, rows: tuple[IntArray, ...], filled: BoolArray) -> IntArray:
        """Where the transitions of ``rows`` are kept; ``filled`` ones get a place if new."""
        new = np.zeros(self.number.shape, np.bool_)
        new[tuple(axis[filled] for axis in rows)] = True
        new &= self.number < 0
        self.number[new] = len(self.known) + np.arange(new.sum())
        return self.number[rows]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without the rows that are not in use."""
        arrays = self._asdict() | {"transitions": self.known}
        return {name: array.tolist() for name, array in arrays.items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Evidence":
        """The inverse of `to_dict`."""
        empty = cls.empty(*np.shape(data["number"]))
        for name, array in empty._asdict().items():
            values = np.array(data[name], array.dtype)
            array[: len(values)] = values.reshape(len(values), *array.shape[1:])
        return empty
