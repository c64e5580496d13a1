"""Flipped bits: the exact ratio, unbiased sums, the printed probability and where it fails."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import CalibrationError, DiscreetWarning
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.randomized_response import flip_probability
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.trust import Local

SHAPE = Shape(states=2, actions=2, horizon=2)
TRUST = Local(4, mechanism="randomized-response")


@given(st.floats(0.05, 40.0), st.integers(1, 36))
def test_flips_of_all_moved_bits_together_deliver_epsilon(epsilon, units):
    q, guarantee = flip_probability(Local(epsilon), Sensitivity(units=units))
    assert 0 < q < 0.5
    assert units * math.log((1 - q) / q) <= epsilon * (1 + 1e-9)
    assert guarantee.epsilon == epsilon and guarantee.delta == 0


def test_the_printed_probability_is_none_when_epsilon_is_small():
    trust = Local(1, mechanism="randomized-response", calibration="paper")
    with pytest.raises(CalibrationError, match=r"not a probability when epsilon < H·ln 2 = 1\.387"):
        trust.calibrate_stream(SHAPE, episodes=4)


def test_the_printed_probability_delivers_less_than_it_claims():
    trust = Local(4, mechanism="randomized-response", calibration="paper")
    with pytest.warns(DiscreetWarning, match="deliver epsilon="):
        mechanism = trust.calibrate_stream(SHAPE, episodes=4)
    assert mechanism.flip == pytest.approx(1 / math.expm1(2.0))
    assert mechanism.guarantee.epsilon > 4
    assert "paper 002" in mechanism.guarantee.claimed


def test_one_half_leaves_nothing_to_estimate():
    epsilon = 2 * math.log(3)  # 1/(e^(epsilon/H) - 1) = 1/2
    trust = Local(epsilon, mechanism="randomized-response", calibration="paper")
    if 1 / math.expm1(epsilon / 2) == 0.5:
        with pytest.raises(CalibrationError, match="leaves nothing to estimate"):
            trust.calibrate_stream(SHAPE, episodes=4)


def test_pooled_streams_flip_bits_per_step():
    pooled = TRUST.calibrate_stream(SHAPE, episodes=4, stationary=True)
    plain = TRUST.calibrate_stream(SHAPE, episodes=4)
    assert pooled.flip == plain.flip
    assert pooled.bits == plain.bits == 2 * pooled.cells
    assert pooled.noise_variance(3)["visits"] == pytest.approx(
        2 * plain.noise_variance(3)["visits"]
    )
