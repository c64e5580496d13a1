"""What the first flow-ucb has learnt: weighted sums over batches, and the variances they carry."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from discreet._plain import JsonObject, Plain
from discreet._types import BoolArray, FloatArray, IntArray, NumberArray


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
        sums = [np.zeros((layers, states, actions)) for _ in cls._fields[2:]]
        return cls(*no_rows(layers, states, actions), *sums)


def no_rows(layers: int, states: int, actions: int) -> tuple[IntArray, FloatArray]:
    """``number`` and ``transitions`` before any user."""
    number = np.full((layers, states, actions), -1, np.int64)
    return number, np.zeros((number.size, states))


def known_rows(number: IntArray, transitions: FloatArray) -> FloatArray:
    """The rows of ``transitions`` that are in use."""
    return transitions[: number.max() + 1]


def row_places(number: IntArray, rows: tuple[IntArray, ...], filled: BoolArray) -> IntArray:
    """Where the transitions of ``rows`` are kept; ``filled`` ones get a place in ``number``."""
    new = np.zeros(number.shape, np.bool_)
    new[tuple(axis[filled] for axis in rows)] = True
    new &= number < 0
    number[new] = number.max() + 1 + np.arange(new.sum())
    return number[rows]


def plain_arrays(arrays: Mapping[str, NumberArray]) -> dict[str, Plain]:
    """Plain values, without the rows of ``transitions`` that are not in use."""
    kept = {**arrays, "transitions": arrays["transitions"][: arrays["number"].max() + 1]}
    return {name: array.tolist() for name, array in kept.items()}


def fill_arrays(arrays: Mapping[str, NumberArray], plain: JsonObject) -> None:
    """Put the values of `plain_arrays` back into empty arrays."""
    for name, array in arrays.items():
        values = np.array(plain[name], array.dtype)
        array[: len(values)] = values.reshape(len(values), *array.shape[1:])
