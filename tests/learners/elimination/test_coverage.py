"""The coverage design and its certificate."""

import numpy as np
import pytest

from discreet.learners.elimination.active_set import (
    ImplicitActiveSet,
    coverage_design,
    enumerate_policies,
    merge_policies,
)
from discreet.mdp import RandomMDP, RiverSwim
from discreet.mdp.shape import Shape
from helpers.absorbing import is_active


def active_set(mdp, share):
    """Policies that reach a share of the optimal value (None: all of them)."""
    order = np.broadcast_to(np.arange(mdp.shape.actions), mdp.shape.visits).copy()
    rewards = np.array(mdp.rewards)
    transitions = np.array(mdp.transitions)
    everyone = ImplicitActiveSet(transitions, mdp.initial, rewards, -np.inf, order)
    if share is None:
        return everyone
    threshold = share * everyone.maximise(rewards).value
    return ImplicitActiveSet(transitions, mdp.initial, rewards, threshold, order)


def design_of(active):
    policies, visits = active.visiting()
    start = policies[visits > 0]
    occupancies = np.stack([active.occupancy(policy) for policy in start])
    return coverage_design(start, np.ones(len(start)), occupancies, active.maximise)


def true_value(active, listed, design):
    """The coverage number over every listed policy."""
    inverse = np.zeros_like(design.occupancy)
    inverse[design.covered] = 1 / design.occupancy[design.covered]
    return listed.values(active.transitions, active.initial, inverse).max()


ENVIRONMENTS = [
    RiverSwim(states=4, horizon=5),
    RandomMDP(states=3, actions=2, horizon=4, concentration=0.5, stationary=False, seed=2),
]


@pytest.mark.parametrize("mdp", ENVIRONMENTS)
def test_certificate_over_all_policies(mdp):
    active = active_set(mdp, None)
    design = design_of(active)
    listed = enumerate_policies(mdp.shape, mdp.initial > 0)
    assert design.tuples <= design.value <= 1.01 * design.tuples
    assert true_value(active, listed, design) == pytest.approx(design.value)
    assert design.bound == pytest.approx(design.value)


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("mdp", ENVIRONMENTS)
def test_certificate_over_an_explicit_active_set(mdp, share):
    active = active_set(mdp, share)
    listed = enumerate_policies(mdp.shape, mdp.initial > 0)
    where = (active.transitions, active.initial)
    listed = listed.keep(listed.values(*where, active.upper) >= active.threshold)
    found = [listed.visiting(*where, h, 1) for h in range(mdp.horizon)]
    start = np.concatenate([policies[visits > 0] for policies, visits in found])
    occupancies = np.stack([active.occupancy(policy) for policy in start])
    design = coverage_design(start, np.ones(len(start)), occupancies, listed.oracle(*where))
    assert design.tuples == sum((visits > 0).sum() for _, visits in found)
    assert design.value <= 1.01 * design.tuples
    assert true_value(active, listed, design) == pytest.approx(design.value)


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("mdp", ENVIRONMENTS)
def test_bound_holds_for_every_active_policy(mdp, share):
    active = active_set(mdp, share)
    design = design_of(active)
    listed = enumerate_policies(mdp.shape, mdp.initial > 0)
    values = listed.values(active.transitions, active.initial, active.upper)
    listed = listed.keep(values >= active.threshold)
    assert design.value <= 1.01 * design.tuples
    assert true_value(active, listed, design) <= design.bound * (1 + 1e-9)
    assert all(is_active(active, policy) for policy in design.policies)


@pytest.mark.core
def test_two_actions_in_one_place_need_a_mixture():
    shape = Shape(states=1, actions=2, horizon=1)
    order = np.array([[[0, 1]]])
    active = ImplicitActiveSet(
        np.zeros(shape.transitions), np.ones(1), np.zeros(shape.visits), -np.inf, order
    )
    design = design_of(active)
    assert design.weights.tolist() == [0.5, 0.5]
    assert design.value == pytest.approx(2.0)


def test_lopsided_start_is_corrected():
    mdp = RiverSwim(states=4, horizon=5)
    active = active_set(mdp, None)
    policies, visits = active.visiting()
    start = policies[visits > 0]
    weights = np.geomspace(1, 1e-6, len(start))
    occupancies = np.stack([active.occupancy(policy) for policy in start])
    design = coverage_design(start, weights, occupancies, active.maximise)
    assert design.value <= 1.01 * design.tuples
    mixed = sum(
        w * active.occupancy(p) for w, p in zip(design.weights, design.policies, strict=True)
    )
    assert mixed == pytest.approx(design.occupancy)


def test_a_limit_on_iterations_is_reported_not_hidden():
    active = active_set(RiverSwim(states=4, horizon=5), None)
    policies, visits = active.visiting()
    start = policies[visits > 0]
    occupancies = np.stack([active.occupancy(policy) for policy in start])
    design = coverage_design(
        start, np.ones(len(start)), occupancies, active.maximise, most_iterations=1
    )
    assert design.value > 1.01 * design.tuples


def test_merging_keeps_the_mixture():
    policies = np.array([[[0, 1]], [[1, 1]], [[0, 1]], [[1, 0]]])
    distinct, weights = merge_policies(policies, np.array([1.0, 1.0, 2.0, 0.0]))
    assert {tuple(p.ravel()): w for p, w in zip(distinct, weights, strict=True)} == {
        (0, 1): 0.75,
        (1, 1): 0.25,
    }
