"""Batch sizes of flow-ucb: goals, bounds, rounding, and at most 300 recruitments."""

import math

import pytest

import discreet
from discreet.learners.flow_ucb import sizing
from discreet.mdp.shape import Shape

SHAPE = Shape(3, 2, 4)


def noise_of(trust):
    plan = trust.calibrate(SHAPE, schedule="batch", statistics=("transitions", "rewards"))
    return plan, sizing.Noise(plan)


def test_a_goal_is_a_part_of_what_is_unknown_or_of_half_the_value():
    assert sizing.goal(1.0, 4.0, 0.7, 0.0) == pytest.approx(0.7)
    assert sizing.goal(8.0, 4.0, 0.7, 0.0) == pytest.approx(0.7 * 2)
    assert sizing.goal(8.0, 4.0, 0.7, 1.0) == pytest.approx(math.sqrt(0.7) * 8)
    assert sizing.goal(8.0, 0.0, 0.7, 0.0) == pytest.approx(5.6)


def test_batches_double_at_most_and_the_first_takes_a_tenth_at_most():
    assert sizing.most_users(0, 1000) == 100
    assert sizing.most_users(0, 5) == 1
    assert sizing.most_users(300, 700) == 300
    assert sizing.most_users(800, 200) == 200


@pytest.mark.parametrize("target", [1, 2, 57, 1234, 10**6])
def test_the_smallest_that_is_enough_is_found_within_a_percent(target):
    found = sizing.smallest(lambda users: users >= target, 10**6)
    assert target <= found <= target + max(1, target // 100)


def test_where_nothing_is_enough_all_are_taken():
    assert sizing.smallest(lambda _: False, 77) == 77


@pytest.mark.parametrize(
    ("users", "left", "expected"),
    [(7, 99, 7), (123, 999, 130), (9901, 10**5, 10_000), (95, 90, 90)],
)
def test_sizes_have_two_digits(users, left, expected):
    assert sizing.rounded(users, left) == expected


@pytest.mark.parametrize("episodes", [1000, 10**5, 10**9])
def test_batches_that_want_to_be_tiny_are_at_most_three_hundred(episodes):
    told = batches = 0
    while told < episodes:
        least = sizing.min_users(told, episodes, batches)
        told += sizing.rounded(min(max(1, least), episodes - told), episodes - told)
        batches += 1
    assert batches <= sizing.MOST_BATCHES


def test_small_batches_are_free_as_long_as_there_are_few():
    assert sizing.min_users(10**6, 10**9, sizing.MOST_BATCHES // 2 - 1) == 1
    assert sizing.min_users(10**6, 10**9, sizing.MOST_BATCHES // 2) > 10**4


@pytest.mark.parametrize("users", [1.0, 3.0, 1000.0, 1500.0])
def test_noise_between_powers_of_two_is_that_of_the_plan(users):
    plan, noise = noise_of(discreet.Local(1))
    assert noise(users)[0] == pytest.approx(plan.noise_variance(int(users))["transitions"])
    assert noise(users)[1] == pytest.approx(plan.noise_variance(int(users))["rewards"])


@pytest.mark.parametrize(
    ("trust", "growth", "renewed"),
    [
        (discreet.Central(1, 1e-6), 0.0, 1.0),
        (discreet.Local(1), 1.0, 0.0),
        (discreet.NoPrivacy(), 0.0, 0.0),
    ],
)
def test_noise_is_paid_anew_by_batches_or_grows_with_the_users(trust, growth, renewed):
    noise = noise_of(trust)[1]
    assert noise.growth == pytest.approx(growth)
    assert noise.renewed == pytest.approx(renewed)
