"""What runs on a device: reports of the right counters, nothing else, and the same after JSON."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.search import NoiseBits
from discreet.privacy.mechanisms.additive import (
    cell_mask,
    check_reports,
    episode_counts,
    support_cells,
)
from discreet.privacy.mechanisms.bits import BitsEncoder
from discreet.privacy.sensitivity import STATISTICS
from helpers.sampling import sampler

SHAPE = Shape(states=3, actions=2, horizon=2)
EPISODE = (np.array([0, 2, 1]), np.array([1, 0]), np.array([1.0, 0.0]))


@given(st.floats(0.01, 0.99))
def test_rewards_become_bits_on_the_device(reward):
    bits = [
        episode_counts(SHAPE, EPISODE[0], EPISODE[1], np.array([reward, 1.0]), sampler(seed))
        for seed in range(8)
    ]
    values = {int(counts.rewards[0].sum()) for counts in bits}
    assert values <= {0, 1}
    assert all(counts.rewards[1].sum() == 1 for counts in bits)


@given(st.lists(st.booleans(), min_size=12, max_size=12))
def test_the_mask_marks_what_can_be_played(bits):
    support = np.array(bits).reshape(SHAPE.visits)
    mask = cell_mask(support, STATISTICS, stationary=False)
    assert mask.sum() == support_cells(support, STATISTICS) == 5 * support.sum()
    assert mask.size == 60
    pooled = cell_mask(support, ("visits",), stationary=True)
    assert np.array_equal(pooled, support.any(axis=0).ravel())


@pytest.mark.parametrize(
    ("reports", "users"),
    [
        (np.zeros((2, 3), int), 1),
        (np.zeros((1, 4), int), 1),
        (np.zeros((1, 3)), 1),
        (np.zeros(3, int), 1),
    ],
)
def test_reports_of_another_shape_are_refused(reports, users):
    with pytest.raises(InvalidInputError, match="one row per user"):
        check_reports(reports, users, 3)


def test_no_users_no_reports():
    with pytest.raises(InvalidInputError, match="users"):
        check_reports(np.zeros((0, 3), int), 0, 3)
    assert check_reports(np.zeros((2, 3), np.int32), 2, 3).dtype == np.int64


@pytest.mark.parametrize("statistics", [("transitions", "rewards"), ("visits",), ("rewards",)])
def test_who_leaves_the_policy_counts_as_nothing_from_there_on(statistics):
    """Also if a later step is one that the policy plays."""
    support = np.ones(SHAPE.visits, np.bool_)
    support[0, 0, 1] = False  # what EPISODE begins with
    bits = BitsEncoder(SHAPE, statistics, NoiseBits(1, 0.0), support)
    assert not bits.encode(*EPISODE, sampler())[:, 1].any()


@pytest.mark.parametrize("number", [2**62, -(2**62), -(2**63), 2**42 + 1])
def test_a_report_that_would_spoil_all_sums_is_refused(number):
    """Four of 2**62 add up to nothing in 64 bits."""
    with pytest.raises(InvalidInputError, match="numbers up to 4e\\+12, got a larger one"):
        check_reports(np.array([[0, number, 0]]), 1, 3)
    unsigned = np.array([[0, 2**64 - 1, 0]], np.uint64)
    with pytest.raises(InvalidInputError, match="got a larger one"):
        check_reports(unsigned, 1, 3)
    assert check_reports(np.array([[2**42, -(2**42)]]), 1, 2).tolist() == [[2**42, -(2**42)]]
