"""The least noise: golden values, minimality, and the bits that each user adds."""

import math
from fractions import Fraction

import pytest

from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.accounting.distributions import binomial_pmf
from discreet.privacy.accounting.lattice import discrete_gaussian_delta
from discreet.privacy.accounting.losses import delta_of_moves
from discreet.privacy.accounting.search import (
    NoiseBits,
    binomial_trials,
    discrete_gaussian_sigma,
    least_integer,
    least_value,
    noise_bits,
    spread_bits,
)
from helpers.curves import dearest, distribution_of_sum, exact_binomial
from helpers.properties import given, st

GOLDEN = [  # horizon, epsilon, std of exact shuffle noise, its bits, std of the central Gaussian
    (2, 0.1, 125.8, 63_338, 125.8),
    (2, 1, 14.65, 859, 14.63),
    (6, 0.1, 218.0, 190_027, 217.8),
    (6, 0.5, 48.4, 9_361, 48.4),
    (6, 1, 25.37, 2_574, 25.35),
    (6, 2, 13.4, 718, 13.4),
    (20, 1, 46.3, 8_578, 46.3),
]


@pytest.mark.core
@pytest.mark.parametrize(("horizon", "epsilon", "shuffle", "bits", "gaussian"), GOLDEN)
def test_golden_noise_levels(horizon, epsilon, shuffle, bits, gaussian):
    trials = binomial_trials(3 * horizon, 3 * horizon, epsilon, 1e-6)
    assert trials == pytest.approx(bits, rel=0.01)
    assert math.sqrt(trials) / 2 == pytest.approx(shuffle, rel=0.01)
    assert discrete_gaussian_sigma(6 * horizon, epsilon, 1e-6) == pytest.approx(gaussian, rel=0.01)


@pytest.mark.parametrize(("moves", "epsilon", "delta"), [(4, 0.7, 1e-5), (18, 3.0, 1e-9)])
def test_the_least_number_of_bits(moves, epsilon, delta):
    trials = binomial_trials(moves, moves, epsilon, delta)
    assert delta_of_moves(binomial_pmf(trials, 0.5), moves, moves, epsilon) <= delta
    assert delta_of_moves(binomial_pmf(trials - 1, 0.5), moves, moves, epsilon) > delta


@pytest.mark.parametrize("epsilon", [0.05, 1, 8.0, 60.0])
def test_the_least_discrete_gaussian(epsilon):
    sigma = discrete_gaussian_sigma(36, epsilon, 1e-6)
    assert discrete_gaussian_delta(sigma, 36, epsilon) <= 1e-6
    assert discrete_gaussian_delta(sigma * 0.98, 36, epsilon) > 1e-6


SWEEP = [
    (epsilon, delta)
    for epsilon in (1e-4, 3e-4, 1e-3, 1e-2, 0.1, 1, 5, 20)
    for delta in (0.3, 0.1, 0.05, 0.02, 1e-3, 1e-6, 1e-12)
    if epsilon >= 0.1 or delta >= 1e-3 or (epsilon, delta) == (1e-2, 1e-6)  # others take long
]


@pytest.mark.parametrize(("epsilon", "delta"), SWEEP)
def test_no_guarantee_is_refused_because_of_its_size(epsilon, delta):
    """From the smallest epsilons and largest deltas to the opposite."""
    for cells, pile in [(1, 1), (2, 1), (12, 1), (2, 2), (1, 4)]:
        sigma = discrete_gaussian_sigma(cells, epsilon, delta, pile=pile)
        assert discrete_gaussian_delta(sigma, cells, epsilon, pile=pile) <= delta
    for ups, downs in [(1, 0), (1, 1), (6, 6)]:
        trials = binomial_trials(ups, downs, epsilon, delta)
        assert delta_of_moves(binomial_pmf(trials, 0.5), ups, downs, epsilon) <= delta


@pytest.mark.parametrize("users", [1, 7, 1_000, 2_571, 2_572, 20_000, 10**6, 10**9])
def test_users_add_enough_bits_together(users):
    each = noise_bits(users, 18, 18, 1, 1e-6)
    noise = binomial_pmf(users * each.bits, each.probability)
    assert delta_of_moves(noise, 18, 18, 1) <= 1e-6
    assert 0 < each.probability <= 0.5
    assert each.bits == max(1, math.ceil(2571 / users))
    assert each.variance(users) == pytest.approx(2571 / 4, rel=2e-3)


def test_what_cannot_be_delivered_is_refused():
    with pytest.raises(CalibrationError, match="delta > 0"):
        binomial_trials(6, 6, 1.0, 0.0)
    with pytest.raises(CalibrationError, match="delta > 0"):
        discrete_gaussian_sigma(36, 1.0, 0.0)
    with pytest.raises(CalibrationError, match="larger epsilon"):
        binomial_trials(6, 6, 1e-9, 1e-6)
    with pytest.raises(InvalidInputError, match="moves"):
        binomial_trials(0, 0, 1.0, 1e-6)
    with pytest.raises(InvalidInputError, match="users"):
        noise_bits(0, 6, 6, 1.0, 1e-6)


