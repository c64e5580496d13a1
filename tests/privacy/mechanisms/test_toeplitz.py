"""The square-root Toeplitz stream: golden noise, exact grid, consistency of all routes."""

import math

import numpy as np
import pytest

from discreet.errors import CalibrationError, InvalidInputError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.calibration.closed_forms import gaussian_delta
from discreet.privacy.mechanisms.cumulative import Reach
from discreet.privacy.mechanisms.toeplitz import factors, grid_delta
from discreet.privacy.noise import SimulationSampler
from discreet.privacy.trust import Central

SHAPE = Shape(states=4, actions=2, horizon=6)
TINY = Shape(states=2, actions=1, horizon=1)


def sampler(seed=0):
    return SimulationSampler(np.random.default_rng(seed))


def plan(episodes, epsilon=1, delta=1e-6, shape=SHAPE, **options):
    trust = Central(epsilon, delta, mechanism="toeplitz")
    return trust.calibrate(shape, rhythm="stream", episodes=episodes, **options)


def square_root(episodes):
    j = np.arange(1, episodes)
    return np.concatenate([[1.0], np.cumprod((2 * j - 1) / (2 * j))])


@pytest.mark.core
@pytest.mark.parametrize(("episodes", "golden"), [(20_000, 107), (1_000_000, 138)])
def test_golden_worst_time_noise(episodes, golden):
    calibrated = plan(episodes)
    std = math.sqrt(calibrated.noise_variance(episodes)["transitions"])
    assert std == pytest.approx(golden, rel=0.01)
    assert calibrated.noise.variance(episodes - 1) < calibrated.noise.variance(episodes)


def test_it_is_the_default_of_central_streams_with_delta():
    assert Central(1, 1e-6).resolve("stream") == "toeplitz"
    assert Central(1).resolve("stream") == "tree-laplace"


@pytest.mark.parametrize("episodes", [1, 2, 3, 17, 1000, 20_000])
@pytest.mark.parametrize("bits", [24, 40])
def test_factors(episodes, bits):
    f = factors(episodes, bits)
    encoder = np.ldexp(f.encoder().astype(float), -bits)
    decoder = (f.weights * f.decays ** np.arange(episodes)[:, None]).sum(axis=1)
    size = min(episodes, 1000)
    product = np.convolve(decoder[:size], encoder[:size])[:size]
    assert np.abs(product - 1).max() <= 2.0**-bits  # B·C = A up to the grid
    assert f.squares == pytest.approx((encoder**2).sum(), rel=1e-9)
    assert f.squares >= (encoder**2).sum() * (1 - 1e-13)
    assert f.decoder_squares(episodes) == pytest.approx((decoder**2).sum(), rel=1e-9)
    best = (square_root(episodes) ** 2).sum()
    assert 1 <= math.sqrt(f.squares * f.decoder_squares(episodes)) / best * (1 + 1e-9) < 1.0005


def test_the_sensitivity_is_that_of_the_rounded_encoder():
    """Recompute the guarantee from the matrix itself, user by user, statistic by statistic."""
    episodes = 50
    calibrated = plan(episodes)
    noise = calibrated.noise
    encoder = np.ldexp(noise.factors.encoder().astype(float), -noise.bits)
    columns = [np.linalg.norm(encoder[: episodes - user]) for user in range(episodes)]
    l2 = max(columns) * math.sqrt(6 * SHAPE.horizon)
    lost = grid_delta(noise.steps, 6 * SHAPE.horizon * episodes, 1.0)
    delta = gaussian_delta(noise.sigma, l2, 1.0) + lost
    assert 0.98e-6 < delta <= 1e-6  # halved noise or sensitivity H would be far off
    assert gaussian_delta(noise.sigma / 2, l2, 1.0) > 1e-3
    assert Reach.of(SHAPE, calibrated.statistics, stationary=False).l1 == 36


def test_total_variation_of_discrete_and_rounded_gaussians():
    from scipy.stats import norm

    for steps in (2.0, 5.0, 30.0):
        n = np.arange(-40 * int(steps), 40 * int(steps) + 1)
        discrete = np.exp(-0.5 * (n / steps) ** 2)
        discrete /= discrete.sum()
        rounded = norm.cdf((n + 0.5) / steps) - norm.cdf((n - 0.5) / steps)
        assert np.abs(discrete - rounded).sum() / 2 <= 1 / (8 * steps**2)
    assert grid_delta(1.0, 1, 1.0) == math.inf


