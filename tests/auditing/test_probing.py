"""How draws enter what is published: toy mechanisms whose matrices are known."""

import numpy as np
import pytest

from discreet.auditing.additive import DEPENDS, Additive, probe, random_draws
from discreet.auditing.probes import Noise
from discreet.errors import UnsupportedError
from helpers import toys
from helpers.properties import given, st

pytestmark = pytest.mark.core
MATRIX = np.array([[1.0, 0.5, 0.0], [0.25, 1.0, 2.0]])


def mixed(data, sampler):
    """Draws enter by a matrix with fractions."""
    return data + MATRIX @ sampler.discrete_gaussian(3.0, 3)


def prefixes(data, sampler):
    """Running sums of data and of noise, as in a tree without levels."""
    return np.cumsum(data + sampler.discrete_laplace(2.0, data.size))


def test_noise_of_its_own_on_every_number():
    seen = probe(toys.toy(toys.laplace))
    assert seen.noises == (Noise("laplace", 2.0),) * 2
    assert np.array_equal(seen.response, np.eye(2))
    assert [move.tolist() for move in seen.moves] == [[1.0, -1.0]]
    assert seen.places == (0, 1)


def test_running_sums():
    seen = probe(toys.toy(prefixes, (0, 0, 0), other=(1, 0, 0)))
    assert np.array_equal(seen.response, np.tril(np.ones((3, 3))))
    assert seen.moves[0].tolist() == [1, 1, 1]


def test_fractions_of_draws():
    seen = probe(toys.toy(mixed))
    assert np.allclose(seen.response, MATRIX, atol=1e-12)
    assert (seen.response[:, 2] == [0.0, 2.0]).all()  # whole numbers are whole


def test_more_draws_than_are_probed_at_once():
    size = 75
    path = toys.toy(toys.laplace, [0] * size, other=[1] + [0] * (size - 1))
    assert np.array_equal(probe(path).response, np.eye(size))


def test_every_neighbour_has_its_move():
    path = toys.toy(toys.laplace, (0, 0), up=(1, 0), down=(0, -2), same=(0, 0))
    assert [m.tolist() for m in probe(path).moves] == [[1, 0], [0, -2], [0, 0]]


def test_outputs_without_noise_are_rows_of_zeros():
    def half(data, sampler):
        return [data[0] + sampler.discrete_laplace(2.0, 1)[0], 7.0]

    assert probe(toys.toy(half)).response.tolist() == [[1.0], [0.0]]


def test_draws_that_are_thrown_away_are_columns_of_zeros():
    def wasteful(data, sampler):
        sampler.discrete_laplace(2.0, 3)
        return toys.laplace(data, sampler)

    response = probe(toys.toy(wasteful)).response
    assert not response[:, :3].any()
    assert np.array_equal(response[:, 3:], np.eye(2))


def test_bits_in_one_sum_are_one_distribution():
    def bits(data, sampler):
        return data + sampler.binomial(3, 0.5, data.size) + sampler.binomial(4, 0.5, data.size)

    seen = probe(toys.toy(bits))
    assert seen.noises == (Noise("binomial", 0.5, trials=7),) * 2
    assert np.array_equal(seen.response, np.eye(2))
    assert seen.places == (0, 1)


def test_bits_of_other_chances_stay_apart():
    def bits(data, sampler):
        return data + sampler.binomial(3, 0.5, data.size) + sampler.binomial(4, 0.25, data.size)

    assert len(probe(toys.toy(bits)).noises) == 4


def test_draws_from_tables_add_up_to_copies():
    def tables(data, sampler):
        return data + sum(sampler.table(np.array([1, 2, 1]), data.size) for _ in range(3))

    seen = probe(toys.toy(tables))
    assert [noise.copies for noise in seen.noises] == [3, 3]


def test_unbounded_draws_are_never_merged():
    def twice(data, sampler):
        return toys.laplace(toys.laplace(data, sampler), sampler)

    assert len(probe(toys.toy(twice)).noises) == 4


def test_both_kinds_of_sampler_are_seen():
    def branches(data, sampler):
        return data + (1 if sampler.secure else 2) * sampler.discrete_laplace(2.0, data.size)

    path = toys.toy(branches)
    assert np.array_equal(probe(path, secure=True).response, np.eye(2))
    assert np.array_equal(probe(path, secure=False).response, 2 * np.eye(2))


# --- what is refused -----------------------------------------------------------------------------


def louder(data, sampler):
    """The same draws, used twice where the first number is positive."""
    return data + (1 + (data[0] > 0)) * sampler.discrete_laplace(2.0, data.size)


