"""flow-ucb: it learns, under every trust model, at any K, and resumes exactly."""

import json

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError
from discreet.learners.learn import run_batches
from discreet.mdp import evaluate, make, solve
from discreet.mdp.simulation import sample_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from helpers.flow_ucb import CENTRAL, learner_of, play, river


@pytest.mark.core
def test_declared_stationarity_and_no_pooling_contradict_each_other():
    with pytest.raises(InvalidInputError, match="pooling='never'; leave one of the two out"):
        learner_of(river(0), episodes=1000, stationary=True, pooling="never")
    learner_of(river(0), episodes=1000, pooling="never")


@pytest.mark.core
@pytest.mark.parametrize(
    ("trust", "episodes", "stationary", "bar"),
    [
        (CENTRAL, 200_000, False, 2_000),
        (CENTRAL, 200_000_000, False, 3_500),
        (CENTRAL, 200_000_000, True, 1_600),
        (discreet.Central(epsilon=0.1, delta=1e-6), 200_000_000, True, 14_000),
        (None, 200_000, False, 260),
    ],
)
def test_regret_is_a_small_part_of_the_uniform_policys(trust, episodes, stationary, bar):
    # The uniform policy loses 0.444 per user: 88,839 at K = 2e5, 88,839,000 at K = 2e8. Bars are a
    # quarter to a half above the worst of 20 other runs.
    regrets = [
        discreet.learn(
            river(run),
            learner="flow-ucb",
            trust=trust,
            episodes=episodes,
            seed=run,
            stationary=stationary,
        ).final_regret
        for run in range(3)
    ]
    assert max(regrets) < bar


@pytest.mark.core
def test_every_user_is_in_exactly_one_batch():
    result = discreet.learn(river(0), learner="flow-ucb", trust=CENTRAL, episodes=12_345, seed=0)
    assert sum(result.extras["batches"]) == 12_345
    assert min(result.extras["batches"]) >= 1
    assert result.guarantee.notion == "JDP"
    assert result.guarantee.epsilon == 1
    assert result.settings["confidence"] > 0


def test_batches_grow_with_the_noise_not_with_the_population():
    first = {
        epsilon: learner_of(river(0), discreet.Central(epsilon, 1e-6), episodes=10**9).ask().users
        for epsilon in (10.0, 1.0, 0.1)
    }
    assert first[10.0] < first[1.0] < first[0.1]
    assert learner_of(river(0), episodes=10**6).ask().users == first[1.0]


@pytest.mark.parametrize("stationary", [False, True])
def test_resumes_exactly_from_its_json_state(stationary):
    mdp = river(3)
    whole = learner_of(mdp, episodes=50_000, stationary=stationary)
    play(mdp, whole, 5, seed=1)
    whole.ask()
    copy = learner_of(mdp, episodes=50_000, stationary=stationary, seed=99)
    copy.restore(json.loads(json.dumps(whole.state())))
    after, again = play(mdp, whole, 5, seed=2), play(mdp, copy, 5, seed=2)
    assert [policy.key for policy, _ in again] == [policy.key for policy, _ in after]


@pytest.mark.core
@pytest.mark.parametrize("mechanism", ["histogram", "bits"])
@pytest.mark.parametrize(("honest", "least"), [(1.0, 2), (0.9, 2), (0.3, 4)])
def test_no_batch_is_too_small_for_its_honest_users(mechanism, honest, least):
    trust = discreet.Shuffle(1, 1e-6, mechanism=mechanism, honest=honest)
    mdp = make("RiverSwim", states=4, horizon=6)
    for episodes in (13, 2000):
        result = discreet.learn(mdp, learner="flow-ucb", trust=trust, episodes=episodes, seed=2)
        batches = result.extras["batches"]
        assert sum(batches) == episodes
        assert (mechanism == "bits" and honest == 1) or min(batches) >= least


def test_asking_twice_returns_the_same_batch():
    learner = learner_of(river(0), episodes=1000)
    one, two = learner.ask(), learner.ask()
    assert one.policy.key == two.policy.key
    assert one.users == two.users


def test_only_released_statistics_steer_it():
    # Two batches with the same release lead to the same next request, whatever the raw counts.
    mdp = river(0)
    learners = [learner_of(mdp, episodes=20_000) for _ in range(2)]
    batch, _ = (learner.ask() for learner in learners)
    counts = sample_counts(mdp, batch.policy, batch.users, np.random.default_rng(0))
    release = learners[0].mechanism.release(
        counts,
        sampler=SimulationSampler(np.random.default_rng(1)),
        support=batch.policy.support(mdp.shape, learners[0].problem.start),
    )
    for learner in learners:
        learner.tell(release)
    one, two = (learner.ask() for learner in learners)
    assert one.policy.key == two.policy.key
    assert one.users == two.users


def test_actions_have_no_favourite():
    # With no evidence the first policy is a fair coin per (h, s): chi-squared over 400 learners.
    mdp = river(None)
    chosen = [
        learner_of(mdp, episodes=10**6, seed=s, mixing=False).ask().policy.actions
        for s in range(400)
    ]
    share = np.mean(chosen, axis=0)
    assert np.abs(share - 0.5).max() < 6 * 0.5 / np.sqrt(400)


def test_the_greedy_policy_is_the_best_of_the_model_and_asking_for_it_changes_nothing():
    mdp = make("RiverSwim", states=3, horizon=4, relabel=1)
    learner = learner_of(mdp, discreet.NoPrivacy(), episodes=20_000)
    run_batches(mdp, learner, RunSeeds(1))
    before = learner.rng.bit_generator.state
    first, again = learner.greedy(), learner.greedy()
    np.testing.assert_array_equal(first.actions, again.actions)
    assert learner.rng.bit_generator.state == before
    assert evaluate(mdp, first) > 0.98 * solve(mdp).value


@pytest.mark.parametrize("mixing", [True, False])
def test_without_mixing_every_batch_has_one_action_per_state(mixing):
    mdp = make("Treatment", horizon=4)
    trust = discreet.Shuffle(4, 1e-4)
    learner = learner_of(mdp, trust, episodes=400, mixing=mixing)
    shares = [policy.distribution(mdp.shape) for policy, _ in play(mdp, learner, 4, seed=5)]
    assert all(np.isin(share, (0, 1)).all() for share in shares) is not mixing
