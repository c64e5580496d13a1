"""TabularMDP: what it takes, what it refuses, what it derives."""

import dataclasses
import itertools
import pickle

import numpy as np
import pytest

from discreet.errors import DiscreetError, InvalidInputError
from discreet.mdp import (
    RandomMDP,
    RewardMap,
    RiverSwim,
    Shape,
    TabularMDP,
    make,
    relabel_actions,
    solve,
)
from helpers.properties import given, settings, st


def arrays(states=3, actions=2, horizon=4, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "transitions": rng.dirichlet(np.ones(states), size=(horizon, states, actions)),
        "rewards": rng.random((horizon, states, actions)),
    }


@pytest.mark.core
def test_a_stationary_model_is_not_copied_per_step():
    mdp = RiverSwim(states=4, horizon=1000)
    assert mdp.stationary
    assert mdp.transitions.shape == (1000, 4, 2, 4)
    assert mdp.transitions.strides[0] == 0
    assert mdp.step_transitions.shape == (1, 4, 2, 4)
    assert mdp.shape == Shape(states=4, actions=2, horizon=1000)


@pytest.mark.core
def test_the_callers_arrays_are_copied_and_ours_are_read_only():
    given = arrays()
    before = {name: array.copy() for name, array in given.items()}
    mdp = TabularMDP(**given)
    given["transitions"][:] = 0
    np.testing.assert_array_equal(mdp.transitions, before["transitions"])
    for array in (mdp.transitions, mdp.rewards, mdp.initial):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        mdp.horizon = 3


def test_nearly_normalised_rows_are_accepted_without_touching_the_callers():
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.full(1000, 0.5), size=(1000, 1)).astype(np.float32)
    before = rows.copy()
    mdp = TabularMDP(transitions=rows, rewards=np.zeros((1000, 1)), horizon=2)
    np.testing.assert_array_equal(rows, before)
    assert np.abs(mdp.transitions[0].sum(axis=-1) - 1).max() < 1e-12


def test_exact_rows_are_kept_to_the_bit():
    given = arrays(states=50)
    np.testing.assert_array_equal(TabularMDP(**given).transitions, given["transitions"])


