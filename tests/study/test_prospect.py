"""How many users a study needs: more for less privacy loss, and never rounded down."""

import math

import pytest

import discreet
from discreet.mdp.shape import Shape
from discreet.study.config import PRECISION, Prospect, users_needed

SHAPE = Shape(3, 2, 4)


def needed(trust, episodes=10**6):
    return users_needed(SHAPE, trust.calibrate(SHAPE), episodes)


def test_without_privacy_it_is_a_matter_of_chance_alone():
    exact = SHAPE.states * SHAPE.actions * 0.25 / PRECISION**2
    assert exact <= needed(discreet.NoPrivacy()) <= 1.1 * exact + 10


def test_less_privacy_loss_needs_more_users_and_less_trust_many_more():
    found = [needed(discreet.Central(epsilon, 1e-6)) for epsilon in (10, 1, 0.1)]
    assert found == sorted(found) and len(set(found)) == 3
    assert needed(discreet.Local(1)) > 20 * needed(discreet.Central(1, 1e-6))


def test_that_many_are_enough_and_much_fewer_are_not():
    plan = discreet.Central(1, 1e-6).calibrate(SHAPE)

    def error(users):
        visits = users / (SHAPE.states * SHAPE.actions)
        return math.sqrt(0.25 / visits + plan.noise_variance(users)["rewards"] / visits**2)

    found = needed(discreet.Central(1, 1e-6))
    assert error(found) <= PRECISION < error(int(0.8 * found))


def test_streams_are_judged_at_their_own_time():
    trust = discreet.Central(1, 1e-6, mechanism="tree-gaussian")
    plan = trust.calibrate(SHAPE, schedule="continual", episodes=500)
    assert users_needed(SHAPE, plan, 500) > needed(discreet.Central(1, 1e-6))


@pytest.mark.parametrize(
    ("users", "episodes", "said"),
    [(900, 2_000, "has 2,000."), (9_000, 2_000, "expect to learn little"), (None, 1, "No number")],
)
def test_it_says_what_to_expect(users, episodes, said):
    guarantee = discreet.Central(1).calibrate(SHAPE).guarantee
    assert said in str(Prospect(guarantee, users, episodes))
