"""UCBVI for many runs against UCBVI for one, run by run."""

import numpy as np
import pytest

from discreet.learners.streams.lockstep import LanePlanner
from discreet.learners.streams.ucbvi_kernels import Column, optimistic_policy
from discreet.learners.streams.ucbvi_lane_kernels import optimistic_lanes
from helpers.compiled import planned, planned_lanes, random_counts

HORIZON, STATES, CHOICES = 3, 3, 2


def row(remaining=1.0, scale=1.0):
    made = np.zeros(len(Column))
    made[Column.VARIANCE], made[Column.ROOT] = 0.9 * scale, 0.2 * scale
    made[Column.LINEAR], made[Column.REMAINING] = 0.7 * scale, remaining
    return made


def lanes(factors, runs):
    return planned_lanes(LanePlanner(plan=optimistic_lanes), factors, runs, horizon=HORIZON)


def alone(factors, run):
    memory = np.full((1, HORIZON, *run[1].shape[1:]), float(HORIZON))
    return planned(optimistic_policy, factors, run, memory=memory)


@pytest.mark.parametrize("remaining", [0.0, 1.0])
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_every_run_gets_the_policy_that_it_would_get_alone(remaining, scale):
    runs = [random_counts(seed, 1) for seed in range(9)]
    made = lanes(row(remaining, scale), runs)
    for j, run in enumerate(runs):
        one = alone(row(remaining, scale), run)
        assert (one.values < HORIZON).any()
        np.testing.assert_allclose(made.values[..., j], one.values, rtol=1e-12)
        if scale < 1:  # at the cap ties are broken by other generators
            assert np.array_equal(made.actions[..., j], one.actions)


def test_a_run_does_not_depend_on_its_neighbours():
    runs = [random_counts(seed, 1) for seed in range(13)]
    made = lanes(row(), runs)
    for size in range(1, 11):
        fewer = lanes(row(), runs[:size])
        assert np.array_equal(fewer.values, made.values[..., :size])
        assert np.array_equal(fewer.actions, made.actions[..., :size])


def test_a_pair_that_nobody_has_tried_is_worth_the_cap():
    runs = [random_counts(seed, 1) for seed in range(3)]
    for part in runs[1]:
        part[0, 2, 0] = 0.0
    made = lanes(row(scale=0.1), runs)
    assert (made.actions[:, 2, 1] == 0).all()
    assert made.values[:, 2, 1].tolist() == [3.0, 2.0, 1.0, 0.0]
    for j in (0, 2):
        np.testing.assert_allclose(
            made.values[..., j], alone(row(scale=0.1), runs[j]).values, rtol=1e-12
        )


def test_ties_at_the_cap_are_broken_at_random():
    nothing = tuple(np.zeros(shape) for shape in ((1, 2, 3, 2), (1, 2, 3), (1, 2, 3)))
    actions = lanes(row(), [nothing] * 300).actions
    counts = np.bincount(actions.ravel(), minlength=3)
    assert abs(counts - counts.sum() / 3).max() < 5 * np.sqrt(counts.sum() * 2 / 9)
