"""What the first flow-ucb has learnt: weighted sums over batches, and the variances they carry."""

from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.learners.flow_ucb.evidence import no_rows


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
