"""Trees: golden noise, node by node structure, and the bugs that would break the guarantee."""

import math

import numpy as np
import pytest

from discreet.errors import CalibrationError, InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import gaussian_delta, grid_delta
from discreet.privacy.mechanisms.noise import Gaussian, Laplace
from discreet.privacy.mechanisms.tree import (
    HonakerNoise,
    PaddedTreeNoise,
    TreeNoise,
    own_weights,
    prefix_levels,
    tree_levels,
)
from discreet.privacy.trust import Central
from helpers.sampling import sampler

SHAPE = Shape(states=4, actions=2, horizon=6)
TREES = ("tree-laplace", "tree-gaussian", "tree-honaker", "tree-iid")


def plan(name, episodes, epsilon=1, delta=1e-6, shape=SHAPE, **options):
    trust = Central(epsilon, delta, mechanism=name)
    return trust.calibrate_stream(shape, episodes=episodes, **options)


@pytest.mark.core
@pytest.mark.parametrize(
    ("name", "episodes", "worst", "golden"),
    [
        ("tree-laplace", 20_000, 2**14 - 1, 2857),
        ("tree-laplace", 1_000_000, 2**19 - 1, 4438),
        ("tree-gaussian", 20_000, 2**14 - 1, 367),
        ("tree-gaussian", 1_000_000, 2**19 - 1, 494),
        ("tree-honaker", 20_000, 2**14 - 1, 253.7),
        ("tree-honaker", 1_000_000, 2**19 - 1, 335.4),
        ("tree-iid", 20_000, 2**14 - 1, 295.3),
        ("tree-iid", 1_000_000, 2**19 - 1, 411.8),
    ],
)
def test_golden_worst_time_noise(name, episodes, worst, golden):
    calibrated = plan(name, episodes)
    std = math.sqrt(calibrated.noise_variance(worst)["transitions"])
    assert std == pytest.approx(golden, rel=0.01)
    near = range(max(1, worst - 600), min(episodes, worst + 600))
    assert all(calibrated.noise_variance(k)["visits"] <= std**2 * (1 + 1e-9) for k in near)


class OneNode:
    """A sampler that gives noise to a single node and none to all others: shows who uses it."""

    secure = False

    def __init__(self, hot):
        self.hot, self.seen = hot, 0

    def discrete_laplace(self, scale, size):
        rows = size[0]
        out = np.zeros(size, np.int64)
        for row in range(rows):
            out[row] = self.seen == self.hot
            self.seen += 1
        return out

    def laplace_sum(self, scale, users, size):
        return np.zeros(size, np.int64)


@pytest.mark.parametrize("episodes", [1, 2, 3, 4, 7, 8, 9])
def test_every_release_sums_its_dyadic_intervals_with_persistent_noise(episodes):
    """Node drawn at time t covers the dyadic interval that closes at t; kept while it is used."""
    levels = tree_levels(episodes)
    noise = TreeNoise(episodes=episodes, distribution=Laplace(1.0))
    uses = np.zeros((episodes, episodes))  # [node, release]
    for node in range(episodes):
        uses[node] = noise.start(1, OneNode(node)).block(episodes)[:, 0]
    for k in range(1, episodes + 1):
        spans, stop = [], 0
        for level in sorted(prefix_levels(k, levels), reverse=True):
            spans.append(stop + 2**level)  # an interval's node is drawn when it closes
            stop += 2**level
        assert stop == k
        assert uses[:, k - 1].nonzero()[0].tolist() == [s - 1 for s in spans]
    # Replace one user: she lies in at most L nodes that are ever released.
    for user in range(episodes):
        touched = 0
        for node in range(episodes):
            level = min((node + 1 & -(node + 1)).bit_length() - 1, levels - 1)
            touched += node + 1 - 2**level <= user <= node
        assert touched <= levels


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


def test_pieces_of_the_internal_buffer_join_seamlessly():
    """More values than one internal piece: the tree state must carry over."""
    noise = TreeNoise(episodes=300, distribution=Laplace(3.0))
    block = noise.start(1000, sampler()).block(300)
    jumps = np.diff(block, axis=0, prepend=0)
    # From an even time k to k + 1 exactly one fresh leaf is added, at every k.
    fresh = jumps[0::2]
    assert fresh.var() == pytest.approx(noise.distribution.variance, rel=0.02)
    assert np.array_equal(block, block.round())


CASES = [
    TreeNoise(episodes=13, distribution=Laplace(20.0)),
    TreeNoise(episodes=16, distribution=Gaussian(9.0)),
    HonakerNoise(episodes=16, distribution=Gaussian(9.0)),
    HonakerNoise(episodes=13, distribution=Laplace(20.0)),
    PaddedTreeNoise(episodes=13, distribution=Laplace(20.0)),
    PaddedTreeNoise(episodes=2, distribution=Gaussian(9.0)),
    PaddedTreeNoise(episodes=16, distribution=Gaussian(9.0), bits=24),
]


