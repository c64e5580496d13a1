"""What a run draws in lockstep has the law of the plan's own release: tables, bits, centres."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import Local, NoPrivacy
from discreet.errors import UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms._lane_noise import (
    FLIPS,
    LAPLACE,
    ONE_STEP,
    SILENT,
    TABLE,
    alias_table,
    sum_table,
)
from discreet.privacy.mechanisms._laws import BoundedLaw, GaussianLaw, LaplaceLaw, NoiseLaw
from discreet.privacy.mechanisms.one_step import KEEP, category_count
from helpers.properties import given, settings, st

SHAPE = Shape(states=3, actions=2, horizon=4)
WEIGHTS = st.lists(st.integers(0, 1000), min_size=1, max_size=40).filter(any)


def plan_of(trust, **options):
    return trust.calibrate(SHAPE, rhythm="stream", episodes=50, **{"stationary": True, **options})


def law_of(cut, other):
    """The probabilities of a table: each column is as likely as any other."""
    law = cut.copy()
    np.add.at(law, other.astype(int), 1 - cut)
    return law / len(cut)


def values_of(noise):
    """Values and probabilities of one draw from the table of a `LaneNoise`."""
    law = law_of(noise.cut, noise.other)
    return noise.low + np.arange(len(law)), law


@settings(max_examples=200, deadline=None)
@given(WEIGHTS)
def test_a_table_has_the_law_of_its_weights(weights):
    array = np.array(weights, np.float64)
    cut, other = alias_table(array)
    assert ((cut >= 0) & (cut <= 1)).all()
    assert ((other >= 0) & (other < len(weights))).all()
    np.testing.assert_allclose(law_of(cut, other), array / array.sum(), atol=1e-14)


def test_a_table_leaves_its_weights_as_they_were():
    weights = np.array([1.0, 5.0, 2.0])
    alias_table(weights)
    assert weights.tolist() == [1.0, 5.0, 2.0]


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_a_sum_is_the_convolution_of_its_draws(copies):
    masses = np.array([1.0, 2.0, 3.0, 2.0, 1.0])
    exact = [Fraction(1)]
    for _ in range(copies):
        longer = [Fraction(0)] * (len(exact) + 4)
        for i, mass in enumerate(exact):
            for j, weight in enumerate((1, 2, 3, 2, 1)):
                longer[i + j] += mass * Fraction(weight, 9)
        exact = longer
    noise = sum_table(masses, copies, 7)
    values, law = values_of(noise)
    assert (noise.kind, noise.draws) == (TABLE, 7)
    assert values.tolist() == list(range(-2 * copies, 2 * copies + 1))
    np.testing.assert_allclose(law, [float(p) for p in exact], atol=1e-14)


@pytest.mark.parametrize("law", [GaussianLaw(0.4), GaussianLaw(3.0), BoundedLaw(2), BoundedLaw(9)])
def test_masses_are_symmetric_and_have_the_variance_of_the_law(law):
    masses = law.masses()
    values = np.arange(len(masses)) - len(masses) // 2
    assert np.array_equal(masses, masses[::-1])
    assert masses @ values**2 / masses.sum() == pytest.approx(law.variance, rel=1e-12)


def test_what_a_gaussian_table_leaves_out_is_nothing():
    sigma = 2.5
    outside = math.erfc((math.ceil(10 * sigma) + 0.5) / sigma / math.sqrt(2))
    assert len(GaussianLaw(sigma).masses()) == 2 * 25 + 1
    assert outside < 1e-23


def test_laplace_noise_is_inverted_and_never_summed():
    noise = LaplaceLaw(7.0).lane_noise(1, 12)
    assert (noise.kind, noise.scale, noise.draws) == (LAPLACE, 7.0, 12)
    with pytest.raises(UnsupportedError, match="do not know the noise 'laplace'; run it with"):
        LaplaceLaw(7.0).lane_noise(2, 12)


def test_a_law_without_masses_is_refused_by_its_name():
    class Odd(NoiseLaw):
        kind = "odd"
        variance = mgf_limit = 1.0
        log_mgf = draw = draw_sum = None

    with pytest.raises(UnsupportedError, match="'odd'"):
        Odd().lane_noise(1, 3)


@pytest.mark.parametrize("name", ["gaussian", "bounded", "laplace"])
def test_added_noise_has_the_variance_that_the_plan_states(name):
    plan = plan_of(Local(30, 1e-2, mechanism=name))
    noise = plan.lane_noise()
    assert (noise.draws, noise.answers, noise.bits.size) == (plan.cells, 0, 0)
    if name == "laplace":
        variance = LaplaceLaw(noise.scale).variance
    else:
        values, law = values_of(noise)
        variance = law @ values**2 - (law @ values) ** 2
    assert variance == pytest.approx(plan.noise_variance(1)["visits"], rel=1e-9)


def test_pooled_bounded_noise_is_the_sum_over_the_steps():
    plan = plan_of(Local(30, 1e-2, mechanism="bounded"))
    noise = plan.lane_noise()
    assert plan.noise.copies == SHAPE.horizon
    assert noise.low == -SHAPE.horizon * plan.noise.law.largest


def test_flipped_bits_of_a_counter_are_binomial():
    plan = plan_of(Local(2, mechanism="randomized-response"))
    noise = plan.lane_noise()
    values, law = values_of(noise)
    q, steps = plan.flip, SHAPE.horizon
    exact = [math.comb(steps, n) * q**n * (1 - q) ** (steps - n) for n in range(steps + 1)]
    assert (noise.kind, noise.flip, noise.draws) == (FLIPS, q, plan.cells)
    assert noise.answers == 3 * steps  # a transition, a visit and a reward at every step
    assert values.tolist() == list(range(steps + 1))
    np.testing.assert_allclose(law, exact, rtol=1e-12)


def test_one_step_draws_a_bit_per_category_and_asks_twice():
    plan = plan_of(Local(2, mechanism="one-step"))
    noise = plan.lane_noise()
    assert (noise.kind, noise.draws, noise.answers) == (ONE_STEP, category_count(SHAPE), 2)
    assert (noise.flip, noise.keep) == (plan.flip, KEEP)


@pytest.mark.parametrize("name", ["randomized-response", "one-step"])
@pytest.mark.parametrize("users", [1, 3, 50])
def test_centres_are_those_of_the_plain_stream_to_the_last_bit(name, users):
    plan = plan_of(Local(2, mechanism=name))
    noise = plan.lane_noise()
    reporters = np.zeros((1, SHAPE.horizon), np.int64)
    centres = plan.centres(np.array([users]), reporters)[0]
    assert noise.unit == plan.scale
    assert np.array_equal(noise.flip * (noise.bits * users), centres)


def test_centres_of_one_step_count_those_who_reported_each_step():
    plan = plan_of(Local(2, mechanism="one-step"), stationary=False)
    reporters = np.array([[3, 0, 5, 1]])
    visits = plan.cells * 3 // 5  # transitions of S = 3 come first
    pairs = SHAPE.states * SHAPE.actions
    centres = plan.centres(np.array([9]), reporters)[0, visits : visits + 4 * pairs]
    expected = plan.flip * (2 * SHAPE.states * np.repeat(reporters[0], pairs))
    assert np.array_equal(centres, expected)


def test_no_privacy_draws_nothing():
    noise = plan_of(NoPrivacy()).lane_noise()
    assert (noise.kind, noise.draws, noise.answers, noise.unit) == (SILENT, 0, 0, 1.0)
