"""The own-step check: when it is due, what is unchecked, what a step's own counts overrule."""

import numpy as np
import pytest

from discreet.learners.flow_ucb import own_step
from discreet.learners.flow_ucb.belief import Pooled, believed
from discreet.learners.flow_ucb.evidence import DOUBT, NOISE, SAMPLING, TOTAL, VISITS, Evidence
from discreet.learners.flow_ucb.own_step import OwnStepCheck
from discreet.learners.flow_ucb.plan import Planner
from discreet.mdp.shape import Shape

STEPS, MANY = 4, 10**7
ODD = (2, 1, 1)
"""Nobody has been here at this step: (h, s, a)."""


def evidence_of(*, seen=0.0, pays=0.0, leads=None):
    """Two states, two actions: action 0 pays 0.5, action 1 nothing; both lead anywhere.

    ``seen`` visits of the row `ODD` found that it ``pays`` and ``leads`` so.
    """
    evidence = Evidence.empty(STEPS, 2, 2)
    evidence.number[:] = np.arange(STEPS * 4).reshape(STEPS, 2, 2)
    visits = np.full((STEPS, 2, 2), 1e5)
    visits[ODD] = seen
    moved = np.repeat(visits[..., None] / 2, 2, axis=-1)
    if leads is not None:
        moved[ODD] = seen * np.array(leads)
    evidence.transitions[:] = moved.reshape(-1, 2)
    for sums in (evidence.moves, evidence.gains):
        sums[..., VISITS], sums[..., SAMPLING] = visits, visits
        sums[..., NOISE], sums[..., DOUBT] = 60.0, 60.0
    evidence.gains[..., TOTAL] = visits * np.array([0.5, 0.0])
    evidence.gains[ODD][TOTAL] = seen * pays
    return evidence


def checked(evidence, users=MANY, gains=True, exploring=True):
    rows = np.ones((2, 2), bool)
    belief = believed(evidence, Pooled(rows, rows & gains))
    planner = Planner(Shape(2, 2, STEPS), np.array([1.0, 0.0]), 0.5)
    check = OwnStepCheck(planner, np.ones(STEPS))
    return belief, check.checked(evidence, belief, users, (60.0, 60.0), exploring=exploring)


def test_a_pooled_reward_is_hidden_where_a_look_is_cheap_and_nobody_looked():
    belief, found = checked(evidence_of())
    assert belief.gains[ODD][VISITS] > 0
    assert found.gains[ODD][VISITS] == 0
    assert found.gains[ODD][NOISE] == 60.0  # its own, not that of all steps
    assert not found.pooled_gains[ODD]
    assert found.pooled_gains.sum() == found.pooled_gains.size - 1


def test_nothing_is_hidden_from_those_who_do_not_explore():
    """They would shun an action that is known from other steps, and are not there to check it."""
    belief, found = checked(evidence_of(), exploring=False)
    assert found is belief
    _, found = checked(evidence_of(seen=1000.0, pays=0.9), exploring=False)
    assert found.gains[ODD][TOTAL] / found.gains[ODD][VISITS] == pytest.approx(0.9)


def test_nothing_is_hidden_before_a_look_is_cheap():
    belief, found = checked(evidence_of(), users=1000)
    assert found is belief


@pytest.mark.parametrize("users", [0, MANY])
def test_nothing_is_checked_before_the_first_batch_or_without_pooling(users):
    evidence, nothing = evidence_of(), np.zeros((2, 2), bool)
    belief = believed(evidence, Pooled(nothing, nothing) if users else Pooled(~nothing, ~nothing))
    planner = Planner(Shape(2, 2, STEPS), np.array([1.0, 0.0]), 0.5)
    check = OwnStepCheck(planner, np.ones(STEPS))
    assert check.checked(evidence, belief, users, (60.0, 60.0), exploring=True) is belief


def test_an_own_reward_that_agrees_stays_pooled():
    belief, found = checked(evidence_of(seen=1000.0))
    assert found is belief


def test_an_own_reward_that_is_higher_is_used():
    _, found = checked(evidence_of(seen=1000.0, pays=0.9))
    assert found.gains[ODD][TOTAL] / found.gains[ODD][VISITS] == pytest.approx(0.9)
    assert found.pooled_moves[ODD]


@pytest.mark.parametrize(
    ("seen", "pays", "used"),
    [(1000.0, 0.005, False), (1000.0, 0.01, True), (50.0, 0.05, False), (40.0, 0.05, True)],
)
def test_any_excess_is_followed_up_unless_the_own_reward_is_known_well(seen, pays, used):
    # 1,000 visits show a reward to 0.013, 50 to 0.18 and 40 to 0.22. The pooled one is about zero.
    _, found = checked(evidence_of(seen=seen, pays=pays))
    assert (found.gains[ODD][VISITS] == seen) == used


def test_a_lower_own_reward_is_left_to_the_gate():
    _, found = checked(_poorer())
    assert found.pooled_gains[2, 1, 0]
    assert found.gains[2, 1, 0, TOTAL] > 0


def _poorer():
    evidence = evidence_of(seen=1000.0)
    evidence.gains[2, 1, 0, TOTAL] = 0.0
    return evidence


def test_own_transitions_that_lead_to_more_are_used():
    # State 1 pays from step 3 on: a row that leads there more often is worth more.
    evidence = evidence_of(seen=1000.0, leads=[0.05, 0.95])
    evidence.gains[3, 1, :, TOTAL] = evidence.gains[3, 1, :, VISITS]
    belief, found = checked(evidence, gains=False)
    assert found.number[ODD] == len(belief.probabilities)
    np.testing.assert_allclose(found.probabilities[found.number[ODD]], [0.05, 0.95])
    assert found.moves[ODD][VISITS] == 1000.0
    assert found.pooled_moves.sum() == found.pooled_moves.size - 1
    # The same row without a reason to go there stays as it is.
    same, again = checked(evidence_of(seen=1000.0, leads=[0.05, 0.95]), gains=False)
    assert again is same


def test_large_problems_check_along_the_greedy_route_only(monkeypatch):
    evidence = evidence_of()
    stay = evidence.number[:, :, 0]  # the greedy route stays where it is, in the other state
    evidence.transitions[stay] = 1e5 * np.eye(2)
    _, near = checked(evidence)
    assert near.gains[ODD][VISITS] == 0  # due by its largest chance
    monkeypatch.setattr(own_step, "CHANCE_WORK", 0.0)
    belief, far = checked(evidence)
    assert far is belief
