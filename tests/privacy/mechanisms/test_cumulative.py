"""Noise over time: the way a caller cuts its blocks changes nothing, and a stream ends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import CalibrationError, InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.base import guaranteed
from discreet.privacy.mechanisms.noise import (
    IndependentNoise,
    Laplace,
    Pieces,
    check_episode,
    check_exact,
)
from discreet.privacy.mechanisms.toeplitz import ToeplitzNoise
from discreet.privacy.mechanisms.tree import TreeNoise, TreeShape, binary_shape
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.trust import Central, Local
from helpers.sampling import sampler

CUTS = st.lists(st.integers(0, 5), max_size=6).filter(lambda cuts: sum(cuts) <= 20)
NOISES = {
    "independent": IndependentNoise(episodes=20, distribution=Laplace(3.0)),
    "pooled": IndependentNoise(episodes=20, distribution=Laplace(3.0), copies=4),
    "tree": TreeNoise(episodes=20, distribution=Laplace(4.0), shape=binary_shape(20)),
    "signed": TreeNoise(episodes=20, distribution=Laplace(4.0), shape=TreeShape(2, 5)),
    "padded": TreeNoise(
        episodes=20, distribution=Laplace(4.0), shape=binary_shape(20), padded=True
    ),
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_blocks_of_any_size_are_parts_of_one_run(noise):
    whole = noise.start(3, sampler()).block(20)
    run = noise.start(3, sampler())
    cut = np.concatenate([run.block(n) for n in (1, 0, 7, 12)])
    assert np.array_equal(whole, cut)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_adding_users_one_by_one_gives_count_plus_noise(noise):
    users = np.random.default_rng(1).integers(0, 2, (20, 3))
    run, block = noise.start(3, sampler()), noise.start(3, sampler()).block(20)
    for k, user in enumerate(users):
        expected = users[: k + 1].sum(axis=0) + block[k]
        assert np.array_equal(run.add(user) * noise.unit, expected)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_the_last_release_has_the_stated_variance_and_keeps_its_bound(noise):
    run = noise.start(30_000, sampler(2))
    last = run.block(20)[-1]
    assert last.var() == pytest.approx(noise.variance(20), rel=0.06)
    assert (np.abs(last) > noise.bound(20, 0.05)).mean() <= 0.05


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_all_bounds_are_the_bounds_one_by_one(noise):
    each = [noise.bound(k, 0.01) for k in range(1, 21)]
    assert noise.bounds(0.01) == pytest.approx(each, rel=1e-9)
    some = np.array([20, 3, 4, 16])
    assert noise.bounds(0.01, some) == pytest.approx([each[k - 1] for k in some], rel=1e-9)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_a_stream_ends_and_a_refused_user_is_not_counted(noise):
    run = noise.start(2, sampler())
    run.block(19)
    with pytest.raises(InvalidInputError, match=r"at most 20 releases.*calibrate a longer stream"):
        run.block(2)
    run.block(1)
    with pytest.raises(InvalidInputError, match="its guarantee covers 20"):
        run.add(np.array([1, 1]))
    assert run._counts.sum() == 0


@pytest.mark.parametrize("episode", [0, 21, -3])
def test_releases_are_numbered_by_the_users_seen(episode):
    with pytest.raises(InvalidInputError, match="episode"):
        NOISES["independent"].variance(episode)
    with pytest.raises(InvalidInputError, match="episode"):
        check_episode(episode, 20)


def test_a_stream_has_at_least_one_release():
    with pytest.raises(InvalidInputError, match="episodes"):
        IndependentNoise(episodes=0, distribution=Laplace(1.0))


@settings(max_examples=40)
@given(CUTS)
def test_pieces_hand_out_rows_in_order_whatever_is_asked_for(cuts):
    drawn = []

    def draw(first, rows):
        drawn.append((first, rows))
        return (np.arange(first, first + rows), np.arange(first, first + rows) ** 2)

    pieces = Pieces(draw, width=1 << 16, episodes=20, secure=False)  # four rows at a time
    taken = [pieces.take(n) for n in cuts]
    rows = np.concatenate([np.empty(0, int), *(one for one, _ in taken)])
    squares = np.concatenate([np.empty(0, int), *(two for _, two in taken)])
    assert np.array_equal(rows, np.arange(sum(cuts)))
    assert np.array_equal(squares, rows**2)
    assert all(n <= 4 for _, n in drawn)


def test_secure_noise_is_drawn_when_it_is_needed_and_not_before():
    drawn = []

    def draw(first, rows):
        drawn.append(rows)
        return (np.zeros(rows),)

    pieces = Pieces(draw, width=1, episodes=20, secure=True)
    pieces.take(3)
    assert drawn == [1, 1, 1]


@given(st.integers(1, 9), st.integers(1, 9))
def test_reach_counts_units_piles_and_cells(units, pile):
    sensitivity = Sensitivity(units=units, pile=pile)
    assert sensitivity.l1 == units
    assert (sensitivity.cells - 1) * pile < units <= sensitivity.cells * pile
    assert sensitivity.l2**2 == pytest.approx(units * pile)


def test_reach_of_an_episode():
    shape, three = Shape(2, 2, 5), ("transitions", "visits", "rewards")
    assert Sensitivity.of(shape.horizon, three, stationary=False) == Sensitivity(
        units=30, pile=1, horizon=5
    )
    assert Sensitivity.of(shape.horizon, three, stationary=True) == Sensitivity(
        units=30, pile=5, horizon=5
    )
    with pytest.raises(InvalidInputError, match="losses"):
        Sensitivity.of(shape.horizon, ("losses",), stationary=False)


def test_a_guarantee_speaks_the_notion_of_its_trust_model():
    assert guaranteed(Central(1), 1, 0).notion == "JDP"
    assert guaranteed(Local(1), 1, 0).notion == "LDP"
    assert guaranteed(Local(1), 1, 0).assumptions


def test_values_lie_on_the_released_grid():
    noise = Central(1, 1e-6).calibrate_stream(Shape(2, 2, 2), episodes=8).noise
    assert isinstance(noise, ToeplitzNoise)
    block = noise.start(4, sampler()).block(8)
    assert np.array_equal(np.rint(block / noise.unit) * noise.unit, block)


HUGE = 36 / 2**44 * 1.0000001
"""The least epsilon of one Laplace report at H = 6."""


@pytest.mark.parametrize(
    "calibrate",
    [
        lambda: Local(HUGE, 0, "laplace").calibrate_stream(Shape(1, 1, 6), episodes=1_000_000),
        lambda: TreeNoise(
            episodes=1_000_000, distribution=Laplace(2.0**44), shape=binary_shape(1_000_000)
        ),
        lambda: ToeplitzNoise(episodes=20, steps=1e9).scaled(2.0**40),
        lambda: Central(20 * HUGE, 0, "tree-laplace").calibrate_stream(
            Shape(1, 1, 6), episodes=1_000_000
        ),
    ],
    ids=["local", "tree", "toeplitz", "central"],
)
def test_noise_that_doubles_would_round_to_even_is_refused(calibrate):
    with pytest.raises(CalibrationError, match=r"larger epsilon"):
        calibrate()


def test_the_widest_noise_that_is_accepted_keeps_its_parity():
    """Beyond 2^53 all doubles are even: half of the noise must be odd until the last release."""
    distribution = Laplace(2.0**46 / np.sqrt(2 * 400))
    noise = IndependentNoise(episodes=400, distribution=distribution)
    last = noise.start(4000, sampler()).block(400)[-1]
    assert np.abs(last).max() > 2**47
    assert np.abs(last % 2).mean() == pytest.approx(0.5, abs=0.04)
    with pytest.raises(CalibrationError, match="releases"):
        IndependentNoise(episodes=402, distribution=distribution)


def test_what_is_exact_is_said_in_steps_of_the_released_grid():
    check_exact(2.0**92)
    check_exact(2.0**60, 2.0**-16)
    with pytest.raises(CalibrationError, match=r"7.036e\+13 steps, got 1.408e\+14"):
        check_exact(2.0**94)
    with pytest.raises(CalibrationError, match="fewer users or releases"):
        check_exact(2.0**62, 2.0**-16)
