"""Posterior sampling: the conjugate update, what noise does, and the compiled draws."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet import Local, NoPrivacy
from discreet.learners.continual import ROWS, make_learner
from discreet.learners.psrl import (
    LdpPsrl,
    Psrl,
    _finish,
    draw_normals,
    draw_uniforms,
    first_memory,
    fresh_words,
    sampled_values,
)
from discreet.mdp import RandomMDP
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.simulation.users import no_counts
from discreet.privacy.statistics import PrivateCounts
from helpers.compiled import ModelDraws, effective, planned, random_counts

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
    _, rewards = learner.draw_model(counts_of(learner, n, [n, 0], n, ones))
    np.testing.assert_allclose(rewards, expected)
    assert learner.rng.shapes[2] == pytest.approx(a)  # after the gammas of two transitions


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


HORIZON, STATES, CHOICES = 3, 3, 2


def memory_of(visits, seed, horizon=HORIZON):
    """What a run begins with."""
    words = fresh_words(np.random.default_rng(seed))
    return first_memory((horizon, *visits.shape[1:]), visits.size, words)


def run(row, counts, seed=0, horizon=HORIZON):
    memory = memory_of(counts[1], seed, horizon)
    return planned(sampled_values, row, counts, memory=memory, seed=seed)


def draws_of(visits, seed):
    """The numbers of `run`, where memory and `planned` begin a generator each."""
    words, others = np.random.default_rng(seed), np.random.default_rng(seed)
    return ModelDraws(words, visits.shape, others)


def models(row, counts, count, seed=0):
    """Many models of one posterior, in one run: ``[count, G, S, A, S + 1]``."""
    memory, found = memory_of(counts[1], seed), []
    for i in range(count):
        made = planned(sampled_values, row, counts, memory=memory, seed=(seed, i))
        memory = made.memory
        found.append(made.model[..., : STATES + 1])
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
def test_the_model_is_the_reference_draw_by_draw(seed, groups, row):
    counts = random_counts(seed, groups, noise=8.0)
    rng = draws_of(counts[1], seed)
    found = run(row, counts, seed=seed)
    model, means = drawn(row, counts, rng)
    np.testing.assert_allclose(found.model[..., :STATES], model, rtol=1e-11)
    np.testing.assert_allclose(found.model[..., STATES], means, rtol=1e-11)


@pytest.mark.parametrize("prior", [1e-300, 1e-3, 1e305])
def test_extreme_priors_leave_the_rewards_alone(prior):
    """Gammas of a tiny prior may all be zero, and then p is no number, here as in the reference."""
    counts = random_counts(0, HORIZON, scale=0.0)
    rng = draws_of(counts[1], 0)
    found = run((prior, 0.0), counts)
    with np.errstate(invalid="ignore"):
        model, means = drawn((prior, 0.0), counts, rng)
    np.testing.assert_allclose(found.model[..., STATES], means, rtol=1e-11)
    np.testing.assert_allclose(found.model[..., :STATES], model, rtol=1e-11)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-301, 1.0, 1e305])
def test_gammas_of_any_size_become_probabilities(scale):
    model = np.zeros((2 + ROWS, 1, 1))
    model[:5, 0, 0] = 3 * scale, 1 * scale, 2.0, 0.25, 8.0  # gammas, tau, mu, b/lambda
    _finish(model, np.array([0.0, 0.0, 0.0, 1.5]), 2)
    np.testing.assert_allclose(model[:4, 0, 0], [0.75, 0.25, 0.25 + 1.5 * 2, 0.0], rtol=1e-12)


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


def test_draws_of_a_model_and_of_the_next_are_uncorrelated(posterior):
    """Ranks of one probability and the reward of every pair; where numbers are drawn anew, too."""
    _, _, made = posterior
    flat = made[..., [0, STATES]].reshape(len(made), -1)
    ranks = stats.rankdata(np.hstack([flat[:-1], flat[1:]]), axis=0)
    correlations = np.corrcoef(ranks.T)[~np.eye(ranks.shape[1], dtype=bool)]
    assert abs(correlations).max() < 6.5 / np.sqrt(len(made))


def test_a_quick_yes_passes_the_exact_test():
    """v·min(1, 1 + z) > 3/4·d·z⁴ is enough for -ln(1 - v) > 3d·(z - ln(1 + z) - z²/2 + z³/3)."""
    z = np.concatenate([np.linspace(-0.999, 3, 4001), np.geomspace(3, 1e3, 200)])
    integral = z - np.log1p(z) - z**2 / 2 + z**3 / 3
    for d in (0.1, 2 / 3, 5.0, 1e4):
        least = 0.75 * d * z**4 / np.minimum(1, 1 + z)  # v of a quick yes is above
        some = least < 1
        assert some.any()
        assert (-np.log1p(-least[some]) >= 3 * d * integral[some] - 1e-9).all()


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


WIDTH = 20_000


def generators(seed, width=WIDTH):
    state = np.random.SeedSequence(seed).generate_state(4 * width, np.uint64)
    return tuple(row.copy() for row in state.reshape(4, width))


def saying(word):
    """One generator whose next output is this word."""
    last = (word << 41 | word >> 23) & (1 << 64) - 1
    return tuple(np.array([part], np.uint64) for part in (0, 0, 0, last))


def test_normals_are_those_of_box_and_muller():
    """The series of logarithm, sine and cosine, and two bits that turn the angle."""
    rng = np.random.default_rng(2)
    for radius, turn in rng.integers(0, 1 << 64, (200, 2), np.uint64).tolist():
        first, second = np.zeros(1), np.zeros(1)
        draw_normals(saying(radius), saying(turn), first, second)
        uniforms = np.zeros((2, 1))
        draw_uniforms(*saying(radius), uniforms[0])
        draw_uniforms(*saying(turn), uniforms[1])
        length = math.sqrt(-2 * math.log(uniforms[0, 0]))
        angle = (uniforms[1, 0] - 0.5) * math.pi / 2
        pair = [length * math.cos(angle) * ((turn & 2) - 1), length * math.sin(angle)]
        expected = pair[::-1] if turn & 1 else pair
        np.testing.assert_allclose([first[0], second[0]], expected, rtol=1e-12, atol=1e-13)


def test_normals_are_normal_and_independent():
    first, second = np.zeros(WIDTH), np.zeros(WIDTH)
    draw_normals(generators(3), generators(4), first, second)
    for sample in (first, second):  # a true distribution fails once in a million
        assert stats.kstest(sample, stats.norm().cdf).pvalue > 1e-6
    for one, other in ((first, second), (first**2, second**2), (abs(first), second)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 5.5 / math.sqrt(WIDTH)
    quarters = np.bincount(2 * (first > 0) + (second > 0), minlength=4)
    assert abs(quarters - WIDTH / 4).max() < 5.5 * math.sqrt(WIDTH * 3 / 16)


def test_a_uniform_next_to_one_gives_no_root_of_a_negative_number():
    """The logarithm of 1 - 2^-53 may come out above zero."""
    first, second = np.full(1, np.nan), np.full(1, np.nan)
    draw_normals(saying(2**64 - 1), generators(1, 1), first, second)
    assert abs(first[0]) + abs(second[0]) < 1e-6


@pytest.mark.parametrize("word", [0, 1 << 12, (1 << 64) - 1, 1 << 63, 4095])
def test_uniforms_are_strictly_between_zero_and_one(word):
    out = np.zeros(1)
    draw_uniforms(*saying(word), out)
    assert 0.0 < out[0] < 1.0
    assert out[0] == (word >> 12) * 2.0**-52 + 2.0**-53
