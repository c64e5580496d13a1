"""The chi-square of the gate, by hand."""

import numpy as np
import pytest

from discreet.offline.improvement import stationary_rows
from helpers.offline import evidence_of, slot_rows

pytestmark = pytest.mark.core


def rows(shares, rewards, visits=1e4):
    """Rows ``[H, S, 1]`` with transitions to two states."""
    p, r = np.asarray(shares, float)[..., None], np.asarray(rewards, float)[..., None]
    n = np.broadcast_to(np.asarray(visits, float), r.shape)
    moves = np.stack([p, 1 - p], axis=-1) * n[..., None]
    return slot_rows(moves, n, r * n)


def gate(found, users=10_000):
    evidence = evidence_of(users, found, None)
    return stationary_rows(evidence, np.ones(found.visits.shape, bool))[:, 0].tolist()


SAME = np.full((5, 2), 0.3)


def test_equal_steps_pass():
    assert gate(rows(SAME, SAME)) == [True, True]


def test_another_transition_at_one_step_is_noticed():
    other = SAME.copy()
    other[2, 1] = 0.4
    assert gate(rows(other, SAME)) == [False, False]  # all rows together are beyond the limit


def test_another_reward_at_one_step_is_noticed():
    other = SAME.copy()
    other[4, 0] = 0.2
    assert gate(rows(SAME, other)) == [False, False]


def test_one_bad_row_among_many_is_left_out_alone():
    # A row at z = 5.2 among 300 that agree exactly: all together are fine.
    same = np.full((5, 300), 0.3)
    other = same.copy()
    other[0, 7] = 0.3 + 6.2 * np.sqrt(0.21 / 1e4)
    found = gate(rows(other, same))
    assert not found[7]
    assert sum(found) == 299


def test_what_sampling_explains_passes():
    rng = np.random.default_rng(0)
    drawn = rng.binomial(10_000, 0.3, (5, 40)) / 1e4
    assert np.mean(gate(rows(drawn, drawn))) > 0.95


def test_a_single_step_cannot_contradict_itself():
    assert gate(rows(SAME[:1], SAME[:1])) == [True, True]


def test_rows_that_nobody_visited_do_not_count():
    other = SAME.copy()
    other[2] = 0.9
    visits = np.full((5, 2, 1), 1e4)
    assert gate(rows(other, other, visits)) == [False, False]
    visits[2] = 0
    assert gate(rows(other, other, visits)) == [True, True]


def test_known_rewards_are_not_tested():
    other = SAME.copy()
    other[4, 0] = 0.2
    found = rows(SAME, other)
    assert gate(found._replace(drawn=np.zeros(found.drawn.shape))) == [True, True]
