"""Posterior sampling: the conjugate update, what noise does, and the law of the draws."""

import numpy as np
import pytest
from scipy import stats

from discreet import Local, NoPrivacy
from discreet.learners.continual import make_learner
from discreet.learners.psrl import LdpPsrl, Psrl, sampled_values
from discreet.mdp import RandomMDP
from helpers.compiled import effective, planned, random_counts


def coefficients(kind, trust, users, **settings):
    mdp = RandomMDP(states=2, actions=2, horizon=2)
    learner = make_learner(kind, mdp, trust, 1000, np.random.default_rng(3), settings)
    return learner, learner.coefficients(np.array(users))


@pytest.mark.core
def test_practical_ldp_psrl_shrinks_by_the_variance_of_the_noise():
    learner, rows = coefficients(LdpPsrl, Local(5, mechanism="laplace"), [0, 100], prior=0.7)
    assert (rows[:, 0] == 0.7).all()
    assert rows[:, 1].tolist() == [0.0, 0.1 * learner.mechanism.noise_variance(100)["visits"]]


@pytest.mark.core
def test_printed_ldp_psrl_takes_counts_at_face_value():
    trust = Local(5, mechanism="laplace")
    _, rows = coefficients(LdpPsrl, trust, [0, 1, 999], constants="theory")
    assert rows[:, 1].tolist() == [0.0, 0.0, 0.0]
    assert coefficients(Psrl, NoPrivacy(), [7])[1].tolist() == [[1.0, 0.0]]


def bits_one_by_one(n, ones):
    """Normal-Gamma, updated bit by bit from (1/2, 1, 1, 1)."""
    mu, lam, a, b = 0.5, 1.0, 1.0, 1.0
    for x in [1.0] * ones + [0.0] * (n - ones):
        b += lam * (x - mu) ** 2 / (2 * (lam + 1))
        mu = (lam * mu + x) / (lam + 1)
        lam, a = lam + 1, a + 0.5
    return mu, lam, a, b


@pytest.mark.parametrize(("n", "ones"), [(0, 0), (1, 1), (7, 2), (40, 40)])
def test_the_closed_form_is_the_update_bit_by_bit(n, ones):
    counts = (
        np.full((1, 1, 1, 1), float(n)),
        np.full((1, 1, 1), float(n)),
        np.full((1, 1, 1), float(ones)),
    )
    found = planned(sampled_values, (1.0, 0.0), counts, memory=np.zeros((1, 1, 1, 1)), seed=5)
    mu, lam, a, b = bits_one_by_one(n, ones)
    rng = np.random.default_rng(5)
    rng.standard_gamma(1.0 + n)
    tau = rng.standard_gamma(a) / b
    expected = mu + rng.standard_normal() / np.sqrt(lam * tau)
    assert found.model[0, 0, 0, 1] == pytest.approx(expected, rel=1e-11)


HORIZON, STATES, CHOICES = 3, 3, 2


def run(row, counts, seed=0, horizon=HORIZON):
    memory = np.zeros((1, horizon, *counts[1].shape[1:]))
    return planned(sampled_values, row, counts, memory=memory, seed=seed)


def models(row, counts, count):
    """Many models of one posterior: ``[count, G, S, A, S + 1]``."""
    found = [run(row, counts, seed=(0, i)).model[..., : STATES + 1] for i in range(count)]
    return np.array(found)


def drawn(row, counts, rng):
    """Transitions and rewards of one posterior model, draw by draw in the order of the places."""
    prior, noise = row
    transitions, visits, rewards = counts
    model, means = np.zeros_like(transitions), np.zeros_like(visits)
    for place in np.ndindex(visits.shape):
        n = max(0.0, visits[place])
        share = n / (n + noise) if n > 0 else 0.0
        gammas = np.array(
            [rng.standard_gamma(prior + share * max(0.0, c)) for c in transitions[place]]
        )
        model[place] = gammas / gammas.sum()
        means[place] = drawn_reward(share * n, share * np.clip(rewards[place], 0.0, n), rng)
    return model, means


def drawn_reward(n, total, rng):
    """Normal-Gamma: updates of (mu, lambda, a, b) = (1/2, 1, 1, 1) by n bits of this total."""
    mean = total / n if n > 0 else 0.5
    mu, lam = (0.5 + n * mean) / (1 + n), 1 + n
    b = 1 + 0.5 * (n * mean * (1 - mean) + n * (mean - 0.5) ** 2 / lam)
    tau = rng.standard_gamma(1 + n / 2) / b
    return mu + rng.standard_normal() / np.sqrt(lam * tau)


@pytest.mark.parametrize("row", [(1.0, 0.0), (0.3, 25.0)])
@pytest.mark.parametrize("groups", [1, HORIZON])
@pytest.mark.parametrize("seed", range(3))
def test_the_model_is_drawn_as_the_formulas_say(seed, groups, row):
    counts = random_counts(seed, groups, noise=8.0)
    found = run(row, counts, seed=seed)
    model, means = drawn(row, counts, np.random.default_rng(seed))
    np.testing.assert_allclose(found.model[..., :STATES], model, rtol=1e-11)
    np.testing.assert_allclose(found.model[..., STATES], means, rtol=1e-11)


@pytest.fixture(scope="module", params=[(1.0, 0.0), (0.3, 25.0), (1.0, 1e9)], ids=str)
def posterior(request):
    """Models of one posterior; shrunken counts, some below zero, and hardly more than the prior."""
    counts = random_counts(3, 1, noise=20.0)
    return request.param, counts, models(request.param, counts, 4000)