@pytest.mark.parametrize("noise", CASES)
def test_noise_has_the_stated_variance_at_every_time(noise):
    """Fails if noise is halved, shared between cells or mis-scaled."""
    cells = 40_000
    block = noise.start(cells, sampler(3)).block(noise.episodes)
    expected = np.array([noise.variance(k) for k in range(1, noise.episodes + 1)])
    # Kurtosis of a Laplace draw is 6: six standard errors of a sample variance.
    assert np.abs(block.var(axis=1) / expected - 1).max() < 6 * math.sqrt(5 / cells)
    shared = np.corrcoef(block[:, : cells // 2].ravel(), block[:, cells // 2 :].ravel())[0, 1]
    assert abs(shared) < 6 / math.sqrt(cells)


@pytest.mark.parametrize("noise", CASES)
def test_noise_is_not_redrawn(noise):
    """Releases that share a node share its noise: Var(S_k - S_j) is that of the nodes that differ.

    Fresh noise at every release would give Var(S_3) + Var(S_2).
    """
    if noise.episodes < 3:
        return
    block = noise.start(40_000, sampler(4)).block(3)
    leaf = (block[2] - block[1]).var()
    extra = 0.0
    if isinstance(noise, PaddedTreeNoise):  # the fresh padding of both times
        extra = (2 * noise.padded - 3) * noise.distribution.variance
    if isinstance(noise.distribution, Gaussian) and type(noise) is not TreeNoise:
        extra += 1 / 6  # both are rounded
    assert leaf == pytest.approx(noise.distribution.variance + extra, rel=0.05)


def test_honaker_weights_are_inverse_variance_weights():
    variance = 1.0
    for level, own in enumerate(own_weights(12)):
        if level:
            variance = 1 / (1 + 1 / (2 * variance))
        assert own == pytest.approx(variance)


@pytest.mark.parametrize("noise", CASES)
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


def test_the_guarantee_says_what_is_delivered():
    assert plan("tree-laplace", 100).guarantee.delta == 0
    assert plan("tree-gaussian", 100).guarantee.delta == 1e-6
    assert str(plan("tree-laplace", 100).guarantee) == (
        "(1, 0)-JDP, one user's whole episode, replace-one"
    )
    with pytest.raises(CalibrationError, match="delta > 0"):
        plan("tree-gaussian", 100, delta=0)


def test_stationary_counters_are_pooled_and_laplace_keeps_its_scale():
    pooled, steps = plan("tree-laplace", 64, stationary=True), plan("tree-laplace", 64)
    assert pooled.cells * SHAPE.horizon == steps.cells
    assert pooled.noise.distribution == steps.noise.distribution
    ratio = (
        plan("tree-gaussian", 64, stationary=True).noise.distribution.sigma
        / plan("tree-gaussian", 64).noise.distribution.sigma
    )
    assert ratio == pytest.approx(math.sqrt(SHAPE.horizon), rel=1e-3)  # units pile up


@pytest.mark.parametrize("name", ["tree-honaker", "tree-iid"])
def test_noise_that_does_not_fit_into_integers_is_refused(name):
    with pytest.raises(CalibrationError, match="larger epsilon"):
        plan(name, 20_000, epsilon=1e-9, delta=1e-15)


def test_very_large_epsilon_falls_back_to_concentrated_privacy():
    """No grid is fine enough: sigma is a little larger than the analytic one, and still below L."""
    noise = plan("tree-honaker", 20_000, epsilon=60).noise
    full = plan("tree-gaussian", 20_000, epsilon=60).noise.distribution.sigma
    rho = 36 * 12.841 / (2 * noise.distribution.sigma**2)
    assert rho + 2 * math.sqrt(rho * math.log(1e6)) == pytest.approx(60, rel=1e-3)
    assert noise.distribution.sigma < full


@pytest.mark.parametrize(("name", "epsilon"), [("tree-honaker", 10.0), ("tree-iid", 5.0)])
def test_the_cost_of_the_grid_of_a_tree_is_set_aside(name, epsilon):
    """At these epsilons it is felt: the Gaussian alone must stay below delta by as much."""
    noise = plan(name, 20_000, epsilon=epsilon).noise
    unit, spread, draws = noise.revealed(noise.episodes, noise.bits)
    lost = grid_delta(noise.steps(spread).sigma, 6 * SHAPE.horizon * draws, epsilon)
    assert 1e-10 < lost < 1e-9
    alone = gaussian_delta(noise.distribution.sigma, math.sqrt(6 * SHAPE.horizon) * unit, epsilon)
    assert alone + lost <= 1e-6
    assert alone + 2 * lost > 1e-6
