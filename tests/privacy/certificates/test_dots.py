"""Connect-the-dots: both masses are kept, and no delta ever falls below the truth."""

import math
from fractions import Fraction

import pytest

pytest.importorskip("flint")

from discreet.privacy.certificates.arithmetic import (
    NO_LOSS,
    Losses,
    arb,
    arb_poly,
    ball,
    binomial_atoms,
    binomial_masses,
    connect,
    cropped,
    exact,
    hockey_stick,
    table_atoms,
    upper,
)
from helpers.curves import (
    delta_of_moves,
    distribution_of_sum,
    exact_binomial,
    exact_table,
    growth_of,
    moved,
    stick,
)
from helpers.properties import given, settings, st

pytestmark = pytest.mark.usefixtures("sharp_balls")
BASE = Fraction(15, 16)
HALF = Fraction(1, 2)
WEIGHTS = st.lists(st.integers(1, 30), min_size=2, max_size=6)
TINY = Fraction(1, 10**40)


def masses(losses):
    return [exact(mass.mid()) for mass in losses.masses.coeffs()]


def other_mass(losses, base):
    """What the same grid weighs under Q: every loss i is a ratio base^i."""
    return sum(m * base ** (losses.first + i) for i, m in enumerate(masses(losses)))


def poly(*values):
    return arb_poly([ball(Fraction(v)) for v in values])


def atoms_of(first, second):
    """(mass, ratio) of two exact distributions, where both are positive."""
    return [(ball(p), ball(second[x] / p)) for x, p in first.items() if second.get(x)]


# --- polynomials ---------------------------------------------------------------------------------


def test_independent_moves_add_their_losses():
    one, other = Losses(-1, poly(HALF, HALF)), Losses(3, poly("1/4", "3/4"))
    both = one.times(other, 0.0)
    assert both.first == 2
    assert masses(both) == [Fraction(1, 8), HALF, Fraction(3, 8)]


@pytest.mark.parametrize("times", range(1, 9))
def test_repeated_moves_are_powers(times):
    one = Losses(-1, poly("1/4", "1/2", "1/4"))
    many = one.repeated(times, 0.0)
    assert many.first == -times
    assert masses(many) == [
        Fraction(math.comb(2 * times, i), 4**times) for i in range(2 * times + 1)
    ]


def test_no_loss_changes_nothing():
    one = Losses(2, poly("1/3", "2/3"))
    same = NO_LOSS.times(one, 0.0)
    assert same.first == 2
    assert all(abs(a - b) < TINY for a, b in zip(masses(same), masses(one), strict=True))


def test_ends_are_cut_as_far_as_they_weigh_little():
    eighth = Fraction(1, 8)
    kept = cropped(5, poly(*[eighth] * 8), 0.25)
    assert kept.first == 7
    assert masses(kept) == [eighth] * 4


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.integers(0, 60))
def test_no_end_that_is_cut_weighs_more_than_allowed(weights, cut):
    total = sum(weights)
    values = [Fraction(w, total) for w in weights]
    kept = cropped(0, poly(*values), cut / total)
    end = kept.first + len(masses(kept))
    slack = Fraction(1, 10**12)
    assert sum(values[: kept.first]) <= Fraction(cut, total) + slack
    assert sum(values[end:]) <= Fraction(cut, total) + slack


def test_something_is_always_left():
    assert len(cropped(0, poly("1/4", "1/4", "1/4"), 1.0).masses.coeffs()) == 1


# --- connecting ----------------------------------------------------------------------------------


@given(st.integers(1, 999), st.fractions(min_value=Fraction(1, 50), max_value=50))
def test_an_atom_keeps_its_mass_under_both(mass, ratio):
    p = Fraction(mass, 1000)
    dots = connect([(ball(p), ball(ratio))], BASE)
    assert abs(sum(masses(dots)) - p) < TINY
    assert abs(other_mass(dots, BASE) - p * ratio) < TINY
    assert all(m >= -TINY for m in masses(dots))


