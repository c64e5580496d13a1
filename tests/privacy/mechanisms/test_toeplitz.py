"""The column-normalised square root: golden noise, exact grid, consistency of all routes."""

import math

import numpy as np
import pytest

from discreet.auditing.probes import PresetSampler
from discreet.errors import CalibrationError, InvalidInputError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import gaussian_delta, grid_delta
from discreet.privacy.mechanisms._kernels import decode_rows
from discreet.privacy.mechanisms.toeplitz import Grid, ToeplitzNoise, factors
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.trust import Central
from helpers.sampling import sampler

SHAPE = Shape(states=4, actions=2, horizon=6)
TINY = Shape(states=2, actions=1, horizon=1)


def plan(episodes, epsilon=1, delta=1e-6, shape=SHAPE, **options):
    trust = Central(epsilon, delta, mechanism="toeplitz")
    return trust.calibrate_stream(shape, episodes=episodes, **options)


def dense(f):
    """C·D and the decoder, as matrices built from the definition."""
    size = f.episodes
    lag = np.subtract.outer(np.arange(size), np.arange(size))
    coefficients = np.ldexp(f.encoder.astype(float), -f.grid.encoder)
    decoder = (f.weights * f.decays ** np.arange(size)[:, None]).sum(axis=1)
    lower = np.tril(np.ones((size, size)))
    columns = np.ldexp(f.columns.astype(float), -f.grid.column)
    encoder = np.where(lag >= 0, coefficients[lag], 0) * columns
    toeplitz = np.where(lag >= 0, decoder[lag], 0)
    return encoder, lower @ np.diag(1 / columns) @ np.linalg.inv(lower) @ toeplitz


@pytest.mark.core
@pytest.mark.parametrize(
    ("episodes", "low", "high"), [(20_000, 101.7, 102), (1_000_000, 133.1, 133.5)]
)
def test_golden_worst_time_noise(episodes, low, high):
    """The plain square root has 107 and 138.5; no factorisation is below 97.7 and 129.3."""
    calibrated = plan(episodes)
    worst = calibrated.worst_time(calibrated.episodes)
    std = math.sqrt(calibrated.noise_variance(worst)["transitions"])
    assert low < std <= high
    for other in (1, worst - 1, worst + 1, episodes):
        assert calibrated.noise.variance(other) <= std**2


@pytest.mark.parametrize(("episodes", "golden"), [(20_000, 4.0194), (1_000_000, 5.2597)])
def test_golden_factor(episodes, golden):
    """Largest column of the encoder times largest row of the decoder."""
    f = factors(episodes)
    assert 1 - 1e-5 < f.column_square() <= 1
    assert f.worst == pytest.approx(golden, rel=5e-5)


def test_it_is_the_default_of_central_streams_with_delta():
    assert Central(1, 1e-6).resolve("continual") == "toeplitz"
    assert Central(1).resolve("continual") == "tree-signed"


@pytest.mark.parametrize("episodes", [1, 2, 3, 17, 300])
@pytest.mark.parametrize("grid", [Grid(), Grid(20, 12), Grid(10, 12)])
def test_factors(episodes, grid):
    f = factors(episodes, grid)
    encoder, decoder = dense(f)
    counted = np.tril(np.ones((episodes, episodes)))
    assert np.abs(decoder @ encoder - counted).max() <= 2.5 * 2.0**-grid.encoder
    squares = (encoder**2).sum(axis=0)
    assert squares.max() == pytest.approx(float(f.column_square()), rel=1e-12)
    assert (1 - 2.0 ** (3 - grid.column) <= squares).all() and (squares <= 1).all()
    assert np.allclose(f.variances, (decoder**2).sum(axis=1), rtol=1e-9)
    assert f.worst == pytest.approx(np.linalg.norm(decoder, axis=1).max(), rel=1e-9)


