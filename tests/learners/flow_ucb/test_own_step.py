"""The own-step check: when it is due, what is unchecked, what a step's own counts overrule."""

import numpy as np
import pytest

from discreet.learners.estimate import NOISE, SAMPLING, TOTAL, VISIT_VARIANCE, VISITS, CountSums
from discreet.learners.flow_ucb import own_step
from discreet.learners.flow_ucb.own_step import OwnStepCheck
from discreet.learners.flow_ucb.planning import Planner
from discreet.learners.pooling import Pooled, estimated
from discreet.mdp.shape import Shape

STEPS, MANY = 4, 10**7
ODD = (2, 1, 1)
"""Nobody has been here at this step: (h, s, a)."""


def evidence_of(*, seen=0.0, pays=0.0, leads=None):
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


def checked(sums, users=MANY, reward_sums=True, exploring=True):
    rows = np.ones((2, 2), bool)
    model = estimated(sums, Pooled(rows, rows & reward_sums))
    planner = Planner(Shape(2, 2, STEPS), np.array([1.0, 0.0]), 0.5)
    check = OwnStepCheck(planner, np.ones(STEPS))
    return model, check.checked(sums, model, users, (60.0, 60.0), exploring=exploring)


def test_a_pooled_reward_is_unchecked_where_a_check_is_cheap_and_nobody_was_there():
    model, found = checked(evidence_of())
    assert model.reward_sums[ODD][VISITS] > 0
    assert found.reward_sums[ODD][VISITS] == 0
    assert found.reward_sums[ODD][NOISE] == 60.0  # its own, not that of all steps
    assert not found.pooled_rewards[ODD]
    assert found.pooled_rewards.sum() == found.pooled_rewards.size - 1


def test_nothing_is_unchecked_for_those_who_do_not_explore():
    """They would shun an action that is known from other steps, and are not there to check it."""
    model, found = checked(evidence_of(), exploring=False)
    assert found is model
    _, found = checked(evidence_of(seen=1000.0, pays=0.9), exploring=False)
    assert found.reward_sums[ODD][TOTAL] / found.reward_sums[ODD][VISITS] == pytest.approx(0.9)


def test_nothing_is_unchecked_before_a_check_is_cheap():
    model, found = checked(evidence_of(), users=1000)
    assert found is model


def is_due(sums, users):
    """Whether the pooled reward of `ODD`, where nobody has been, counts as never seen.

    To see a reward above its noise takes 2·sqrt(60 + 60/4) = 17.3 visits here.
    """
    _, found = checked(sums, users)
    return found.reward_sums[ODD][VISITS] == 0


@pytest.mark.parametrize(("users", "due"), [(11_500, False), (11_600, True)])
def test_three_in_a_thousand_of_those_who_come_by_may_check(users, due):
    # Half of all users are there at this step: 17.25 of 11,500, and 17.4 of 11,600.
    assert is_due(evidence_of(), users) == due


def off_the_route(leads):
    """The greedy route stays in state 0; action 1 ``leads`` from there to state 1."""
    sums = evidence_of()
    sums.transitions[sums.number[:, :, 0]] = 1e5 * np.eye(2)
    sums.transitions[sums.number[:, 0, 1]] = 1e5 * np.array([1 - leads, leads])
    return sums


@pytest.mark.parametrize(("users", "due"), [(15_300, False), (15_500, True)])
def test_off_the_route_a_check_costs_the_whole_value(users, due):
    # Three in four can be there by the third step, and may lose the 4·0.5 of the greedy route: 17.3
    # of them cost 34.6. That is 3e-3·0.75 of 15,396 users.
    assert is_due(off_the_route(0.5), users) == due


@pytest.mark.parametrize(("leads", "due"), [(0.0048, False), (0.0052, True)])
def test_nobody_is_sent_where_fewer_than_one_in_a_hundred_can_come(leads, due):
    # In two steps 0.00958 or 0.0104 of all users can come: eight times as many as a check takes.
    assert is_due(off_the_route(leads), MANY) == due


@pytest.mark.parametrize("users", [0, MANY])
def test_nothing_is_checked_before_the_first_batch_or_without_pooling(users):
    sums, nothing = evidence_of(), np.zeros((2, 2), bool)
    model = estimated(sums, Pooled(nothing, nothing) if users else Pooled(~nothing, ~nothing))
    planner = Planner(Shape(2, 2, STEPS), np.array([1.0, 0.0]), 0.5)
    check = OwnStepCheck(planner, np.ones(STEPS))
    assert check.checked(sums, model, users, (60.0, 60.0), exploring=True) is model


def test_an_own_reward_that_agrees_stays_pooled():
    model, found = checked(evidence_of(seen=1000.0))
    assert found is model


def test_an_own_reward_that_is_higher_is_used():
    _, found = checked(evidence_of(seen=1000.0, pays=0.9))
    assert found.reward_sums[ODD][TOTAL] / found.reward_sums[ODD][VISITS] == pytest.approx(0.9)
    assert found.pooled_transitions[ODD]


@pytest.mark.parametrize(
    ("seen", "pays", "used"),
    [(1000.0, 0.005, False), (1000.0, 0.01, True), (50.0, 0.05, False), (40.0, 0.05, True)],
)
def test_any_excess_is_followed_up_unless_the_own_reward_is_known_well(seen, pays, used):
    # 1,000 visits show a reward to 0.013, 50 to 0.18 and 40 to 0.22. The pooled one is about zero.
    _, found = checked(evidence_of(seen=seen, pays=pays))
    assert (found.reward_sums[ODD][VISITS] == seen) == used


@pytest.mark.parametrize(
    ("users", "pays", "used"),
    [(115_000, 0.21, False), (115_000, 0.235, True), (116_000, 0.05, True), (115_000, 0.05, False)],
)
def test_an_excess_within_its_deviation_is_followed_up_ten_times_later(users, pays, used):
    # Forty visits show a reward to 0.222. From 11,547 users on a check is due here, and from
    # 115,470 on any excess will do.
    _, found = checked(evidence_of(seen=40.0, pays=pays), users)
    assert (found.reward_sums[ODD][VISITS] == 40.0) == used


def test_a_lower_own_reward_is_left_to_the_gate():
    _, found = checked(_poorer())
    assert found.pooled_rewards[2, 1, 0]
    assert found.reward_sums[2, 1, 0, TOTAL] > 0


def _poorer():
    sums = evidence_of(seen=1000.0)
    sums.reward_sums[2, 1, 0, TOTAL] = 0.0
    return sums


def test_own_transitions_that_lead_to_more_are_used():
    # State 1 pays from step 3 on: a row that leads there more often is worth more.
    sums = evidence_of(seen=1000.0, leads=[0.05, 0.95])
    sums.reward_sums[3, 1, :, TOTAL] = sums.reward_sums[3, 1, :, VISITS]
    model, found = checked(sums, reward_sums=False)
    assert found.number[ODD] == len(model.probabilities)
    np.testing.assert_allclose(found.probabilities[found.number[ODD]], [0.05, 0.95])
    assert found.transition_sums[ODD][VISITS] == 1000.0
    assert found.pooled_transitions.sum() == found.pooled_transitions.size - 1
    # The same row without a reason to go there stays as it is.
    same, again = checked(evidence_of(seen=1000.0, leads=[0.05, 0.95]), reward_sums=False)
    assert again is same


def test_large_problems_check_along_the_greedy_route_only(monkeypatch):
    sums = off_the_route(0.5)
    assert is_due(sums, MANY)  # by its largest chance
    monkeypatch.setattr(own_step, "CHANCE_WORK", 0.0)
    model, found = checked(sums)
    assert found is model
