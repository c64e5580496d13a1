"""The gate on stationarity: passes what is stationary, stops what is not, row by row."""

import numpy as np
import pytest
from scipy import stats

from discreet.learners import estimate as columns
from discreet.learners.estimate import CountSums
from discreet.learners.pooling import Pooled, pooled_rows


def sums_of(transition_sums, rewards, visits, noise=60.0, seed=0):
    """Noisy sums of ``visits`` of every row, of transitions and rewards of every step."""
    rng = np.random.default_rng(seed)
    sums = CountSums.empty(*rewards.shape)
    sums.number[:] = np.arange(rewards.size).reshape(rewards.shape)
    counts = rng.multinomial(visits, transition_sums) + rng.normal(
        0, noise**0.5, transition_sums.shape
    )
    sums.transitions[:] = counts.reshape(rewards.size, -1)
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., columns.VISITS], part[..., columns.SAMPLING] = visits, visits
        part[..., columns.NOISE], part[..., columns.VISIT_VARIANCE] = noise, noise
    gained = rng.binomial(visits, rewards) + rng.normal(0, noise**0.5, rewards.shape)
    sums.reward_sums[..., columns.TOTAL] = gained
    return sums


def world(seed, horizon=6):
    rng = np.random.default_rng([9, seed])
    transition_sums = np.repeat(rng.dirichlet(np.ones(4), (1, 4, 3)), horizon, axis=0)
    return transition_sums, np.repeat(rng.random((1, 4, 3)), horizon, axis=0)


def test_what_is_stationary_passes():
    # All rows together exceed two standard deviations in one world of forty, by chance.
    found = [pooled_rows(sums_of(*world(seed), 2000, seed=seed), 0.25) for seed in range(40)]
    assert sum(pooled.transitions.all() for pooled in found) >= 36
    assert sum(pooled.rewards.all() for pooled in found) >= 34


@pytest.mark.parametrize("seed", range(3))
def test_a_changing_world_is_not_pooled(seed):
    rng = np.random.default_rng(seed)
    transition_sums, rewards = rng.dirichlet(np.ones(4), (6, 4, 3)), rng.random((6, 4, 3))
    pooled = pooled_rows(sums_of(transition_sums, rewards, 2000), 0.25)
    assert not pooled.transitions.any()
    assert not pooled.rewards.any()


def test_one_odd_row_is_left_out_and_the_others_stay():
    transition_sums, rewards = world(1)
    transition_sums[2, 1, 0] = transition_sums[2, 1, 0][::-1]
    pooled = pooled_rows(sums_of(transition_sums, rewards, 600), 0.25)
    assert not pooled.transitions[1, 0]
    assert pooled.transitions.sum() == 11


@pytest.mark.parametrize("odd", [1, 2])
def test_one_odd_row_that_many_saw_says_nothing_about_the_others_and_two_do(odd):
    # Counted among all rows together, its chi-square alone would end the pooling of all.
    transition_sums, rewards = world(1)
    for a in range(odd):
        transition_sums[2, 1, a] = transition_sums[2, 1, a][::-1]
    pooled = pooled_rows(sums_of(transition_sums, rewards, 50_000), 0.25)
    assert pooled.transitions.sum() == (11 if odd == 1 else 0)
    assert pooled.rewards.any() == (odd == 1)


def test_of_fewer_than_ten_rows_none_may_be_odd():
    # A combination lock of six rows was pooled for 1e5 users, with one of them left out.
    rng = np.random.default_rng(4)
    transition_sums = np.repeat(rng.dirichlet(np.ones(2), (1, 2, 3)), 8, axis=0)
    transition_sums[2, 1, 0] = transition_sums[2, 1, 0][::-1]
    pooled = pooled_rows(sums_of(transition_sums, np.full((8, 2, 3), 0.5), 2000), 0.25)
    assert not pooled.transitions.any()


def swinging(which, swing):
    """Shares of a half that go up and down from step to step, each known to 0.1.

    ``swing[S, A]`` says by how much, of two states and six steps; NaN: nobody was there.
    """
    up = np.array([1.0, -1.0] * 3)[:, None, None]
    sums = CountSums.empty(6, *swing.shape)
    sums.number[:] = np.arange(sums.number.size).reshape(sums.number.shape)
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., columns.VISITS], part[..., columns.NOISE] = 1000.0 * ~np.isnan(swing), 100.0**2
    by = 1000 * np.nan_to_num(up * swing)
    sums.transitions[:], sums.reward_sums[..., columns.TOTAL] = 500.0, 500.0
    if which == "rewards":
        sums.reward_sums[..., columns.TOTAL] += by
    else:
        sums.transitions[:] += np.stack([by, -by], axis=-1).reshape(-1, 2)
    return sums


@pytest.mark.parametrize(("deviations", "passes"), [(3.9, True), (4.1, False)])
@pytest.mark.parametrize("which", ["transitions", "rewards"])
def test_rows_that_are_not_odd_end_the_pooling_together_from_four_deviations_on(
    which, deviations, passes
):
    # Twelve rows of six steps; of transitions, both next states are compared.
    components = 2 if which == "transitions" else 1
    square = stats.chi2.isf(stats.norm.sf(deviations), 12 * 5 * components)
    swing = np.full((2, 6), 0.1 * np.sqrt(square / (12 * 6 * components)))
    pooled = getattr(pooled_rows(swinging(which, swing), 0.25), which)
    assert pooled.all() if passes else not pooled.any()


@pytest.mark.parametrize(("odd", "passes"), [(2, True), (3, False)])
@pytest.mark.parametrize("which", ["transitions", "rewards"])
def test_a_tenth_of_the_rows_may_be_odd_of_those_that_somebody_saw(which, odd, passes):
    # Forty rows, of which twenty were seen.
    swing = np.zeros((2, 20))
    swing[:, 10:] = np.nan
    swing[0, :odd] = 0.4
    pooled = getattr(pooled_rows(swinging(which, swing), 0.25), which)
    assert pooled.any() == passes
    assert not pooled[0, :odd].any()


def test_odd_rewards_leave_transitions_pooled():
    transition_sums, rewards = world(2)
    rewards = np.random.default_rng(0).random(rewards.shape)
    pooled = pooled_rows(sums_of(transition_sums, rewards, 2000), 0.25)
    assert pooled.transitions.all()
    assert not pooled.rewards.any()


def test_what_noise_explains_is_no_contradiction():
    transition_sums, rewards = world(1)
    transition_sums[2, 1, 0] = transition_sums[2, 1, 0][::-1]
    assert pooled_rows(sums_of(transition_sums, rewards, 10, noise=400.0), 0.25).transitions.all()


def test_nothing_is_pooled_where_nothing_may_be():
    pooled = Pooled.all_or_none(CountSums.empty(3, 2, 4), False)
    assert pooled.transitions.shape == pooled.rewards.shape == (2, 4)
    assert not (pooled.transitions | pooled.rewards).any()


def test_a_declared_problem_is_pooled_everywhere():
    declared = Pooled.all_or_none(CountSums.empty(1, 2, 4), True)
    assert declared.transitions.shape == declared.rewards.shape == (2, 4)
    assert (declared.transitions & declared.rewards).all()
