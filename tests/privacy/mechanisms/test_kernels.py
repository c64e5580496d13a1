"""Compiled loops of streams against their definition; signed trees in `test_tree`."""

import numpy as np
import pytest

from discreet.privacy.mechanisms._kernels import running_sums, tree_prefix


@pytest.mark.parametrize("cuts", [(16,), (1,) * 16, (5, 0, 11)])
def test_a_prefix_is_the_sum_over_its_dyadic_nodes(cuts):
    fresh = np.random.default_rng(0).integers(-9, 9, (16, 3))
    nodes, total = np.zeros((5, 2, 3), np.int64), np.zeros(3, np.int64)
    parts, first = [], 0
    for rows in cuts:
        out = np.empty((rows, 3), np.int64)
        tree_prefix(fresh[first : first + rows], first, nodes, total, out)
        parts.append(out)
        first += rows
    seen = np.concatenate(parts)
    for time in range(1, 17):
        expected, left = np.zeros(3, np.int64), time
        while left:  # the node that closed last ends at ``left``
            expected += fresh[left - 1]
            left &= left - 1
        assert np.array_equal(seen[time - 1], expected)


def test_running_sums_continue_where_they_stopped():
    fresh = np.random.default_rng(1).integers(-9, 9, (7, 2))
    total, out = np.zeros(2, np.int64), np.empty((7, 2), np.int64)
    running_sums(fresh[:3], total, out[:3])
    running_sums(fresh[3:], total, out[3:])
    assert np.array_equal(out, np.cumsum(fresh, axis=0))
    assert np.array_equal(total, fresh.sum(axis=0))


def test_running_sums_are_exact_where_doubles_are_not():
    total, out = np.full(1, 2**53, np.int64), np.empty((3, 1), np.int64)
    running_sums(np.ones((3, 1), np.int64), total, out)
    assert out[:, 0].tolist() == [2**53 + 1, 2**53 + 2, 2**53 + 3]
