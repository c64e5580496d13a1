"""Independent accountings agree, and disagreement is refused."""

import math
import sys

import pytest

from discreet.errors import CalibrationError, MissingExtraError
from discreet.mdp.shape import Shape
from discreet.privacy.accounting import routes
from discreet.privacy.accounting.closed_forms import gaussian_delta
from discreet.privacy.accounting.distributions import binomial_pmf, discrete_laplace_pmf
from discreet.privacy.accounting.lattice import (
    discrete_gaussian_delta,
    discrete_gaussian_epsilon,
    discrete_laplace_delta,
    discrete_laplace_epsilon,
)
from discreet.privacy.accounting.losses import delta_of_moves, epsilon_of_moves
from discreet.privacy.accounting.routes import (
    Route,
    binomial_routes,
    cross_check,
    gaussian_routes,
    laplace_routes,
    rdp_epsilon,
    zcdp_epsilon,
)
from discreet.privacy.trust import Shuffle

dp = pytest.importorskip("dp_accounting")
pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


class TestCrossCheck:
    def test_agreement_reports_the_largest_exact(self):
        routes = [Route("a", 1.0), Route("b", 1.005), Route("c", 1.3, bound=True)]
        assert cross_check(routes, at_most=1.005) == 1.005

    def test_the_guarantee_is_tested_against_the_largest_exact_route(self):
        """They agree within the tolerance, and one of them says that the guarantee is broken."""
        with pytest.raises(CalibrationError, match="not delivered"):
            cross_check([Route("a", 1.0), Route("b", 1.009)], at_most=1.0)
        with pytest.raises(CalibrationError, match="not delivered"):
            cross_check([Route("a", 1.0), Route("b", 1 + 1e-8)], at_most=1.0)

    def test_routes_known_to_err_upwards_do_not_break_a_guarantee(self):
        routes = [
            Route("a", 1.0),
            Route("b", 1.005, kind="pessimistic"),
            Route("c", 0.998, kind="approximate"),
        ]
        assert cross_check(routes, at_most=1.0) == 1.0

    def test_without_an_exact_route_the_least_pessimistic_one_decides(self):
        routes = [Route("a", 1.0, kind="pessimistic"), Route("b", 1.004, kind="pessimistic")]
        assert cross_check(routes, at_most=1.0) == 1.0
        with pytest.raises(CalibrationError, match="not delivered"):
            cross_check(routes, at_most=0.999)

    def test_an_approximate_route_never_vouches(self):
        with pytest.raises(CalibrationError, match="none that can vouch"):
            cross_check([Route("a", 1.0, kind="approximate")])
        with pytest.raises(CalibrationError, match="not delivered"):
            cross_check([Route("a", 1.002), Route("b", 1.0, kind="approximate")], at_most=1.0)

    def test_a_pessimistic_route_below_the_truth_is_refused(self):
        with pytest.raises(CalibrationError, match="pessimistic"):
            cross_check([Route("a", 1.0), Route("b", 0.999, kind="pessimistic")])

    def test_disagreement_is_refused_and_names_all_routes(self):
        with pytest.raises(CalibrationError, match=r"disagree.*a 1, b 1\.05"):
            cross_check([Route("a", 1.0), Route("b", 1.05)])

    def test_a_bound_below_the_truth_is_refused(self):
        with pytest.raises(CalibrationError, match="upper bound"):
            cross_check([Route("a", 1.0), Route("b", 0.9, bound=True)])

    def test_a_broken_guarantee_is_refused(self):
        with pytest.raises(CalibrationError, match="not delivered"):
            cross_check([Route("a", 1.0)], at_most=0.9)

    def test_bounds_alone_prove_nothing(self):
        with pytest.raises(CalibrationError, match="none that can vouch"):
            cross_check([Route("b", 1.0, bound=True)])

    def test_nan_and_infinity_are_refused(self):
        with pytest.raises(CalibrationError):
            cross_check([Route("a", 1.0), Route("b", math.nan)])
        with pytest.raises(CalibrationError):
            cross_check([Route("a", 1.0), Route("b", math.inf)])


