"""How far a user moves a mixed tree: against dense algebra, the real code path, and bit by bit."""

import math

import numpy as np
import pytest

from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms._kernels import factored_prefix, honaker_prefix, weighted
from discreet.privacy.mechanisms.noise import Gaussian, Laplace
from discreet.privacy.mechanisms.tree import (
    WEIGHT_BITS,
    HonakerNoise,
    PaddedTreeNoise,
    averaging,
    dyadic_weights,
    own_weights,
    padded_squares,
    prefix_levels,
)
from discreet.privacy.trust import Central
from helpers.auditing import additive

TINY = Shape(states=1, actions=2, horizon=1)


def spans(k, levels):
    """The dyadic intervals (level, index) of the prefix of k leaves."""
    found, start = [], 0
    for level in sorted(prefix_levels(k, levels), reverse=True):
        found.append((level, start >> level))
        start += 1 << level
    return found


def squares(mixing):
    """The worst user's squared distance from the covariance of all releases."""
    inverse = np.linalg.inv(mixing @ mixing.T)
    return max(inverse[user:, user:].sum() for user in range(len(mixing)))


def honaker_matrix(levels):
    """Releases by all nodes, straight from Honaker's recursion."""
    leaves, own = 1 << levels, own_weights(levels)
    names = [(level, i) for level in range(levels) for i in range(leaves >> level)]
    estimate = {}
    for column, (level, i) in enumerate(names):
        row = np.zeros(len(names))
        row[column] = own[level]
        if level:
            below = estimate[level - 1, 2 * i] + estimate[level - 1, 2 * i + 1]
            row += (1 - own[level]) * below
        estimate[level, i] = row
    return np.array([sum(estimate[n] for n in spans(k + 1, levels)) for k in range(leaves)])


def padded_matrix(levels, padded):
    """Releases by nodes (all dyadic intervals) and by one padding each."""
    leaves = 1 << levels
    names = {n: c for c, n in enumerate({n for k in range(leaves) for n in spans(k + 1, levels)})}
    mixing = np.zeros((leaves, len(names) + leaves))
    for k in range(leaves):
        used = spans(k + 1, levels)
        mixing[k, [names[n] for n in used]] = 1
        mixing[k, len(names) + k] = math.sqrt(padded - len(used))
    return mixing


@pytest.mark.parametrize("levels", [1, 2, 3, 5, 7])
def test_the_averaged_tree_against_dense_algebra(levels):
    """Up to the rounding of weights; the rounded mechanism itself is audited below."""
    assert averaging(levels).squares == pytest.approx(squares(honaker_matrix(levels)), rel=1e-3)
    assert np.allclose(averaging(levels).variances, own_weights(levels), rtol=1e-3)


@pytest.mark.parametrize("levels", [2, 3, 4, 6, 8])
def test_the_padded_tree_against_dense_algebra(levels):
    exact = squares(padded_matrix(levels, levels))
    bound = padded_squares(levels, levels)
    assert bound >= exact * (1 - 1e-9)
    if levels >= 4:
        assert bound == pytest.approx(exact, rel=1e-9)


def test_nothing_is_gained_by_a_single_release():
    assert averaging(1).squares == pytest.approx(1)
    assert padded_squares(1, 1) == pytest.approx(1)


@pytest.mark.core
@pytest.mark.parametrize(("name", "before"), [("tree-honaker", 0.95), ("tree-iid", 0.75)])
def test_the_running_code_delivers_what_is_guaranteed_and_wastes_little(name, before):
    """The exact epsilon, from impulses through the real stream, was ``before``; now it is one."""
    mechanism = Central(1, 1e-6, mechanism=name).calibrate_stream(
        TINY, statistics=("visits",), episodes=16
    )
    found = additive(mechanism).epsilon(1e-6)
    assert max(0.99, before) < found <= 1 + 1e-6