@pytest.mark.parametrize(
    ("episodes", "grid"),
    [(20_000, Grid(17, 12)), (2000, Grid(14, 12)), (20_000, Grid(21, 12)), (500, Grid())],
)
def test_blocks_stand_for_columns_that_are_no_longer_than_one(episodes, grid):
    """Decoded noise knows the decoder alone: its encoder is 1/b, which no grid has rounded."""
    f = factors(episodes, grid)
    weights, decays = f.weights.astype(np.longdouble), f.decays.astype(np.longdouble)
    state, series = np.zeros_like(weights), np.empty(episodes, np.longdouble)
    for t in range(episodes):
        series[t] = 1 - weights @ state
        state = decays * (state + series[t])
    norms = np.sqrt(np.cumsum(series**2)[::-1])
    longest = float((np.ldexp(f.columns.astype(np.longdouble), -grid.column) * norms).max())
    assert 1 - 1e-4 < longest <= 1


def encoded_columns(noise, users):
    """What a unit of each user adds to every encoded value, by the real path, in grid steps."""
    columns = []
    for user in users:
        run = noise.start(1, PresetSampler.still())
        for time in range(noise.episodes):
            run.add(np.array([int(time == user)]))
            columns.append(int(run.encoded(time)[0]))
    return np.array(columns, object).reshape(len(users), noise.episodes)


def test_the_sensitivity_is_that_of_the_real_path():
    """Recompute the guarantee from what `add` encodes, user by user."""
    episodes = 50
    calibrated = plan(episodes)
    noise = calibrated.noise
    columns = encoded_columns(noise, range(episodes))
    squares = (columns**2).sum(axis=1)
    assert max(squares) <= 1 << 2 * noise.grid.bits  # exact integers
    # Without D, early users would move the stream by twice as much as the last.
    assert min(squares) > 0.9998 * max(squares)
    l2 = math.sqrt(max(squares) * 6 * SHAPE.horizon)
    lost = grid_delta(noise.steps, 6 * SHAPE.horizon * episodes, 1.0)
    delta = gaussian_delta(noise.steps, l2, 1.0) + lost
    assert 0.98e-6 < delta <= 1e-6  # halved noise or sensitivity H would be far off
    assert gaussian_delta(noise.steps / 2, l2, 1.0) > 1e-3
    assert Sensitivity.of(SHAPE.horizon, calibrated.statistics, stationary=False).l1 == 36


@pytest.mark.parametrize("user", [0, 1, 511, 599])
def test_users_have_a_column_of_their_own(user):
    noise = plan(600, shape=TINY).noise
    f = factors(600, noise.grid)
    run = noise.start(1, PresetSampler.still())
    for time in range(user + 1):
        run.add(np.array([int(time == user)]))
    assert run.encoded(user)[0] == f.encoder[0] * f.columns[user]
    assert f.columns[user] != f.columns[(user + 300) % 600]


def test_the_cost_of_the_grid_is_set_aside():
    """At epsilon = 22 it is felt: the Gaussian alone must stay below delta by as much."""
    calibrated = plan(100_000, epsilon=22)
    noise = calibrated.noise
    lost = grid_delta(noise.steps, 36 * 100_000, 22.0)
    assert 1e-10 < lost < 1e-8
    alone = gaussian_delta(noise.sigma, 6.0, 22.0)
    assert alone + lost <= 1e-6
    assert alone + 2 * lost > 1e-6


@pytest.mark.parametrize("epsilon", [0.001, 1, 20])
@pytest.mark.parametrize("episodes", [1000, 1_000_000])
def test_encoded_counts_fit_into_64_bits(epsilon, episodes):
    """Stationary counts: a user may put H units into one counter, all users into the same."""
    calibrated = plan(episodes, epsilon=epsilon, stationary=True)
    noise = calibrated.noise
    f = noise.factors
    largest = int(f.encoder.sum()) * int(f.columns.max()) * SHAPE.horizon
    assert largest < 2**61
    assert noise.steps < 2.0**49


def test_what_does_not_fit_is_refused():
    with pytest.raises(CalibrationError, match="do not fit into 64-bit integers"):
        Grid.of(25.0, 1_000_000, 1 << 30)
    with pytest.raises(CalibrationError, match="larger epsilon"):
        plan(1000, epsilon=1e-9, delta=1e-10)


