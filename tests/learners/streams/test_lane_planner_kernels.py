"""Backward induction for many runs against the textbook, run by run; ties."""

import numpy as np
import pytest

from discreet._seeds import RunSeeds
from discreet.learners.streams import lane_planner_kernels as kernels
from discreet.learners.streams.ldp_obi_lane_kernels import signed_lanes
from discreet.learners.streams.lockstep import LanePlanner
from discreet.privacy.streams.lanes import lane_states
from helpers.compiled import planned_lanes
from helpers.plain_kernels import plainly

HORIZON, STATES, CHOICES, RUNS = 3, 2, 3, 4


def greedy(monkeypatch, model, cap):
    """The compiled function as the Python it was written in."""
    plainly(monkeypatch, kernels)
    q, values = np.zeros((STATES, CHOICES, RUNS)), np.zeros((HORIZON + 1, STATES, RUNS))
    actions = np.zeros((HORIZON, STATES, RUNS), np.int64)
    state = lane_states([RunSeeds(0, run) for run in range(RUNS)], "policy", 1)
    kernels.greedy_policies(model, q, values, actions, cap, state)
    return actions, values


@pytest.mark.parametrize("cap", [0.5, np.inf])
def test_it_is_backward_induction(monkeypatch, cap):
    model = np.random.default_rng(1).random((STATES * CHOICES, STATES + 2, RUNS))
    actions, values = greedy(monkeypatch, model, cap)
    parts = model.reshape(STATES, CHOICES, STATES + 2, RUNS)
    ahead = np.zeros((STATES, RUNS))
    for h in reversed(range(HORIZON)):
        left = HORIZON - h
        q = parts[:, :, STATES] + left * parts[:, :, STATES + 1]
        q += np.einsum("satr,tr->sar", parts[:, :, :STATES], ahead)
        assert np.array_equal(actions[h], q.argmax(axis=1))
        ahead = np.minimum(cap * left, q.max(axis=1))
        np.testing.assert_allclose(values[h], ahead, rtol=1e-12)


def test_two_infinite_values_are_a_tie(monkeypatch):
    model = np.zeros((STATES * CHOICES, STATES + 2, RUNS))
    model[1:3, STATES] = np.inf
    seen = []
    monkeypatch.setattr(kernels, "draw_uniform", lambda state, j: seen.append(j) or 0.6)
    with np.errstate(invalid="ignore"):
        actions, values = greedy(monkeypatch, model, 1.0)
    assert (actions[:, 0] == 2).all()  # the second of the two best
    assert values[:, 0, 0].tolist() == [3.0, 2.0, 1.0, 0.0]
    assert set(seen) == set(range(RUNS))


def test_ties_are_broken_by_the_generator_of_each_run():
    nothing = (np.zeros((1, 2, 3, 2)), np.zeros((1, 2, 3)), np.zeros((1, 2, 3)))

    def planned(runs):
        planner = LanePlanner(plan=signed_lanes)
        return planned_lanes(planner, np.zeros(6), [nothing] * runs, horizon=HORIZON).actions

    actions = planned(300)
    counts = np.bincount(actions.ravel(), minlength=3)
    assert abs(counts - counts.sum() / 3).max() < 5 * np.sqrt(counts.sum() * 2 / 9)
    assert np.array_equal(actions, planned(300))
    assert np.array_equal(actions[..., :7], planned(7))
