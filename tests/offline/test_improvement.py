"""Where to deviate: exact values on problems made by hand."""

import itertools

import numpy as np
import pytest

from discreet.offline.improvement import improve
from helpers.offline import evidence_of, slot_rows

pytestmark = pytest.mark.core

HUGE = 1e12


def evidence(probabilities, rewards, visits):
    """Rows ``[H, S, K]`` without noise, seen ``visits`` times each (0: never)."""
    p, r = np.asarray(probabilities, float), np.asarray(rewards, float)
    n = np.broadcast_to(np.asarray(visits, float), r.shape)
    slots, total = slot_rows(p * n[..., None], n, r * n), n.sum(axis=2)
    moved, paid = slots.rows.transitions.sum(axis=2), slots.rows.rewards.sum(axis=2)
    return evidence_of(int(total[0].sum()), slots, slot_rows(moved, total, paid))


def planned(found, width=2.0, allowed=None):
    shape = found.support.shape
    return improve(
        found, np.ones(shape, bool) if allowed is None else allowed, np.full(shape, np.nan), width
    )


ONE_STATE = np.ones((1, 1, 2, 1))


def test_with_all_data_in_the_world_it_is_value_iteration():
    rng = np.random.default_rng(0)
    p, r = rng.dirichlet(np.ones(4), (5, 4, 3)), rng.random((5, 4, 3))
    plan = planned(evidence(p, r, HUGE))
    best, today = np.zeros(4), np.zeros(4)
    for h in range(4, -1, -1):
        q = r[h] + p[h] @ best
        assert np.array_equal(plan.slots[h], q.argmax(axis=1))
        best, today = q.max(axis=1), (r[h] + p[h] @ today).mean(axis=1)
        assert plan.behaviour[h] == pytest.approx(today, abs=1e-4)
        assert plan.gain[h] == pytest.approx(best - today, abs=1e-3)


def test_the_advantage_of_one_row_by_hand():
    plan = planned(evidence(ONE_STATE, [[[0.2, 0.6]]], 100.0))
    v_a = (100 * 0.24 + 4) / 100**2
    v_b = (200 * 0.24 + 4) / 200**2
    lower = 0.2 - 2 * np.sqrt(v_a + max(v_b - v_a / 4, 0))
    assert plan.slots.tolist() == [[1]]
    assert plan.gain[0, 0] == pytest.approx(lower)
    assert plan.behaviour[0, 0] == pytest.approx(0.4)


def test_what_is_not_known_of_later_values_counts_where_actions_lead_elsewhere():
    """The second action goes to the state that earns more, as far as fifty people can say."""
    moves = np.zeros((2, 2, 2, 2))
    moves[0, :, 0, 0] = moves[0, :, 1, 1] = moves[1, ..., 0] = 1
    rewards = np.zeros((2, 2, 2))
    rewards[1] = [[0.1, 0.1], [0.9, 0.9]]
    visits = np.array([[[100.0, 100.0], [0.0, 0.0]], [[25.0, 25.0], [25.0, 25.0]]])
    plan = planned(evidence(moves, rewards, visits))
    later = (50 * 0.09 + 4) / 50**2  # of either state's value
    v_a, v_b = 16 / 100**2, (200 * 0.16 + 16) / 200**2
    spread = v_a + max(v_b - v_a / 4, 0) + 2 * 0.25 * later
    assert plan.slots[0].tolist() == [1, -1]
    assert plan.gain[0, 0] == pytest.approx(0.4 - 2 * np.sqrt(spread))


def test_it_defers_where_the_data_cannot_tell():
    plan = planned(evidence(ONE_STATE, [[[0.45, 0.55]]], 100.0))
    assert plan.slots.tolist() == [[-1]]
    assert plan.gain[0, 0] == 0


def test_equal_actions_defer_whatever_the_data():
    plan = planned(evidence(ONE_STATE, [[[0.5, 0.5]]], HUGE), width=0.0)
    assert plan.slots.tolist() == [[-1]]


def test_an_action_that_nobody_took_is_not_recommended():
    plan = planned(evidence(ONE_STATE, [[[0.1, 1.0]]], [[[HUGE, 0.0]]]))
    assert plan.slots.tolist() == [[-1]]


def test_what_is_not_allowed_is_not_recommended():
    found = evidence(ONE_STATE, [[[0.1, 0.9]]], HUGE)
    assert planned(found).slots.tolist() == [[1]]
    assert planned(found, allowed=np.array([[[True, False]]])).slots.tolist() == [[-1]]


def test_deferring_keeps_what_later_steps_win():
    p = np.ones((2, 1, 2, 1))
    plan = planned(evidence(p, [[[0.5, 0.5]], [[0.0, 1.0]]], 1e8))
    assert plan.slots.tolist() == [[-1], [1]]
    assert plan.gain[0, 0] == pytest.approx(0.5, abs=1e-3)
    assert plan.gain[0, 0] <= plan.gain[1, 0]


def test_it_deviates_for_the_sake_of_a_later_step():
    # Action 1 leads from state 0 to state 1, where the last step pays.
    p = np.zeros((2, 2, 2, 2))
    p[:, :, 0, 0] = p[:, :, 1, 1] = 1.0
    r = np.zeros((2, 2, 2))
    r[1, 1] = 1.0
    plan = planned(evidence(p, r, 1e8))
    assert plan.slots.tolist() == [[1, 1], [-1, -1]]
    assert plan.gain[0] == pytest.approx([0.5, 0.5], abs=1e-2)


def test_where_behaviour_is_unknown_it_defers_and_its_value_is_the_mean_of_the_layer():
    p = np.ones((1, 2, 2, 2)) / 2
    found = evidence(p, [[[0.2, 0.6], [1.0, 0.0]]], [[[HUGE, HUGE], [0.0, 0.0]]])
    plan = planned(found)
    assert plan.slots.tolist() == [[1, -1]]
    assert plan.behaviour[0, 1] == pytest.approx(0.4)
    assert plan.gain[0, 1] == 0


def test_more_caution_never_claims_more():
    rng = np.random.default_rng(3)
    p, r = rng.dirichlet(np.ones(3), (4, 3, 2)), rng.random((4, 3, 2))
    gains = [planned(evidence(p, r, 2_000.0), width).gain[0] for width in (0.0, 1.0, 2.0, 4.0)]
    for bold, careful in itertools.pairwise(gains):
        assert (careful <= bold + 1e-12).all()


def test_known_rewards_take_the_place_of_estimates():
    found = evidence(ONE_STATE, [[[0.5, 0.5]]], HUGE)
    known = np.array([[[np.nan, 0.9]]])
    plan = improve(found, np.ones((1, 1, 2), bool), known, 2.0)
    assert plan.slots.tolist() == [[1]]
    assert plan.gain[0, 0] == pytest.approx(0.4, abs=1e-4)