def test_encoding_is_exact_where_doubles_are_not():
    noise = ToeplitzNoise(episodes=3000, steps=2.0**45, grid=Grid())
    run = noise.start(1, PresetSampler.still())
    amounts = np.random.default_rng(0).integers(500, 1000, 400)
    for amount in amounts:
        run.add(np.array([amount]))
    encoder, columns = noise.factors.encoder.tolist(), noise.factors.columns.tolist()
    terms = [encoder[399 - i] * columns[i] * int(x) for i, x in enumerate(amounts)]
    assert int(run.encoded(399)[0]) == sum(terms) > 2**53
    assert int(np.sum(np.array(terms, float))) != sum(terms)


def test_data_and_noise_can_be_traded_bit_by_bit():
    """What is released is a function of y alone: no low bit tells data from noise."""
    noise = plan(30).noise
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 2, (2, 30, 4))
    encoded = []
    for data in (first, second):
        run = noise.start(4, PresetSampler.still())
        rows = []
        for time, user in enumerate(data):
            run.add(user)
            rows.append(run.encoded(time))
        encoded.append(np.array(rows))
    z = sampler(4).discrete_gaussian(noise.steps, (30, 4))
    outputs = []
    for data, draws in ((first, z), (second, z + encoded[0] - encoded[1])):
        run = noise.start(4, PresetSampler(draws.ravel()))
        outputs.append(np.array([run.add(user) for user in data]))
    assert np.array_equal(*outputs)
    assert outputs[0].dtype == np.int64


def test_low_bits_of_simulated_releases_are_those_of_the_noise():
    block = plan(300).open(sampler(6)).noise_block(300)
    steps = block * 2**16
    assert np.array_equal(steps, np.rint(steps))
    assert np.unique(steps % 2**16).size > 1000  # finer than integers
    for count in (1, 12_345, 2**30 + 7):
        released = block + count
        assert np.array_equal(released - count, block)  # exact
        assert np.array_equal(released * 2**16 % 2**16, steps % 2**16)


def test_rounding_commutes_with_adding_integers():
    rows = np.array([[1], [2], [2], [2], [-10]])
    out = np.empty((5, 1))
    decode_rows(rows, np.zeros(1), np.zeros(1), np.ones(5), 0.5, np.zeros((2, 1)), out)
    assert out.ravel().tolist() == [1, 2, 3, 4, -1]  # of 0.5, 1.5, 2.5, 3.5, -1.5


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
    assert gaussian_delta(calibrated.noise.sigma, 6.0, epsilon) <= 1e-6


def test_block_boundaries_do_not_change_values():
    calibrated = plan(700)
    whole = calibrated.open(sampler()).noise_block(700)
    release = calibrated.open(sampler())
    parts = [release.noise_block(n) for n in (1, 2, 300, 397)]
    assert np.array_equal(np.concatenate(parts), whole)
    with pytest.raises(InvalidInputError, match="longer stream"):
        release.noise_block(1)


def test_noise_has_the_stated_covariance():
    """Fails if noise is halved, shared between cells, or drawn anew at every release."""
    calibrated = plan(40, shape=Shape(states=20, actions=5, horizon=10))
    noise, cells = calibrated.noise, 40_000
    block = noise.start(cells, sampler(2)).block(40)
    _, matrix = dense(noise.factors)
    expected = noise.sigma**2 * matrix @ matrix.T
    assert np.allclose(np.diag(expected), [noise.variance(k) for k in range(1, 41)])
    measured = block @ block.T / cells
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs((measured - expected) / scale).max() < 6.5 * math.sqrt(2 / cells)
    halves = np.corrcoef(block[:, : cells // 2].ravel(), block[:, cells // 2 :].ravel())[0, 1]
    assert abs(halves) < 0.03


def test_add_decodes_exactly_encoded_counts():
    """`add` goes through y = CDx + z on the grid and agrees with true counts plus the noise."""
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


def test_streams_whose_coefficients_would_fill_a_memory_are_refused():
    with pytest.raises(CalibrationError, match=r"33,554,433, .* 1 GB"):
        plan(2**25 + 1, shape=TINY)