@pytest.mark.parametrize("weight", [1, 1365, 2048, 4095])
def test_rounding_commutes_with_adding_whole_numbers(weight):
    """Odd shifts at ties included, where rounding to even fails."""
    rng = np.random.default_rng(0)
    for value in [*range(-9000, 9000, 7), *rng.integers(-(1 << 58), 1 << 58, 200).tolist()]:
        expected = (weight * value + 2048) // 4096  # Python's integers have no limit
        assert weighted(weight, value) == expected
        assert weighted(weight, value + (3 << WEIGHT_BITS)) == expected + 3 * weight


def encoded_counts(users, levels, bits):
    """C·x in grid steps, from the definition: what each closing node takes of each user."""
    table = averaging(levels)
    out = np.zeros(len(users), np.int64)
    for time in range(1, len(users) + 1):
        level = min((time & -time).bit_length() - 1, levels - 1)
        start = time - (1 << level)
        for user in range(start, time):
            at, left = level, time - 1 - user  # 0 for the last leaf of the right spine
            while at and not left >> (at - 1) & 1:  # the user stays on the spine
                at -= 1
            moved = (1 << WEIGHT_BITS) - (int(table.weights[level, at - 1]) if at else 0)
            out[time - 1] += users[user] * moved << bits - WEIGHT_BITS
    return out


@pytest.mark.parametrize("episodes", [1, 2, 3, 8, 13, 16])
def test_the_factored_tree_is_a_function_of_encoded_counts_plus_noise(episodes):
    """Same noise, counts added before decoding: every release rises by exactly the true prefix."""
    levels, bits = max(1, (episodes - 1).bit_length()), 16
    rng = np.random.default_rng(episodes)
    users = rng.integers(0, 9, episodes)
    noise = rng.integers(-(1 << 30), 1 << 30, episodes)
    outs = []
    for fresh in (noise, noise + encoded_counts(users, levels, bits)):
        out = np.empty((episodes, 1), np.int64)
        state = np.zeros((levels, 1), np.int64), np.zeros(1, np.int64)
        factored_prefix(fresh[:, None], 0, averaging(levels).weights, *state, out)
        outs.append(out[:, 0])
    assert np.array_equal(outs[1] - outs[0], np.cumsum(users) << bits)


@pytest.mark.parametrize("episodes", [1, 2, 7, 8, 16])
def test_the_averaged_tree_is_a_function_of_noisy_nodes(episodes):
    levels = max(1, (episodes - 1).bit_length())
    rng = np.random.default_rng(episodes)
    users = rng.integers(0, 9, episodes)
    counts = []
    for time in range(1, episodes + 1):
        top = min((time & -time).bit_length() - 1, levels - 1)
        counts += [users[time - (1 << level) : time].sum() for level in range(top + 1)]
    noise = rng.integers(-(1 << 30), 1 << 30, len(counts))
    outs = []
    for fresh in (noise, noise + np.array(counts)):
        out = np.empty((episodes, 1), np.int64)
        state = np.zeros((levels, 1), np.int64), np.zeros(1, np.int64)
        honaker_prefix(fresh[:, None], 0, dyadic_weights(levels), *state, out)
        outs.append(out[:, 0])
    assert np.array_equal(outs[1] - outs[0], np.cumsum(users) << WEIGHT_BITS)


@pytest.mark.parametrize(
    "noise",
    [
        HonakerNoise(episodes=64, distribution=Gaussian(7.0)),
        HonakerNoise(episodes=64, distribution=Laplace(7.0)),
        PaddedTreeNoise(episodes=64, distribution=Gaussian(7.0)),
    ],
)
def test_releases_are_whole_numbers_without_a_drift(noise):
    from discreet.privacy.sampling.samplers import SimulationSampler

    block = noise.start(20_000, SimulationSampler(np.random.default_rng(1))).block(64)
    assert np.array_equal(block, np.floor(block))
    largest = math.sqrt(max(noise.variance(k) for k in range(1, 65)) / 20_000)
    assert np.abs(block.mean(axis=1)).max() < 5.5 * largest