@pytest.mark.parametrize(
    "routes",
    [
        gaussian_routes(25.35, 36, 1e-6, with_library=True),
        gaussian_routes(2.0, 12, 1e-6, with_library=True),
        gaussian_routes(62.1, 6, 1e-6, pile=6, with_library=True),
        laplace_routes(36.0, 36, 1e-6, with_library=True),
        laplace_routes(3.0, 7, 1e-3, with_library=True),
        binomial_routes(2574, 0.5, 18, 18, 1e-6, with_library=True),
        binomial_routes(20_000, 0.0332727, 18, 18, 1e-6, with_library=True),
        binomial_routes(300, 0.3, 2, 5, 1e-4, with_library=True),
    ],
    ids=lambda routes: " ".join(f"{r.epsilon:.4g}" for r in routes),
)
def test_all_routes_agree(routes):
    names = {r.name for r in routes}
    assert {"privacy-loss distribution", "dp-accounting"} <= names
    assert cross_check(routes, tolerance=0.01) > 0


def test_bounds_are_bounds():
    noise = binomial_pmf(2574, 0.5)
    exact = epsilon_of_moves(noise, 18, 18, 1e-6)
    assert exact < rdp_epsilon(noise, 18, 18, 1e-6) < 1.2 * exact
    assert zcdp_epsilon(36 / (2 * 25.35**2), 1e-6) > exact
    assert rdp_epsilon(binomial_pmf(8, 0.5), 3, 3, 1e-6) == math.inf


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0, 2.49, 2.51, 10.0])
@pytest.mark.parametrize("cells", [1, 2, 7, 36])
def test_gaussian_lattice_equals_the_composed_losses(sigma, cells):
    from discreet.privacy.accounting.distributions import discrete_gaussian_pmf

    for epsilon in (0.2, 1.0, 3.0):
        exact = discrete_gaussian_delta(sigma, cells, epsilon)
        composed = delta_of_moves(discrete_gaussian_pmf(sigma), cells, 0, epsilon)
        assert composed == pytest.approx(exact, rel=5e-3, abs=1e-25)
        assert composed >= exact * (1 - 1e-9) - 1e-25


def test_gaussian_lattice_tends_to_the_analytic_curve():
    for sigma in (20.0, 200.0):
        error = abs(discrete_gaussian_delta(sigma, 4, 0.1) / gaussian_delta(sigma, 2.0, 0.1) - 1)
        assert error < 0.2 / sigma


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("sigma", [8.0, 9.37, 25.0, 300.0])
@pytest.mark.parametrize(("cells", "pile"), [(1, 1), (5, 1), (2, 2)])
def test_the_analytic_curve_knows_how_far_the_lattice_is_from_it(sigma, cells, pile, delta):
    """Small epsilons at large deltas are where it is far: by all of epsilon, and more."""
    routes = gaussian_routes(sigma, cells, delta, pile=pile)
    exact, analytic = (
        next(r for r in routes if r.name == n) for n in ("exact lattice", "analytic Gaussian")
    )
    assert abs(exact.epsilon - analytic.epsilon) <= analytic.error + 1e-9
    assert analytic.error <= 0.01 * analytic.epsilon + 0.002 * (sigma < 100)
    cross_check(routes)


def test_an_error_that_is_known_is_allowed_for_and_no_more():
    approximate = Route("b", 0.9, kind="approximate", error=0.095)
    assert cross_check([Route("a", 1.0), approximate]) == 1.0
    with pytest.raises(CalibrationError, match="disagree"):
        cross_check([Route("a", 1.02), approximate])


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-4, 0.3), (1e-4, 0.05), (20, 0.05)])
@pytest.mark.parametrize("mechanism", ["bits", "histogram"])
def test_the_routes_of_a_shuffled_batch_agree_at_both_ends(mechanism, epsilon, delta):
    plan = Shuffle(epsilon, delta, mechanism=mechanism).calibrate(
        Shape(states=2, actions=2, horizon=1), statistics=("visits",)
    )
    cross_check(plan.accountings(1000, with_library=True), at_most=epsilon)


def test_pure_epsilon_of_laplace():
    assert discrete_laplace_epsilon(36.0, 36, 0.0) == 1.0
    assert discrete_laplace_delta(36.0, 36, 0.9999) > 0
    assert discrete_laplace_delta(36.0, 36, 1.0) == 0


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    with pytest.raises(MissingExtraError, match=r"discreet\[accounting\]"):
        gaussian_routes(25.35, 36, 1e-6, with_library=True)


