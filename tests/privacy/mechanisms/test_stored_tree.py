"""The tree that can be put on a disk: exact without noise, noisy everywhere with it."""

import numpy as np
import pytest
from scipy import stats

from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy.sampling.samplers import SecureSampler, SimulationSampler
from discreet.privacy.trust import Central, Local
from helpers.sampling import sampler

SHAPE = Shape(2, 2, 1)


def plan(episodes, mechanism="tree-gaussian", epsilon=1.0):
    trust = Central(epsilon, 1e-6, mechanism=mechanism)
    return trust.calibrate(SHAPE, schedule="continual", episodes=episodes).stored()


class Silent(SimulationSampler):
    """No noise at all."""

    def discrete_gaussian(self, sigma, size):
        return np.zeros(size, np.int64)


@pytest.mark.parametrize("episodes", [1, 2, 3, 7, 8, 9, 16])
def test_without_noise_every_release_is_the_sum_so_far(episodes):
    made = plan(episodes)
    tree, total = made.open_stored(Silent(np.random.default_rng(0))), np.zeros(made.cells, np.int64)
    assert not tree.release().any()
    for user in range(episodes):
        one = np.random.default_rng(user).integers(0, 5, made.cells)
        tree.add(one)
        total += one
        np.testing.assert_array_equal(tree.release(), total)
    with pytest.raises(InvalidInputError, match="its guarantee covers no more"):
        tree.add(one)


@pytest.mark.parametrize("mechanism", ["tree-gaussian", "tree-laplace"])
def test_releases_have_the_variance_of_the_plan(mechanism):
    made = plan(8, mechanism)
    ends = {k: [] for k in (1, 3, 7, 8)}
    for seed in range(400):
        tree = made.open_stored(sampler(seed))
        for user in range(1, 9):
            tree.add(np.zeros(made.cells, np.int64))
            if user in ends:
                ends[user].append(tree.release())
    for user, values in ends.items():
        expected = made.noise_variance(user)["visits"]
        draws = np.concatenate(values).astype(np.float64)
        assert abs(draws.mean()) < 6 * np.sqrt(expected / len(draws))
        assert draws.var() == pytest.approx(expected, rel=0.12)


def history(users, seed=1, episodes=256, secure=False):
    """Draws A and B of every node that closed, ``[level][node, cells]``, of users without data."""
    if secure:
        pytest.importorskip("opendp")
    made = plan(episodes)
    tree = made.open_stored(SecureSampler() if secure else sampler(seed))
    levels = len(tree.closed)
    opened, closing = [[] for _ in range(levels)], [[] for _ in range(levels)]
    for user in range(1, users + 1):
        before, kept = tree.open.copy(), tree.closed.copy()
        tree.add(np.zeros(made.cells, np.int64))
        for level in range(levels):
            if user % (1 << level) == 0:
                old = kept[level] if level == levels - 1 else 0
                opened[level].append(before[level])
                closing[level].append(tree.closed[level] - old - before[level])
    return made, [np.array(part) for part in opened], [np.array(part) for part in closing]


@pytest.mark.parametrize("secure", [False, True])
def test_every_node_has_two_draws_of_its_own(secure):
    """Past 64 users too: none is zero, halved, reused, shared or given to the next node."""
    made, opened, closing = history(200, secure=secure)
    first, second = np.concatenate(opened), np.concatenate(closing)
    sigma = np.sqrt(made.noise.distribution.variance)
    for draws in (first, second):
        assert ((draws != 0).mean(axis=1) > 0.5).all()  # every single node
        low, high = stats.chi2.ppf([1e-7, 1 - 1e-7], draws.size) / draws.size
        assert low < np.mean((draws / sigma) ** 2) < high
    everything = np.concatenate([first, second])
    assert len(np.unique(everything, axis=0)) == len(everything)
    for one, other in ((first, second), (first[1:], second[:-1]), (first[:, 1:], first[:, :-1])):
        correlation = np.mean(one * other) / sigma**2
        assert abs(correlation) < 5.5 / np.sqrt(one.size)
    for level in range(4):  # from node to node
        for draws in (opened[level], closing[level]):
            correlation = np.mean(draws[1:] * draws[:-1]) / sigma**2
            assert abs(correlation) < 5.5 / np.sqrt(draws[1:].size)


def test_it_goes_on_from_its_state():
    made = plan(20)
    tree, again = made.open_stored(sampler(5)), made.open_stored(sampler(6))
    for _ in range(11):
        tree.add(np.ones(made.cells, np.int64))
    again.restore({name: part.tolist() for name, part in tree.state().items()}, 11)
    np.testing.assert_array_equal(again.release(), tree.release())
    for one in (tree, again):
        one.add(np.ones(made.cells, np.int64))
    np.testing.assert_array_equal(again.open[3], tree.open[3])
    assert (again.closed[2] != tree.closed[2]).any()  # closed with draws of their own
    assert (again.users, set(again.state())) == (12, {"open", "closed"})


@pytest.mark.parametrize("mechanism", ["toeplitz", "tree-honaker", "tree-iid"])
def test_streams_that_mix_their_noise_are_refused(mechanism):
    with pytest.raises(UnsupportedError, match="keeps exact sums in its memory"):
        plan(8, mechanism)


def test_a_local_stream_is_no_tree():
    local = Local(1).calibrate(SHAPE, schedule="continual", episodes=8)
    assert local.stored() is local  # reports are noisy already
    with pytest.raises(UnsupportedError, match="exact sums in its memory"):
        local.open_stored(sampler())
    once = Central(1, 1e-6, mechanism="tree-gaussian").calibrate(
        SHAPE, schedule="continual", episodes=8
    )
    with pytest.raises(UnsupportedError, match=r"two draws per node.*pass mechanism.stored\(\)"):
        once.open_stored(sampler())