@given(st.fractions(min_value=Fraction(1, 50), max_value=50))
def test_an_atom_goes_to_its_two_neighbours(ratio):
    dots = connect([(arb(1), ball(ratio))], BASE)
    places = [dots.first + i for i, mass in enumerate(masses(dots)) if mass > TINY]
    assert 1 <= len(places) <= 2
    assert BASE ** (max(places) - 1) >= ratio * (1 - TINY) >= BASE ** max(places) * (1 - 2 * TINY)


@pytest.mark.parametrize("place", [-7, -1, 0, 1, 2, 30])
def test_an_atom_on_the_grid_stays_there_or_is_rounded_up(place):
    dots = connect([(arb(1), ball(BASE**place))], BASE)
    total = sum(m for i, m in enumerate(masses(dots), dots.first) if i == place)
    assert abs(total - 1) < TINY


def test_nothing_at_all_is_lost_whole():
    nothing = connect([], BASE)
    assert upper(hockey_stick(nothing, Fraction(1), BASE)) == 1


def test_an_order_that_is_not_proven_is_rounded_up():
    """A wide ball around a grid point: the loss counts as the upper of two points."""
    wide = arb(0.9375, 1e-9)
    dots = connect([(arb(1), wide)], BASE)
    weights = {dots.first + i: m for i, m in enumerate(masses(dots)) if m > Fraction(1, 100)}
    assert max(weights) == 1 or max(weights) == 2
    assert upper(hockey_stick(dots, Fraction(0), BASE)) >= Fraction(1, 16) - Fraction(1, 10**8)


@given(WEIGHTS, st.randoms(use_true_random=False), st.integers(0, 12), st.integers(3, 7))
def test_one_move_is_never_better_than_it_is(weights, random, quarter, m):
    """Any two distributions on the same points, any grid, any epsilon."""
    rival = weights.copy()
    random.shuffle(rival)
    first, second = exact_table(weights), exact_table(rival)
    base, epsilon = Fraction((1 << m) - 1, 1 << m), Fraction(quarter, 4)
    bound = upper(hockey_stick(connect(atoms_of(first, second), base), epsilon, base))
    truth = stick(first, second, growth_of(epsilon))
    assert bound >= truth - Fraction(1, 10**14)


@settings(max_examples=20)
@given(WEIGHTS.filter(lambda w: len(w) <= 4), st.integers(2, 3), st.integers(0, 6))
def test_composed_moves_are_never_better_than_they_are(weights, times, half):
    epsilon, noise = Fraction(half, 2), exact_table(weights)
    one = connect(table_atoms(tuple(weights), 1, 1, 0.0), BASE)
    bound = upper(hockey_stick(one.repeated(times, 0.0), epsilon, BASE))
    truth = delta_of_moves(noise, [1] * times, float(epsilon))
    assert bound >= truth - Fraction(1, 10**13)


def test_a_finer_grid_comes_closer():
    noise, epsilon = exact_binomial(20, HALF), Fraction(1, 2)
    truth = delta_of_moves(noise, [1, -1], 0.5)
    bounds = []
    for m in (3, 5, 7, 9):
        base = Fraction((1 << m) - 1, 1 << m)
        one, back = (connect(binomial_atoms(20, HALF, s, 80.0), base) for s in (1, -1))
        bounds.append(upper(hockey_stick(one.times(back, 0.0), epsilon, base)))
    assert bounds[0] > bounds[1] > bounds[-1]
    assert truth <= bounds[-1] * (1 + Fraction(1, 10**12)) <= truth * Fraction(1001, 1000)


def test_what_is_cut_is_counted():
    noise, epsilon = exact_binomial(20, HALF), Fraction(1)
    truth = stick(noise, moved(noise, 1), growth_of(1))
    for cut in (0.0, 1e-6, 1e-3, 0.1):
        dots = connect(binomial_atoms(20, HALF, 1, 80.0), Fraction(255, 256), cut)
        assert upper(hockey_stick(dots, epsilon, Fraction(255, 256))) >= truth
    assert sum(masses(dots)) < Fraction(95, 100)  # the last cut took some


