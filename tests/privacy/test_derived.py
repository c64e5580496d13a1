"""Guarantees that follow: joint from shuffle and local privacy, concentration from noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.mdp.shape import Shape
from discreet.privacy.accounting.piles import zcdp_delta
from discreet.privacy.guarantee import implied
from discreet.privacy.trust import Central, Local, NoPrivacy, Shuffle

SHAPE = Shape(states=2, actions=2, horizon=3)
STREAM = {"schedule": "continual", "episodes": 64}


@pytest.mark.parametrize("trust", [Shuffle(1, 1e-6), Local(1)])
def test_shuffle_and_local_privacy_imply_joint_privacy(trust):
    mechanism = trust.calibrate(SHAPE)
    [found] = implied(mechanism.guarantee)
    assert found.guarantee.notion == "JDP"
    assert found.guarantee.epsilon == mechanism.guarantee.epsilon
    assert found.guarantee.delta == mechanism.guarantee.delta
    assert "billboard" in found.reason
    assert set(mechanism.guarantee.assumptions) < set(found.guarantee.assumptions)
    assert found.to_dict()["reason"] == found.reason


@pytest.mark.parametrize("trust", [Central(1, 1e-6), NoPrivacy()])
def test_joint_privacy_implies_nothing_more(trust):
    assert implied(trust.calibrate(SHAPE).guarantee) == ()


def test_rho_is_the_squared_distance_over_two_variances():
    mechanism = Central(1, 1e-6, mechanism="gaussian").calibrate(SHAPE)
    assert mechanism.concentrated() == pytest.approx(18 / (2 * mechanism.noise.sigma**2))
    local = Local(1, 1e-6, mechanism="gaussian").calibrate(SHAPE, stationary=True, **STREAM)
    assert local.concentrated() == pytest.approx(3 * 18 / (2 * local.noise.distribution.sigma**2))
    tree = Central(1, 1e-6, mechanism="tree-gaussian").calibrate(SHAPE, **STREAM)
    assert tree.concentrated() == pytest.approx(6 * 18 / (2 * tree.noise.distribution.sigma**2))


def test_the_renyi_divergence_of_a_unit_move_is_what_rho_says():
    """Of the law that is released, at several orders: at most order·rho, and almost that."""
    mechanism = Central(1, 1e-6, mechanism="gaussian").calibrate(SHAPE, statistics=("visits",))
    rho = mechanism.concentrated() / 6  # of one of the 2H unit moves
    reach = math.ceil(40 * mechanism.noise.sigma)
    logs = -(np.arange(-reach, reach + 1) ** 2) / (2 * mechanism.noise.sigma**2)
    logs -= np.logaddexp.reduce(logs)
    here, moved = logs[1:], logs[:-1]
    for order in (2, 5, 17):
        terms = order * here + (1 - order) * moved
        divergence = float(np.logaddexp.reduce(terms)) / (order - 1)
        assert 0.99 * order * rho < divergence <= order * rho * (1 + 1e-6)


@pytest.mark.parametrize("mechanism", ["toeplitz", "tree-gaussian", "tree-honaker", "tree-iid"])
def test_concentration_of_streams_is_consistent_with_their_guarantee(mechanism):
    """It converts to a delta no better than the exact one, and not much worse."""
    plan = Central(1, 1e-6, mechanism=mechanism).calibrate(SHAPE, **STREAM)
    assert 1e-6 * 0.99 < zcdp_delta(plan.concentrated(), 1.0) < 3e-5


@pytest.mark.parametrize(
    "plan",
    [
        NoPrivacy().calibrate(SHAPE),
        Central(1).calibrate(SHAPE),
        Central(1).calibrate(SHAPE, **STREAM),
        Local(1).calibrate(SHAPE),
        Shuffle(1, 1e-6).calibrate(SHAPE),
    ],
    ids=lambda plan: f"{plan.guarantee.notion}-{plan.name}",
)
def test_other_noise_is_not_concentrated(plan):
    assert plan.concentrated() is None


def test_an_infinite_epsilon_stays_infinite():
    guarantee = Shuffle(1, 1e-6).calibrate(SHAPE).guarantee
    [found] = implied(replace(guarantee, epsilon=math.inf, delta=1.0))
    assert found.guarantee.epsilon == math.inf