@pytest.mark.parametrize("epsilon", [0.01, 3, 20, 100])
def test_every_epsilon_has_a_plan(epsilon):
    calibrated = plan(1000, epsilon=epsilon)
    l2 = 6 * math.sqrt(calibrated.noise.factors.squares)
    assert gaussian_delta(calibrated.noise.sigma, l2, epsilon) <= 1e-6


def test_block_boundaries_do_not_change_values():
    calibrated = plan(700)
    whole = calibrated.open(sampler()).noise_block(700)
    release = calibrated.open(sampler())
    parts = [release.noise_block(n) for n in (1, 2, 300, 397)]
    assert np.allclose(np.concatenate(parts), whole, rtol=0, atol=1e-6)
    assert np.array_equal(np.concatenate(parts), whole)
    with pytest.raises(InvalidInputError, match="longer stream"):
        release.noise_block(1)


def test_noise_has_the_stated_covariance():
    """Fails if noise is halved, shared between cells, or drawn anew at every release."""
    calibrated = plan(40, shape=Shape(states=20, actions=5, horizon=10))
    noise, cells = calibrated.noise, 40_000
    block = noise.start(cells, sampler(2)).block(40)
    f = noise.factors
    decoder = (f.weights * f.decays ** np.arange(40)[:, None]).sum(axis=1)
    matrix = np.array([[decoder[k - j] if j <= k else 0 for j in range(40)] for k in range(40)])
    expected = noise.sigma**2 * matrix @ matrix.T
    assert np.allclose(np.diag(expected), [noise.variance(k) for k in range(1, 41)])
    measured = block @ block.T / cells
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs((measured - expected) / scale).max() < 6.5 * math.sqrt(2 / cells)
    halves = np.corrcoef(block[:, : cells // 2].ravel(), block[:, cells // 2 :].ravel())[0, 1]
    assert abs(halves) < 0.03


def test_add_decodes_exactly_encoded_counts():
    """`add` goes through y = Cx + z on the grid and agrees with true counts plus the noise."""
    episodes = 60
    calibrated = plan(episodes, shape=TINY)
    noise = calibrated.open(sampler(5)).noise_block(episodes)
    stream = calibrated.open(sampler(5))
    rng = np.random.default_rng(0)
    total = np.zeros(calibrated.cells)
    for k in range(episodes):
        transitions = np.zeros(TINY.transitions, np.int64)
        transitions[0, rng.integers(2), 0, rng.integers(2)] = 1
        user = Counts(1, transitions, transitions.sum(axis=-1))
        total += np.concatenate(
            [user.transitions.ravel(), user.visits.ravel(), user.visits.ravel()]
        )
        private = stream.add(user)
        flat = [private.transitions.ravel(), private.visits.ravel(), private.rewards.ravel()]
        assert np.allclose(np.concatenate(flat), total + noise[k], rtol=0, atol=1e-4)
    encoded = stream._run._encoded_counts()
    assert np.array_equal(encoded, encoded.round())
    assert encoded.max() < 2**53


def test_a_stream_is_used_in_one_way():
    release = plan(5, shape=TINY).open(sampler())
    release.noise_block(1)
    transitions = np.zeros(TINY.transitions, np.int64)
    transitions[0, 0, 0, 0] = 1
    with pytest.raises(UnsupportedError, match="block"):
        release.add(Counts(1, transitions, transitions.sum(axis=-1)))


def test_error_bounds():
    noise = plan(200).noise
    block = np.abs(noise.start(20_000, sampler(7)).block(200))
    bounds = noise.bounds(0.05)
    assert np.allclose(bounds[[0, 9, 199]], [noise.bound(k, 0.05) for k in (1, 10, 200)])
    assert ((block > bounds[:, None]).mean(axis=1) <= 0.05).all()
    assert (bounds < 3 * np.sqrt([noise.variance(k) for k in range(1, 201)])).all()


def test_needs_delta():
    with pytest.raises(CalibrationError, match="delta > 0"):
        plan(10, delta=0)