def other_noise(data, sampler):
    """Less noise where the first number is positive."""
    return data + sampler.discrete_laplace(1.0 if data[0] > 0 else 2.0, data.size)


def more_draws(data, sampler):
    """One more draw where the first number is positive."""
    sampler.discrete_laplace(2.0, 1 + int(data[0] > 0))
    return toys.laplace(data, sampler)


def folded(data, sampler):
    """Not a sum: the size of the draw."""
    return data + np.abs(sampler.discrete_laplace(2.0, data.size))


def clipped(data, sampler):
    """Not a sum either: noise beyond a hundred is cut off."""
    return data + np.clip(sampler.discrete_laplace(2.0, data.size), -100, 100)


@pytest.mark.parametrize(
    "release", [louder, other_noise, more_draws, folded, clipped, toys.flipped]
)
def test_noise_that_is_not_simply_added_is_refused(release):
    with pytest.raises(UnsupportedError, match=DEPENDS):
        probe(toys.toy(release))


def test_a_size_that_depends_on_data_is_refused():
    def longer(data, sampler):
        return toys.laplace(np.zeros(2 + data[0]), sampler)

    with pytest.raises(UnsupportedError, match="size of what is published"):
        probe(toys.toy(longer))


def test_a_later_neighbour_is_looked_at_too():
    """The first neighbour is harmless, the last one is louder."""
    quiet = {f"quiet {i}": (0, i) for i in range(3)}
    with pytest.raises(UnsupportedError, match=DEPENDS):
        probe(toys.toy(louder, **quiet, loud=(1, 0)))


@pytest.mark.parametrize("release", [louder, other_noise])
@pytest.mark.parametrize("place", [0, 1, 7, 18])
def test_one_loud_neighbour_among_many_is_found(release, place):
    """A stream has a neighbour for every user and respect: each of them is run with noise."""
    many = {f"user {i}": (int(i == place), i) for i in range(19)}
    with pytest.raises(UnsupportedError, match=DEPENDS):
        probe(toys.toy(release, **many))


# --- hints ---------------------------------------------------------------------------------------


def test_a_true_hint_saves_the_impulses():
    calls = []

    def counted(data, sampler):
        calls.append(1)
        return mixed(data, sampler)

    path = toys.toy(counted)
    probe(path)
    alone = len(calls)
    seen = probe(path, hint=probe(toys.toy(mixed)))
    assert len(calls) - alone < alone
    assert np.allclose(seen.response, MATRIX)


@pytest.mark.parametrize("wrong", [2 * MATRIX, MATRIX[:, ::-1], 0 * MATRIX])
def test_a_false_hint_is_not_believed(wrong):
    hint = Additive((Noise("gaussian", 3.0),) * 3, wrong, ())
    assert np.allclose(probe(toys.toy(mixed), hint=hint).response, MATRIX)


def test_a_hint_of_other_draws_is_ignored():
    hint = Additive((Noise("laplace", 9.0),), np.ones((2, 1)), ())
    assert np.array_equal(probe(toys.toy(toys.laplace), hint=hint).response, np.eye(2))


def test_a_hint_may_list_draws_in_another_order():
    def two(data, sampler):
        coarse = sampler.discrete_laplace(8.0, data.size)
        return data + coarse + sampler.discrete_laplace(2.0, data.size)

    def swapped(data, sampler):
        fine = sampler.discrete_laplace(2.0, data.size)
        return data + 2 * fine + sampler.discrete_laplace(8.0, data.size)

    hint = probe(toys.toy(swapped))
    seen = probe(toys.toy(two), hint=hint)
    assert [noise.scale for noise in seen.noises] == [8, 8, 2, 2]
    assert np.array_equal(seen.response, np.hstack([np.eye(2), np.eye(2)]))


@given(st.integers(0, 50), st.integers(1, 9))
def test_random_draws_can_occur(seed, trials):
    noises = [Noise("laplace", 2.0), Noise("binomial", 0.5, trials=trials), Noise("gaussian", 1e9)]
    drawn = random_draws(noises, np.random.default_rng(seed), 99)
    assert abs(drawn[0]) <= 99
    assert 0 <= drawn[1] <= trials
    assert abs(drawn[2]) <= 64 * 10**9


def test_random_draws_of_fine_noise_are_large():
    noises = [Noise("gaussian", 1e9)] * 8
    drawn = random_draws(noises, np.random.default_rng(0), 99)
    assert np.abs(drawn).max() > 10**9
