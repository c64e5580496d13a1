"""Samplers that do not draw: what they answer, what they remember, and what they enumerate."""

import itertools
import math

import numpy as np
import pytest

from discreet.auditing.probes import (
    Noise,
    PresetSampler,
    ScriptedSampler,
    TooManyError,
    _copies,
    outcomes,
)
from discreet.errors import UnsupportedError
from discreet.privacy import SimulationSampler
from helpers.curves import distribution_of_sum, exact_binomial, exact_gaussian, exact_table
from helpers.properties import given, st

pytestmark = pytest.mark.core
TABLE = np.array([1, 4, 3])
WEIGHTS = st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any)


def bytes_of(weights):
    return (np.array(weights) / np.sum(weights)).tobytes()


NOISES = {
    "binomial": (Noise("binomial", 0.25, trials=6), exact_binomial(6, 0.25)),
    "table": (Noise("table", 1.0, table=bytes_of(TABLE)), exact_table(TABLE.tolist())),
    "three tables": (
        Noise("table", 1.0, 3, table=bytes_of(TABLE)),
        distribution_of_sum(exact_table([1, 4, 3]), 3),
    ),
    "small gaussian": (Noise("gaussian", 0.7), exact_gaussian(0.7)),
    "gaussian": (Noise("gaussian", 3.9), exact_gaussian(3.9)),
    "large gaussian": (Noise("gaussian", 5.0), exact_gaussian(5)),
}


def moments(noise):
    mean = sum(x * p for x, p in noise.items())
    return float(mean), float(sum((x - mean) ** 2 * p for x, p in noise.items()))


@pytest.mark.parametrize("name", NOISES)
def test_means_and_variances_are_those_of_the_distribution(name):
    noise, truth = NOISES[name]
    mean, variance = moments(truth)
    assert noise.mean == pytest.approx(mean, abs=1e-12)
    assert noise.variance == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("scale", [0.4, 1.0, 7.0])
def test_the_variance_of_laplace_noise(scale):
    weights = {x: math.exp(-abs(x) / scale) for x in range(-400, 401)}
    total = math.fsum(weights.values())
    truth = math.fsum(x * x * w for x, w in weights.items()) / total
    assert Noise("laplace", scale).variance == pytest.approx(truth, rel=1e-9)
    assert Noise("laplace", scale, 5).variance == pytest.approx(5 * truth, rel=1e-9)
    assert Noise("laplace", scale).mean == 0


def test_the_largest_value_of_a_distribution():
    assert Noise("binomial", 0.5, trials=9).largest == 9
    assert Noise("table", 1.0, 4, table=bytes_of(TABLE)).largest == 8
    assert Noise("laplace", 1.0).largest is Noise("gaussian", 1.0).largest is None


def test_distributions_that_are_listed_exactly():
    assert Noise("laplace", 2.0).exact and Noise("binomial", 0.5, trials=2).exact
    assert Noise("table", 1.0, 3, table=bytes_of(TABLE)).exact
    assert not Noise("laplace", 2.0, copies=2).exact
    assert not Noise("gaussian", 1e6).exact
    assert [
        Noise(kind, 1.0).symmetric for kind in ("laplace", "gaussian", "binomial", "table")
    ] == [
        True,
        True,
        False,
        False,
    ]


def test_sums_of_unbounded_draws_have_no_exact_pair():
    with pytest.raises(UnsupportedError, match="bounds only"):
        Noise("laplace", 2.0, copies=2).pair(1)


@pytest.mark.parametrize("shift", [-1, 1, 2])
def test_the_pair_of_a_distribution_hides_that_shift(shift):
    assert Noise("laplace", 2.0).pair(shift).worst == pytest.approx(abs(shift) / 2)
    pair = Noise("binomial", 0.25, trials=6).pair(shift)
    noise = exact_binomial(6, 0.25)
    unseen = float(sum(p for x, p in noise.items() if x - shift not in noise))
    assert pair.unseen == pytest.approx(unseen)
    table = Noise("table", 1.0, 2, table=bytes_of(TABLE)).pair(shift)
    twice = distribution_of_sum(exact_table(TABLE.tolist()), 2)
    assert table.unseen == pytest.approx(
        float(sum(p for x, p in twice.items() if x - shift not in twice))
    )