def test_transitions_are_dirichlet(posterior):
    """Kolmogorov and Smirnov, and moments: chance fails them once in a million."""
    row, counts, made = posterior
    np.testing.assert_allclose(made[..., :STATES].sum(axis=-1), 1.0, rtol=1e-12)
    for s, a in np.ndindex(STATES, CHOICES):
        shapes = effective(row, counts, s, a)[0]
        for t in range(STATES):
            exact, sample = stats.beta(shapes[t], shapes.sum() - shapes[t]), made[:, 0, s, a, t]
            assert stats.kstest(sample, exact.cdf).pvalue > 1e-8
            assert abs(sample.mean() - exact.mean()) < 6 * exact.std() / np.sqrt(len(sample))
            spread = np.sqrt((exact.stats("k") + 2) / len(sample))
            assert abs(sample.var() / exact.var() - 1) < 7 * spread


def test_rewards_are_students(posterior):
    """Normal of a gamma precision: mu + sqrt(b/(lambda·a))·t of 2a degrees."""
    row, counts, made = posterior
    for s, a in np.ndindex(STATES, CHOICES):
        _, n, total = effective(row, counts, s, a)
        mean = total / n if n > 0 else 0.5
        b = 1 + n * mean * (1 - mean) / 2 + n * (mean - 0.5) ** 2 / (2 * (1 + n))
        scale = np.sqrt(b / ((1 + n) * (1 + n / 2)))
        exact = stats.t(2 + n, loc=(0.5 + total) / (1 + n), scale=scale)
        assert stats.kstest(made[:, 0, s, a, STATES], exact.cdf).pvalue > 1e-8


def test_draws_of_one_model_are_uncorrelated(posterior):
    """Ranks of one probability and the reward of every pair."""
    _, _, made = posterior
    ranks = stats.rankdata(made[..., [0, STATES]].reshape(len(made), -1), axis=0)
    correlations = np.corrcoef(ranks.T)[~np.eye(ranks.shape[1], dtype=bool)]
    assert abs(correlations).max() < 6.5 / np.sqrt(len(made))


@pytest.mark.parametrize("groups", [1, HORIZON])
@pytest.mark.parametrize("seed", range(3))
def test_the_policy_is_optimal_in_the_drawn_model(seed, groups):
    found = run((1.0, 0.0), random_counts(seed, groups), seed=seed)
    values = np.zeros(STATES)
    for h in reversed(range(HORIZON)):
        g = h if groups > 1 else 0
        q = found.model[g, ..., STATES] + found.model[g, ..., :STATES] @ values
        assert np.array_equal(found.actions[h], q.argmax(axis=-1))
        values = q.max(axis=-1)
        np.testing.assert_allclose(found.values[h], values, rtol=1e-12)


def test_drawn_rewards_are_not_capped():
    """No data at all: rewards have heavy tails, so some value exceeds the number of steps."""
    nothing = random_counts(0, 1, scale=0.0)
    peaks = [run((1.0, 0.0), nothing, seed=seed).values[0].max() for seed in range(40)]
    assert max(peaks) > HORIZON


def test_many_visits_leave_little_to_chance():
    transitions = np.array([[[[6e7, 4e7]], [[1e7, 9e7]]]]).reshape(1, 2, 1, 2)
    visits = np.full((1, 2, 1), 1e8)
    rewards = np.array([[[2e7], [7e7]]])
    found = run((1.0, 0.0), (transitions, visits, rewards), horizon=2)
    np.testing.assert_allclose(found.model[0, 0, 0, :3], [0.6, 0.4, 0.2], atol=1e-3)
    np.testing.assert_allclose(found.model[0, 1, 0, :3], [0.1, 0.9, 0.7], atol=1e-3)
    expected = [0.2 + 0.6 * 0.2 + 0.4 * 0.7, 0.7 + 0.1 * 0.2 + 0.9 * 0.7]
    np.testing.assert_allclose(found.values[0], expected, atol=5e-3)


def test_compiled_counts_below_zero_leave_the_prior():
    """Gamma(prior) for every transition and the prior of the reward, whatever the noise was."""
    negative = tuple(-np.abs(part) - 1.0 for part in random_counts(2, 1))
    empty = random_counts(2, 1, scale=0.0)
    one, other = run((0.7, 9.0), negative, seed=3), run((0.7, 9.0), empty, seed=3)
    np.testing.assert_array_equal(one.model[..., :4], other.model[..., :4])


def test_noise_widens_the_posterior():
    """The spread of a drawn probability is that of the shrunken sample size."""
    counts = (np.full((1, 2, 1, 2), 500.0), np.full((1, 2, 1), 1000.0), np.full((1, 2, 1), 500.0))
    spreads = []
    for noise in (0.0, 9000.0):  # n_eff = 1000, then 100
        draws = [
            run((1.0, noise), counts, seed, horizon=1).model[0, 0, 0, 0] for seed in range(400)
        ]
        spreads.append(np.std(draws))
    assert spreads[0] == pytest.approx(np.sqrt(0.25 / 1003), rel=0.2)
    assert spreads[1] == pytest.approx(np.sqrt(0.25 / 103), rel=0.2)


def test_the_draws_are_the_learners_and_nothing_else_is_random():
    counts = random_counts(4, 1)
    same = [run((1.0, 0.0), counts, seed=7).model for _ in range(2)]
    assert np.array_equal(*same)
    assert not np.array_equal(same[0], run((1.0, 0.0), counts, seed=8).model)
