"""Trees: golden noise, node by node structure, and the bugs that would break the guarantee."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms._kernels import tree_prefix
from discreet.privacy.mechanisms.noise import Laplace
from discreet.privacy.mechanisms.tree import TreeNoise, TreeShape, binary_shape, signed_shape
from discreet.privacy.trust import Central
from helpers.auditing import additive
from helpers.sampling import sampler

SHAPE = Shape(states=4, actions=2, horizon=6)
TREES = ("tree-laplace", "tree-signed")


def plan(name, episodes, epsilon=1, delta=0.0, shape=SHAPE, **options):
    trust = Central(epsilon, delta, mechanism=name)
    return trust.calibrate_stream(shape, episodes=episodes, **options)


@pytest.mark.core
@pytest.mark.parametrize(
    ("name", "episodes", "golden"),
    [
        ("tree-laplace", 100, 873),
        ("tree-laplace", 20_000, 2857),
        ("tree-laplace", 1_000_000, 4438),
        ("tree-signed", 100, 367),
        ("tree-signed", 1_000, 648),
        ("tree-signed", 20_000, 1058),
        ("tree-signed", 1_000_000, 1689),
    ],
)
def test_golden_worst_time_noise(name, episodes, golden):
    made = plan(name, episodes)
    worst = made.worst_time(episodes)
    std = math.sqrt(made.noise_variance(worst)["transitions"])
    assert std == pytest.approx(golden, rel=0.001)
    near = range(max(1, worst - 300), min(episodes, worst + 300))
    assert all(made.noise_variance(k)["visits"] <= std**2 * (1 + 1e-9) for k in near)


def test_signed_digits_are_the_default_without_a_delta():
    assert plan("auto", 300).name == "tree-signed"


SHAPES = [(1, 2), (4, 2), (1, 5), (2, 3), (2, 4), (3, 3), (3, 4), (2, 7), (4, 3), (3, 5)]


def matrix(shape, episodes):
    """What each draw adds to each release, read off the compiled loop."""
    many = shape.drawn(episodes)
    out = np.zeros((episodes, many))
    state = np.zeros((*shape, many), np.int64), np.zeros(many, np.int64)
    tree_prefix(np.eye(many, dtype=np.int64), 0, *state, out)
    return out


def structure(shape, episodes):
    """The signed nodes of every time and the users of every node, from digits alone.

    Nodes in the order of their first use: at one time the lowest level first, then from the left.
    """
    nodes, used = {}, []
    for time in range(1, episodes + 1):
        place, now = 0, {}
        for level in range(shape.levels - 1, -1, -1):
            size, digit = shape.base**level, shape.digits(time)[level]
            start, stop = sorted((place // size, place // size + digit))
            now |= {(level, k): 1 if digit > 0 else -1 for k in range(start, stop)}
            place += digit * size
        for node in sorted(now):
            nodes.setdefault(node, len(nodes))
        used.append(now)
    signed, users = np.zeros((episodes, len(nodes))), np.zeros((len(nodes), episodes))
    for row, now in zip(signed, used, strict=True):
        for node, sign in now.items():
            row[nodes[node]] = sign
    for (level, k), row in nodes.items():
        users[row, k * shape.base**level : (k + 1) * shape.base**level] = 1
    return signed, users, [level for level, _ in nodes]


@pytest.mark.core
@pytest.mark.parametrize("shape", [TreeShape(*one) for one in SHAPES], ids=str)
@pytest.mark.parametrize("episodes", [1, 2, 3, 17, 64, 130])
def test_the_loop_is_a_factorisation_with_every_user_in_one_node_of_a_level(shape, episodes):
    """S·R = A, exactly, and no column of R has more ones than levels: the proof's two facts."""
    signed, users, levels = structure(shape, episodes)
    assert np.array_equal(matrix(shape, episodes), signed)  # each node drawn once, and kept
    assert np.array_equal(signed @ users, np.tril(np.ones((episodes, episodes))))
    for level in range(shape.levels):
        assert users[np.array(levels) == level].sum(axis=0).max(initial=0) <= 1
    assert np.array_equal(np.abs(signed).sum(axis=1), shape.terms(np.arange(1, episodes + 1)))