@given(WEIGHTS, st.integers(1, 6))
def test_the_distribution_of_many_draws_from_a_table(weights, times):
    found = _copies(np.array(weights) / sum(weights), times)
    truth = {x: float(p) for x, p in distribution_of_sum(exact_table(weights), times).items()}
    low = min(truth)
    assert [round(m, 12) for m in found] == [
        round(truth.get(low + i, 0.0), 12) for i in range(found.size)
    ]


# --- preset --------------------------------------------------------------------------------------


def ask(sampler):
    """One call of every kind, in a fixed order."""
    return [
        sampler.discrete_laplace(2.0, 2),
        sampler.discrete_gaussian(3.0, (1, 2)),
        sampler.binomial(4, 0.5, 1),
        sampler.laplace_sum(2.0, 5, 1),
        sampler.gaussian_sum(3.0, 6, 1),
        sampler.table(TABLE, 2),
        sampler.table_sum(TABLE, 7, 1),
    ]


def test_draws_are_answered_in_order_and_zero_beyond():
    answers = ask(PresetSampler(np.arange(1, 9)))
    assert [a.tolist() for a in answers] == [[1, 2], [[3, 4]], [5], [6], [7], [8, 0], [0]]
    assert all(a.dtype == np.int64 for a in answers)


def test_every_draw_is_remembered_with_its_distribution():
    sampler = PresetSampler.still()
    ask(sampler)
    masses = bytes_of(TABLE)
    assert sampler.noises == [
        *[Noise("laplace", 2.0)] * 2,
        *[Noise("gaussian", 3.0)] * 2,
        Noise("binomial", 0.5, trials=4),
        Noise("laplace", 2.0, 5),
        Noise("gaussian", 3.0, 6),
        *[Noise("table", 1.0, table=masses)] * 2,
        Noise("table", 1.0, 7, table=masses),
    ]
    assert sampler.calls[1] == (Noise("gaussian", 3.0), (1, 2))
    assert len(sampler.calls) == 7


def test_a_still_sampler_is_silent_and_says_what_it_is():
    assert not any(a.any() for a in ask(PresetSampler.still()))
    assert PresetSampler.still(secure=True).secure is True
    assert PresetSampler.still().secure is False
    one, other = PresetSampler.still(), PresetSampler.still()
    one.binomial(1, 0.5, 1)
    assert other.noises == [] and other.calls == []  # nothing is shared between samplers


@pytest.mark.parametrize("make", [PresetSampler.still, lambda: ScriptedSampler([])])
def test_nothing_is_shuffled(make):
    sampler = make()
    assert sampler.permutation(4).tolist() == [0, 1, 2, 3]
    assert sampler.calls == [("permutation", 4)]


def test_bits_per_unit_of_data_are_left_to_enumeration():
    with pytest.raises(UnsupportedError, match="by enumeration"):
        PresetSampler.still().binomial(np.array([1, 2]), 0.5, 2)


# --- scripted ------------------------------------------------------------------------------------


def test_a_script_chooses_among_what_can_occur():
    sampler = ScriptedSampler([2, 0, 1])
    assert sampler.binomial(3, 0.5, 2).tolist() == [2, 0]
    assert sampler.table(np.array([0, 1, 3]), 1).tolist() == [2]  # the first index has no weight
    assert sampler.binomial(3, 0.5, 1).tolist() == [0]  # beyond the script
    assert (sampler.taken, sampler.options) == ([2, 0, 1, 0], [4, 4, 2, 4])
    truth = math.log(3 / 8 * 1 / 8 * 3 / 4 * 1 / 8)
    assert sampler.log_probability == pytest.approx(truth)


