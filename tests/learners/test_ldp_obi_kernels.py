"""Compiled LDP-OBI against its equations in plain NumPy, and at the edges of what is known."""

import numpy as np
import pytest

from discreet.learners.ldp_obi import signed_values
from helpers.compiled import planned, random_counts

HORIZON, STATES, CHOICES = 3, 3, 2
ROW = (2.0, 3.0, 0.4, 1.1, 0.3, 0.7)
"""alpha·c2, alpha·c3, root and linear of beta_r, root and linear of beta_p."""
NO_BONUS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def run(row, counts, horizon=HORIZON, seed=0):
    memory = np.zeros((1, horizon, *counts[1].shape[1:]))
    return planned(signed_values, row, counts, memory=memory, seed=seed)


def by_the_equations(row, counts, horizon=HORIZON):
    """Q ``[H, S, A]`` and V ``[H + 1, S]`` of equations 4 and 5."""
    shift_r, shift_p, root_r, linear_r, root_p, linear_p = row
    transitions, visits, rewards = counts
    D_r, D_p = visits + shift_r, transitions.sum(axis=-1) + shift_p
    beta_r = root_r / np.sqrt(D_r) + linear_r / D_r
    beta_p = root_p / np.sqrt(D_p) + linear_p / D_p
    q = np.zeros((horizon, *visits.shape[1:]))
    values = np.zeros((horizon + 1, visits.shape[1]))
    for h in reversed(range(horizon)):
        g, ahead = (h if len(visits) > 1 else 0), horizon - h
        expected = (transitions[g] / D_p[g][..., None]) @ values[h + 1]
        q[h] = rewards[g] / D_r[g] + beta_r[g] + ahead * beta_p[g] + expected
        values[h] = np.minimum(ahead, q[h].max(axis=-1))
    return q, values


@pytest.mark.parametrize("groups", [1, HORIZON])
@pytest.mark.parametrize("seed", range(4))
def test_values_and_actions_are_those_of_the_equations(seed, groups):
    counts = random_counts(seed, groups)
    found = run(ROW, counts)
    q, values = by_the_equations(ROW, counts)
    np.testing.assert_allclose(found.memory[0], q, rtol=1e-12)
    np.testing.assert_allclose(found.values, values, rtol=1e-12)
    assert np.array_equal(found.actions, q.argmax(axis=-1))


def test_pooled_counters_serve_every_step():
    pooled = random_counts(5, 1)
    repeated = tuple(np.repeat(part, HORIZON, axis=0) for part in pooled)
    one, other = run(ROW, pooled), run(ROW, repeated)
    assert np.array_equal(one.actions, other.actions)
    assert np.array_equal(one.values, other.values)


def test_one_state_by_hand():
    """Ten visits, eight rewards, shift two: r = 8/12, p = 10/12; no bonus."""
    counts = (np.full((1, 1, 1, 1), 10.0), np.full((1, 1, 1), 10.0), np.full((1, 1, 1), 8.0))
    found = run((2.0, 2.0, 0.0, 0.0, 0.0, 0.0), counts, horizon=2)
    last = 8 / 12
    assert found.values[:, 0].tolist() == pytest.approx([last + 10 / 12 * last, last, 0.0])


@pytest.mark.parametrize("unknown", ["visits", "transitions"])
def test_a_denominator_that_is_not_positive_means_unknown(unknown):
    transitions, visits, rewards = random_counts(1, 1)
    if unknown == "visits":
        visits[0, 1, 0] = -ROW[0]
    else:
        transitions[0, 1, 0] = -10.0
    found = run(ROW, (transitions, visits, rewards))
    assert (found.memory[0, :, 1, 0] == np.inf).all()
    assert (found.actions[:, 1] == 0).all()
    assert found.values[:, 1].tolist() == [3.0, 2.0, 1.0, 0.0]
    assert np.isfinite(found.memory[0, :, [0, 2]]).all()


def test_nothing_known_is_a_tie_of_all_actions():
    nothing = (np.zeros((1, 3, 4, 3)), np.zeros((1, 3, 4)), np.zeros((1, 3, 4)))
    chosen = [run(NO_BONUS, nothing, seed=seed).actions for seed in range(60)]
    counts = np.bincount(np.concatenate(chosen).ravel(), minlength=4)
    total = counts.sum()
    assert abs(counts - total / 4).max() < 5 * np.sqrt(total * 3 / 16)


def test_signed_estimates_are_not_clipped():
    """Noise may push rewards below zero and transitions out of the simplex; Q follows."""
    counts = (np.array([[[[-4.0]], [[30.0]]]]).reshape(1, 1, 2, 1), np.full((1, 1, 2), 10.0),
              np.array([[[-5.0, 3.0]]]))  # fmt: skip
    found = run((0.0, 8.0, 0.0, 0.0, 0.0, 0.0), counts, horizon=2)
    assert found.memory[0, 1, 0].tolist() == [-0.5, 0.3]
    assert found.memory[0, 0, 0].tolist() == pytest.approx(
        [-0.5 - 4 / 4 * 0.3, 0.3 + 30 / 38 * 0.3]
    )


def test_no_step_is_worth_more_than_one():
    counts = random_counts(2, HORIZON)
    found = run((2.0, 3.0, 50.0, 50.0, 50.0, 50.0), counts)
    assert found.values[:, 0].tolist() == [3.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize("seed", range(3))
def test_renamed_actions_give_the_renamed_policy(seed):
    counts = random_counts(seed, HORIZON)
    renamed = tuple(np.flip(part, axis=2) for part in counts)
    one, other = run(ROW, counts), run(ROW, renamed)
    assert np.array_equal(other.actions, CHOICES - 1 - one.actions)
    np.testing.assert_allclose(other.values, one.values, rtol=1e-12)


def test_more_bonus_is_more_optimism():
    counts = random_counts(3, 1)
    values = [
        run((2.0, 3.0, scale, 0.0, scale, 0.0), counts).values[0] for scale in (0.0, 0.1, 0.2)
    ]
    assert (values[0] < values[1]).all()
    assert (values[1] < values[2]).all()