@pytest.mark.parametrize("shape", [TreeShape(*one) for one in SHAPES], ids=str)
def test_the_worst_time_is_that_of_brute_force(shape):
    terms = shape.terms(np.arange(1, 301))
    for users in range(1, 301):
        worst = shape.worst_time(users)
        assert 1 <= worst <= users and terms[worst - 1] == terms[:users].max()


@pytest.mark.parametrize("episodes", [1, 2, 5, 16, 40, 100, 700])
def test_no_other_shape_has_less_noise(episodes):
    def cost(shape):
        return shape.levels**2 * shape.terms(np.arange(1, episodes + 1)).max()

    others = [TreeShape(n, base) for n in range(1, 7) for base in range(2, 60)]
    assert cost(signed_shape(episodes)) == min(map(cost, others))


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("episodes", [4, 30, 64])
def test_adaptive_streams_lose_no_more_than_epsilon_at_any_output(name, episodes):
    """P(o) is a product over nodes of the one z behind o, and so is that of each neighbour.

    Users respond to each release by a rule of their own, with and without user i moved.
    """
    noise = plan(name, episodes, shape=Shape(1, 2, 1), statistics=("visits",)).noise
    signed, users, _ = structure(noise.shape, episodes)
    rng = np.random.default_rng(0)
    z = noise.distribution.draw(sampler(2), signed.shape[1])
    for who in rng.integers(0, episodes, 6):
        worlds = []
        for moved in (0, 1):
            x, out = np.zeros(episodes, np.int64), np.zeros(episodes, np.int64)
            shift = -users[:, who].astype(np.int64) * moved
            for k in range(episodes):
                x[k] = moved if k == who else int(out[k - 1]) % 3 == 0  # responds to the last one
                out[k] = x[: k + 1].sum() + signed[k] @ (z + shift)
            worlds.append(out)
            lost = np.abs(shift).sum() / noise.distribution.scale
            assert lost <= 1 / 2 + 1e-12  # one of the two counters of a move
        assert np.array_equal(*worlds)  # the same outputs, from noise that moved in L nodes


@pytest.mark.core
@pytest.mark.parametrize("name", TREES)
def test_the_running_code_delivers_what_is_guaranteed_and_wastes_nothing(name):
    """The exact epsilon from the real stream, by a linear program."""
    mechanism = plan(name, 40, shape=Shape(1, 2, 1), statistics=("visits",))
    assert 0.97 < additive(mechanism).epsilon(0.0) <= 1 + 1e-6


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("episodes", [1, 2, 5, 64])
def test_block_boundaries_do_not_change_values(name, episodes):
    calibrated = plan(name, episodes)
    whole = calibrated.open(sampler()).noise_block(episodes)
    release = calibrated.open(sampler())
    parts = []
    while release.episode < episodes:
        parts.append(release.noise_block(min(1 + release.episode % 3, episodes - release.episode)))
    assert whole.shape == (episodes, calibrated.cells)
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("shape", [binary_shape(300), signed_shape(300)], ids=str)
def test_pieces_of_the_internal_buffer_join_seamlessly(shape):
    """More values than one internal piece: the tree state must carry over."""
    noise = TreeNoise(episodes=300, distribution=Laplace(3.0), shape=shape)
    block = noise.start(1000, sampler()).block(300)
    expected = shape.terms(np.arange(1, 301)) * noise.distribution.variance
    assert np.abs(block.var(axis=1) / expected - 1).max() < 0.5
    change = np.diff(block, axis=0).var(axis=1)
    signed, _, _ = structure(shape, 300)
    differ = np.abs(np.diff(signed, axis=0)).sum(axis=1) * noise.distribution.variance
    assert np.abs(change / differ - 1).max() < 0.5
    assert np.array_equal(block, block.round())


def tree(episodes, scale=20.0, shape=None, **options):
    shape = shape or binary_shape(episodes)
    return TreeNoise(episodes=episodes, distribution=Laplace(scale), shape=shape, **options)


CASES = [
    tree(13),
    tree(16),
    tree(13, padded=True),
    tree(2, padded=True),
    tree(30, shape=TreeShape(2, 5)),
    tree(30, shape=TreeShape(3, 4)),
]


