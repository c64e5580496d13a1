"""Compiled own-step comparison: when a reward is known, and each verdict in its smallest case."""

import numpy as np
import pytest

from discreet.learners import estimate as columns
from discreet.learners.estimate import CountSums
from discreet.learners.flow_ucb import own_step as kernels
from discreet.learners.pooling import Pooled, estimated


def reward_sums(visits, noise=0.0, visit_variance=0.0, weight=1.0):
    """Sums of one batch, with its credit as ``weight``."""
    row = np.zeros(columns.COLUMNS)
    row[columns.VISITS], row[columns.SAMPLING] = weight * visits, weight**2 * visits
    row[columns.NOISE], row[columns.VISIT_VARIANCE] = weight**2 * noise, weight**2 * visit_variance
    return row


@pytest.mark.parametrize(
    ("row", "reward_share", "known"),
    [
        (reward_sums(50.0), 0.25, True),
        (reward_sums(49.9), 0.25, False),  # 0.5/0.1² visits are needed
        (reward_sums(50.1, weight=0.01), 0.25, True),  # whatever the batch's credit is
        (reward_sums(49.9, weight=0.01), 0.25, False),
        (reward_sums(100.0, noise=99.0), 0.25, True),
        (reward_sums(100.0, noise=101.0), 0.25, False),  # sd 10 is a tenth of 100 visits
        (
            reward_sums(100.0, noise=99.0, visit_variance=8.0),
            0.25,
            False,
        ),  # visits are doubted, too
        (
            reward_sums(100.0, visit_variance=10_001.0),
            0.0,
            False,
        ),  # noise alone explains the visits
    ],
)
def test_a_reward_is_known_above_its_noise_by_enough_visits(row, reward_share, known):
    assert kernels.reward_known(row, reward_share, 0.1) is known


def two_steps(own_reward, own_move):
    """One state that can be left for another; step 0 was seen often, and found this."""
    sums = CountSums.empty(2, 2, 1)
    sums.number[:] = np.arange(4).reshape(2, 2, 1)
    sums.transitions[:] = 5e3
    sums.transitions[0] = [1e4 * (1 - own_move), 1e4 * own_move]
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., columns.VISITS] = part[..., columns.SAMPLING] = 1e4
        part[..., columns.NOISE] = 1.0
    sums.reward_sums[..., columns.TOTAL] = 5e3
    sums.reward_sums[0, 0, 0, columns.TOTAL] = 1e4 * own_reward
    return sums


def verdict(sums, *, transition_sums=True, reward_sums=True, surprise=3.0):
    rows = np.ones((2, 1), bool)
    model = estimated(sums, Pooled(rows & transition_sums, rows & reward_sums))
    found = np.zeros((2, 2, 1), np.int64)
    due = np.full((2, 2), np.inf)
    due[0, 0] = surprise
    values = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])  # the other state is worth one
    kernels.examine(sums, model, due, values, 0.25, 0.1, found)
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
    assert verdict(better, transition_sums=False, reward_sums=False) == 0
    assert verdict(better, transition_sums=False) == 2


def test_a_pooled_reward_is_unchecked_while_the_own_one_is_not_known():
    unseen = two_steps(0.5, 0.5)
    unseen.reward_sums[0, 0, 0] = reward_sums(1.0, noise=1.0)
    assert verdict(unseen) == 1
    assert verdict(unseen, reward_sums=False) == 0


def test_the_own_next_value_is_that_of_its_own_transitions():
    sums, row = two_steps(0.5, 0.25), np.empty(2)
    following = np.array([0.0, 2.0])
    assert kernels.own_value(sums, 0, 0, 0, following, row) == pytest.approx(0.5)
    sums.number[0, 0, 0] = -1
    assert kernels.own_value(sums, 0, 0, 0, following, row) == 0.0
