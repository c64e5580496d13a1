"""What `certify` proves: against all outcomes, against the floats of the search, and less noise."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from unittest import mock

import pytest

from discreet import Central, Local, NoPrivacy, Shuffle
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import certify, verify
from discreet.privacy.accounting.distributions import binomial_pmf, poisson_pmf, table_pmf
from discreet.privacy.accounting.lattice import discrete_gaussian_delta
from discreet.privacy.accounting.losses import delta_of_moves
from discreet.privacy.certificates import verify as verifier
from discreet.privacy.certificates.document import CertificateError, claim_of, claimed
from discreet.privacy.certificates.prove import best_order, prove
from helpers import curves
from helpers.calibrating import calibrated
from helpers.properties import given, settings, st

MILLION = Fraction(1, 10**6)
SHAPE = Shape(states=4, actions=2, horizon=6)


def bound(noise, moves, epsilon, delta=MILLION, told=lambda _: None):
    """The proven delta of noise on counters that move like this, and the method."""
    claim = {
        "format": "discreet-certificate/1",
        "release": {},
        "noise": {k: str(v) if isinstance(v, Fraction) else v for k, v in noise.items()},
        "epsilon": str(Fraction(epsilon)),
        "delta": str(min(Fraction(delta), Fraction(9, 10))),
    }
    known = {noise["name"]: moves}
    with (
        mock.patch.object(verifier, "derived", lambda _: moves),
        mock.patch.object(verifier, "moves_of", lambda _: known),
    ):
        return prove(claim, told)


def shifts(ups, downs):
    return verifier.shifts((1, ups), (-1, downs))


def stick(pmf, moves, epsilon):
    """Delta of independent shifts of one distribution {value: probability}, by enumeration."""
    total = 0.0
    for outcome in itertools.product(pmf, repeat=len(moves)):
        p = math.prod(pmf[x] for x in outcome)
        q = math.prod(pmf.get(x - s, 0.0) for x, s in zip(outcome, moves, strict=True))
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


def worst(pmf, ups, downs, epsilon):
    moves = [1] * ups + [-1] * downs
    return max(stick(pmf, [sign * move for move in moves], epsilon) for sign in (1, -1))


# --- against all outcomes ------------------------------------------------------------------------


@pytest.mark.parametrize(("ups", "downs"), [(1, 0), (1, 1), (2, 1)])
@pytest.mark.parametrize("probability", [Fraction(1, 2), Fraction(1, 5)])
@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_binomial_noise(probability, ups, downs, epsilon):
    n, p = 12, float(probability)
    pmf = {x: math.comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)}
    truth = worst(pmf, ups, downs, epsilon)
    noise = {"name": "binomial", "trials": n, "probability": probability}
    found, _ = bound(noise, shifts(ups, downs), epsilon, Fraction(truth) * 2)
    assert truth <= float(found) * (1 + 1e-12) <= truth * 1.01


@pytest.mark.parametrize(("ups", "downs"), [(1, 0), (1, 1), (2, 1)])
def test_poisson_noise(ups, downs):
    pmf = {x: math.exp(-4.5) * 4.5**x / math.factorial(x) for x in range(45)}
    truth = worst(pmf, ups, downs, 1.5)
    noise = {"name": "poisson", "mean": Fraction(9, 2)}
    found, _ = bound(noise, shifts(ups, downs), 1.5, Fraction(truth) * 2)
    assert truth <= float(found) * (1 + 1e-9) <= truth * 1.01


def one_group(trials, p):
    """(P, Q) of (y_a, y_b) when a user moves from a to b among ``trials`` messages."""
    out = {}
    for a in range(trials + 1):
        for b in range(trials + 1 - a):
            chance = math.comb(trials, a) * math.comb(trials - a, b) * p ** (a + b)
            chance *= (1 - 2 * p) ** (trials - a - b)
            for world, view in enumerate(((a + 1, b), (a, b + 1))):
                out.setdefault(view, [0.0, 0.0])[world] += chance
    return list(out.values())


@pytest.mark.parametrize("epsilon", [0.3, 1.5])
@pytest.mark.parametrize(
    "kinds",
    [
        ((8, Fraction(1, 3), 1),),
        ((6, Fraction(1, 2), 2),),
        ((5, Fraction(1, 4), 1), (7, Fraction(1, 5), 1)),
    ],
)
def test_shuffled_histograms(kinds, epsilon):
    pairs = [(1.0, 1.0)]
    for trials, probability, times in kinds:
        for _ in range(times):
            one = one_group(trials, float(probability))
            pairs = [(p * s, q * t) for (p, q), (s, t) in itertools.product(pairs, one)]
    truth = sum(max(0.0, p - math.exp(epsilon) * q) for p, q in pairs)
    trials, probability, times = map(list, zip(*kinds, strict=True))
    noise = {"name": "histogram", "trials": trials, "probability": list(map(str, probability))}
    found, _ = bound(noise, {"times": times}, epsilon, Fraction(truth) * 2)
    assert truth <= float(found) * (1 + 1e-12) <= truth * 1.01


def test_the_verifier_counts_empty_cells():
    """At a large epsilon delta is the probability that nothing falls into the other cell."""
    noise = {"name": "histogram", "trials": [8], "probability": ["1/4"]}
    found, _ = bound(noise, {"times": [1]}, 20, Fraction(1, 9))
    assert Fraction(3, 4) ** 8 <= found <= Fraction(3, 4) ** 8 * Fraction(1001, 1000)


@pytest.mark.parametrize(("weights", "draws"), [([1, 3, 7, 3, 1], 1), ([8, 3, 1], 3)])
def test_tables(weights, draws):
    pmf = {}
    for outcome in itertools.product(enumerate(weights), repeat=draws):
        value = sum(x for x, _ in outcome)
        pmf[value] = pmf.get(value, 0.0) + math.prod(w / sum(weights) for _, w in outcome)
    truth = worst(pmf, 2, 1, 2.0)
    noise = {"name": "table", "weights": weights, "draws": draws}
    found, _ = bound(noise, shifts(2, 1), 2, Fraction(1, 2))
    assert truth <= float(found) * (1 + 1e-12) <= truth * 1.01


def test_a_constant_hides_nothing():
    found, _ = bound({"name": "table", "weights": [1], "draws": 1}, shifts(1, 0), 1, "1/2")
    assert found == 1


def gaussian(sigma):
    values = range(-math.ceil(10 * sigma), math.ceil(10 * sigma) + 1)
    weights = {x: math.exp(-0.5 * (x / sigma) ** 2) for x in values}
    whole = math.fsum(weights.values())
    return {x: w / whole for x, w in weights.items()}


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("sigma", [0.6, 1.7, 3.0])
@pytest.mark.parametrize("times", [1, 2])
def test_gaussian_noise(sigma, times, epsilon):
    truth = stick(gaussian(sigma), [1] * times, epsilon)
    noise = {"name": "discrete-gaussian", "sigma": Fraction(sigma)}
    found, method = bound(noise, shifts(times, 0), epsilon)
    assert truth <= float(found) * (1 + 1e-9) <= truth * (1 + 2e-6) + 1e-18
    assert method["name"] == ("convolution" if sigma < 1.6 else "sum")


def both_kinds(*, count_sigma, counts, loss_sigma, loss_shift, losses, epsilon):
    """Sum over all outputs, in doubles."""

    def draws(sigma, shift):
        loss = {x: (shift**2 - 2 * shift * x) / (2 * sigma**2) for x in gaussian(sigma)}
        return [(p, loss[x]) for x, p in gaussian(sigma).items()]

    parts = [draws(count_sigma, 1)] * counts + [draws(loss_sigma, loss_shift)] * losses
    return math.fsum(
        math.prod(p for p, _ in outcome) * -math.expm1(epsilon - loss)
        for outcome in itertools.product(*parts)
        if (loss := math.fsum(x for _, x in outcome)) > epsilon
    )


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
@pytest.mark.parametrize("counts", [1, 2])
def test_counts_and_losses(counts, epsilon):
    noise = {"count_sigma": 0.75, "loss_sigma": 60.0}
    moves = {"counts": counts, "losses": 1, "loss_shift": 64}
    truth = both_kinds(**noise, **moves, epsilon=epsilon)
    exactly = {name: Fraction(value) for name, value in noise.items()}
    found, _ = bound({"name": "layered-gaussian", **exactly}, moves, epsilon)
    assert truth <= float(found) * (1 + 1e-9) <= truth * 1.1 + 1e-30


PROBABILITIES = st.fractions(
    min_value=Fraction(1, 50), max_value=Fraction(49, 50), max_denominator=50
)


def holds_exactly_from(noise, moves, worst_ratio):
    """A pure claim holds from the logarithm of the worst likelihood ratio on."""
    if worst_ratio > 1:
        at, part = Fraction(math.log(worst_ratio)), Fraction(1, 10**12)
        found = [bound(noise, moves, at * (1 + sign * part), 0)[0] for sign in (-1, 1)]
        assert found == [1, 0]


@given(PROBABILITIES, st.integers(1, 4))
def test_flipped_bits(flip, bits):
    ratios = []
    for report in itertools.product((0, 1), repeat=bits):
        p = math.prod(flip if bit else 1 - flip for bit in report)
        ratios.append(p / math.prod(1 - flip if bit else flip for bit in report))
    noise = {"name": "randomized-response", "flip": flip}
    holds_exactly_from(noise, shifts(bits, 0), max(ratios))


@given(PROBABILITIES, PROBABILITIES)
def test_one_category(keep, flip):
    keep, flip = max(keep, flip), min(keep, flip)
    ratios = []
    for one, other in itertools.product((0, 1), repeat=2):
        p = (keep if one else 1 - keep) * (flip if other else 1 - flip)
        ratios.append(p / ((flip if one else 1 - flip) * (keep if other else 1 - keep)))
    holds_exactly_from({"name": "one-step", "keep": keep, "flip": flip}, shifts(1, 1), max(ratios))


@given(st.fractions(min_value=1, max_value=50, max_denominator=20), st.integers(1, 40))
def test_laplace_noise_is_units_over_scale_exactly(scale, units):
    noise, exact = {"name": "discrete-laplace", "scale": scale}, units / scale
    assert bound(noise, shifts(units, 0), exact, 0)[0] == 0
    assert bound(noise, shifts(units, 0), exact * (1 - Fraction(1, 10**30)), 0)[0] == 1


@pytest.mark.parametrize("column", [(3,), (2, 1), (1, 1)])
@pytest.mark.parametrize("epsilon", ["1/2", "2"])
def test_a_grid_is_never_better_than_its_noise(column, epsilon):
    """One unit moves several noisy numbers at once: all outputs are listed."""
    truth = curves.delta_of_moves(
        curves.exact_gaussian(Fraction(4), 24, digits=30), list(column), float(Fraction(epsilon))
    )
    found, _ = bound(square_root(4, column), {"squares": 1, "cells": 1}, epsilon)
    assert found >= truth * (1 - Fraction(1, 10**9))


def square_root(sigma, column):
    size = len(column)
    lists = {"length": size, "encoder": list(column), "columns": [1] * size}
    return {"name": "gaussian-grid", "sigma": Fraction(sigma), **lists}


def test_a_large_epsilon_on_a_grid_goes_through_concentrated_privacy():
    noise, moves = square_root(1200, (2**10, 2**9)), {"squares": 4, "cells": 4}
    found, method = bound(noise, moves, 20)
    assert method["name"] == "concentrated" and found < MILLION


# --- against the floats of the search ------------------------------------------------------------

TABLE = [1, 9, 30, 9, 1]
POINTS = [(epsilon, moves) for epsilon in (0.5, 1.0, 3.0) for moves in (1, 4)]


@pytest.mark.parametrize(("epsilon", "moves"), POINTS)
def test_floats_and_integers_find_the_same(epsilon, moves):
    """Two programs that share no line; the integers take the coarsest grid that will do."""
    each = [
        ({"name": "binomial", "trials": 400, "probability": "1/2"}, binomial_pmf(400, 0.5)),
        ({"name": "binomial", "trials": 900, "probability": "1/16"}, binomial_pmf(900, 1 / 16)),
        ({"name": "poisson", "mean": "60"}, poisson_pmf(60.0)),
        ({"name": "table", "weights": TABLE, "draws": 1}, table_pmf(TABLE, -2)),
    ]
    for noise, pmf in each:
        floats = delta_of_moves(pmf, moves, moves, epsilon)
        found, _ = bound(noise, shifts(moves, moves), epsilon, max(1.2 * floats, 1e-6))
        assert floats * (1 - 1e-4) <= float(found) <= max(1.2 * floats, 1e-6), noise
    floats = discrete_gaussian_delta(7.0, moves, epsilon)
    found, _ = bound({"name": "discrete-gaussian", "sigma": "7"}, shifts(moves, 0), epsilon)
    assert float(found) == pytest.approx(floats, rel=1e-6, abs=1e-40)


PLANS = [
    (Central(1, 1e-6, "gaussian"), {}, None),
    (Central(1, 1e-6, "gaussian"), {"statistics": ("visits",)}, None),
    (Central(1, 1e-6, "gaussian", participations=3), {}, None),
    (Central(1, 1e-6, "toeplitz"), {"schedule": "continual", "episodes": 20_000}, None),
    (Local(1, 1e-6, "gaussian"), {"schedule": "continual", "episodes": 100}, None),
    (Shuffle(1, 1e-6, "bits"), {}, 20_000),
    (Shuffle(1, 1e-6, "bits", honest=0.8), {}, 1000),
    (Shuffle(1, 1e-6), {}, None),
    (Shuffle(2, 1e-6), {}, 1000),
    (Shuffle(6, 1e-4), {}, None),
]


@pytest.mark.parametrize("delta", [1e-6, 1e-9])
@pytest.mark.parametrize(("trust", "options", "users"), PLANS)
def test_calibrated_noise_is_proven_and_nearly_the_least(trust, options, users, delta):
    shape = SHAPE if users is None else Shape(states=2, actions=2, horizon=2)
    plan = calibrated(replace(trust, delta=delta), shape, **options)
    certificate = certify(plan, users=users)
    assert certificate.holds
    assert 0.9 < certificate.ratio <= 1
    assert certificate.claim.delta == claimed(delta)


@pytest.mark.parametrize("mechanism", ["laplace", "split"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3])
def test_pure_epsilons_hold_exactly(mechanism, epsilon):
    trust = Central if mechanism == "laplace" else Local
    certificate = certify(trust(epsilon=epsilon, mechanism=mechanism).calibrate(SHAPE))
    assert certificate.holds and certificate.bound == 0
    claim = replace(
        certificate.claim, epsilon=certificate.claim.epsilon * (1 - Fraction(1, 10**10))
    )
    assert prove(claim.to_dict())[0] == 1


@pytest.mark.parametrize("factor", [0.5, 0.999])
def test_less_noise_is_not_proven(factor):
    plan = Central(1, 1e-6, "gaussian").calibrate(SHAPE)
    less = certify(replace(plan, noise=plan.noise.scaled(factor)))
    assert not less.holds and "Not certified" in less.sentence()


# --- the choice of a method ----------------------------------------------------------------------


def test_grids_get_finer_until_the_claim_holds_or_is_hopeless():
    noise, told = {"name": "binomial", "trials": 100, "probability": "1/2"}, []
    assert bound(noise, shifts(1, 1), 1, "1/1000000000", told.append)[0] > Fraction(1, 10**9)
    assert 1 <= len(set(told)) == len(told) <= 9
    told.clear()
    found, method = bound(noise, shifts(1, 0), 1, "1/10", told.append)
    assert (len(told), method["cut"]) == (1, "1e-13") and found <= Fraction(1, 10)


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
    assert log_delta(found) <= min(log_delta(1 + k / 64) for k in range(1, 64 * 12, 7)) + 0.001


# --- what has no certificate ---------------------------------------------------------------------


def test_what_takes_too_long_to_check_has_no_certificate(monkeypatch):
    plan = Shuffle(1, 1e-6).calibrate(SHAPE)
    monkeypatch.setattr(verifier, "WORK", 10**5)
    with pytest.raises(UnsupportedError, match="more than the 100,000 steps"):
        certify(plan)


def test_of_a_square_root_nothing_is_said_that_is_not_computed():
    again = Central(epsilon=1, delta=1e-6, mechanism="toeplitz", participations=5)
    stream = again.calibrate_stream(SHAPE, episodes=50)
    with pytest.raises(UnsupportedError, match="cover one participation, not 5"):
        claim_of(stream)
    alone = Central(epsilon=1, delta=1e-6, mechanism="toeplitz")
    with pytest.raises(UnsupportedError, match="at most 300,000 episodes, got 300,001"):
        claim_of(alone.calibrate_stream(SHAPE, episodes=300_001))


def test_gaussian_noise_on_pooled_counters_has_no_certificate():
    local = Local(1, 1e-6, "gaussian")
    plan = local.calibrate_stream(SHAPE, episodes=9, stationary=True)
    with pytest.raises(UnsupportedError, match="not covered by certificates"):
        certify(plan)


def test_what_is_not_covered_is_said():
    with pytest.raises(ValueError, match="guarantees nothing"):
        certify(NoPrivacy().calibrate(SHAPE))
    with pytest.raises(ValueError, match="give users="):
        certify(Shuffle(epsilon=1, delta=1e-6, mechanism="bits").calibrate(SHAPE))
    with pytest.warns(UserWarning):
        trust = Local(epsilon=1, mechanism="laplace", calibration="paper")
        printed = trust.calibrate_stream(SHAPE, episodes=9)
    with pytest.raises(ValueError, match="Printed constants"):
        certify(printed)


@pytest.mark.parametrize("thing", [Central(1), Central, "central/gaussian", None])
def test_what_is_no_plan_is_one_sentence(thing):
    with pytest.raises(InvalidInputError, match=r"a calibrated mechanism, got .*\.calibrate\("):
        certify(thing)


def test_files_are_written_read_and_refused(tmp_path):
    certificate = certify(Central(epsilon=1, delta=1e-6, mechanism="gaussian").calibrate(SHAPE))
    path = tmp_path / "certificate.json"
    certificate.write(path)
    assert verify(path) <= certificate.bound
    assert verify(certificate) == verify(certificate.to_dict())
    path.write_text(path.read_text().replace('"horizon": 6', '"horizon": 5'))
    with pytest.raises(CertificateError, match="edited"):
        verify(path)
