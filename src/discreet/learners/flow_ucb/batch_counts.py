"""What a batch is taken to have shown: visits of its flow, transitions as they were released.

A consistent flow (`released_flow`) knows that no count is negative, and tells where people were
better than anything else. Its transitions lean, though: a counter that holds nothing but noise
becomes zero or more, and one that holds less than its noise loses about half of what it holds.
Batch after batch that adds up: rows seem to lead everywhere a little, and hardly to where few go.

So transitions are those that were released, all of a row shifted alike until they sum to its
visits in the flow: without bias, however many batches there are. Negative sums are dealt with once,
when a row of them becomes a distribution (`belief_kernels.row_model`).

Where the model expected hardly anybody, less than `DESERTED` of the noise's standard deviation, the
flow's own counts stand, and so they do in rows where it has nobody: with many states most of what
is released is noise on places where nobody was. It is the model's word of before the batch that
decides: by the flow's, counts would be kept where noise is above zero, and lean again. Where the
model is wrong, the lean is towards finding out.
"""

import numpy as np

from discreet._types import BoolArray, FloatArray
from discreet.privacy.postprocess.flow import released_flow
from discreet.privacy.statistics import PrivateCounts

DESERTED = 0.5
"""Standard deviations of a counter's noise. Measured: with 0, cliffs of forty states cost twice as
much; with 2, one run of 20 on small gaps stayed with a wrong policy."""


def batch_counts(
    counts: PrivateCounts, start: BoolArray, chosen: FloatArray, occupancy: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Transitions ``[R, S]`` and visits ``[R]`` of the rows that a batch played.

    Args:
        counts: what was released of it.
        start: ``bool[S]``, the states an episode can begin in.
        chosen: ``[R]``, how likely its policy takes each row's action.
        occupancy: ``[H, S]``, how likely the model, before the batch, had its users there.
    """
    flow, visits = released_flow(counts, start, chosen)
    noise = np.sqrt(counts.noise_variance["transitions"])
    if noise == 0:
        return flow, visits
    arrivals = np.zeros_like(occupancy)
    arrivals[:-1] = counts.users * occupancy[1:]
    reached = arrivals[np.nonzero(counts.played)[0]] > DESERTED * noise
    reached &= visits[:, None] > 0
    moved = np.where(reached, np.asarray(counts.row_transitions), flow)
    shift = (visits - moved.sum(axis=1)) / np.maximum(reached.sum(axis=1), 1)
    return np.where(reached, moved + shift[:, None], flow), visits
