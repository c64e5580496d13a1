"""One step per user: categories, the exact ratio of reports, unbiased sums, refused reports."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms._devices import OneStepEncoder
from discreet.privacy.mechanisms.additive import episode_counts
from discreet.privacy.mechanisms.one_step import (
    KEEP,
    categories_of,
    categories_per_counter,
    category_count,
    debias_scale,
    empty_variance,
    false_bit,
)
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.trust import Local
from helpers.sampling import sampler

SHAPE = Shape(states=2, actions=2, horizon=3)
EPISODE = (np.array([0, 1, 0, 1]), np.array([1, 0, 0]), np.array([1.0, 0.0, 1.0]))
TRUST = Local(1.5, mechanism="one-step")


@given(st.floats(0.01, 30.0))
def test_the_false_bit_delivers_epsilon_and_is_rounded_up(epsilon):
    q, guarantee = false_bit(Local(epsilon), SHAPE, STATISTICS)
    assert 0 < q < KEEP
    assert q >= math.exp(-epsilon) / (1 + math.exp(-epsilon)) * (1 - 1e-12)
    assert math.log((1 - q) / q) <= epsilon * (1 + 1e-12)
    assert (guarantee.epsilon, guarantee.delta) == (epsilon, 0.0)


def test_the_false_bit_does_not_depend_on_the_statistics():
    flips = {TRUST.calibrate(SHAPE, statistics=s).flip for s in (STATISTICS, ("visits",))}
    assert len(flips) == 1


def test_what_cannot_be_calibrated():
    with pytest.raises(UnsupportedError, match="No paper prints"):
        Local(1, mechanism="one-step", calibration="paper").calibrate(SHAPE)
    with pytest.raises(InvalidInputError, match="losses"):
        TRUST.calibrate(SHAPE, statistics=("losses",))


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
    assert debias_scale(3, 0.2) == pytest.approx(3 / 0.3)


def test_an_encoder_travels_as_json_and_reports_played_actions_only():
    support = np.zeros(SHAPE.visits, np.bool_)
    support[:, :, 0] = True
    encoder = OneStepEncoder.of(SHAPE, 0.25, support)
    copy = OneStepEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert copy.device.sizes == encoder.device.sizes and copy.flip == 0.25
    for seed in range(30):
        report = copy.encode(*EPISODE, sampler(seed))[0]
        assert np.array_equal(report[None], encoder.encode(*EPISODE, sampler(seed)))
        assert 0 <= report[0] < 3
        assert not report[1:].reshape(2, 2, 4)[:, 1].any()
    with pytest.raises(InvalidInputError, match="encoder"):
        OneStepEncoder.from_dict({**encoder.to_dict(), "encoder": "additive"})


def test_fewer_played_actions_are_fewer_bytes():
    some = np.zeros(SHAPE.visits, np.bool_)
    some[:, :, 0] = True
    mechanism = TRUST.calibrate(SHAPE)
    assert mechanism.traffic(1, support=some).bytes < mechanism.traffic(1).bytes
    assert mechanism.traffic(1).messages == 1


def test_reports_are_all_that_it_takes():
    mechanism = TRUST.calibrate(SHAPE)
    assert mechanism.takes_reports and not mechanism.takes_counts


def test_sums_of_reports_are_unbiased():
    mechanism, noise = TRUST.calibrate(SHAPE), sampler(3)
    encoder = mechanism.encoder(1)
    reports = np.concatenate([encoder.encode(*EPISODE, noise) for _ in range(3000)])
    released = mechanism.release_reports(reports, 3000, secure=False)
    truth = 3000 * episode_counts(SHAPE, *EPISODE, noise).visits
    extra = 3000 * mechanism.visit_variance * (truth > 0)
    deviation = np.sqrt(mechanism.noise_variance(3000)["visits"] + extra)
    assert (np.abs(released.visits - truth) < 5 * deviation).all()
    assert released.guarantee.simulated


@pytest.mark.parametrize(("column", "value"), [(0, 3), (0, -1), (4, 2), (1, -1)])
def test_reports_that_no_device_sends_are_refused(column, value):
    mechanism = TRUST.calibrate(SHAPE)
    report = mechanism.encoder(1).encode(*EPISODE, sampler())
    report[0, column] = value
    with pytest.raises(InvalidInputError, match="a step from 0 to 2 followed by bits"):
        mechanism.release_reports(report, 1)


def test_a_visit_adds_variance_that_other_mechanisms_do_not_have():
    variance = TRUST.calibrate(SHAPE).visit_variance
    assert variance == pytest.approx(2 * SHAPE.horizon - 1)  # as p = 1/2, whatever q is
    assert Local(1, mechanism="laplace").calibrate(SHAPE).visit_variance == 0.0
