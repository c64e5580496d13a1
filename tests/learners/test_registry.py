"""The registry: one file registers a learner of any schedule; every learner says what it is."""

import dataclasses

import numpy as np
import pytest

import discreet
from discreet import Central, Local, NoPrivacy, learn
from discreet.adversarial import uc_o_reps
from discreet.errors import DiscreetError, UnknownNameError
from discreet.learners import registry
from discreet.learners.base import ContinualLearner
from discreet.learners.registry import (
    LearnerSpec,
    by_name,
    get_learner,
    learner_names,
    register,
)
from discreet.mdp import DeterministicPolicy, RiverSwim, TabularMDP
from discreet.papers.bounds import RegretBound
from discreet.privacy.trust import Shuffle
from helpers.registries import Uniform

MDP = RiverSwim(states=3, horizon=3)
TRUSTS = {
    "none": NoPrivacy(),
    "central": Central(2, 1e-6),
    "local": Local(2),
    "shuffle": Shuffle(2, 1e-6),
}


@pytest.fixture(autouse=True)
def _empty_roster(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})


def entry(name, schedule, **parts):
    return LearnerSpec(
        name=name,
        summary="a test",
        paper="ours",
        schedule=schedule,
        trusts=("none", "central", "local"),
        **parts,
    )


class Greedy(ContinualLearner):
    """The largest released mean reward, without a compiled planner."""

    name = "greedy"

    def next_policy(self, counts):
        mean = counts.rewards / np.maximum(counts.visits, 1.0)
        mean = mean + 1e-9 * self.rng.random(mean.shape)  # ties at random
        actions = np.broadcast_to(mean.argmax(axis=-1), self.problem.shape.visits[:2])
        return DeterministicPolicy(np.array(actions))


def test_a_batch_learner_of_ones_own():
    register(entry("uniform", "batch", make=Uniform))
    result = learn(MDP, learner="uniform", trust=Central(1, 1e-6), episodes=50)
    assert result.learner == "uniform"
    assert result.extras["batches"] == [50]
    assert set(result.noise) == {"rewards"}


class Means(Uniform):
    """Keeps the mean reward of every action; knows nothing of centred rewards."""

    statistics = ("transitions", "rewards")

    def tell(self, counts):
        self.means = (counts.rewards / counts.transitions.sum(axis=-1)).ravel()

    @property
    def extras(self):
        return {"means": self.means.tolist()}


@pytest.mark.parametrize("trust", [NoPrivacy(), Central(1, 1e-6), Shuffle(1, 1e-6)])
def test_who_knows_nothing_of_centring_is_told_sums_of_rewards(trust):
    """With all rewards below one half, sums of r - 1/2 would turn the order around."""
    rewards = [0.1, 0.4, 0.2]
    mdp = TabularMDP(
        transitions=np.ones((1, 1, 3, 1)),
        rewards=np.array([[rewards]]),
        initial=np.array([1.0]),
    )
    own = entry("means", "batch", make=Means)
    register(dataclasses.replace(own, trusts=("none", "central", "shuffle")))
    result = learn(mdp, learner="means", trust=trust, episodes=30_000)
    assert result.extras["means"] == pytest.approx(rewards, abs=0.03)


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("trust", [NoPrivacy(), Central(5, 1e-6), Local(5)])
def test_a_continual_learner_of_ones_own_needs_no_kernel(trust, stationary):
    register(entry("greedy", "continual", make=Greedy))
    result = learn(MDP, learner="greedy", trust=trust, episodes=40, seed=3, stationary=stationary)
    again = learn(MDP, learner="greedy", trust=trust, episodes=40, seed=3, stationary=stationary)
    assert np.array_equal(result.regret.values, again.regret.values)
    assert result.regret.episodes[-1] == 40
    assert result.settings["stationary"] is stationary


def test_an_adversarial_learner_of_ones_own():
    register(entry("follow", "adversarial", run=uc_o_reps.run, settings=uc_o_reps.UcORepsSettings))
    result = learn(MDP, learner="follow", episodes=60)
    assert result.regret.episodes[-1] == 60
    assert get_learner("follow").settings_type is uc_o_reps.UcORepsSettings


def test_names_that_are_shipped_cannot_be_taken():
    with pytest.raises(DiscreetError, match="choose another"):
        register(entry("flow-ucb", "batch", make=Uniform))


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="did you mean 'flow-ucb'"):
        get_learner("flow_ucb")


@pytest.mark.parametrize("schedule", ["continual", "adversarial"])
def test_an_entry_without_a_learner_gets_one_sentence(schedule):
    register(entry("empty", schedule))
    with pytest.raises(DiscreetError, match="cannot be run"):
        learn(MDP, learner="empty", episodes=10)


@pytest.mark.parametrize("name", learner_names())
def test_results_carry_what_made_them(name):
    """Mechanism and noise, as the run's own plan has them, in every schedule."""
    for trust in get_learner(name).trusts:
        result = discreet.learn(MDP, learner=name, trust=TRUSTS[trust], episodes=60, seed=1)
        private = trust != "none"
        assert result.mechanism not in ("", "auto")
        assert (result.mechanism != "none") == private
        assert result.noise
        assert all((deviation > 0) == private for deviation in result.noise.values())


@pytest.mark.parametrize("name", learner_names())
def test_every_entry_is_complete(name):
    spec = get_learner(name)
    assert spec.name == name
    assert (spec.make is None) != (spec.run is None)
    assert spec.settings_type is not None
    assert spec.summary
    assert spec.bound
    for trust, bound in spec.bounds.items():
        assert trust in spec.trusts
        assert bound(4, 2, 6, 1e6, 1.0) > 0


@pytest.mark.core
def test_the_line_of_a_continual_learner_comes_from_its_class():
    spec = LearnerSpec.of_continual(Greedy, paper="folklore")
    assert (spec.name, spec.summary, spec.paper) == ("greedy", Greedy.summary, "folklore")
    assert (spec.schedule, spec.make, spec.run) == ("continual", Greedy, None)
    assert spec.trusts == ("none", "central", "local")
    assert (spec.bound, spec.bounds) == ("none proven", {})
    assert spec.settings_type is Greedy.settings_type


@pytest.mark.core
def test_a_learner_of_yours_may_have_a_bound_of_its_own():
    bound = RegretBound("S·sqrt(K)")
    spec = LearnerSpec.of_continual(Greedy, paper="", own_bounds={"none": bound}, trusts=("none",))
    assert spec.bound == "none: S·sqrt(K)"
    assert spec.bounds["none"](3, 2, 5, 100.0) == 30.0
    assert spec.trusts == ("none",)
    assert by_name(spec) == {"greedy": spec}


@pytest.mark.parametrize("name", ["dp-ucbvi", "private-ucb-vi", "pucb", "sdp-pe"])
def test_privacy_costs_regret_in_the_bounds_and_the_cost_shrinks_with_epsilon(name):
    for trust, bound in get_learner(name).bounds.items():
        costs = [bound(4, 2, 6, 1e6, epsilon) for epsilon in (0.1, 1.0, 10.0, np.inf)]
        assert costs == sorted(costs, reverse=True)
        assert (costs[0] > costs[-1]) == (trust != "none")


def test_a_learner_of_ones_own_is_listed():
    register(entry("uniform", "batch", make=Uniform))
    assert registry.listing("uniform").summary == "a test"
    assert "uniform" in learner_names()
