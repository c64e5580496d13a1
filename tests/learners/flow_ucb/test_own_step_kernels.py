"""Compiled own-step comparison: when a reward is known, and each verdict in its smallest case."""

import numpy as np
import pytest

from discreet.learners.flow_ucb import evidence as columns
from discreet.learners.flow_ucb import own_step_kernels as kernels
from discreet.learners.flow_ucb.belief import Pooled, believed
from discreet.learners.flow_ucb.evidence import Evidence


def gains(visits, noise=0.0, doubt=0.0, weight=1.0):
    """Sums of one batch, with its credit as ``weight``."""
    row = np.zeros(columns.COLUMNS)
    row[columns.VISITS], row[columns.SAMPLING] = weight * visits, weight**2 * visits
    row[columns.NOISE], row[columns.DOUBT] = weight**2 * noise, weight**2 * doubt
    return row


@pytest.mark.parametrize(
    ("row", "doubted", "known"),
    [
        (gains(50.0), 0.25, True),
        (gains(49.9), 0.25, False),  # 0.5/0.1² visits are needed
        (gains(50.1, weight=0.01), 0.25, True),  # whatever the batch's credit is
        (gains(49.9, weight=0.01), 0.25, False),
        (gains(100.0, noise=99.0), 0.25, True),
        (gains(100.0, noise=101.0), 0.25, False),  # sd 10 is a tenth of 100 visits
        (gains(100.0, noise=99.0, doubt=8.0), 0.25, False),  # visits are doubted, too
        (gains(100.0, doubt=10_001.0), 0.0, False),  # noise alone explains the visits
    ],
)
def test_a_reward_is_known_above_its_noise_by_enough_visits(row, doubted, known):
    assert kernels.reward_known(row, doubted, 0.1) is known


def two_steps(own_reward, own_move):
    """One state that can be left for another; step 0 was seen often, and found this."""
    evidence = Evidence.empty(2, 2, 1)
    evidence.number[:] = np.arange(4).reshape(2, 2, 1)
    evidence.transitions[:] = 5e3
    evidence.transitions[0] = [1e4 * (1 - own_move), 1e4 * own_move]
    for sums in (evidence.moves, evidence.gains):
        sums[..., columns.VISITS] = sums[..., columns.SAMPLING] = 1e4
        sums[..., columns.NOISE] = 1.0
    evidence.gains[..., columns.TOTAL] = 5e3
    evidence.gains[0, 0, 0, columns.TOTAL] = 1e4 * own_reward
    return evidence


def verdict(evidence, *, moves=True, gains=True, surprise=3.0):
    rows = np.ones((2, 1), bool)
    belief = believed(evidence, Pooled(rows & moves, rows & gains))
    found = np.zeros((2, 2, 1), np.int64)
    due = np.full((2, 2), np.inf)
    due[0, 0] = surprise
    values = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])  # the other state is worth one
    kernels.examine(evidence, belief, due, values, 0.25, 0.1, found)
    assert not found.ravel()[1:].any()  # it was due at one place only
    return found[0, 0, 0]


def test_what_agrees_stays_pooled():
    assert verdict(two_steps(0.5, 0.5)) == 0
    assert verdict(two_steps(0.1, 0.1)) == 0  # worse is no reason to check again


def test_a_higher_own_reward_is_used_and_higher_own_moves_besides():
    assert verdict(two_steps(0.9, 0.5)) == 2
    assert verdict(two_steps(0.9, 0.9)) == 3
    assert verdict(two_steps(0.5, 0.9)) == 3


@pytest.mark.parametrize(
    ("own", "surprise", "used"),
    [(0.512, 3.0, 0), (0.512, 1.0, 2), (0.5025, 0.0, 0), (0.506, 0.0, 2), (0.506, 1.0, 0)],
)
def test_an_own_reward_that_is_known_well_has_to_be_higher_by_half_a_deviation(own, surprise, used):
    # The own reward is known to 0.0032. It makes up half of the pooled one, which is (0.5 + own)/2:
    # 0.512, 0.5025 and 0.506 exceed that by 1.9, 0.4 and 0.95 standard deviations.
    assert verdict(two_steps(own, 0.5), surprise=surprise) == used


def test_nothing_is_checked_where_nothing_is_due_or_pooled():
    better = two_steps(0.9, 0.9)
    assert verdict(better, surprise=np.inf) == 0
    assert verdict(better, moves=False, gains=False) == 0
    assert verdict(better, moves=False) == 2


def test_a_pooled_reward_is_unchecked_while_the_own_one_is_not_known():
    unseen = two_steps(0.5, 0.5)
    unseen.gains[0, 0, 0] = gains(1.0, noise=1.0)
    assert verdict(unseen) == 1
    assert verdict(unseen, gains=False) == 0


def test_the_own_next_value_is_that_of_its_own_transitions():
    evidence, row = two_steps(0.5, 0.25), np.empty(2)
    following = np.array([0.0, 2.0])
    assert kernels.own_value(evidence, 0, 0, 0, following, row) == pytest.approx(0.5)
    evidence.number[0, 0, 0] = -1
    assert kernels.own_value(evidence, 0, 0, 0, following, row) == 0.0
