"""The tree that can be put on a disk: exact without noise, noisy everywhere with it."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.open_tree import MECHANISMS, OpenTree
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import Central, Local
from helpers.sampling import sampler

SHAPE = Shape(2, 2, 1)


def plan(episodes, mechanism="tree-gaussian", epsilon=1.0):
    trust = Central(epsilon, 1e-6, mechanism=mechanism)
    return trust.calibrate(SHAPE, rhythm="stream", episodes=episodes)


class Silent(SimulationSampler):
    """No noise at all."""

    def discrete_gaussian(self, sigma, size):
        return np.zeros(size, np.int64)


@pytest.mark.parametrize("episodes", [1, 2, 3, 7, 8, 9, 16])
def test_without_noise_every_release_is_the_sum_so_far(episodes):
    made = plan(episodes)
    tree, total = OpenTree(made, Silent(np.random.default_rng(0))), np.zeros(made.cells, np.int64)
    assert not tree.release().any()
    for user in range(episodes):
        one = np.random.default_rng(user).integers(0, 5, made.cells)
        tree.add(one)
        total += one
        np.testing.assert_array_equal(tree.release(), total)
    with pytest.raises(InvalidInputError, match="its guarantee covers no more"):
        tree.add(one)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_releases_have_the_variance_of_the_plan(mechanism):
    made = plan(8, mechanism)
    ends = {k: [] for k in (1, 3, 7, 8)}
    for seed in range(400):
        tree = OpenTree(made, sampler(seed))
        for user in range(1, 9):
            tree.add(np.zeros(made.cells, np.int64))
            if user in ends:
                ends[user].append(tree.release())
    for user, values in ends.items():
        expected = made.noise_variance(user)["visits"]
        draws = np.concatenate(values).astype(np.float64)
        assert abs(draws.mean()) < 6 * np.sqrt(expected / len(draws))
        assert draws.var() == pytest.approx(expected, rel=0.12)


def test_every_node_carries_noise_from_its_first_moment():
    """Two trees told the same differ in every node, at every time: no exact sum is kept."""
    one, other = OpenTree(plan(64), sampler(1)), OpenTree(plan(64), sampler(2))
    for _ in range(63):
        for tree in (one, other):
            tree.add(np.ones(plan(64).cells, np.int64))
        differ = (one.open != other.open).mean(axis=1)
        assert (differ > 0.5).all()
    assert ((one.closed != other.closed).mean(axis=1) > 0.5).all()


def test_it_goes_on_from_its_state():
    made = plan(20)
    tree, again = OpenTree(made, sampler(5)), OpenTree(made, sampler(6))
    for _ in range(11):
        tree.add(np.ones(made.cells, np.int64))
    again.restore({name: part.tolist() for name, part in tree.state().items()}, 11)
    np.testing.assert_array_equal(again.release(), tree.release())
    for one in (tree, again):
        one.add(np.ones(made.cells, np.int64))
    np.testing.assert_array_equal(again.closed[2], tree.closed[2])
    assert (again.users, set(again.state())) == (12, {"open", "closed"})


@pytest.mark.parametrize("mechanism", ["toeplitz", "tree-honaker", "tree-iid"])
def test_streams_that_mix_their_noise_are_refused(mechanism):
    with pytest.raises(UnsupportedError, match="keeps exact sums in its memory"):
        OpenTree(plan(8, mechanism), sampler())


def test_a_local_stream_is_no_tree():
    local = Local(1).calibrate(SHAPE, rhythm="stream", episodes=8)
    with pytest.raises(UnsupportedError, match="tree-gaussian"):
        OpenTree(local, sampler())
