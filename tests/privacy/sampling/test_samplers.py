"""Both samplers draw exactly the stated integer distributions."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from discreet.errors import InvalidInputError, MissingExtraError
from discreet.privacy.sampling import samplers as noise
from discreet.privacy.sampling.samplers import SecureSampler, SimulationSampler
from helpers.loading import loaded

ALARM = 1e-8  # of one test; all together stay below 1e-6


def simulation(seed=0):
    return SimulationSampler(np.random.default_rng(seed))


def laplace_pmf(scale):
    x = np.arange(-int(40 * scale) - 2, int(40 * scale) + 3)
    p = np.exp(-np.abs(x) / scale)
    return x, p / p.sum()


def gaussian_pmf(sigma):
    x = np.arange(-int(12 * sigma) - 2, int(12 * sigma) + 3)
    p = np.exp(-0.5 * (x / sigma) ** 2)
    return x, p / p.sum()


def binomial_pmf(trials, probability):
    x = np.arange(trials + 1)
    return x, stats.binom.pmf(x, trials, probability)


def convolved(values, pmf, times):
    total = np.ones(1)
    for _ in range(times):
        total = np.convolve(total, pmf)
    return np.arange(total.size) + times * values[0], total


def fits(draws, values, pmf, cells=40):
    """Chi-squared p-value over groups of values with about equal expected counts."""
    assert draws.min() >= values[0]
    assert draws.max() <= values[-1]
    cumulative = np.cumsum(pmf)
    edges = np.unique(np.searchsorted(cumulative, np.linspace(0, 1, cells + 1)[1:-1]))
    group = np.searchsorted(edges, np.arange(pmf.size), "left")
    expected = np.bincount(group, pmf) * draws.size
    observed = np.bincount(group[draws - values[0]], minlength=expected.size)
    keep = expected > 5
    lump = ~keep
    observed = np.append(observed[keep], observed[lump].sum())
    expected = np.append(expected[keep], max(expected[lump].sum(), 1e-12))
    if expected[-1] < 5:  # too rare for the approximation: fold into the largest group
        top = expected[:-1].argmax()
        observed[top] += observed[-1]
        expected[top] += expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    if expected.size == 1:
        return float(observed[0] == draws.size)
    statistic = ((observed - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, expected.size - 1)


DRAWS = {
    "laplace": lambda s, n: (s.discrete_laplace(3.3, n), laplace_pmf(3.3)),
    "laplace-wide": lambda s, n: (s.discrete_laplace(180.0, n), laplace_pmf(180.0)),
    "gaussian-wide": lambda s, n: (s.discrete_gaussian(401.5, n), gaussian_pmf(401.5)),
    "laplace-small": lambda s, n: (s.discrete_laplace(0.2, n), laplace_pmf(0.2)),
    "gaussian": lambda s, n: (s.discrete_gaussian(5.7, n), gaussian_pmf(5.7)),
    "gaussian-one": lambda s, n: (s.discrete_gaussian(1.0, n), gaussian_pmf(1.0)),
    "gaussian-small": lambda s, n: (s.discrete_gaussian(0.4, n), gaussian_pmf(0.4)),
    "binomial": lambda s, n: (s.binomial(37, 0.3, n), binomial_pmf(37, 0.3)),
    "binomial-fair": lambda s, n: (s.binomial(64, 0.5, n), binomial_pmf(64, 0.5)),
    "binomial-rare": lambda s, n: (s.binomial(40, 1e-2, n), binomial_pmf(40, 1e-2)),
    "laplace-sum": lambda s, n: (
        s.laplace_sum(1.7, 5, n),
        convolved(*laplace_pmf(1.7), 5),
    ),
    "gaussian-sum": lambda s, n: (
        s.gaussian_sum(2.5, 4, n),
        convolved(*gaussian_pmf(2.5), 4),
    ),
    "gaussian-sum-small": lambda s, n: (
        s.gaussian_sum(0.6, 7, n),
        convolved(*gaussian_pmf(0.6), 7),
    ),
    "table": lambda s, n: (
        s.table(np.array([3, 0, 5, 2]), n),
        (np.arange(4), np.array([0.3, 0, 0.5, 0.2])),
    ),
    "table-sum": lambda s, n: (
        s.table_sum(np.array([3, 0, 5, 2]), 3, n),
        convolved(np.arange(4), np.array([0.3, 0, 0.5, 0.2]), 3),
    ),
}


@pytest.mark.core
@pytest.mark.parametrize("name", DRAWS)
def test_simulation_sampler_fits_the_exact_probabilities(name):
    draws, (values, pmf) = DRAWS[name](simulation(1), 200_000)
    assert draws.dtype == np.int64
    assert fits(draws, values, pmf) > ALARM


@pytest.mark.parametrize("name", DRAWS)
def test_secure_sampler_fits_the_exact_probabilities(name):
    draws, (values, pmf) = DRAWS[name](SecureSampler(), 4_000)
    assert draws.dtype == np.int64
    assert fits(draws, values, pmf) > ALARM


def test_the_goodness_of_fit_test_can_fail():
    draws = simulation().discrete_laplace(3.0, 200_000)
    assert fits(draws, *laplace_pmf(3.3)) < ALARM
    rounded_normal = np.rint(np.random.default_rng(0).normal(0, 1.0, 200_000)).astype(np.int64)
    assert fits(rounded_normal, *gaussian_pmf(1.0)) < ALARM


@pytest.mark.parametrize("sigma", [1.0, 1.3, 25.35, 4000.0])
def test_large_gaussians_have_the_right_moments(sigma):
    draws = simulation(2).discrete_gaussian(sigma, 400_000) / sigma
    assert abs(draws.mean()) < 6 / np.sqrt(draws.size)
    assert abs((draws**2).mean() - 1) < 6 * np.sqrt(2 / draws.size) + 1e-6
    assert abs((draws**4).mean() - 3) < 6 * np.sqrt(96 / draws.size) + 1e-4


def test_sums_over_a_million_users_take_no_longer_than_one():
    laplace = simulation(3).laplace_sum(36.0, 1_000_000, 100_000) / np.sqrt(2e6 * 36.0**2)
    gaussian = simulation(4).gaussian_sum(0.7, 1_000_000, 20_000)
    assert abs(laplace.std() - 1) < 0.02
    x, p = gaussian_pmf(0.7)
    assert abs(gaussian.std() / np.sqrt(1e6 * (p * x**2).sum()) - 1) < 0.04


@pytest.mark.parametrize("scale", [1e-6, 1e-3])
def test_tiny_scales_are_exactly_zero(scale):
    sampler = simulation()
    for draw in (
        sampler.discrete_laplace(scale, 100),
        sampler.discrete_gaussian(scale, 100),
        sampler.laplace_sum(scale, 9, 100),
        sampler.gaussian_sum(scale, 9, 100),
    ):
        assert not draw.any()


@pytest.fixture(params=["simulation", "secure"])
def sampler(request):
    return simulation() if request.param == "simulation" else SecureSampler()


class TestBothSamplers:
    def test_shapes(self, sampler):
        assert sampler.discrete_laplace(2.0, (2, 3)).shape == (2, 3)
        assert sampler.discrete_gaussian(2.0, (2, 3)).shape == (2, 3)
        assert sampler.discrete_gaussian(0.5, (2, 3)).shape == (2, 3)
        assert sampler.binomial(3, 0.5, (2, 0)).shape == (2, 0)
        assert sampler.table_sum(np.array([1, 1]), 3, (4, 2)).shape == (4, 2)
        assert sampler.gaussian_sum(0.5, 3, (4, 2)).shape == (4, 2)
        assert sampler.laplace_sum(0.5, 0, 3).tolist() == [0, 0, 0]
        assert sampler.gaussian_sum(0.5, 0, 3).tolist() == [0, 0, 0]
        assert sampler.discrete_gaussian(3.0, 0).shape == (0,)

    def test_certain_bits(self, sampler):
        assert sampler.binomial(5, 1.0, 3).tolist() == [5, 5, 5]
        assert sampler.binomial(5, 0.0, 3).tolist() == [0, 0, 0]

    def test_a_permutation_holds_every_index_once(self, sampler):
        assert sorted(sampler.permutation(100).tolist()) == list(range(100))

    def test_permutations_are_uniform(self, sampler):
        orders = [tuple(sampler.permutation(3).tolist()) for _ in range(3000)]
        counts = np.unique(np.array(orders), axis=0, return_counts=True)[1]
        assert counts.size == 6
        assert stats.chisquare(counts).pvalue > ALARM

    @pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), 1e16, True, "1"])
    def test_bad_scales_are_refused(self, sampler, bad):
        for draw in (sampler.discrete_laplace, sampler.discrete_gaussian):
            with pytest.raises(InvalidInputError):
                draw(bad, 3)

    @pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2], [0.5, 0.5], [[1, 2]]])
    def test_bad_tables_are_refused(self, sampler, weights):
        with pytest.raises(InvalidInputError, match="weights"):
            sampler.table(np.array(weights), 3)

    def test_bad_bits_are_refused(self, sampler):
        for trials, probability in [(-1, 0.5), (3, 1.5), (3, float("nan")), (2.5, 0.5)]:
            with pytest.raises(InvalidInputError):
                sampler.binomial(trials, probability, 3)


def test_simulation_is_reproducible_and_secure_is_not():
    assert (
        simulation(5).discrete_gaussian(9.0, 50) == simulation(5).discrete_gaussian(9.0, 50)
    ).all()
    one, two = SecureSampler(), SecureSampler()
    assert (one.discrete_gaussian(1e6, 50) != two.discrete_gaussian(1e6, 50)).any()
    assert one.secure
    assert not simulation().secure
    with pytest.raises(TypeError):
        SecureSampler(0)


@pytest.fixture
def without_opendp(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.measurements", None)
    noise._opendp.cache_clear()
    yield
    noise._opendp.cache_clear()


def test_the_secure_sampler_loads_what_it_uses_of_opendp():
    code = (
        "from discreet.privacy.sampling.samplers import SecureSampler\n"
        "SecureSampler().discrete_gaussian(3.0, 2)\n"
    )
    assert loaded(code, ["opendp.extras", "sklearn", "polars", "pandas"]) == []


@pytest.mark.usefixtures("without_opendp")
def test_a_broken_installation_is_named_before_anything_is_drawn():
    with pytest.raises(MissingExtraError, match="installation is broken: pip install discreet"):
        SecureSampler()


def test_pickling_a_secure_sampler_carries_no_state():
    copy = pickle.loads(pickle.dumps(SecureSampler()))
    assert copy.secure
    assert not vars(copy)


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "bits"])
@pytest.mark.parametrize("make", [simulation, SecureSampler], ids=["simulation", "secure"])
def test_draws_of_one_call_are_independent_of_each_other(make, kind):
    """At every lag, ends against beginnings included: nothing is handed out twice."""
    sampler, count = make(), 400
    draw = {
        "laplace": lambda: sampler.discrete_laplace(30.0, count),
        "gaussian": lambda: sampler.discrete_gaussian(30.0, count),
        "bits": lambda: sampler.binomial(60, 0.5, count),
    }[kind]
    drawn = np.concatenate([draw() for _ in range(3)])
    # Ranks: the sums below have the tails of a normal, whatever is drawn. (Of products of
    # Laplace draws some in a million would be beyond the limit.)
    values = stats.rankdata(drawn)
    values -= values.mean()
    lags = range(1, 2 * count)
    scores = [
        values[lag:] @ values[:-lag] / (values.var() * np.sqrt(values.size - lag)) for lag in lags
    ]
    assert np.abs(scores).max() < 7  # standard normal, 800 of them: 800·2.6e-12 = 2e-9


@pytest.mark.parametrize("secure", [False, True])
def test_scattered_balls_fall_as_stated(secure):
    """Every cell is binomial, the cells together a multinomial; sums over many throws are exact."""
    sampler, balls, cells, throws = SecureSampler() if secure else simulation(), 40, 3, 1000
    drawn = np.array([sampler.scatter(balls, 0.75, cells) for _ in range(throws)])
    fallen = np.bincount(drawn.sum(axis=1), minlength=balls + 1)
    _, pmf = binomial_pmf(balls, 0.75)
    often = pmf * throws > 8
    observed, expected = (np.append(x[often], x[~often].sum()) for x in (fallen, pmf * throws))
    assert stats.chisquare(observed, expected).pvalue > ALARM
    assert stats.chisquare(drawn.sum(axis=0)).pvalue > ALARM
    covariance = np.cov(drawn.T)
    assert covariance[0, 1] == pytest.approx(-balls * 0.25**2, abs=1.75)  # 7 deviations, not 0
    assert covariance[0, 0] == pytest.approx(balls * 0.25 * 0.75, rel=0.32)


def test_nothing_scattered_and_no_cells():
    assert simulation().scatter(0, 0.5, 2).tolist() == [0, 0]
    with pytest.raises(InvalidInputError, match="cells"):
        simulation().scatter(5, 0.5, 0)


RANGES = [2, 3, 5, 8, 1 << 20, (1 << 20) + 1, 3 << 30, 1 << 33, 1 << 60, (1 << 61) + 7]


@pytest.mark.parametrize("high", RANGES)
def test_secure_integers_reach_every_part_of_their_range(high):
    """Of one word or less, beyond 32 bits and up to the largest."""
    parts, count = min(high, 8), 4000
    drawn = noise._integers(high, count)
    assert drawn.min() >= 0 and drawn.max() < high
    seen = np.bincount([int(value) * parts // high for value in drawn], minlength=parts)
    first = -(-high * np.arange(parts + 1, dtype=object) // parts)
    shares = np.diff(first).astype(np.float64) / high
    assert (np.abs(seen - count * shares) < 7 * np.sqrt(count * shares)).all()


def test_every_bit_of_a_secure_word_is_random_and_no_word_comes_again():
    words = noise._words(4000)
    assert len(set(words.tolist()) | set(noise._words(4000).tolist())) == 8000
    bits = words[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    assert (np.abs(bits.mean(axis=0) - 0.5) < 7 * 0.5 / np.sqrt(4000)).all()
    together = np.corrcoef(bits.astype(np.float64).T) - np.eye(64)
    assert np.abs(together).max() < 8 / np.sqrt(4000)


@pytest.mark.parametrize("bits", [9, 64, 1000])
def test_all_of_many_fair_bits_are_drawn(bits):
    """Means of sums: half of the bits that are always zero would halve them."""
    ones = np.array([noise._ones_among(bits) for _ in range(1000)])
    assert abs(ones.mean() - bits / 2) < 7 * np.sqrt(bits / 4 / 1000)


def test_wide_tables_are_drawn_from_end_to_end():
    """Weights of 2^60 in all, as those of bounded noise: beyond 32 bits of every word."""
    weights = np.full(1 << 10, 1 << 50, np.int64)
    drawn = SecureSampler().table(weights, 4000)
    quarters = np.bincount(drawn >> 8, minlength=4)
    assert (np.abs(quarters - 1000) < 7 * np.sqrt(750)).all()


FORKED = """
import json, os, sys
import numpy as np
from discreet.privacy.sampling.samplers import SecureSampler

