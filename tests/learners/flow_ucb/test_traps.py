"""Traps: a step that differs where few go, locks, decoys. What the own-step check is for."""

import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.learners.flow_ucb.learner import FlowUCB
from discreet.learners.learn import public_facts, run_batches
from discreet.mdp import uniform_policy
from discreet.mdp.planning import RegretMeter
from helpers.traps import TRAPS

USERS = 2_000_000
CENTRAL = discreet.Central(epsilon=1, delta=1e-6)


class NoOwnStepCheck(FlowUCB):
    """The gate alone decides what is pooled."""

    def checked(self, model, *, exploring):
        return model


class NoHiding(FlowUCB):
    """Noise is not taken to hide ways."""

    hiding = 0.0


def share(kind, make, seed, users=USERS):
    """Regret as a share of the uniform policy's."""
    mdp, seeds = make(seed), RunSeeds(7, seed)
    plan = CENTRAL.calibrate(mdp.shape, statistics=kind.statistics, last_transitions=False)
    learner = kind(public_facts(mdp, users), plan, seeds.generator("policy"))
    outcome = run_batches(mdp, learner, seeds)
    assert len(outcome.extras["batches"]) <= 300
    uniform = RegretMeter(mdp).regret(uniform_policy(mdp.shape))
    return outcome.regret.values[-1] / (users * uniform)


@pytest.mark.parametrize("seed", [4])
def test_a_hidden_reward_is_found_by_the_check_and_not_by_the_gate_alone(seed):
    # One reward at one step, where nobody goes while all other steps say that it is not worth it.
    assert share(FlowUCB, TRAPS["odd-reward"], seed) < 0.05
    assert share(NoOwnStepCheck, TRAPS["odd-reward"], seed) > 0.1


@pytest.mark.parametrize("seed", [0, 3])
def test_a_hidden_transition_is_found(seed):
    # One move at one step, which nobody makes there while all other steps say where it leads. With
    # widths by rewards alone seed 0 kept 7% of the uniform regret: its reward was seen often.
    assert share(FlowUCB, TRAPS["odd-transition"], seed) < 0.05


@pytest.mark.parametrize("seed", [2, 5])
def test_two_hidden_rewards_that_need_each_other_are_found(seed):
    # An own reward must be followed up even if its action alone could not be the best one.
    assert share(FlowUCB, TRAPS["odd-pair"], seed) < 0.01
    assert share(NoOwnStepCheck, TRAPS["odd-pair"], seed) > 0.1


@pytest.mark.parametrize("seed", [0, 15])
def test_a_rare_door_is_found_because_noise_may_hide_it(seed):
    # One in a hundred gets through: projected noise takes most of them away, batch after batch. Of
    # the first twenty members these two are lost without the rule, and none because of it.
    door, users = TRAPS["rarest-door"], 100_000_000
    assert share(FlowUCB, door, seed, users) < 0.03
    assert share(NoHiding, door, seed, users) > 0.05


@pytest.mark.parametrize("family", ["lock", "decoy", "rooms", "cliff", "needle"])
@pytest.mark.parametrize("seed", [0, 3])
def test_other_traps_hold_nobody_for_long(family, seed):
    assert share(FlowUCB, TRAPS[family], seed) < 0.05
