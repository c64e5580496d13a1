"""Explore, then commit: who plays when, what is told, states, and what it is worth."""

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError
from discreet.learners.learn import make_batch_learner, public_facts, run_batches
from discreet.learners.registry import get_learner
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy, uniform_policy
from discreet.mdp.simulation import sample_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import Central, NoPrivacy, Shuffle

MDP = discreet.make("RiverSwim", states=3, horizon=4)


def learner(episodes=20_000, trust=None, *, mdp=MDP, stationary=False, **settings):
    problem = public_facts(mdp, episodes, stationary=stationary)
    rng = np.random.default_rng(5)
    return make_batch_learner(
        get_learner("explore-then-commit"), problem, trust or NoPrivacy(), rng, settings
    )


def told(one, batch, users, mdp=MDP):
    """The release of ``users`` of the users that were asked for."""
    rng = np.random.default_rng(users)
    support = batch.policy.support(mdp.shape, one.problem.start)
    counts = one.mechanism.simulate(
        lambda n: sample_counts(mdp, batch.policy, n, rng),
        users,
        sampler=SimulationSampler(rng),
        support=support,
    )
    one.tell(counts)


def test_rounds_double_and_the_rest_commits():
    one = learner(length=1000)
    outcome = run_batches(MDP, one, RunSeeds(0, 0))
    assert outcome.extras["batches"] == [250, 250, 500, 19_000]
    assert isinstance(outcome.policy, DeterministicPolicy)
    assert one.settings == {
        "batches": None,
        "exploration": "designed",
        "length": 1000,
        "rounds": 3,
        "stationary": False,
    }


@pytest.mark.parametrize(
    ("episodes", "length"), [(3, None), (3, 2), (3, 3), (9, None), (9, 7), (1000, None), (1000, 7)]
)
def test_no_batch_is_too_small_to_be_released(episodes, length):
    one = learner(episodes, Shuffle(2, 1e-6, honest=0.5), length=length)
    batches = run_batches(MDP, one, RunSeeds(0, 0)).extras["batches"]
    assert sum(batches) == episodes
    assert min(batches) >= one.mechanism.min_users == 2


@pytest.mark.parametrize("came", [0.9, 0.5])
def test_a_round_ends_with_those_who_came(came):
    # To fill it up would take ever smaller batches, each with noise of its own.
    one, batches = learner(trust=Central(1, 1e-6), length=1000), []
    while len(batches) < 4:
        batch = one.ask()
        batches.append(batch.users)
        told(one, batch, round(batch.users * came))
    assert batches == [250, 250, 500, 20_000 - round(1000 * came)]
    again = learner(trust=Central(1, 1e-6), length=1000)
    again.restore(one.state())
    assert again.ask().users == one.ask().users


def test_every_round_is_designed_with_luck_of_its_own_and_a_restored_one_with_the_same(monkeypatch):
    from discreet.learners import explore_then_commit as module

    luck = []

    def designed(problem, chances, initial, least, rng):
        luck.append(rng.random())
        return uniform_policy(problem.shape)

    monkeypatch.setattr(module, "designed_policy", designed)
    one, again = learner(length=1000), learner(length=1000)
    for users in (250, 200):  # in the second round not all come
        told(one, one.ask(), users)
    assert one.ask().users == 500
    again.restore({**one.state(), "request": None})
    assert again.ask().users == 500
    assert luck[2] == luck[1] != luck[0]


def test_more_explorers_than_users_are_refused():
    with pytest.raises(InvalidInputError, match="length <= 100, got length=101"):
        learner(100, length=101)
    assert learner(100, length=100).settings["length"] == 100


def test_uniform_exploration_is_one_batch():
    one = learner(exploration="uniform", length=1000)
    first = one.ask()
    assert np.array_equal(first.policy.probabilities, uniform_policy(MDP.shape).probabilities)
    assert run_batches(MDP, one, RunSeeds(0, 0)).extras["batches"] == [1000, 19_000]
    assert one.settings["rounds"] == 1


def test_later_rounds_are_designed():
    one = learner(length=4000, trust=Central(1, 1e-6))
    told(one, one.ask(), 1000)
    second = one.ask()
    assert isinstance(second.policy, StochasticPolicy) and second.users == 1000
    assert not np.allclose(second.policy.probabilities, 0.5)
    assert one.ask() is second


def test_who_does_not_come_to_the_last_batch_is_asked_for_again():
    one = learner(length=1000)
    for users in (250, 250, 500):
        told(one, one.ask(), users)
    told(one, one.ask(), 9_000)
    assert one.ask().users == 10_000 and isinstance(one.ask().policy, DeterministicPolicy)


def test_a_restored_learner_goes_on_as_if_nothing_had_happened():
    one, other = learner(length=1000), learner(length=1000)
    for users in (250, 250):
        told(one, one.ask(), users)
        other = learner(length=1000)
        other.restore(one.state())
        assert other.ask().users == one.ask().users
        assert other.ask().policy.key == one.ask().policy.key
        assert other.greedy().key == one.greedy().key


@pytest.mark.parametrize("trust", [None, Central(1, 1e-6)])
@pytest.mark.parametrize("stationary", [False, True])
def test_it_learns(trust, stationary):
    meter = RegretMeter(MDP)
    uniform = meter.regret(uniform_policy(MDP.shape))
    result = discreet.learn(
        MDP, learner="explore-then-commit", trust=trust, episodes=300_000, stationary=stationary
    )
    assert meter.regret(result.policy) < 0.02 * uniform
    assert result.final_regret < 0.2 * 300_000 * uniform
    assert sum(result.extras["batches"]) == 300_000


def test_a_design_finds_what_random_actions_do_not():
    """The far end of a longer river, with as many users exploring."""
    mdp = discreet.make("RiverSwim", states=6, horizon=12)
    meter = RegretMeter(mdp)

    def loss(how):
        settings = {
            "learner": "explore-then-commit",
            "exploration": how,
            "length": 8000,
            "episodes": 10_000,
        }
        runs = [discreet.learn(mdp, run=run, **settings) for run in range(6)]
        return np.mean([meter.regret(run.policy) for run in runs])

    assert loss("designed") < 0.7 * loss("uniform")


def test_one_user_is_enough():
    result = discreet.learn(MDP, learner="explore-then-commit", trust=Central(1, 1e-6), episodes=1)
    assert result.extras["batches"] == [1]
