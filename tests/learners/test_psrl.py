"""Posterior sampling: the conjugate update, and what noise does to the sample size."""

import numpy as np
import pytest

from discreet import Local, NoPrivacy
from discreet.learners.continual import make_learner
from discreet.learners.psrl import LdpPsrl, Psrl
from discreet.mdp import RandomMDP
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.simulation.users import no_counts
from discreet.privacy.statistics import PrivateCounts

MDP = RandomMDP(states=2, actions=2, horizon=2)


def learner_of(kind, trust, **settings):
    return make_learner(kind, MDP, trust, 1000, np.random.default_rng(3), settings)


def counts_of(learner, users, transitions, visits, rewards):
    """The same counts for every pair."""
    return PrivateCounts(
        users=users,
        transitions=np.tile(np.array(transitions, float), (1, 2, 2, 1)),
        visits=np.full((1, 2, 2), float(visits)),
        rewards=np.full((1, 2, 2), float(rewards)),
        noise_variance=dict.fromkeys(STATISTICS, 0.0),
        support=np.ones((1, 2, 2), np.bool_),
        guarantee=learner.mechanism.guarantee,
    )


def draws(learner, counts, times=4000):
    drawn = [learner.draw_model(counts) for _ in range(times)]
    return np.array([t for t, _ in drawn]), np.array([r for _, r in drawn])


def bits_one_by_one(n, ones):
    """Normal-Gamma, updated bit by bit from (1/2, 1, 1, 1)."""
    mu, lam, a, b = 0.5, 1.0, 1.0, 1.0
    for x in [1.0] * ones + [0.0] * (n - ones):
        b += lam * (x - mu) ** 2 / (2 * (lam + 1))
        mu = (lam * mu + x) / (lam + 1)
        lam, a = lam + 1, a + 0.5
    return mu, lam, a, b


class Recorded:
    """A generator that writes down what it is asked and answers with fixed numbers."""

    def __init__(self):
        self.shapes = []

    def standard_gamma(self, shape):
        self.shapes.append(shape)
        return 2.0

    def standard_normal(self):
        return 1.0


@pytest.mark.core
@pytest.mark.parametrize(("n", "ones"), [(0, 0), (1, 1), (7, 2), (40, 40)])
def test_the_closed_form_is_the_update_bit_by_bit(n, ones):
    learner = learner_of(Psrl, NoPrivacy(), stationary=True)
    learner.rng = Recorded()
    mu, lam, a, b = bits_one_by_one(n, ones)
    expected = mu + 1.0 / np.sqrt(lam * 2.0 / b)
    assert learner._draw_reward(float(n), float(ones)) == pytest.approx(expected)
    assert learner.rng.shapes == [pytest.approx(a)]


def test_transitions_have_the_mean_of_their_dirichlet():
    learner = learner_of(Psrl, NoPrivacy(), stationary=True, prior=0.5)
    transitions, rewards = draws(learner, counts_of(learner, 20, [15, 5], 20, 12))
    np.testing.assert_allclose(transitions.sum(axis=-1), 1.0)
    spread = np.sqrt((15.5 / 21) * (5.5 / 21) / 22 / len(transitions))  # of a mean of Beta draws
    assert abs(transitions[..., 0].mean(axis=0) - 15.5 / 21).max() < 6 * spread
    assert abs(rewards.mean(axis=0) - 12.5 / 21).max() < 6 * rewards.std() / 60


@pytest.mark.core
def test_noise_shrinks_the_sample_size():
    """n visits with noise variance v count as n²/(n + c·v)."""
    learner = learner_of(LdpPsrl, Local(5, mechanism="laplace"), prior=1.0)
    learner.rng = Recorded()
    users, n = 100, 300.0
    noise = 0.1 * learner.mechanism.noise_variance(users)["visits"]
    learner.draw_model(counts_of(learner, users, [200, 100], n, 150))
    share = n / (n + noise)
    expected = [1 + share * 200, 1 + share * 100, 1 + share * n / 2]
    assert learner.rng.shapes[:3] == pytest.approx(expected)
    assert 0.0 < share < 0.9


@pytest.mark.core
def test_counts_below_zero_leave_the_prior():
    learner = learner_of(LdpPsrl, Local(5, mechanism="laplace"), prior=0.7)
    learner.rng = Recorded()
    learner.draw_model(counts_of(learner, 10, [-40, -3], -12, 30))
    assert learner.rng.shapes[:3] == pytest.approx([0.7, 0.7, 1.0])


@pytest.mark.core
def test_printed_ldp_psrl_takes_counts_at_face_value():
    learner = learner_of(LdpPsrl, Local(5, mechanism="laplace"), constants="theory")
    assert learner.coefficients(np.array([0, 1, 999]))[:, 1].tolist() == [0.0, 0.0, 0.0]
    assert learner.next_policy(no_counts(learner.mechanism)).actions.shape == (2, 2)
