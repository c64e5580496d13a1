"""Posterior sampling for many runs: the printed posterior, and nothing of the neighbours."""

import numpy as np
import pytest
from scipy import stats

from discreet.learners.streams.lockstep import LanePlanner
from discreet.learners.streams.psrl_lane_kernels import lane_generators, lane_room, sampled_lanes
from helpers.compiled import effective, planned_lanes, random_counts

HORIZON, STATES, CHOICES = 3, 3, 2
PLANNER = LanePlanner(
    plan=sampled_lanes,
    generators=lane_generators(STATES * CHOICES, STATES),
    room=lane_room(STATES * CHOICES, STATES),
)


def lanes(row, runs, seed=0):
    return planned_lanes(PLANNER, row, runs, horizon=HORIZON, seed=seed)


@pytest.fixture(scope="module", params=[(1.0, 0.0), (0.3, 25.0)], ids=str)
def posterior(request):
    """One posterior, a thousand runs; shrunken counts, some of them below zero."""
    counts = random_counts(3, 1, noise=20.0)
    return request.param, counts, lanes(request.param, [counts] * 1000)


def test_transitions_are_dirichlet(posterior):
    row, counts, made = posterior
    np.testing.assert_allclose(made.model[:, :STATES].sum(axis=1), 1.0, rtol=1e-12)
    for i, (s, a) in enumerate(np.ndindex(STATES, CHOICES)):
        shapes = effective(row, counts, s, a)[0]
        for t in range(STATES):
            law = stats.beta(shapes[t], shapes.sum() - shapes[t])
            assert stats.kstest(made.model[i, t], law.cdf).pvalue > 1e-6


def test_rewards_have_the_law_of_the_normal_gamma(posterior):
    """Against draws of tau and of the normal, as the reference takes them."""
    row, counts, made = posterior
    rng = np.random.default_rng(4)
    for i, (s, a) in enumerate(np.ndindex(STATES, CHOICES)):
        _, n, total = effective(row, counts, s, a)
        mean = total / n if n > 0 else 0.5
        b = 1 + n * mean * (1 - mean) / 2 + n * (mean - 0.5) ** 2 / (2 * (1 + n))
        tau = rng.standard_gamma(1 + n / 2, 4000) / b
        drawn = (0.5 + total) / (1 + n) + rng.standard_normal(4000) / np.sqrt((1 + n) * tau)
        assert stats.ks_2samp(made.model[i, STATES], drawn).pvalue > 1e-6


def test_all_draws_of_a_model_are_independent(posterior):
    _, _, made = posterior
    ranks = stats.rankdata(made.model[:, [0, STATES]].reshape(-1, 1000), axis=1)
    correlations = np.corrcoef(ranks)[~np.eye(len(ranks), dtype=bool)]
    assert abs(correlations).max() < 5.5 / np.sqrt(1000)


def test_the_policy_is_optimal_in_the_drawn_model():
    made = lanes((1.0, 0.0), [random_counts(seed, 1) for seed in range(6)])
    assert not made.model[:, STATES + 1].any()
    parts = made.model.reshape(STATES, CHOICES, STATES + 2, 6)
    values = np.zeros((STATES, 6))
    for h in reversed(range(HORIZON)):
        q = parts[:, :, STATES] + np.einsum("satr,tr->sar", parts[:, :, :STATES], values)
        assert np.array_equal(made.actions[h], q.argmax(axis=1))
        values = q.max(axis=1)
        np.testing.assert_allclose(made.values[h], values, rtol=1e-12)


def test_a_run_does_not_depend_on_its_neighbours():
    """Ten company sizes: vectors of any width and what is left over give the same numbers."""
    runs = [random_counts(seed, 1, scale=3.0, noise=2.0) for seed in range(13)]
    made = lanes((1.0, 4.0), runs)
    for size in range(1, 11):
        fewer = lanes((1.0, 4.0), runs[:size])
        assert np.array_equal(fewer.model, made.model[..., :size])


def test_drawn_rewards_are_not_capped():
    made = lanes((1.0, 0.0), [random_counts(0, 1, scale=0.0)] * 40)
    assert made.values[0].max() > HORIZON
