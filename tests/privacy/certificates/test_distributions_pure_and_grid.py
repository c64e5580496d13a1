"""Pure noise against all outcomes, grids against a bound of their own, and both tables."""

import itertools
import math
from fractions import Fraction

import pytest

pytest.importorskip("flint")

from discreet.privacy.certificates import distributions, verify
from discreet.privacy.certificates.arithmetic import PRECISION, at_precision, upper
from discreet.privacy.certificates.distributions import (
    BinomialBits,
    FlippedBits,
    GaussianGrid,
    GaussianMoves,
    LaplaceMoves,
    OneStep,
    TableNoise,
    best_order,
    concentrated,
)
from helpers.curves import delta_of_moves, exact_gaussian, growth_of, moved, stick
from helpers.properties import given, settings, st

MILLION = Fraction(1, 10**6)
PROBABILITIES = st.fractions(
    min_value=Fraction(1, 50), max_value=Fraction(49, 50), max_denominator=50
)


def bound(noise, epsilon, delta=MILLION):
    return noise.bound(Fraction(epsilon), Fraction(delta), lambda _: None)


# --- both tables ---------------------------------------------------------------------------------


def test_prover_and_verifier_know_the_same_distributions():
    assert set(distributions.NOISES) == set(verify.NOISES)


def test_files_have_exactly_the_fields_that_the_verifier_knows(made):
    for name, data in made.items():
        _, fields, methods = verify.NOISES[name]
        assert set(data["noise"]) == {"name", *fields.split()}
        assert data["method"]["name"] in methods.split()
        assert set(data["method"]) == {"name", *verify.METHODS[data["method"]["name"]].split()}


# --- pure distributions
# -----------------------------------------------------------------------------------


def just_below_and_above(loss):
    """Epsilons around a loss of a logarithm, by a part in 10^12."""
    return Fraction(loss) * (1 - Fraction(1, 10**12)), Fraction(loss) * (1 + Fraction(1, 10**12))


@given(PROBABILITIES, st.integers(1, 4))
def test_flipped_bits_against_all_reports(flip, bits):
    """The largest likelihood ratio of two users whose bits are all different."""
    worst = 0
    for report in itertools.product((0, 1), repeat=bits):
        p = math.prod(flip if bit else 1 - flip for bit in report)
        q = math.prod(1 - flip if bit else flip for bit in report)
        worst = max(worst, p / q)
    noise = FlippedBits(flip=flip, units=bits)
    if worst == 1:
        assert bound(noise, Fraction(1, 10**9), 0)[0] == 0
        return
    less, more = just_below_and_above(math.log(worst))
    assert bound(noise, less, 0) == (1, {"name": "rational"})
    assert bound(noise, more, 0) == (0, {"name": "rational"})


@given(PROBABILITIES, PROBABILITIES)
def test_one_category_against_all_pairs_of_bits(keep, flip):
    keep, flip = max(keep, flip), min(keep, flip)
    worst = 0
    for one, other in itertools.product((0, 1), repeat=2):
        p = (keep if one else 1 - keep) * (flip if other else 1 - flip)
        q = (flip if one else 1 - flip) * (keep if other else 1 - keep)
        worst = max(worst, p / q)
    if worst == 1:
        return
    less, more = just_below_and_above(math.log(worst))
    noise = OneStep(keep=keep, flip=flip)
    assert (bound(noise, less, 0)[0], bound(noise, more, 0)[0]) == (1, 0)


@given(st.fractions(min_value=1, max_value=50, max_denominator=20), st.integers(1, 40))
def test_laplace_noise_is_units_over_scale_exactly(scale, units):
    noise = LaplaceMoves(scale=scale, units=units)
    exact = units / scale
    assert bound(noise, exact, 0)[0] == 0
    assert bound(noise, exact * (1 - Fraction(1, 10**30)), 0)[0] == 1


# --- grids ---------------------------------------------------------------------------------------


def grid(sigma, column, squares=1, cells=1):
    return GaussianGrid(
        sigma=Fraction(sigma),
        length=len(column),
        encoder=column,
        columns=(1,) * len(column),
        squares=squares,
        cells=cells,
    )


@pytest.mark.parametrize("column", [(3,), (2, 1), (1, 1)])
@pytest.mark.parametrize("epsilon", ["1/2", "2"])
def test_a_grid_is_never_better_than_its_noise(column, epsilon):
    """One unit moves several noisy numbers at once: all outputs are listed."""
    sigma, epsilon = Fraction(4), Fraction(epsilon)
    noise = exact_gaussian(sigma, 24, digits=30)
    truth = delta_of_moves(noise, list(column), float(epsilon))
    found, _ = bound(grid(sigma, column), epsilon)
    assert found >= truth * (1 - Fraction(1, 10**9))


