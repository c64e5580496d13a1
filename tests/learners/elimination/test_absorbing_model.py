"""From private counts to the absorbing model and its bounds."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.learners.elimination.explorers import (
    CountPool,
    MeasuredVisits,
    absorbing_model,
    absorption_optimism,
    bernstein_widths,
    frequent_tuples,
    upper_and_lower,
)
from discreet.mdp import RandomMDP, sample_counts, solve, uniform_policy
from discreet.mdp.dense import optimal_values
from discreet.mdp.shape import Shape
from discreet.privacy.trust import NoPrivacy

SHAPE = Shape(states=2, actions=1, horizon=2)
START = np.array([True, False])


def small_pool(variance=4.0):
    transitions = np.zeros(SHAPE.transitions)
    transitions[0, 0, 0] = [90.0, 10.0]
    transitions[1, 0, 0] = [60.0, 30.0]
    transitions[1, 1, 0] = [5.0, -3.0]
    rewards = np.array([[[20.0], [0.0]], [[45.0], [400.0]]])
    noise = np.full(SHAPE.visits, variance)
    return CountPool(transitions, rewards, noise, noise.copy(), 100)


@pytest.mark.core
def test_infrequent_transitions_are_absorbed():
    threshold = np.full(SHAPE.visits, 10.0)
    model = absorbing_model(small_pool(), threshold, START)
    assert model.transitions[0, 0, 0].tolist() == [0.9, 0.0]
    assert (model.transitions[1] == 0).all()
    assert model.absorbed[0, 0, 0] == pytest.approx(0.1)
    assert (model.absorbed[-1] == 0).all()
    assert absorption_optimism(model)[0, 0, 0] == pytest.approx(0.1)


def spread_pool(counts, rewards):
    """One pair of the first step that leads to two states; the last step is empty."""
    pool = CountPool.empty(SHAPE)
    pool.transitions[0, 0, 0] = counts
    pool.rewards[0, 0, 0] = rewards
    return pool


@pytest.mark.core
@pytest.mark.parametrize("given", [False, True])
def test_definition_5_keeps_the_share_of_the_infrequent_out_of_the_others(given):
    """Counts [700, 300], threshold 353: P = 0.7, absorbed 0.3, r = 0.5, whoever decides it."""
    pool, threshold = spread_pool([700.0, 300.0], 500.0), np.full(SHAPE.visits, 353.0)
    frequent = frequent_tuples(pool, threshold)
    assert frequent[0, 0, 0].tolist() == [True, False]
    if given:
        zeros = np.zeros(SHAPE.visits)
        model = absorbing_model(pool, zeros, START, frequent=frequent)
    else:
        model = absorbing_model(pool, threshold, START)
    assert model.transitions[0, 0, 0].tolist() == [0.7, 0.0]
    assert model.absorbed[0, 0, 0] == pytest.approx(0.3)
    assert model.rewards[0, 0, 0] == 0.5
    assert model.visits[0, 0, 0] == 1000.0


def test_the_last_step_has_no_frequent_tuples():
    assert not frequent_tuples(small_pool(), np.zeros(SHAPE.visits))[-1].any()


def test_the_widest_noise_is_that_of_any_statistic():
    pool = small_pool(4.0)
    assert (pool.widest == 4.0).all()
    pool.reward_variance[0] = 9.0
    assert (pool.widest[0] == 9.0).all()
    pool.measured = MeasuredVisits(np.zeros(SHAPE.visits), np.full(SHAPE.visits, 16.0))
    assert (pool.widest == 16.0).all()


def test_rewards_are_clipped_and_need_evidence():
    model = absorbing_model(small_pool(), np.full(SHAPE.visits, 4.0), START)
    assert model.rewards[..., 0].tolist() == [[0.2, 0.0], [0.5, 1.0]]
    cautious = absorbing_model(small_pool(), np.full(SHAPE.visits, 6.0), START)
    assert cautious.rewards[1, 1, 0] == 0.0


def test_an_empty_pool_absorbs_everything():
    model = absorbing_model(CountPool.empty(SHAPE), np.zeros(SHAPE.visits), START)
    assert (model.transitions == 0).all()
    assert (model.rewards == 0).all()
    assert not model.known.any()
    assert model.initial.tolist() == [1.0, 0.0]


def test_first_states_are_estimated_only_if_there_are_several():
    pool = small_pool()
    pool.transitions[0, 1, 0] = [200.0, 100.0]
    model = absorbing_model(pool, np.zeros(SHAPE.visits), np.array([True, True]))
    assert model.initial == pytest.approx([0.25, 0.75])
    assert absorbing_model(pool, np.zeros(SHAPE.visits), START).initial.tolist() == [1.0, 0.0]


def test_width_is_the_formula():
    model = absorbing_model(small_pool(), np.zeros(SHAPE.visits), START)
    values = np.array([[0.0, 0.0], [0.5, 1.0], [0.0, 0.0]])
    width = bernstein_widths(model, values, iota=2.0, confidence=0.3)
    mean = 0.9 * 0.5 + 0.1
    variance = 0.9 * 0.25 + 0.1 - mean**2 + 0.2 * 0.8
    deviations = (0.5 - mean) ** 2 + (1.0 - mean) ** 2
    root = math.sqrt(variance / 100 + 4.0 * (1 + deviations) / 100**2)
    assert width[0, 0, 0] == pytest.approx(0.3 * (2.0 * root + 2.0 / 100))
    assert (bernstein_widths(model, values, iota=1e6, confidence=1.0) == 1.0).all()


def test_noise_widens():
    quiet = absorbing_model(small_pool(0.0), np.zeros(SHAPE.visits), START)
    loud = absorbing_model(small_pool(100.0), np.zeros(SHAPE.visits), START)
    values = optimal_values(quiet.transitions, quiet.rewards)
    seen = quiet.visits > 0
    assert (
        bernstein_widths(loud, values, 1.0, 0.1)[seen]
        > bernstein_widths(quiet, values, 1.0, 0.1)[seen]
    ).all()


def test_weights_scale_counts_and_square_into_variance():
    pool = CountPool.empty(SHAPE)
    pool.add(small_pool(), 0.5)
    pool.add(small_pool(), 0.25)
    assert pool.transitions == pytest.approx(0.75 * small_pool().transitions)
    assert pool.transition_variance == pytest.approx(4.0 * (0.5**2 + 0.25**2))
    assert pool.users == 200
    again = CountPool.from_dict(pool.to_dict())
    assert all(np.array_equal(vars(again)[name], value) for name, value in vars(pool).items())


def test_bounds_enclose_the_true_value_at_full_confidence():
    mdp = RandomMDP(states=3, actions=2, horizon=4, concentration=0.5, stationary=False, seed=4)
    release = NoPrivacy().calibrate(mdp.shape, statistics=("transitions", "rewards"))
    rng = np.random.default_rng(0)
    start = mdp.initial > 0
    for users in (100, 1000, 100_000):
        counts = sample_counts(mdp, uniform_policy(mdp.shape), users, rng)
        private = release.release(counts, sampler=_NoNoise())
        pool = CountPool.of_release(private)
        model = absorbing_model(pool, np.zeros(mdp.shape.visits), start)
        upper, lower = upper_and_lower(model, 10.0, 1.0)
        best = solve(mdp).value
        assert model.initial @ optimal_values(model.transitions, upper)[0] >= best
        assert model.initial @ optimal_values(model.transitions, lower)[0] <= best


class _NoNoise:
    secure = False


def test_missing_statistics_are_refused():
    mdp = RandomMDP()
    release = NoPrivacy().calibrate(mdp.shape, statistics=("transitions",))
    counts = sample_counts(mdp, uniform_policy(mdp.shape), 5, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="needs transitions and rewards"):
        CountPool.of_release(release.release(counts, sampler=_NoNoise()))
