"""LDP-OBI for many runs against LDP-OBI for one, run by run."""

import numpy as np
import pytest

from discreet.learners.streams.ldp_obi_kernels import signed_values
from discreet.learners.streams.ldp_obi_lane_kernels import signed_lanes
from discreet.learners.streams.lockstep import LanePlanner
from helpers.compiled import planned, planned_lanes, random_counts

HORIZON, STATES, CHOICES = 3, 3, 2
ROW = np.array([2.0, 3.0, 0.4, 1.1, 0.3, 0.7])


def lanes(row, runs):
    made = planned_lanes(LanePlanner(plan=signed_lanes), row, runs, horizon=HORIZON)
    return made.actions, made.values


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
