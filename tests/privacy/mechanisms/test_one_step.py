"""One step per user: categories, and the false bit that they need."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.additive import episode_counts
from discreet.privacy.mechanisms.one_step import (
    KEEP,
    categories_of,
    categories_per_counter,
    category_count,
    empty_variance,
)
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.trust import Local
from helpers.sampling import sampler

SHAPE = Shape(states=2, actions=2, horizon=3)
EPISODE = (np.array([0, 1, 0, 1]), np.array([1, 0, 0]), np.array([1.0, 0.0, 1.0]))
TRUST = Local(1.5, mechanism="one-step")


@given(st.floats(0.01, 30.0))
def test_the_false_bit_delivers_epsilon_and_is_rounded_up(epsilon):
    stream = Local(epsilon, mechanism="one-step").calibrate_stream(SHAPE, episodes=1)
    q, guarantee = stream.flip, stream.guarantee
    assert 0 < q < KEEP
    assert q >= math.exp(-epsilon) / (1 + math.exp(-epsilon)) * (1 - 1e-12)
    assert math.log((1 - q) / q) <= epsilon * (1 + 1e-12)
    assert (guarantee.epsilon, guarantee.delta) == (epsilon, 0.0)


def test_the_false_bit_does_not_depend_on_the_statistics():
    flips = {
        TRUST.calibrate_stream(SHAPE, episodes=9, statistics=s).flip
        for s in (STATISTICS, ("visits",))
    }
    assert len(flips) == 1


def test_what_cannot_be_calibrated():
    with pytest.raises(UnsupportedError, match="No paper prints"):
        Local(1, mechanism="one-step", calibration="paper").calibrate_stream(SHAPE, episodes=9)
    with pytest.raises(InvalidInputError, match="losses"):
        TRUST.calibrate_stream(SHAPE, episodes=9, statistics=("losses",))


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_user_is_in_one_category_at_every_step(step):
    counts = episode_counts(SHAPE, *EPISODE, sampler())
    vector = categories_of(counts, step)
    assert vector.size == category_count(SHAPE) and vector.sum() == 1
    s, a, after, reward = np.unravel_index(vector.argmax(), (2, 2, 2, 2))
    assert (s, a, after) == (EPISODE[0][step], EPISODE[1][step], EPISODE[0][step + 1])
    assert reward == EPISODE[2][step]


def test_counters_sum_categories():
    sums = {name: categories_per_counter(SHAPE, name) for name in STATISTICS}
    assert sums == {"transitions": 2, "visits": 4, "rewards": 2}
    variance = empty_variance(SHAPE, STATISTICS, 0.2)
    assert variance["visits"] == 2 * variance["transitions"] == 2 * variance["rewards"]