def spoil(name, index, value):
    given = arrays()
    given[name][index] = value
    return given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            spoil("transitions", (1, 2, 0), [0.5, 0.5, 0.1]),
            r"sum to 1, got 1\.1 at transitions\[1, 2, 0\]",
        ),
        (
            spoil("transitions", (0, 1, 1), [-0.5, 1.0, 0.5]),
            r"probabilities >= 0, got -0\.5 at transitions\[0, 1, 1, 0\]",
        ),
        (spoil("transitions", (0, 0, 0, 0), np.nan), r"finite transitions, got nan"),
        (spoil("rewards", (3, 1, 0), 1.5), r"rewards in \[0, 1\], got 1\.5 at rewards\[3, 1, 0\]"),
        (spoil("rewards", (0, 0, 0), -0.1), r"rewards in \[0, 1\], got -0\.1"),
        (spoil("rewards", (0, 0, 0), np.inf), r"finite rewards, got inf"),
        ({**arrays(), "transitions": np.ones((3, 2))}, r"got shape \(3, 2\)"),
        ({**arrays(), "transitions": np.ones((4, 3, 2, 2)) / 2}, "same positive length"),
        ({**arrays(), "rewards": np.ones((4, 3, 3))}, "rewards for 3 states and 2 actions"),
        ({**arrays(), "rewards": np.ones(4)}, r"rewards \(H, S, A\) or \(S, A\), got shape"),
        ({**arrays(), "rewards": np.ones((5, 3, 2))}, "one horizon"),
        ({**arrays(), "horizon": 5}, "one horizon, got horizon=5"),
        ({**arrays(), "horizon": 0}, "horizon=0"),
        ({**arrays(), "initial": 3}, "state below 3, got initial=3"),
        ({**arrays(), "initial": -1}, "initial=-1"),
        ({**arrays(), "initial": [0.5, 0.5]}, r"initial of shape \(3,\)"),
        ({**arrays(), "initial": [0.5, 0.5, 0.5]}, "initial to sum to 1, got 1.5"),
        ({**arrays(), "reward_kind": "gaussian"}, "reward_kind"),
        ({**arrays(), "rewards": [["a"] * 2] * 3}, "array of numbers"),
        (
            {"transitions": np.ones((1, 1, 1)), "rewards": [[0.0]]},
            "pass horizon=",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(given, message):
    with pytest.raises(InvalidInputError, match=message) as caught:
        TabularMDP(**given)
    assert isinstance(caught.value, DiscreetError)
    assert "\n" not in str(caught.value)


def test_replace_and_pickle_keep_a_model_stationary_and_read_only():
    mdp = RiverSwim()
    named = dataclasses.replace(mdp, name="other", reward_map=RewardMap(2.0, -1.0))
    assert named.stationary
    copy = pickle.loads(pickle.dumps(named))
    assert copy.stationary
    assert (copy.name, copy.reward_map.original(0.5, horizon=6)) == ("other", -5.0)
    np.testing.assert_array_equal(copy.transitions, mdp.transitions)
    with pytest.raises(ValueError, match="read-only"):
        copy.rewards[0] = 1
    assert len(pickle.dumps(RiverSwim(horizon=1000))) < 2000


def test_stationary_transitions_with_rewards_by_step_are_not_stationary():
    mdp = TabularMDP(transitions=np.ones((1, 1, 1)), rewards=[[[0.0]], [[1.0]]])
    assert mdp.same_transitions
    assert not mdp.stationary
    assert mdp.horizon == 2


def test_repr_is_short():
    assert (
        repr(RiverSwim()) == "TabularMDP('RiverSwim', states=4, actions=2, horizon=6, stationary)"
    )


@settings(max_examples=30, deadline=None)
@given(states=st.integers(1, 5), actions=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_sparse_rows_and_tables_describe_the_same_model(states, actions, seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(states, 0.5), size=(2, states, actions))
    rows[rng.random(rows.shape) < 0.4] = 0
    rows[..., 0] += 1 - rows.sum(axis=-1)
    mdp = TabularMDP(transitions=rows, rewards=np.zeros((2, states, actions)))
    sparse, dense = mdp.rows, np.zeros((2 * states * actions, states))
    for row, (first, stop) in enumerate(itertools.pairwise(sparse.pointers.tolist())):
        dense[row, sparse.columns[first:stop]] = sparse.entries[first:stop]
    np.testing.assert_array_equal(dense, mdp.transitions.reshape(dense.shape))
    assert (sparse.entries > 0).all()
    table = mdp.tables.transitions
    assert (table[..., -1] == 1).all()
    drawn = np.diff(table, axis=-1, prepend=0)
    assert (drawn[mdp.transitions == 0] == 0).all()
    np.testing.assert_allclose(drawn, mdp.transitions, atol=1e-12)


def test_relabelling_a_time_inhomogeneous_mdp_differs_by_step():
    plain, relabelled = make("DemandResponse"), make("DemandResponse", relabel=0)
    assert not plain.stationary
    moved = (plain.transitions != relabelled.transitions).any(axis=(2, 3))
    assert (moved != moved[0]).any()


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_relabelling_seed_is_a_count(seed):
    with pytest.raises(InvalidInputError, match="relabel"):
        make("RiverSwim", relabel=seed)


def test_no_seed_is_the_same_object():
    mdp = make("RiverSwim")
    assert relabel_actions(mdp, None) is mdp


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_every_state_keeps_its_actions_under_other_names(seed, stationary):
    mdp = RandomMDP(states=3, actions=4, horizon=2, stationary=stationary)
    renamed = relabel_actions(mdp, seed)
    for h in range(2):
        for s in range(3):
            rows = np.column_stack([mdp.rewards[h, s], mdp.transitions[h, s]])
            other = np.column_stack([renamed.rewards[h, s], renamed.transitions[h, s]])
            assert sorted(map(tuple, rows)) == sorted(map(tuple, other))
    assert solve(renamed).value == pytest.approx(solve(mdp).value)
    assert (renamed.name, renamed.reward_kind) == (mdp.name, mdp.reward_kind)