def test_only_the_draws_of_a_window_are_visited():
    sampler = ScriptedSampler([1], first=1, last=2)
    assert sampler.binomial(2, 0.5, 4).tolist() == [1, 1, 1, 1]  # others: the middle value
    assert sampler.options == [3]
    assert sampler.draws == 4
    assert sampler.log_probability == pytest.approx(math.log(0.5))


def test_bits_per_unit_of_data_are_enumerated_one_by_one():
    seen = outcomes(lambda s: bytes(s.binomial(np.array([1, 2]), 0.25, 2).tolist()))
    one, two = exact_binomial(1, 0.25), exact_binomial(2, 0.25)
    expected = {bytes([x, y]): float(one[x] * two[y]) for x, y in itertools.product(one, two)}
    assert seen == pytest.approx(expected)


@given(WEIGHTS, st.integers(1, 3))
def test_sums_from_a_table_are_enumerated_at_once(weights, users):
    seen = outcomes(lambda s: bytes(s.table_sum(np.array(weights), users, 1).tolist()))
    truth = {
        bytes([x]): float(p)
        for x, p in distribution_of_sum(exact_table(weights), users).items()
        if p
    }
    assert seen == pytest.approx(truth)


def test_what_has_no_end_cannot_be_enumerated():
    for name in ("discrete_laplace", "discrete_gaussian", "laplace_sum"):
        with pytest.raises(UnsupportedError, match=f"'{name}' has an infinite support"):
            getattr(ScriptedSampler([]), name)


def test_a_seed_is_not_enumerated():
    sampler = ScriptedSampler([])
    assert not sampler.table(np.ones(256, np.int64), 16).any()
    assert sampler.options == [] and len(sampler.calls) == 1
    sampler.table(np.ones(256, np.int64), 2)
    assert sampler.options == [256, 256]


def test_calls_say_what_was_asked_for():
    sampler = ScriptedSampler([])
    sampler.binomial(2, 0.5, 1)
    sampler.binomial(np.array([1]), 0.5, 1)
    sampler.table(TABLE, 1)
    sampler.table_sum(TABLE, 2, 1)
    assert [call[0] for call in sampler.calls] == ["binomial", "bits", "table", "table_sum"]
    assert sampler.calls[0] == ("binomial", 2, 0.5, 1)


def test_branches_that_depend_on_draws_are_followed():
    """A coin decides whether a die is thrown: outcomes of different depth."""

    def run(sampler):
        if sampler.binomial(1, 0.5, 1)[0]:
            return bytes([10 + sampler.table(np.ones(6, np.int64), 1)[0]])
        return b"tails"

    seen = outcomes(run)
    assert seen.pop(b"tails") == pytest.approx(0.5)
    assert sorted(seen) == [bytes([10 + i]) for i in range(6)]
    assert all(p == pytest.approx(1 / 12) for p in seen.values())


@given(WEIGHTS, WEIGHTS)
def test_probabilities_add_up_to_one(one, other):
    def run(sampler):
        drawn = sampler.table(np.array(one), 2).sum() + 10 * sampler.table(np.array(other), 1)[0]
        return bytes([drawn])

    assert math.fsum(outcomes(run).values()) == pytest.approx(1)


def test_too_many_outcomes_are_refused_with_a_remedy():
    with pytest.raises(TooManyError, match="More than 127 outcomes; audit a smaller shape"):
        outcomes(lambda s: s.binomial(1, 0.5, 7).tobytes(), limit=127)
    assert len(outcomes(lambda s: s.binomial(1, 0.5, 7).tobytes(), limit=128)) == 128


def test_samplers_answer_with_the_shapes_of_real_ones():
    real = SimulationSampler(np.random.default_rng(0))
    for one, other in zip(ask(real), ask(PresetSampler.still()), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