sampler = SecureSampler()
def drawn():
    return [
        sampler.discrete_gaussian(1e9, 4).tolist(),
        sampler.discrete_laplace(1e9, 4).tolist(),
        sampler.table(np.ones(1 << 20, np.int64), 4).tolist(),
        sampler.binomial(10**6, 0.5, 8).tolist(),
        sampler.permutation(30).tolist(),
    ]
drawn()
child = os.fork()
if child:
    os.waitpid(child, 0)
print(json.dumps(drawn()), flush=True)
if not child:
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_neither_a_fork_nor_a_new_process_draws_the_same():
    """A generator in memory is copied by a fork, and one that is seeded begins anew."""
    said = [
        subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    lines = [json.loads(line) for one in said for line in one.stdout.splitlines()]
    assert len(lines) == 4
    for kind in zip(*lines, strict=True):
        assert len({tuple(values) for values in kind}) == 4


FROM_BYTES = {
    "permutation": (lambda: SecureSampler().permutation(50), 50 * 8),
    "table": (lambda: SecureSampler().table(np.ones(1 << 20, np.int64), 50), 50 * 20 // 8),
    "table_sum": (lambda: SecureSampler().table_sum(np.ones(1 << 20, np.int64), 2, 25), 125),
    "binomial": (lambda: SecureSampler().binomial(1, 0.5, 400), 400 // 8),
    "scatter": (lambda: SecureSampler().scatter(400, 1.0, 1 << 8), 400),
}


@pytest.mark.parametrize("name", FROM_BYTES)
def test_what_opendp_does_not_draw_follows_from_bytes_of_the_operating_system(monkeypatch, name):
    """From nothing else, and from as many as there are ways for it to turn out."""
    draw, least = FROM_BYTES[name]

    def drawn(seed):
        source, taken = np.random.default_rng(seed), []
        monkeypatch.setattr(os, "urandom", lambda n: [taken.append(n), source.bytes(n)][1])
        return draw().tolist(), sum(taken)

    assert drawn(0) == drawn(0)
    assert drawn(0)[0] != drawn(1)[0]
    assert drawn(0)[1] >= least
