"""Flipped bits: the exact ratio, unbiased sums, the printed probability and where it fails."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import CalibrationError, DiscreetWarning, InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.randomized_response import debias_scale, flip_probability
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.trust import Local
from helpers.sampling import sampler

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
        trust.calibrate(SHAPE)


def test_the_printed_probability_delivers_less_than_it_claims():
    trust = Local(4, mechanism="randomized-response", calibration="paper")
    with pytest.warns(DiscreetWarning, match="deliver epsilon="):
        mechanism = trust.calibrate(SHAPE)
    assert mechanism.flip == pytest.approx(1 / math.expm1(2.0))
    assert mechanism.guarantee.epsilon > 4
    assert "paper 002" in mechanism.guarantee.claimed


def test_one_half_leaves_nothing_to_estimate():
    epsilon = 2 * math.log(3)  # 1/(e^(epsilon/H) - 1) = 1/2
    trust = Local(epsilon, mechanism="randomized-response", calibration="paper")
    if 1 / math.expm1(epsilon / 2) == 0.5:
        with pytest.raises(CalibrationError, match="leaves nothing to estimate"):
            trust.calibrate(SHAPE)
    assert debias_scale(0.25) == 2.0


def test_sums_of_reports_are_unbiased_and_have_the_stated_variance():
    mechanism, noise = TRUST.calibrate(SHAPE, statistics=("visits",)), sampler(1)
    episode = (np.zeros(3, int), np.zeros(2, int), np.zeros(2))
    encoder = mechanism.encoder(1)
    estimates = []
    for _ in range(300):
        reports = np.concatenate([encoder.encode(*episode, noise) for _ in range(5)])
        estimates.append(mechanism.release_reports(reports, 5, secure=False).visits)
    deviation = math.sqrt(mechanism.noise_variance(5)["visits"])
    truth = np.zeros(SHAPE.visits)
    truth[:, 0, 0] = 5
    assert (np.abs(np.mean(estimates, axis=0) - truth) < 5 * deviation / math.sqrt(300)).all()
    assert np.std(estimates, axis=0) == pytest.approx(deviation, rel=0.25)


def test_a_simulated_batch_has_the_same_distribution_as_its_reports():
    mechanism, noise = TRUST.calibrate(SHAPE, statistics=("visits",)), sampler(2)
    visits = np.zeros(SHAPE.visits, np.int64)
    visits[:, 0, 0] = 5
    transitions = np.zeros(SHAPE.transitions, np.int64)
    transitions[:, 0, 0, 0] = 5
    counts = Counts(5, transitions, np.zeros(SHAPE.visits, np.int64))
    drawn = [mechanism.release(counts, sampler=noise).visits for _ in range(400)]
    deviation = math.sqrt(mechanism.noise_variance(5)["visits"])
    assert (np.abs(np.mean(drawn, axis=0) - visits) < 5 * deviation / 20).all()
    assert np.std(drawn, axis=0) == pytest.approx(deviation, rel=0.25)


@pytest.mark.parametrize("value", [-1, 2])
def test_a_report_of_anything_but_bits_is_refused(value):
    mechanism = TRUST.calibrate(SHAPE)
    report = np.zeros((1, mechanism.encoder(1).device.counters), np.int64)
    report[0, 3] = value
    with pytest.raises(InvalidInputError, match="reports of bits"):
        mechanism.release_reports(report, 1)


def test_pooled_streams_flip_bits_per_step():
    pooled = TRUST.calibrate_stream(SHAPE, episodes=4, stationary=True)
    plain = TRUST.calibrate_stream(SHAPE, episodes=4)
    assert pooled.flip == plain.flip
    assert pooled.bits == plain.bits == 2 * pooled.cells
    assert pooled.noise_variance(3)["visits"] == pytest.approx(
        2 * plain.noise_variance(3)["visits"]
    )