# --- how the least is found ----------------------------------------------------------------------


@given(st.integers(1, 5000), st.integers(1, 5000), st.floats(0.5, 3.0))
def test_the_least_integer_of_a_falling_curve(truth, guess, steepness):
    """Found from any guess, below or above, however far off."""
    asked = []

    def excess(n):
        asked.append(n)
        return steepness * (truth - 0.5 - n) / truth

    assert least_integer(excess, guess) == truth
    assert min(asked) >= 1
    assert len(asked) < 60


@pytest.mark.parametrize("truth", [123_456, 9_876_543])
def test_a_large_least_integer_may_be_a_hair_too_large_and_never_too_small(truth):
    found = least_integer(lambda n: math.log(truth / n), truth // 2)
    assert truth <= found <= truth * (1 + 1e-5) + 1


def test_a_curve_with_a_jump_is_no_trap():
    """The secant is of no use here; halving is."""
    assert least_integer(lambda n: 1.0 if n < 777 else -1e-9, 10) == 777
    assert least_integer(lambda n: 1e-9 if n < 777 else -1.0, 10_000) == 777


@given(st.floats(0.5, 50.0), st.floats(1e-6, 1e-2))
def test_the_least_value_has_been_checked(truth, tolerance):
    checked = {}

    def holds(value):
        checked[value] = value >= truth
        return checked[value]

    found = least_value(holds, 0.5, tolerance)
    assert checked[found]
    assert max(0.5, truth) <= found <= max(0.5, truth) * (1 + tolerance) + 1e-12


def test_what_never_holds_is_refused():
    with pytest.raises(CalibrationError, match="No noise level delivers"):
        least_value(lambda _: False, 1.0, 1e-3, most=100)


# --- bits of one user ----------------------------------------------------------------------------


@given(st.floats(1.0, 1e5), st.integers(1, 10**6))
def test_noise_is_spread_evenly(trials, users):
    """The variance of all users' bits is that of so many fair ones."""
    each = spread_bits(trials, users)
    assert each.bits >= 1
    assert 0 <= each.probability <= 0.5
    assert (each.bits - 1) * users < trials * (1 + 1e-9) + 1e-9
    assert each.variance(users) == pytest.approx(trials / 4, rel=1e-6)


@pytest.mark.parametrize("each", [NoiseBits(3, 0.25), NoiseBits(2, 0.5)])
@pytest.mark.parametrize("users", [1, 2, 5])
def test_the_noise_of_a_batch_is_that_of_its_users(each, users):
    one = exact_binomial(each.bits, each.probability)
    truth = distribution_of_sum(one, users)
    noise = each.pmf(users)
    first = noise.first
    found = dict(
        zip(range(first, first + noise.probabilities.size), noise.probabilities, strict=True)
    )
    assert found == pytest.approx({x: float(p) for x, p in truth.items() if p}, rel=1e-9)
    mean = sum(x * p for x, p in truth.items())
    variance = sum((x - mean) ** 2 * p for x, p in truth.items())
    assert each.variance(users) == pytest.approx(float(variance))


@pytest.mark.parametrize("users", [1, 4])
def test_noise_is_drawn_from_what_was_calibrated(users):
    from discreet.auditing.probes import Noise, PresetSampler

    sampler = PresetSampler.still()
    NoiseBits(2, 0.25).draw(sampler, users, 3)
    assert sampler.noises == [Noise("binomial", 0.25, trials=2 * users)] * 3


# --- against all outputs, in fractions -----------------------------------------------------------


@pytest.mark.parametrize(("ups", "downs"), [(1, 0), (1, 1), (2, 1)])
@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 0.02), (1.0, 0.05)])
def test_the_least_bits_against_all_outputs(ups, downs, epsilon, delta):
    trials = binomial_trials(ups, downs, epsilon, delta)
    shifts = [1] * ups + [-1] * downs
    half = Fraction(1, 2)
    assert dearest(exact_binomial(trials, half), shifts, epsilon) <= Fraction(delta)
    assert dearest(exact_binomial(trials - 1, half), shifts, epsilon) > Fraction(delta) * Fraction(
        999, 1000
    )


@pytest.mark.parametrize("users", [1, 3])
def test_the_bits_of_few_users_against_all_outputs(users):
    """Small enough to list everything: what users add together keeps the promise."""
    epsilon, delta = 3.0, 0.05
    each = noise_bits(users, 1, 1, epsilon, delta)
    one = exact_binomial(each.bits, each.probability)
    assert dearest(distribution_of_sum(one, users), [1, -1], epsilon) <= Fraction(delta)


@pytest.mark.parametrize("users", [1, 2, 30, 1000, 10**7])
def test_every_batch_keeps_the_promise(users):
    each = noise_bits(users, 6, 6, 10.0, 1e-6)
    assert delta_of_moves(each.pmf(users), 6, 6, 10.0) <= 1e-6
    assert each.variance(users) < 4.1**2