# --- delta ---------------------------------------------------------------------------------------


def test_delta_of_masses_on_the_grid():
    losses = Losses(0, poly("1/2", "1/4", "1/4"))
    zero = upper(hockey_stick(losses, Fraction(0), HALF))
    assert abs(zero - (Fraction(1, 4) * HALF + Fraction(1, 4) * Fraction(3, 4))) < TINY
    more = upper(hockey_stick(losses, Fraction(1), HALF))  # only the last loss, ln 4, is above
    assert abs(more - Fraction(1, 4) * (1 - Fraction(math.e) / 4)) < Fraction(1, 10**15)
    assert upper(hockey_stick(losses, Fraction(3, 2), HALF)) < TINY


def test_missing_mass_is_delta():
    losses = Losses(0, poly("1/2"))
    assert abs(upper(hockey_stick(losses, Fraction(9), HALF)) - HALF) < TINY


def test_too_much_mass_earns_nothing():
    assert upper(hockey_stick(Losses(-3, poly(2)), Fraction(1), HALF)) < TINY


# --- atoms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("probability", [HALF, Fraction(1, 7), Fraction(99, 100)])
@pytest.mark.parametrize("trials", [1, 2, 17, 60])
def test_binomial_masses_hold_the_exact_ones(trials, probability):
    low, found = binomial_masses(trials, probability, 200.0)
    noise = exact_binomial(trials, probability)
    assert (low, len(found)) == (0, trials + 1)
    for x, mass in enumerate(found):
        assert exact(mass.lower()) <= noise[x] <= exact(mass.upper())
        assert exact(mass.rad()) < Fraction(1, 10**60)


def test_a_window_of_a_long_binomial_misses_little():
    trials, probability = 10_000, Fraction(3, 10)
    low, found = binomial_masses(trials, probability, 20.0)
    assert 0 < low < 3000 < low + len(found) < trials
    missing = upper(1 - sum(found, arb(0)))
    assert 0 < missing < Fraction(math.exp(-20.0)) * 2
    middle = exact(found[3000 - low].mid())
    assert math.isclose(
        middle, math.comb(trials, 3000) * probability**3000 * (1 - probability) ** 7000
    )


@pytest.mark.parametrize("shift", [1, -1])
@pytest.mark.parametrize("probability", [HALF, Fraction(1, 5)])
def test_binomial_atoms_are_the_ratios_of_the_definition(probability, shift):
    trials = 9
    noise = exact_binomial(trials, probability)
    there = moved(noise, shift)
    finite = [x for x in noise if x in there]
    found = binomial_atoms(trials, probability, shift, 100.0)
    assert len(found) == len(finite) == trials
    for x, (mass, ratio) in zip(finite, found, strict=True):
        assert abs(exact(mass.mid()) - noise[x]) < TINY
        assert abs(exact(ratio.mid()) - there[x] / noise[x]) < TINY


@pytest.mark.parametrize("shift", [1, -1])
@pytest.mark.parametrize(("weights", "draws"), [((1, 4, 9), 1), ((5, 0, 2), 2), ((1, 2), 5)])
def test_table_atoms_are_the_ratios_of_the_definition(weights, draws, shift):
    noise = distribution_of_sum(exact_table(weights), draws)
    there = moved(noise, shift)
    found = table_atoms(weights, draws, shift, 0.0)
    expected = [(noise[x], there[x] / noise[x]) for x in sorted(noise) if x in there]
    assert len(found) == len(expected)
    for (mass, ratio), (p, r) in zip(found, expected, strict=True):
        assert abs(exact(mass.mid()) - p) < TINY
        assert abs(exact(ratio.mid()) - r) < TINY
