"""What flow-ucb believes: sums over steps where pooled."""

import numpy as np
import pytest

from discreet.learners.estimate import VISITS, CountSums
from discreet.learners.pooling import Pooled, estimated


def evidence_of(seed):
    rng = np.random.default_rng(seed)
    sums = CountSums.empty(3, 2, 2)
    sums.number[:] = np.arange(12).reshape(3, 2, 2)
    sums.transitions[:] = rng.uniform(1, 5, (12, 2))
    sums.transition_sums[:] = rng.uniform(1, 5, sums.transition_sums.shape)
    sums.transition_sums[..., VISITS] = sums.transitions.sum(axis=1).reshape(3, 2, 2)
    sums.reward_sums[:] = rng.uniform(1, 5, sums.reward_sums.shape)
    return sums


@pytest.mark.parametrize("seed", range(3))
def test_sums_are_over_steps_exactly_where_they_are_pooled(seed):
    sums = evidence_of(seed)
    pooled = Pooled(
        np.array([[True, False], [False, True]]), np.array([[False, False], [False, True]])
    )
    model = estimated(sums, pooled)
    for h in range(3):
        for s in range(2):
            for a in range(2):
                transition_sums, reward_sums = (
                    sums.transition_sums[h, s, a],
                    sums.reward_sums[h, s, a],
                )
                counts = sums.transitions[sums.number[h, s, a]]
                if pooled.transitions[s, a]:
                    transition_sums = sums.transition_sums[:, s, a].sum(axis=0)
                    counts = sums.transitions[sums.number[:, s, a]].sum(axis=0)
                if pooled.rewards[s, a]:
                    reward_sums = sums.reward_sums[:, s, a].sum(axis=0)
                np.testing.assert_allclose(model.transition_sums[h, s, a], transition_sums)
                np.testing.assert_allclose(model.reward_sums[h, s, a], reward_sums)
                row = model.probabilities[model.number[h, s, a]]
                np.testing.assert_allclose(row, counts / counts.sum())


def test_evidence_is_left_as_it_is():
    sums = evidence_of(0)
    before = [array.copy() for array in sums]
    everything = np.ones((2, 2), bool)
    estimated(sums, Pooled(everything, everything))
    for one, other in zip(before, sums, strict=True):
        np.testing.assert_array_equal(one, other)
