"""The check of single steps: when it is due, what is unchecked, what own counts overrule."""

import numpy as np
import pytest

import discreet
from discreet.learners.estimate import NOISE, SAMPLING, TOTAL, VISIT_VARIANCE, VISITS, CountSums
from discreet.learners.flow_ucb import planning
from discreet.learners.pooling import Pooled, estimated
from discreet.mdp import RandomMDP
from helpers.flow_ucb import after, learner_of

STEPS = 4
ODD = (2, 1, 1)
"""Nobody has been here at this step: (h, s, a)."""


def sums_of(*, seen=0.0, pays=0.0, leads=None):
    """Two states, two actions: action 0 pays 0.5, action 1 nothing; both lead anywhere.

    ``seen`` visits of the row `ODD` found that it ``pays`` and ``leads`` so.
    """
    sums = CountSums.empty(STEPS, 2, 2)
    sums.number[:] = np.arange(STEPS * 4).reshape(STEPS, 2, 2)
    visits = np.full((STEPS, 2, 2), 1e5)
    visits[ODD] = seen
    moved = np.repeat(visits[..., None] / 2, 2, axis=-1)
    if leads is not None:
        moved[ODD] = seen * np.array(leads)
    sums.transitions[:] = moved.reshape(-1, 2)
    for part in (sums.transition_sums, sums.reward_sums):
        part[..., VISITS], part[..., SAMPLING] = visits, visits
        part[..., NOISE], part[..., VISIT_VARIANCE] = 60.0, 60.0
    sums.reward_sums[..., TOTAL] = visits * np.array([0.5, 0.0])
    sums.reward_sums[ODD][TOTAL] = seen * pays
    return sums


def checked(sums, episodes=10**7, rewards=True, exploring=True):
    """The estimate, and what the check makes of it; noise of variance 60 on every counter."""
    rows = np.ones((2, 2), bool)
    model = estimated(sums, Pooled(rows, rows & rewards))
    learner = learner_of(RandomMDP(states=2, actions=2, horizon=STEPS, seed=0), episodes=episodes)
    learner._planner.initial = np.array([1.0, 0.0])
    after(learner, told=1000, evidence=sums.to_dict())
    learner._noise, learner._factors = lambda users: (60.0, 60.0), np.ones(STEPS)
    return model, learner.checked(model, exploring=exploring)


def test_a_pooled_reward_is_unchecked_where_a_check_is_cheap_and_nobody_was_there():
    model, found = checked(sums_of())
    assert model.reward_sums[ODD][VISITS] > 0
    assert found.reward_sums[ODD][VISITS] == 0
    assert found.reward_sums[ODD][NOISE] == 60.0  # its own, not that of all steps
    assert not found.pooled_rewards[ODD]
    assert found.pooled_rewards.sum() == found.pooled_rewards.size - 1


def test_nothing_is_unchecked_for_those_who_do_not_explore():
    """They would shun an action that is known from other steps, and are not there to check it."""
    model, found = checked(sums_of(), exploring=False)
    assert found is model
    _, found = checked(sums_of(seen=1000.0, pays=0.9), exploring=False)
    assert found.reward_sums[ODD][TOTAL] / found.reward_sums[ODD][VISITS] == pytest.approx(0.9)


@pytest.mark.parametrize(("episodes", "due"), [(230_000, False), (232_000, True)])
def test_a_check_may_cost_three_users_in_ten_thousand(episodes, due):
    # To see a reward takes 2·sqrt(60 + 60/4) = 17.3 visits, which cost the greedy value, 4·0.5,
    # each; half of all users can be there: 34.6 is 3e-4/2 of 230,940.
    _, found = checked(sums_of(), episodes)
    assert (found.reward_sums[ODD][VISITS] == 0) == due


def test_nothing_is_checked_where_nothing_is_pooled():
    sums = sums_of()
    model = estimated(sums, Pooled.all_or_none(sums, False))
    learner = learner_of(RandomMDP(states=2, actions=2, horizon=STEPS, seed=0))
    assert learner.checked(model, exploring=True) is model


def test_an_own_reward_that_agrees_or_is_lower_stays_pooled():
    model, found = checked(sums_of(seen=1000.0))
    assert found is model
    poorer = sums_of(seen=1000.0)
    poorer.reward_sums[2, 1, 0, TOTAL] = 0.0
    _, found = checked(poorer)
    assert found.pooled_rewards[2, 1, 0] and found.reward_sums[2, 1, 0, TOTAL] > 0


@pytest.mark.parametrize(("pays", "used"), [(0.008, False), (0.02, True), (0.9, True)])
def test_an_own_reward_that_is_higher_by_its_deviation_is_used(pays, used):
    # A thousand visits show a reward of zero to sqrt(60 + 60/4 + 4)/992 = 0.009.
    _, found = checked(sums_of(seen=1000.0, pays=pays))
    assert (found.reward_sums[ODD][VISITS] == 1000.0) == used
    assert found.pooled_transitions[ODD]


def test_own_transitions_that_lead_to_more_are_used():
    # State 1 pays from step 3 on: a row that leads there more often is worth more.
    sums = sums_of(seen=1000.0, leads=[0.05, 0.95])
    sums.reward_sums[3, 1, :, TOTAL] = sums.reward_sums[3, 1, :, VISITS]
    model, found = checked(sums, rewards=False)
    assert found.number[ODD] == len(model.probabilities)
    np.testing.assert_allclose(found.probabilities[found.number[ODD]], [0.05, 0.95])
    assert found.transition_sums[ODD][VISITS] == 1000.0
    assert found.pooled_transitions.sum() == found.pooled_transitions.size - 1
    # The same row without a reason to go there stays as it is.
    same, again = checked(sums_of(seen=1000.0, leads=[0.05, 0.95]), rewards=False)
    assert again is same


def test_visits_that_show_a_reward_by_hand():
    # Rewards are known to a half: twice the deviation of their sum, half of the visits' in it.
    learner = learner_of(RandomMDP(states=2, actions=2, horizon=2, seed=0))
    learner._noise, learner._factors = lambda users: (16.0, 9.0), np.array([0.0, 4.0])
    np.testing.assert_allclose(learner.visits_to_see(10), [2 * 3, 2 * 5])
    learner._noise = lambda users: (0.0, 0.0)
    assert learner.visits_to_see(10).tolist() == [2, 2]
    bits = learner_of(
        RandomMDP(states=2, actions=2, horizon=2, seed=0),
        discreet.Shuffle(1, 1e-6, mechanism="bits"),
    )
    assert bits.reward_share == 1.0 and planning.SEEN == 0.5
