"""Dense models that lose mass: occupancies and optimal values against plain NumPy."""

import numpy as np
import pytest

from discreet.mdp import dense
from helpers.absorbing import random_model


@pytest.mark.parametrize("seed", range(4))
def test_occupancies_are_those_of_a_matrix_product_per_step(seed):
    transitions, initial, _, _ = random_model(seed, horizon=4, states=3)
    policy = np.random.default_rng(seed).dirichlet(np.ones(2), (4, 3))
    found, here = dense.occupancy(transitions, initial, policy), initial
    for h in range(4):
        np.testing.assert_allclose(found[h], here[:, None] * policy[h], atol=1e-15)
        here = np.einsum("sa,sat->t", found[h], transitions[h])
    masses = found.sum(axis=(1, 2))
    assert masses[0] == pytest.approx(1.0)
    assert (np.diff(masses) < 0).all()  # what leaves for the absorbing state is gone


@pytest.mark.parametrize("seed", range(3))
def test_optimal_values_are_those_of_a_plain_induction(seed):
    transitions, _, rewards, _ = random_model(seed, horizon=4, states=3)
    expected = np.zeros((5, 3))
    for h in (3, 2, 1, 0):
        ahead = transitions[h] @ expected[h + 1] if h < 3 else 0.0
        expected[h] = (rewards[h] + ahead).max(axis=-1)
    np.testing.assert_allclose(dense.optimal_values(transitions, rewards), expected, rtol=1e-13)
