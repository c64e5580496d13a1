"""The second opinion of dp-accounting: it agrees with the exact lattice, or it is not installed."""

import sys

import pytest

from discreet.errors import MissingExtraError
from discreet.privacy.accounting import routes
from discreet.privacy.accounting.distributions import discrete_laplace_pmf
from discreet.privacy.accounting.lattice import (
    discrete_gaussian_epsilon,
    discrete_laplace_epsilon,
)


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
