"""What runs on a device: reports of the right counters, nothing else, and the same after JSON."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.search import NoiseBits
from discreet.privacy.mechanisms.additive import (
    AdditiveEncoder,
    cell_mask,
    check_reports,
    episode_counts,
    support_cells,
)
from discreet.privacy.mechanisms.bits import BitsEncoder
from discreet.privacy.mechanisms.noise import Bounded, Gaussian, Laplace
from discreet.privacy.mechanisms.registry import load_encoder
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import flatten
from helpers.sampling import sampler

SHAPE = Shape(states=3, actions=2, horizon=2)
EPISODE = (np.array([0, 2, 1]), np.array([1, 0]), np.array([1.0, 0.0]))
ALL = np.arange(60)
ENCODERS = [
    AdditiveEncoder(SHAPE, STATISTICS, ALL, False, Laplace(2.0)),
    AdditiveEncoder(SHAPE, ("visits",), np.arange(6), True, Gaussian(2.0)),
    AdditiveEncoder(SHAPE, ("rewards",), np.array([1, 5]), False, Bounded(9)),
]


@pytest.mark.parametrize(
    "encoder", ENCODERS, ids=lambda e: f"{type(e.noise).__name__}-{len(e.cells)}"
)
def test_an_encoder_is_the_same_after_a_journey_as_json(encoder):
    copy = load_encoder(json.loads(json.dumps(encoder.to_dict())))
    assert copy.to_dict() == encoder.to_dict() and copy.traffic == encoder.traffic
    for seed in range(3):
        one, other = (e.encode(*EPISODE, sampler(seed)) for e in (encoder, copy))
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "encoder", ENCODERS, ids=lambda e: f"{type(e.noise).__name__}-{len(e.cells)}"
)
def test_a_report_is_one_row_of_integers(encoder):
    report = encoder.encode(*EPISODE, sampler())
    assert report.shape == (1, encoder.cells.size) and report.dtype == np.int64


def test_the_wrong_kind_is_refused():
    with pytest.raises(InvalidInputError, match="encoder"):
        AdditiveEncoder.from_dict({**ENCODERS[0].to_dict(), "encoder": "one-step"})


def test_a_report_without_noise_is_the_counters():
    truth = flatten(episode_counts(SHAPE, *EPISODE, sampler()), STATISTICS, stationary=False)
    quiet = AdditiveEncoder(SHAPE, STATISTICS, ALL, False, Laplace(1e-3))
    assert np.array_equal(quiet.encode(*EPISODE, sampler())[0], truth)
    assert truth.sum() == 2 + 2 + 1


def test_pooled_counters_are_summed_before_the_noise():
    quiet = AdditiveEncoder(SHAPE, ("visits",), np.arange(6), True, Laplace(1e-3))
    twice = (np.array([0, 0, 0]), np.array([1, 1]), np.zeros(2))
    assert quiet.encode(*twice, sampler())[0].tolist() == [0, 2, 0, 0, 0, 0]


@given(st.floats(0.01, 0.99))
def test_rewards_become_bits_on_the_device(reward):
    bits = [
        episode_counts(SHAPE, EPISODE[0], EPISODE[1], np.array([reward, 1.0]), sampler(seed))
        for seed in range(8)
    ]
    values = {int(counts.rewards[0].sum()) for counts in bits}
    assert values <= {0, 1}
    assert all(counts.rewards[1].sum() == 1 for counts in bits)


def test_traffic_counts_bits():
    assert ENCODERS[2].traffic.bytes == 2  # two counters with room for 122 values each
    assert ENCODERS[2].traffic.messages == 1
    loud = AdditiveEncoder(SHAPE, STATISTICS, ALL, False, Laplace(2e4))
    assert loud.traffic.bytes > ENCODERS[0].traffic.bytes


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


class Silent:
    """A distribution without noise: what a device would say if it said the truth."""

    variance = 0.0

    def draw(self, sampler, size):
        return np.zeros(size, np.int64)


@pytest.mark.parametrize("statistics", [("transitions", "rewards"), ("visits",), ("rewards",)])
def test_who_leaves_the_policy_counts_as_nothing_from_there_on(statistics):
    """Also if a later step is one that the policy plays."""
    support = np.ones(SHAPE.visits, np.bool_)
    support[0, 0, 1] = False  # what EPISODE begins with
    cells = np.flatnonzero(cell_mask(support, statistics, stationary=False))
    report = AdditiveEncoder(SHAPE, statistics, cells, False, Silent()).encode(*EPISODE, sampler())
    assert not report.any()
    bits = BitsEncoder(SHAPE, statistics, NoiseBits(1, 0.0), support)
    assert not bits.encode(*EPISODE, sampler())[:, 1].any()
    inside = AdditiveEncoder(SHAPE, ("visits",), np.arange(12), False, Silent()).encode(
        *EPISODE, sampler()
    )
    assert inside.sum() == SHAPE.horizon


@pytest.mark.parametrize("number", [2**62, -(2**62), -(2**63), 2**42 + 1])
def test_a_report_that_would_spoil_all_sums_is_refused(number):
    """Four of 2**62 add up to nothing in 64 bits."""
    with pytest.raises(InvalidInputError, match="numbers up to 4e\\+12, got a larger one"):
        check_reports(np.array([[0, number, 0]]), 1, 3)
    unsigned = np.array([[0, 2**64 - 1, 0]], np.uint64)
    with pytest.raises(InvalidInputError, match="got a larger one"):
        check_reports(unsigned, 1, 3)
    assert check_reports(np.array([[2**42, -(2**42)]]), 1, 2).tolist() == [[2**42, -(2**42)]]
