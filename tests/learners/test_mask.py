"""Every learner under every trust model plays possible actions alone."""

import numpy as np
import pytest

import discreet
from discreet import Central, Local, NoPrivacy, Shuffle
from discreet.errors import UnsupportedError
from discreet.learners.base import FORBIDDEN
from discreet.learners.continual import make_learner, walk
from discreet.learners.elimination.active_set import enumerate_policies
from discreet.learners.registry import get_learner, learner_names
from discreet.mdp import RandomMDP, TabularMDP, solve
from discreet.mdp.policies import check_policy

TRUSTS = {
    "none": NoPrivacy(),
    "central": Central(5, 1e-6),
    "local": Local(5),
    "shuffle": Shuffle(5, 1e-6),
}
MASK = np.ones((2, 3, 3), bool)
MASK[:, 0, 1] = MASK[1, 1, 0] = MASK[0, 1, 2] = False
MASK[:, 2] = [False, True, False]  # one possible action: nobody is here yet
CASES = [
    (name, trust)
    for name in learner_names()
    for trust in get_learner(name).trusts
    if get_learner(name).schedule != "adversarial"
]


def trap():
    """Whoever plays a possible action always earns 1, and whoever plays another one nothing."""
    mdp = RandomMDP(states=3, actions=3, horizon=2, seed=1)
    return mdp.replace(rewards=MASK.astype(float), allowed=MASK)


@pytest.mark.parametrize(("name", "trust"), CASES)
def test_nobody_ever_plays_what_is_not_possible(name, trust):
    found = discreet.learn(trap(), learner=name, trust=TRUSTS[trust], episodes=400, seed=2)
    assert np.abs(found.regret.values).max() < 1e-9
    check_policy(found.policy, trap().shape)


def test_elimination_as_printed_lists_possible_policies():
    shape = trap().shape
    listed = enumerate_policies(shape, np.array([True, False, False]))
    assert len(listed) == 2 * 2 * 2 * 1  # one start; then two, two and one possible actions
    for index in listed.indices:
        check_policy(discreet.mdp.DeterministicPolicy(listed.policy(int(index))), shape)
    settings = {"structure": "paper", "episodes": 400, "seed": 2}
    found = discreet.learn(trap(), learner="pe", trust=NoPrivacy(), **settings)
    assert np.abs(found.regret.values).max() < 1e-9


@pytest.mark.parametrize("name", ["ldp-obi", "dp-ucbvi", "private-ucb-po", "pucb", "psrl"])
def test_a_continual_learner_that_is_asked_one_by_one_plays_possible_actions(name):
    mdp, seeds = trap(), discreet._seeds.RunSeeds(4)
    kind = get_learner(name).make
    learner = make_learner(kind, mdp, NoPrivacy(), 30, seeds.generator("policy"), {})
    for policy, regret in walk(learner, mdp, seeds):
        check_policy(policy, mdp.shape)
        assert regret < 1e-9
    assert (learner.room[0].memory[0][~MASK] == FORBIDDEN).all()


@pytest.mark.parametrize("name", ["trial", "flow-ucb", "explore-then-commit"])
def test_steps_that_are_one_may_have_masks_of_their_own(name):
    """What is good but not possible at a step is known from the others, and not played."""
    rewards = np.array([[0.2, 0.9], [0.5, 0.5]])
    stay = np.tile(np.eye(2)[:, None, :], (1, 2, 1))
    mask = np.ones((4, 2, 2), bool)
    mask[2, 0, 1] = False
    mdp = TabularMDP(transitions=stay, rewards=rewards, horizon=4, allowed=mask)
    found = discreet.learn(mdp, learner=name, episodes=20_000, seed=0, stationary=True)
    assert found.policy.actions[:, 0].tolist() == [1, 1, 0, 1]
    assert solve(mdp).value == pytest.approx(3 * 0.9 + 0.2)


@pytest.mark.parametrize("name", ["private-uc-o-reps", "private-uob-lbps"])
def test_learners_that_know_no_mask_say_so(name):
    with pytest.raises(UnsupportedError, match=f"{name}.*does not allow all; use a learner"):
        discreet.learn(trap(), learner=name, trust=NoPrivacy(), episodes=10)


def test_no_effort_goes_to_actions_that_are_not_possible():
    """Nine actions of which two are possible cost what two actions cost, up to widths by A."""
    small = RandomMDP(states=3, actions=2, horizon=3, seed=5)
    small = small.replace(rewards=np.random.default_rng(5).random((3, 2)))
    wide = np.repeat(small.transitions, 5, axis=2)[:, :, :9]
    rewards = np.repeat(small.rewards, 5, axis=2)[:, :, :9]
    mask = np.zeros((3, 9), bool)
    mask[:, [0, 8]] = True
    large = small.replace(transitions=wide, rewards=rewards, allowed=mask)
    assert solve(large).value == pytest.approx(solve(small).value)

    def regret(mdp):
        runs = (discreet.learn(mdp, learner="flow-ucb", episodes=5000, seed=s) for s in range(20))
        return np.mean([run.final_regret for run in runs])

    assert regret(large) < 1.5 * regret(small)
