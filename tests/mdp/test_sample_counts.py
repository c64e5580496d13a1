"""Count-level simulation."""

import numpy as np
import pytest

from discreet.mdp import RiverSwim, occupancy, sample_counts, uniform_policy


@pytest.mark.core
def test_flows_are_conserved_for_a_trillion_users():
    mdp = RiverSwim(states=4, horizon=6)
    users = 10**12
    counts = sample_counts(mdp, uniform_policy(mdp.shape), users, np.random.default_rng(0))
    assert counts.users == users
    assert (counts.visits.sum(axis=(1, 2)) == users).all()
    arrivals = counts.transitions.sum(axis=(1, 2))
    np.testing.assert_array_equal(arrivals[:-1], counts.visits.sum(axis=2)[1:])
    assert not counts.transitions[mdp.transitions == 0].any()
    expected = users * occupancy(mdp, uniform_policy(mdp.shape))
    # Six standard deviations of a binomial: false alarm below 1e-6 over the 48 cells.
    assert (np.abs(counts.visits - expected) <= 6 * np.sqrt(expected) + 1).all()
