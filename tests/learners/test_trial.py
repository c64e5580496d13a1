"""The learner for trials: its stages, its shrinkage, and who is right at the end."""

from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError
from discreet.learners.learn import make_batch_learner, public_facts, release_batch, run_batches
from discreet.learners.registry import get_learner
from discreet.learners.trial import shrunk
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy, uniform_policy
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import Central, Local, NoPrivacy, Shuffle

RIVER = discreet.make("RiverSwim", states=3, horizon=4)
ARMS = discreet.TabularMDP(
    transitions=np.ones((1, 2, 1)), rewards=np.array([[0.4, 0.5]]), horizon=1
)


def learner(episodes=20_000, trust=None, *, mdp=RIVER, seed=5, stationary=False, **settings):
    problem = public_facts(mdp, episodes, stationary=stationary)
    rng = np.random.default_rng(seed)
    return make_batch_learner(get_learner("trial"), problem, trust or NoPrivacy(), rng, settings)


def told(one, mdp=RIVER, users=None, seed=0):
    """One batch; ``users`` of those who were asked for come."""
    rng, batch = np.random.default_rng(seed), one.ask()
    came = type(batch)(batch.policy, users or batch.users)
    one.tell(release_batch(mdp, one, came, rng, SimulationSampler(rng)))


def test_for_the_policy_all_are_in_one_randomised_batch():
    one = learner(aim="policy")
    outcome = run_batches(RIVER, one, RunSeeds(0, 0))
    assert outcome.extras["batches"] == [20_000]
    assert outcome.policy.key == uniform_policy(RIVER.shape).key
    assert outcome.extras["greedy"] == one.greedy().actions.tolist()


@pytest.mark.parametrize(
    ("trust", "episodes", "batches", "expected"),
    [
        (NoPrivacy(), 20_000, 5, [1_250, 1_250, 2_500, 5_000, 10_000]),
        (NoPrivacy(), 20_000, 2, [10_000, 10_000]),
        (NoPrivacy(), 60, 5, [30, 30]),  # at least two, though each is too small
        (Central(1, 1e-6), 5_000, 5, [1_250, 1_250, 2_500]),
    ],
    ids=str,
)
def test_for_participants_stages_double(trust, episodes, batches, expected):
    one = learner(episodes, trust, batches=batches)
    assert one.settings["stages"] == expected
    kinds = []
    while sum(u for u, _ in kinds) < episodes:
        batch = one.ask()
        assert one.ask() is not None and one.ask().users == batch.users
        kinds.append((batch.users, type(batch.policy)))
        told(one, seed=len(kinds))
    assert [users for users, _ in kinds] == expected
    assert kinds[-1][1] is DeterministicPolicy
    assert {kind for _, kind in kinds[:-1]} == {StochasticPolicy}


def test_more_users_of_a_trial_for_the_policy_take_random_actions_too():
    one = learner(1_000, aim="policy")
    first = one.ask()
    told(one, users=1_000)
    one.extend(replace(one.problem, episodes=1_300), pending=False)
    batch = one.ask()
    assert (batch.users, batch.policy.key) == (300, first.policy.key)


def test_no_stage_of_an_extended_trial_is_small():
    one = learner(1_000, batches=9)
    while one._told < 1_000:
        told(one)
    for episodes in (1_010, 1_600, 20_000):
        one.extend(replace(one.problem, episodes=episodes), pending=False)
        stages = one.settings["stages"]
        assert (sum(stages), stages[0]) == (episodes, 1_000)
        assert len(stages) == 2 or min(stages[1:]) >= 500


@pytest.mark.parametrize("episodes", [2, 3, 9, 100])
def test_no_batch_is_too_small_to_be_released(episodes):
    trust = Shuffle(2, 1e-6, honest=0.5)
    one = learner(episodes, trust)
    batches = run_batches(RIVER, one, RunSeeds(0, 0)).extras["batches"]
    assert sum(batches) == episodes
    assert min(batches) >= one.mechanism.min_users


def test_between_first_and_last_everything_is_still_tried():
    one = learner(20_000, Central(1, 1e-6))
    told(one)
    often = one.ask().policy.distribution(RIVER.shape)
    assert often.min() >= 0.05 / 2
    assert often.max() > 0.9  # and what is clear is played


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("trust", [NoPrivacy(), Central(1, 1e-6), Local(4)], ids=str)
def test_it_comes_back_from_its_state(trust, stationary):
    one = learner(5_000, trust, stationary=stationary)
    told(one)
    again = learner(5_000, trust, seed=6, stationary=stationary)
    again.restore(one.state())
    assert again.ask().policy.key == one.ask().policy.key and again.ask().users == one.ask().users
    for each in (one, again):
        told(each, seed=3)
    assert again.greedy().key == one.greedy().key


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(InvalidInputError, match=r"batches >= 2.*aim='policy', which is one batch"):
        learner(batches=1)
    assert learner(batches=1, aim="policy").settings["stages"] == [20_000]
    with pytest.raises(InvalidInputError, match="aim"):
        learner(aim="profit")


@pytest.mark.parametrize("trust", [Central(1, 1e-6), Shuffle(1, 1e-6)], ids=str)
def test_of_two_arms_the_wrong_one_is_rarely_chosen(trust):
    wrong = 0
    for run in range(100):
        one = learner(2_000, trust, mdp=ARMS, seed=run, aim="policy")
        told(one, ARMS, seed=run)
        wrong += one.greedy().actions[0, 0] == 0
    assert wrong <= 1


def test_equal_advantages_at_all_steps_are_pooled_and_different_ones_are_kept():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.1, (8, 4, 3))
    same = shrunk(noise + np.array([0.0, 0.1, -0.1]), np.full(noise.shape, 0.01))
    right = (same.advantages.argmax(axis=-1) == 1).mean()
    raw = ((noise + np.array([0.0, 0.1, -0.1])).argmax(axis=-1) == 1).mean()
    assert right > 0.95 > raw
    apart = rng.choice([-1.0, 0.0, 1.0], (8, 4, 3)) + noise
    kept = shrunk(apart, np.full(noise.shape, 0.01)).advantages
    kept -= kept.mean(axis=-1, keepdims=True)
    assert np.abs(kept - (apart - apart.mean(axis=-1, keepdims=True))).max() < 0.1


def test_what_was_never_tried_follows_the_others_and_is_not_certain():
    values, variances = np.zeros((3, 2, 2)), np.full((3, 2, 2), 1e-4)
    values[:, :, 1] = 0.2
    variances[1, 0] = np.inf
    found = shrunk(values, variances)
    assert found.advantages[1, 0].argmax() == 1
    assert np.isfinite(found.variances).all()
    assert found.variances[1, 0, 0] > found.variances[0, 0, 0]
