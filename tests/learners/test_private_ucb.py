"""Private-UCB-VI, -PO and PUCB: the widths cover what the noise can do, by hand and at random."""

import math

import numpy as np
import pytest

from discreet import Central, NoPrivacy
from discreet.learners.continual import make_learner
from discreet.learners.dp_ucbvi import Column
from discreet.learners.private_ucb import PrivateUcbPo, PrivateUcbVi, Pucb
from discreet.mdp import RiverSwim
from discreet.privacy.simulation.users import no_counts

MDP = RiverSwim(states=3, horizon=4)
S, A, H, K = 3, 2, 4, 200


def learner_of(kind, trust=None, **settings):
    return make_learner(
        kind,
        MDP,
        trust or Central(5),
        K,
        np.random.default_rng(0),
        {"constants": "theory"} | settings,
    )


def counts_and_noise(rng, error):
    """True counts of one pair, and noisy ones with every counter off by at most ``error``."""
    moves = rng.multinomial(rng.integers(1, 400), rng.dirichlet(np.ones(S)))
    earned = rng.binomial(moves.sum(), rng.random())
    extreme = rng.choice([-error, error], size=S + 2)
    mild = rng.uniform(-error, error, size=S + 2)
    noise = np.where(rng.random(S + 2) < 0.7, extreme, mild)
    return moves, earned, moves + noise[:S], moves.sum() + noise[S], earned + noise[S + 1]


def test_the_width_of_pucb_covers_the_noise():
    """With N~ > 2E, estimates from noisy counts are off by at most the last term."""
    rng = np.random.default_rng(5)
    tight = 0.0
    for _ in range(4000):
        E = rng.uniform(0.5, 40)
        moves, earned, noisy, n, sums = counts_and_noise(rng, E)
        if n <= 2 * E:
            continue
        values = H * rng.integers(0, 2, size=S)
        plain = earned / moves.sum() + moves @ values / moves.sum()
        private = sums / n + noisy @ values / n
        width = (1 + S * H) * (3 * E / n + 2 * E**2 / n**2)
        assert abs(private - plain) <= width
        tight = max(tight, abs(private - plain) / width)
    assert tight > 0.3  # the width is not idle


def test_the_factors_of_pucb():
    learner = learner_of(Pucb)
    users = np.array([50])
    E = learner.errors(users)[0]
    root, linear, square = learner.coefficients(users)[
        0, [Column.ROOT, Column.LINEAR, Column.SQUARE]
    ]
    log = math.log(9 * S * A * H * K * H / 0.1)
    assert root == pytest.approx((H + 1) * math.sqrt(2 * log))
    assert linear == pytest.approx((1 + S * H) * 3 * E)
    assert square == pytest.approx((1 + S * H) * 2 * E**2)


def test_the_factors_of_value_iteration_and_policy_optimisation():
    users = np.array([50])
    L_c = math.sqrt(2 * math.log(4 * S * A * K * H / 0.1))
    L_p = math.sqrt(4 * S * math.log(6 * S * A * K * H / 0.1))
    for kind, root in ((PrivateUcbVi, L_c + H * L_c), (PrivateUcbPo, L_c + H * L_p)):
        learner = learner_of(kind)
        E = learner.errors(users)[0]
        found = learner.coefficients(users)[0]
        assert found[Column.ROOT] == pytest.approx(root)
        assert found[Column.LINEAR] == pytest.approx(3 * E + H * (S * E + 2 * E))


@pytest.mark.core
def test_a_count_within_twice_the_error_says_nothing_to_pucb():
    learner = learner_of(Pucb)
    E = learner.errors(np.array([50]))[0]
    model = learner.model(no_counts(learner.mechanism))
    for n, known in ((1.99 * E, False), (2.01 * E, True)):
        seen = type(model)(model.transitions, model.rewards, np.full_like(model.visits, n))
        bonus = learner.bonus(0, seen, np.zeros(S), 50)
        assert np.isfinite(bonus).all() == known


@pytest.mark.core
@pytest.mark.parametrize("constants", ["theory", "practical"])
def test_policy_optimisation_starts_uniform_and_moves_by_its_rate(constants):
    """Nothing is known: all Q values are equal, so the mirror step changes nothing."""
    learner = learner_of(PrivateUcbPo, NoPrivacy(), constants=constants)
    policy = learner.next_policy(no_counts(learner.mechanism))
    np.testing.assert_allclose(policy.distribution(MDP.shape), 1 / A)
    np.testing.assert_allclose(learner.policy, 1 / A)
    scale = {"theory": 1.0, "practical": 20.0}[constants]
    assert learner.rate == pytest.approx(scale * math.sqrt(2 * math.log(A) / K) / H)