def test_the_price_of_the_grid_falls_with_its_fineness():
    found = [bound(grid(4 * 2**bits, (2**bits,)), Fraction(1, 2))[0] for bits in (0, 3, 6, 20)]
    assert found[0] > found[1] > found[2] > found[3]
    limit = (
        math.erfc(-(1 / 8 - 2) / math.sqrt(2))
        - math.exp(0.5) * math.erfc((1 / 8 + 2) / math.sqrt(2))
    ) / 2
    assert float(found[3]) == pytest.approx(limit, rel=1e-6)


def test_more_cells_and_longer_streams_cost_more():
    noise = grid(40, (30, 10))
    wider = GaussianGrid(**(vars(noise) | {"cells": 9}))
    longer = GaussianGrid(**(vars(noise) | {"length": 50}))
    plain = bound(noise, 1)[0]
    assert plain < bound(wider, 1)[0] < 1
    assert plain < bound(longer, 1)[0] < 1


# --- orders and cuts -----------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=2, max_denominator=1000),
    st.fractions(min_value=Fraction(1, 2), max_value=10, max_denominator=16),
)
def test_the_order_is_the_best(rho, epsilon):
    def log_delta(order):
        a = float(order)
        return (a - 1) * (a * float(rho) - float(epsilon)) - 1 + 1 / a - math.log(a)

    found = best_order(rho, epsilon)
    assert found > 1
    others = [1 + Fraction(k, 64) for k in range(1, 64 * 12, 7)]
    best = min(map(log_delta, others))
    assert log_delta(found) <= best + 0.001


@pytest.mark.parametrize("sigma", [2, 5])
def test_concentrated_privacy_is_no_better_than_the_noise(sigma):
    noise = exact_gaussian(sigma)
    truth = stick(noise, moved(noise, 1), growth_of(Fraction(1, 2)))
    rho = Fraction(1, 2 * sigma**2)
    order = best_order(rho, Fraction(1, 2))
    found = at_precision(PRECISION)(lambda: upper(concentrated(rho, Fraction(1, 2), order)))()
    assert truth <= found
    assert abs(float(found) / float(verify.concentrated(rho, Fraction(1, 2), order)) - 1) < 1e-12


@pytest.mark.parametrize(
    ("delta", "digits", "cut"),
    [(MILLION, 12, "1e-18"), (Fraction(1, 3), 12, "1e-13"), (MILLION, 9, "1e-15")],
)
def test_cuts_are_powers_of_ten_below_delta(delta, digits, cut):
    assert distributions._cut(delta, digits) == cut
    assert Fraction(cut) <= delta / 10**digits


# --- distributions of many values
# -------------------------------------------------------------------------


def test_the_dearer_direction_is_bounded():
    """Rare bits: as many as rise may fall; which is dearer, depends on where the user stands."""
    there, back = (
        bound(
            BinomialBits(trials=60, probability=Fraction(1, 10), ups=u, downs=d), 1, Fraction(1, 10)
        )[0]
        for u, d in ((2, 0), (0, 2))
    )
    assert there == back


def test_grids_get_finer_until_the_claim_holds_or_is_hopeless():
    told = []
    noise = BinomialBits(trials=100, probability=Fraction(1, 2), ups=1, downs=1)
    noise.bound(Fraction(1), Fraction(1, 10**9), told.append)
    assert told[0].startswith("composing all moves on a grid of 2^-")
    assert 1 <= len(told) <= 9
    assert len(set(told)) == len(told)


def test_a_claim_that_holds_needs_one_grid():
    told = []
    noise = BinomialBits(trials=100, probability=Fraction(1, 2), ups=1, downs=0)
    found, method = noise.bound(Fraction(1), Fraction(1, 10), told.append)
    assert len(told) == 1
    assert found <= Fraction(1, 10)
    assert method["cut"] == "1e-13"


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        (BinomialBits(trials=400, probability=Fraction(1, 2), ups=1, downs=0), 0.1),
        (BinomialBits(trials=1, probability=Fraction(1, 2), ups=1, downs=0), 1.0),
        (TableNoise(weights=(1, 0, 1), ups=1, downs=0, draws=100), 0.1),
        (TableNoise(weights=(5,), ups=1, downs=0), 1.0),
    ],
)
def test_typical_losses_set_the_grid(noise, expected):
    assert noise.typical_loss() == pytest.approx(expected)


def test_little_noise_is_convolved_and_much_is_summed():
    names = [bound(GaussianMoves(sigma=Fraction(s), times=2), 1)[1]["name"] for s in ("3/2", "8/5")]
    assert names == ["convolution", "sum"]


@pytest.mark.parametrize("shift", [1, 2])
def test_both_ways_of_gaussian_noise_agree(shift):
    noise = GaussianMoves(sigma=Fraction(8, 5), times=2, shift=shift)
    summed, _ = bound(noise, 2)
    convolved = at_precision(PRECISION)(lambda: upper(noise._convolved(Fraction(2))))()
    assert abs(float(summed / convolved) - 1) < 1e-8
