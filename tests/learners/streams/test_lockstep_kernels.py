"""The planner of many runs against the planner of one, run by run."""

import numpy as np
import pytest

from discreet._seeds import RunSeeds
from discreet.learners.streams.ldp_obi_kernels import signed_values
from discreet.learners.streams.lockstep_kernels import plan_lanes
from discreet.privacy.streams.lanes import lane_states
from helpers.compiled import planned, random_counts

HORIZON, STATES, CHOICES = 3, 3, 2
ROW = np.array([2.0, 3.0, 0.4, 1.1, 0.3, 0.7])


def lanes(row, runs, horizon=HORIZON, seed=0):
    """Plan for several runs at once; each is (transitions, visits, rewards) ``[1, ...]``."""
    public = np.stack([np.concatenate([p.ravel() for p in run]) for run in runs], axis=1)
    states, choices = runs[0][1].shape[1:]
    n, seeds = len(runs), [RunSeeds(seed, i) for i in range(len(runs))]
    model, q = np.zeros((states * choices, states + 2, n)), np.zeros((states, choices, n))
    values, actions = np.zeros((horizon + 1, states, n)), np.zeros((horizon, states, n), np.int64)
    ties = lane_states(seeds, "policy", 1)
    plan_lanes(np.array(row), np.ascontiguousarray(public), model, q, values, ties, actions)
    return actions, values


def alone(row, run, horizon=HORIZON):
    memory = np.zeros((1, horizon, *run[1].shape[1:]))
    return planned(signed_values, row, run, memory=memory)


def test_every_run_gets_the_policy_that_it_would_get_alone():
    runs = [random_counts(seed, 1, noise=2.0) for seed in range(9)]
    actions, values = lanes(ROW, runs)
    for j, run in enumerate(runs):
        one = alone(ROW, run)
        assert np.array_equal(actions[..., j], one.actions)
        np.testing.assert_allclose(values[..., j], one.values, rtol=1e-10)


def test_a_run_does_not_depend_on_its_neighbours():
    runs = [random_counts(seed, 1, noise=2.0) for seed in range(5)]
    _, values = lanes(ROW, runs)
    _, single = lanes(ROW, runs[2:3])
    np.testing.assert_array_equal(values[..., 2:3], single)


def test_one_unknown_pair_in_one_run_leaves_the_others_alone():
    runs = [random_counts(seed, 1) for seed in range(3)]
    runs[1][1][0, 2, 0] = -50.0
    actions, values = lanes(ROW, runs)
    assert (actions[:, 2, 1] == 0).all()
    assert values[:, 2, 1].tolist() == [3.0, 2.0, 1.0, 0.0]
    assert np.isfinite(values).all()
    for j in (0, 2):
        np.testing.assert_allclose(values[..., j], alone(ROW, runs[j]).values, rtol=1e-10)


def test_two_negative_denominators_are_unknown_although_their_product_is_positive():
    run = random_counts(4, 1)
    run[1][0, 0, 1] = -9.0
    run[0][0, 0, 1] = -9.0
    _, values = lanes(ROW, [run])
    assert values[:, 0, 0].tolist() == [3.0, 2.0, 1.0, 0.0]


def test_ties_are_broken_by_the_generator_of_each_run():
    nothing = (np.zeros((1, 2, 3, 2)), np.zeros((1, 2, 3)), np.zeros((1, 2, 3)))
    actions, _ = lanes(np.zeros(6), [nothing] * 300)
    counts = np.bincount(actions.ravel(), minlength=3)
    assert abs(counts - counts.sum() / 3).max() < 5 * np.sqrt(counts.sum() * 2 / 9)
    again, _ = lanes(np.zeros(6), [nothing] * 300)
    assert np.array_equal(actions, again)
    fewer, _ = lanes(np.zeros(6), [nothing] * 7)
    assert np.array_equal(actions[..., :7], fewer)


@pytest.mark.parametrize("seed", range(3))
def test_renamed_actions_give_the_renamed_policy(seed):
    run = random_counts(seed, 1)
    actions, values = lanes(ROW, [run])
    renamed, again = lanes(ROW, [tuple(np.flip(part, axis=2) for part in run)])
    assert np.array_equal(renamed, CHOICES - 1 - actions)
    np.testing.assert_allclose(again, values, rtol=1e-12)


def test_no_step_is_worth_more_than_one():
    _, values = lanes(ROW * [1, 1, 100, 100, 100, 100], [random_counts(6, 1)])
    assert values[:, 0, 0].tolist() == [3.0, 2.0, 1.0, 0.0]
