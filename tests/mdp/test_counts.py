"""Counts as rows: the same numbers as dense arrays, in memory for the rows of the support only."""

import tracemalloc

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import RandomMDP, Shape, _kernels, make, uniform_policy
from discreet.mdp._arrays import one_layout
from discreet.mdp.counts import Counts, dense_of, rows_of
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy
from discreet.mdp.simulation import sample_counts, sample_trajectories

SHAPE = Shape(states=3, actions=2, horizon=4)


def dense_arrays(seed):
    rng = np.random.default_rng(seed)
    transitions = rng.integers(0, 9, SHAPE.transitions)
    return transitions, rng.binomial(transitions.sum(axis=-1), 0.5)


def random_mask(seed):
    return np.random.default_rng(seed).random(SHAPE.visits) < 0.5


def same(one, two):
    np.testing.assert_array_equal(one.transitions, two.transitions)
    np.testing.assert_array_equal(one.rewards, two.rewards)
    np.testing.assert_array_equal(one.visits, two.visits)
    assert one.users == two.users
    assert one.shape == two.shape


@pytest.mark.core
def test_dense_arrays_come_back_as_they_were():
    transitions, rewards = dense_arrays(0)
    counts = Counts(50, transitions, rewards)
    np.testing.assert_array_equal(counts.transitions, transitions)
    np.testing.assert_array_equal(counts.rewards, rewards)
    np.testing.assert_array_equal(counts.visits, transitions.sum(axis=-1))
    assert counts.support.all()
    assert counts.shape == SHAPE
    assert np.shares_memory(counts.transitions, transitions)  # no copy when every row is kept


@pytest.mark.core
@pytest.mark.parametrize("seed", range(3))
def test_rows_and_dense_arrays_are_the_same_counts(seed):
    transitions, rewards = dense_arrays(seed)
    support = random_mask(seed)
    transitions[~support], rewards[~support] = 0, 0
    rows = Counts(50, rows_of(transitions, support), rows_of(rewards, support), support)
    same(rows, Counts(50, transitions, rewards))
    np.testing.assert_array_equal(dense_of(rows.row_visits, support), rows.visits)
    assert len(rows.row_transitions) == support.sum()


@pytest.mark.parametrize("seed", range(3))
def test_other_rows_of_the_same_counts(seed):
    transitions, rewards = dense_arrays(seed)
    dense, mask = Counts(50, transitions, rewards), random_mask(seed)
    fewer = dense.at(mask)
    same(fewer, Counts(50, transitions * mask[..., None], rewards * mask))
    same(fewer.at(np.ones_like(mask)), Counts(50, transitions * mask[..., None], rewards * mask))
    other = random_mask(seed + 100)
    same(fewer.at(other), dense.at(mask & other))
    assert fewer.at(mask.copy()) is fewer


@pytest.mark.core
def test_addition_is_dense_addition_whatever_rows_are_kept():
    (first, bits), (second, more) = dense_arrays(1), dense_arrays(2)
    one, two = random_mask(1), random_mask(2)
    total = Counts(50, first, bits).at(one) + Counts(60, second, more).at(two)
    same(
        total,
        Counts(
            110,
            first * one[..., None] + second * two[..., None],
            bits * one + more * two,
        ),
    )
    np.testing.assert_array_equal(total.support, one | two)
    assert (Counts.zeros(SHAPE) + total).users == 110
    assert Counts.zeros(SHAPE, one).transitions.shape == SHAPE.transitions


@pytest.mark.core
def test_wrong_shapes_are_refused():
    transitions, rewards = dense_arrays(0)
    support = random_mask(0)
    rows = rows_of(transitions, support), rows_of(rewards, support)
    with pytest.raises(InvalidInputError, match=r"transitions \(H,S,A,S\)"):
        Counts(1, transitions[0], rewards)
    with pytest.raises(InvalidInputError, match="one row for each"):
        Counts(1, rows[0][1:], rows[1], support)
    with pytest.raises(InvalidInputError, match="one row for each"):
        Counts(1, rows[0], rows[1][1:], support)
    with pytest.raises(InvalidInputError, match="one row for each"):
        Counts(1, transitions, rewards, support)
    with pytest.raises(InvalidInputError, match=r"bool\[H, S, A\]"):
        Counts(1, *rows, support.astype(int))
    with pytest.raises(InvalidInputError, match="Expected counts of Shape"):
        Counts(1, transitions, rewards) + Counts.zeros(Shape(states=3, actions=2, horizon=5))


def test_simulated_batches_keep_what_their_policy_plays():
    mdp = make("RiverSwim", states=4, horizon=6)
    rng = np.random.default_rng(0)
    first, second = (DeterministicPolicy(rng.integers(0, 2, (6, 4))) for _ in range(2))
    for policy in (first, uniform_policy(mdp.shape), MixturePolicy.uniform([first, second])):
        counts = sample_counts(mdp, policy, 1000, rng)
        np.testing.assert_array_equal(counts.support, policy.support(mdp.shape, mdp.start))
        assert counts.row_visits.sum() == 6000
        assert counts.visits.sum(axis=(1, 2)).tolist() == [1000] * 6


def test_simulated_batches_are_those_of_dense_arrays_draw_for_draw():
    mdp = make("RiverSwim", states=4, horizon=6)
    policy = DeterministicPolicy(np.random.default_rng(3).integers(0, 2, (6, 4)))
    rows = sample_counts(mdp, policy, 10**9, np.random.default_rng(4))
    dense = Counts.zeros(mdp.shape)
    numbers = np.arange(dense.support.size).reshape(mdp.shape.visits)
    _kernels.flow(
        (mdp.rows, mdp.initial, mdp.full_rewards),
        one_layout(policy.distribution(mdp.shape)),
        10**9,
        np.random.default_rng(4),
        (numbers, dense.row_transitions, dense.row_rewards),
    )
    same(rows, Counts(10**9, dense.transitions, dense.rewards))


def test_trajectories_count_the_rows_they_visit():
    mdp = make("RiverSwim", states=4, horizon=6)
    episodes = sample_trajectories(mdp, uniform_policy(mdp.shape), 7, np.random.default_rng(1))
    counts = episodes.counts(mdp.shape, np.random.default_rng(2))
    expected = np.zeros(mdp.shape.transitions, np.int64)
    for states, actions in zip(episodes.states, episodes.actions, strict=True):
        for h in range(6):
            expected[h, states[h], actions[h], states[h + 1]] += 1
    np.testing.assert_array_equal(counts.transitions, expected)
    np.testing.assert_array_equal(counts.support, expected.sum(axis=-1) > 0)
    assert episodes[:0].counts(mdp.shape, np.random.default_rng(0)).users == 0


def test_memory_of_a_batch_grows_with_the_played_rows_not_with_the_actions():
    def peak(actions):
        mdp = RandomMDP(states=40, actions=actions, horizon=5, seed=0)
        policy = DeterministicPolicy(np.zeros((5, 40), np.int64))
        sample_counts(mdp, policy, 10, np.random.default_rng(0))  # compilation, cached tables
        tracemalloc.start()
        counts = sample_counts(mdp, policy, 10**6, np.random.default_rng(0))
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert counts.row_transitions.shape == (4 * 40 + int(mdp.start.sum()), 40)
        return used

    rows = 5 * 40 * 40 * 8
    assert peak(2) < 2.5 * rows
    assert peak(20) < 2.5 * rows + 5 * 40 * 20 * 8 * 4  # dense: 20 times the rows
