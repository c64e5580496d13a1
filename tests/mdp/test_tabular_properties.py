"""Properties of TabularMDP that hold for every model."""

import numpy as np
import pytest

from discreet.mdp import TabularMDP

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=30, deadline=None)
@given(states=st.integers(1, 5), actions=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_sparse_rows_and_tables_describe_the_same_model(states, actions, seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(states, 0.5), size=(2, states, actions))
    rows[rng.random(rows.shape) < 0.4] = 0
    rows[..., 0] += 1 - rows.sum(axis=-1)
    mdp = TabularMDP(transitions=rows, rewards=np.zeros((2, states, actions)))
    sparse = mdp.rows
    dense = np.zeros(mdp.transitions.shape)
    for place, r in np.ndenumerate(sparse.numbers):
        assert sparse.steps[place[0]] <= r < sparse.steps[place[0] + 1]
        part = slice(sparse.pointers[r], sparse.pointers[r + 1])
        dense[place][sparse.columns[part]] = sparse.entries[part]
    np.testing.assert_array_equal(dense, mdp.transitions)
    assert (sparse.entries > 0).all()
    table = mdp.tables.transitions
    assert (table[..., -1] == 1).all()
    drawn = np.diff(table, axis=-1, prepend=0)
    assert (drawn[mdp.transitions == 0] == 0).all()
    np.testing.assert_allclose(drawn, mdp.transitions, atol=1e-12)