class TestKnownFaultsOfDpAccounting:
    """If one of these fails, the library was repaired: update `calibration/library.py`."""

    def test_the_accountant_ignores_the_count_of_randomised_response(self):
        event = dp.dp_event.RandomizedResponseDpEvent(noise_parameter=0.5, num_buckets=2)
        many = dp.pld.PLDAccountant(dp.NeighboringRelation.REPLACE_ONE)
        many.compose(event, 100)
        one = dp.pld.PLDAccountant(dp.NeighboringRelation.REPLACE_ONE)
        one.compose(event)
        assert many.get_epsilon(1e-6) == one.get_epsilon(1e-6)
        assert many.get_epsilon(1e-6) < 2

    def test_the_accountant_refuses_laplace_under_replace_one(self):
        accountant = dp.pld.PLDAccountant(dp.NeighboringRelation.REPLACE_ONE)
        assert not accountant.supports(dp.dp_event.LaplaceDpEvent(1.0))

    def test_coarse_tables_are_far_too_pessimistic(self):
        noise = binomial_pmf(2574, 0.5)
        log = dict(zip(noise.values.tolist(), noise.log_probabilities.tolist(), strict=True))
        moved = {value + 1: p for value, p in log.items()}
        coarse = pld.from_two_probability_mass_functions(
            moved, log, value_discretization_interval=1e-2
        ).self_compose(36)
        assert coarse.get_epsilon_for_delta(1e-6) > 1.15


class TestMetamorphic:
    """count = n equals n composes, on the parts of dp-accounting that we use and on ours."""

    def test_library_self_compose(self):
        one = pld.from_discrete_gaussian_mechanism(5.0, use_connect_dots=True)
        step_by_step = one
        for _ in range(4):
            step_by_step = step_by_step.compose(one)
        assert one.self_compose(5).get_epsilon_for_delta(1e-6) == pytest.approx(
            step_by_step.get_epsilon_for_delta(1e-6), rel=1e-3
        )

    def test_randomised_response_composed_a_hundred_times(self):
        """What the accountant gets wrong, through our route: 100 moves cost more than one."""
        hundred = discrete_laplace_epsilon(1 / math.log(3), 100, 1e-6)
        assert hundred > 50
        assert epsilon_of_moves_of_laplace(1 / math.log(3), 100) == pytest.approx(hundred, rel=1e-6)


def epsilon_of_moves_of_laplace(scale, moves):
    from discreet.privacy.accounting.distributions import discrete_laplace_pmf

    return epsilon_of_moves(discrete_laplace_pmf(scale), moves // 2, moves // 2, 1e-6)


# --- The second opinion of dp-accounting: it agrees with the exact lattice, or it is not instal


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    with pytest.raises(MissingExtraError, match="accounting"):
        routes.library_gaussian_epsilon(3.0, 2, 1e-6)


@pytest.fixture
def installed():
    pytest.importorskip("dp_accounting")


@pytest.mark.parametrize(("sigma", "cells", "pile"), [(8.0, 6, 1), (20.0, 3, 4)])
@pytest.mark.usefixtures("installed")
def test_gaussian_noise(sigma, cells, pile):
    exact = discrete_gaussian_epsilon(sigma, cells, 1e-5, pile=pile)
    assert routes.library_gaussian_epsilon(sigma, cells, 1e-5, pile=pile) == pytest.approx(
        exact, rel=5e-3
    )


@pytest.mark.usefixtures("installed")
def test_laplace_noise():
    exact = discrete_laplace_epsilon(12.0, 6, 1e-5)
    assert routes.laplace_epsilon(12.0, 6, 1e-5) == pytest.approx(exact, rel=5e-3)


@pytest.mark.usefixtures("installed")
def test_a_table_is_rounded_up_and_not_by_much():
    exact = discrete_laplace_epsilon(4.0, 2, 1e-4)
    found = routes.moves_epsilon(discrete_laplace_pmf(4.0), 1, 1, 1e-4, step=0.005 * exact)
    assert exact * (1 - 1e-6) <= found <= 1.02 * exact
