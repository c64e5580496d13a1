"""Streams of unknown length: the same noise however long, in closed form, and what it costs."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import special

import discreet
from discreet.errors import CalibrationError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms import toeplitz
from discreet.privacy.mechanisms.toeplitz import LARGEST_COUNT
from discreet.privacy.mechanisms.unbounded import factors
from discreet.privacy.sampling.samplers import SimulationSampler

pytestmark = pytest.mark.core
SHAPE = Shape(states=2, actions=2, horizon=2)


def stream(episodes, epsilon=1.0, **options):
    trust = discreet.Central(epsilon, 1e-6, "unbounded", **options)
    return trust.calibrate(SHAPE, schedule="continual", episodes=episodes)


def plain_square_root(length):
    """Variance of the last release of the plain square root, for encoded noise of one."""
    j = np.arange(length)
    c = np.exp(special.gammaln(j + 0.5) - special.gammaln(j + 1) - special.gammaln(0.5))
    return float(np.sum(c**2)) ** 2


@pytest.mark.parametrize("options", [{}, {"participations": 3, "separation": 7}])
def test_nothing_depends_on_the_length(options):
    short, long = stream(50, **options), stream(5000, **options)
    assert short.noise.steps == long.noise.steps
    assert short.noise.grid == long.noise.grid
    assert short.noise_variance(50) == long.noise_variance(50)
    assert short.guarantee == long.guarantee
    encoded = np.random.default_rng(3).integers(-(10**12), 10**12, (50, 4))
    runs = [m.noise.start(4, SimulationSampler(np.random.default_rng(0))) for m in (short, long)]
    assert np.array_equal(*(run.decode(encoded) for run in runs))


def test_closed_forms_are_the_sums_of_the_series():
    made = factors(1 << 17)
    c = np.ldexp(made.encoder().astype(float), -made.grid.encoder)
    rates, v = made.series
    times = np.arange(1, c.size)
    exact = np.zeros(times.size)
    for rate, weight in zip(rates, v, strict=True):
        exact += weight * np.exp(times * math.log1p(-rate))
    assert c[0] == 1
    assert np.abs(c[1:] - exact).max() <= 2.0 ** (1 - made.grid.encoder)
    assert (v > 0).all()
    assert (rates > 0).all()
    for lag in (0, 1, 7, 100):
        # What follows the series that is summed here, by the same exponentials from there on.
        p, n = 1 - rates, c.size - lag
        tail = (v * p**n) @ (1 / (1 - np.outer(p, p))) @ (v * p ** (n + lag))
        summed = float(c[:n] @ c[lag:] + tail)
        assert summed < made.product(lag) < 1.005 * summed
        square = math.ldexp(made.column, -made.grid.column) ** 2
        if lag:  # two participations of a stream that never ends
            assert 2 + 2 * square * summed < made.returning(2, lag) < 2.01 + 2 * square * summed


def test_the_cost_of_the_grid_is_that_of_the_longest_stream(monkeypatch):
    asked, real = [], toeplitz.grid_delta

    def recorded(steps, cells, epsilon):
        asked.append(cells)
        return real(steps, cells, epsilon)

    monkeypatch.setattr(toeplitz, "grid_delta", recorded)
    made = stream(50, epsilon=0.875)
    assert asked == [made.sensitivity.units * (LARGEST_COUNT // made.sensitivity.pile)]


def test_columns_have_norm_one_at_most_and_nearly_so_in_the_end():
    made = factors(4096)
    assert made.column_square() < 1
    assert set(made.columns.tolist()) == {made.column}
    assert math.ldexp(made.column, -16) ** 2 * made.product(0) == pytest.approx(1, abs=1e-4)


def test_columns_that_are_too_long_are_refused():
    made = factors(64)
    longer = replace(made, weights=made.weights.copy())
    norm = float(made.column_square())
    longer.__dict__["column"] = math.ceil(made.column * math.sqrt(1.5 / norm))
    with pytest.raises(CalibrationError, match="longer than one"):
        longer.returning(1, 1)


@pytest.mark.parametrize(("times", "apart"), [(1, 1), (2, 1), (2, 5), (3, 3), (4, 2)])
def test_no_sum_of_columns_is_longer_than_said(times, apart):
    made = factors(14)
    c = np.ldexp(made.encoder().astype(float), -made.grid.encoder)
    c = np.append(c, np.zeros(14)) * math.ldexp(made.column, -made.grid.column)
    columns = np.array([[c[t - i] if t >= i else 0 for i in range(14)] for t in range(14)])
    worst = max(
        float(np.sum(columns[:, list(places)].sum(axis=1) ** 2))
        for places in combinations(range(14), times)
        if np.diff(places, prepend=-apart).min() >= apart
    )
    assert worst <= made.returning(times, apart) <= times**2


@pytest.mark.parametrize("length", [1 << 10, 1 << 16])
def test_the_price_of_not_knowing_the_length(length):
    """Below the 1.5 that Jacobsen and Fawaz report against the plain square root."""
    price = factors(length).worst ** 2 / plain_square_root(length)
    assert 1.2 < price < 1.5
    assert factors(length).worst_episode == length
    assert factors(length).worst ** 2 < 1.7 * toeplitz.factors(length).worst ** 2


def test_what_it_cannot_do_is_refused():
    with pytest.raises(CalibrationError, match="22 binary digits"):
        stream(50, epsilon=1e-5)
    with pytest.raises(UnsupportedError, match="exact sums"):
        discreet.start(
            "never.db",
            learner="dp-ucbvi",
            trust=discreet.Central(1, 1e-6, mechanism="unbounded"),
            states=2,
            actions=2,
            horizon=2,
            episodes=50,
            sampler="simulation",
        )


def test_a_learner_runs_on_it():
    mdp = discreet.make("RiverSwim", states=3, horizon=3, relabel=0)
    trust = discreet.Central(1, 1e-6, mechanism="unbounded")
    result = discreet.learn(mdp, learner="dp-ucbvi", trust=trust, episodes=200, seed=0)
    assert "JDP" in str(result.guarantee)
    assert result.final_regret > 0