@pytest.mark.parametrize("noise", CASES, ids=str)
def test_noise_has_the_stated_variance_at_every_time(noise):
    """Fails if noise is halved, shared between cells or mis-scaled."""
    cells = 40_000
    block = noise.start(cells, sampler(3)).block(noise.episodes)
    expected = np.array([noise.variance(k) for k in range(1, noise.episodes + 1)])
    # Kurtosis of a Laplace draw is 6: six standard errors of a sample variance.
    assert np.abs(block.var(axis=1) / expected - 1).max() < 6 * math.sqrt(5 / cells)
    shared = np.corrcoef(block[:, : cells // 2].ravel(), block[:, cells // 2 :].ravel())[0, 1]
    assert abs(shared) < 6 / math.sqrt(cells)


@pytest.mark.parametrize("noise", [one for one in CASES if one.episodes > 2], ids=str)
def test_noise_is_not_redrawn(noise):
    """Releases that share a node share its noise: Var(S_3 - S_2) is that of the nodes that differ.

    Fresh noise at every release would give Var(S_3) + Var(S_2).
    """
    block = noise.start(40_000, sampler(4)).block(3)
    signed, _, _ = structure(noise.shape, 3)
    differ = np.abs(signed[2] - signed[1]).sum()
    if noise.padded:  # the fresh padding of both times
        differ += 2 * noise.most - np.abs(signed[1:]).sum()
    assert (block[2] - block[1]).var() == pytest.approx(
        differ * noise.distribution.variance, rel=0.05
    )


@pytest.mark.parametrize("noise", CASES, ids=str)
@pytest.mark.parametrize("failure", [0.3, 0.01])
def test_error_bounds_hold_and_are_not_silly(noise, failure):
    block = np.abs(noise.start(40_000, sampler(5)).block(noise.episodes))
    for k in range(1, noise.episodes + 1):
        bound = noise.bound(k, failure)
        slack = 6 * math.sqrt(failure / 40_000)
        assert (block[k - 1] > bound).mean() <= failure + slack
        assert bound <= 6 * math.sqrt(noise.variance(k)) * math.log(2 / failure)
    assert np.allclose(
        noise.bounds(failure), [noise.bound(k, failure) for k in range(1, noise.episodes + 1)]
    )


def test_padding_only_adds_terms():
    plain, padded = tree(13), replace(tree(13), padded=True)
    assert padded.terms(np.arange(1, 14)).tolist() == [4] * 13
    assert plain.terms(np.arange(1, 14)).max() <= 4


@pytest.mark.core
@pytest.mark.parametrize("name", TREES)
def test_add_releases_true_counts_plus_the_same_noise(name):
    calibrated = plan(name, 5)
    noise = calibrated.open(sampler(9)).noise_block(5)
    stream = calibrated.open(sampler(9))
    transitions = np.zeros(SHAPE.transitions, np.int64)
    transitions[:, 0, 1, 2] = 1
    rewards = np.zeros(SHAPE.visits, np.int64)
    rewards[2, 0, 1] = 1
    user = Counts(1, transitions, rewards)
    for k in range(5):
        private = stream.add(user)
        flat = np.concatenate([private.transitions.ravel(), private.visits.ravel()])
        true = (k + 1) * np.concatenate([user.transitions.ravel(), user.visits.ravel()])
        assert np.allclose(flat - true, noise[k, : flat.size])
        assert private.users == k + 1
        assert private.guarantee.simulated
    with pytest.raises(InvalidInputError, match="longer stream"):
        stream.add(user)


@pytest.mark.parametrize("name", TREES)
def test_the_guarantee_is_pure_and_says_so(name):
    made = plan(name, 100, delta=1e-6)
    assert str(made.guarantee) == "(1, 0)-JDP, one user's whole episode, replace-one"
    scale = Fraction(made.noise.distribution.scale)
    assert made.noise.shape.levels * made.sensitivity.l1 <= scale


def test_stationary_counters_are_pooled_and_laplace_keeps_its_scale():
    for name in TREES:
        pooled, steps = plan(name, 64, stationary=True), plan(name, 64)
        assert pooled.cells * SHAPE.horizon == steps.cells
        assert pooled.noise.distribution == steps.noise.distribution
