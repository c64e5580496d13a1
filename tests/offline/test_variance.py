"""The variance of an estimated row, against its definition and against simulation."""

import numpy as np
import pytest

from helpers.offline import slot_rows

pytestmark = pytest.mark.core


def rows(probabilities, reward, visits, *, noise=0.0, reward_noise=0.0, visit_noise=0.0, **others):
    """One row."""
    one = np.ones(1)
    return slot_rows(
        np.asarray(probabilities)[None] * visits,
        visits * one,
        reward * visits * one,
        noise,
        reward_noise,
        visit_noise,
        **others,
    )


def variance(row, values, reach):
    return row.value(row.means, np.asarray(values), reach)


def test_the_formula_term_by_term():
    values, p, r = np.array([1.0, 3.0]), np.array([0.25, 0.75]), 0.2
    row = rows(p, r, 100.0, noise=7.0, reward_noise=5.0, visit_noise=16.0, anchor=0.5)
    mean, found = variance(row, values, 3.0)
    assert mean[0] == pytest.approx(2.5)
    square = 100 * (0.75 + 0.16) + 7 * (1.5**2 + 0.5**2) + 5 + 16 * 0.3**2 + 36
    assert found[0] == pytest.approx(square / (100 - 8) ** 2)


def test_a_known_reward_has_no_variance_of_its_own():
    row = rows([1.0, 0.0], 0.4, 50.0, visit_noise=9.0, anchor=0.4, drawn=0.0)
    _, found = variance(row, np.zeros(2), 1.0)
    assert found[0] == pytest.approx(4 / 44**2)


def test_without_rewards_only_the_next_states_count():
    row = rows([0.5, 0.5], 0.4, 50.0, noise=2.0, reward_noise=99.0, visit_noise=9.0)
    mean, found = row.ahead(np.array([0.0, 1.0]), 1.0)
    assert mean[0] == pytest.approx(0.5)
    assert found[0] == pytest.approx((50 * 0.25 + 2 * 0.5 + 4) / 44**2)


def test_equal_values_carry_no_noise_of_transitions():
    quiet, loud = (rows([0.5, 0.5], 0.0, 50.0, noise=noise) for noise in (0.0, 1e6))
    values = np.array([2.0, 2.0])
    assert variance(quiet, values, 2.0)[1] == variance(loud, values, 2.0)[1]


def test_it_is_no_less_than_what_simulation_shows():
    rng = np.random.default_rng(5)
    p, r, n, sigma = np.array([0.2, 0.3, 0.5]), 0.7, 3000, 6.0
    values = np.array([0.0, 1.0, 2.0])
    counts = rng.multinomial(n, p, size=4000) + rng.normal(0, sigma, (4000, 3))
    visits = counts.sum(axis=1)
    centred = rng.binomial(n, r, 4000) - n / 2 + rng.normal(0, sigma, 4000)
    estimates = centred / visits + 0.5 + counts @ values / visits
    row = rows(
        p, r, float(n), noise=sigma**2, reward_noise=sigma**2, visit_noise=3 * sigma**2, anchor=0.5
    )
    stated = variance(row, values, 3.0)[1][0]
    assert estimates.var() <= stated <= 1.3 * estimates.var()
