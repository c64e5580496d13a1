"""Continual learners under shuffle: in batches that double, with the noise of all of them."""

import json
import math

import numpy as np
import pytest

import discreet
from discreet import Shuffle
from discreet._seeds import RunSeeds
from discreet.errors import UnsupportedError
from discreet.learners.continual import Doubling
from discreet.learners.learn import make_batch_learner, public_facts, release_batch
from discreet.learners.registry import get_learner
from discreet.mdp import evaluate, plan, uniform_policy
from discreet.mdp.policies import StochasticPolicy
from discreet.privacy.sampling.samplers import SimulationSampler

NAMES = ("dp-ucbvi", "private-ucb-vi", "private-ucb-po", "ldp-obi")
MDP = discreet.make("RiverSwim", states=3, horizon=4)
TRUST = Shuffle(1, 1e-6)


def made(name, users=50_000, trust=TRUST, stationary=True):
    problem = public_facts(MDP, users, stationary=stationary)
    settings = {"stationary": stationary}
    return make_batch_learner(get_learner(name), problem, trust, np.random.default_rng(0), settings)


def told(learner, seed=0):
    seeds = RunSeeds(seed)
    sampler = SimulationSampler(seeds.generator("noise"))
    batch = learner.ask()
    counts = release_batch(MDP, learner, batch, seeds.generator("environment"), sampler)
    learner.tell(counts)
    return batch, counts


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_with_the_guarantee_of_one_batch(name):
    result = discreet.learn(MDP, learner=name, trust=TRUST, episodes=30_000, seed=1)
    guarantee = result.guarantee
    assert (guarantee.notion, guarantee.epsilon, guarantee.delta) == ("SDP", 1.0, 1e-6)
    batches = result.extras["batches"]
    assert sum(batches) == 30_000
    done = np.cumsum(batches)
    assert batches[1:-1] == done[:-2].tolist()  # each as large as all before
    assert batches[0] == math.ceil(6 * math.sqrt(max(made(name, 30_000).mechanism.noise_variance(2)
                                                     .values())))  # fmt: skip


@pytest.mark.parametrize("name", ["dp-ucbvi", "private-ucb-vi", "ldp-obi"])
def test_it_learns(name):
    lost = plan(MDP).value - evaluate(MDP, uniform_policy(MDP.shape))
    results = [
        discreet.learn(MDP, learner=name, trust=TRUST, episodes=200_000, seed=seed, stationary=True)
        for seed in range(3)
    ]
    assert np.mean([r.regret.values[-1] for r in results]) < 0.1 * lost * 200_000


def test_a_rest_that_cannot_be_released_joins_the_last_batch():
    result = discreet.learn(
        MDP, learner="dp-ucbvi", trust=Shuffle(1, 1e-6, min_users=400), episodes=1_000, seed=1
    )
    assert result.extras["batches"] == [400, 600]


def test_ties_are_broken_for_every_user():
    """Before anybody is told all values are at their cap."""
    policy = made("dp-ucbvi").ask().policy
    assert isinstance(policy, StochasticPolicy)
    assert np.allclose(policy.probabilities, 0.5)


@pytest.mark.parametrize("stationary", [True, False])
def test_sums_and_their_noise_add_up(stationary):
    """Halved noise, or that of the last batch alone, would show."""
    learner = made("dp-ucbvi", stationary=stationary)
    released = [told(learner, seed)[1] for seed in range(3)]
    steps = 4 if stationary else 1
    variance = sum(max(counts.noise_variance.values()) for counts in released) * steps
    bound = learner.inside.error_bounds(np.array([1]), 0.01)[0]
    assert bound == pytest.approx(math.sqrt(2 * variance * math.log(200)))
    sums = learner.state()["sums"]
    total = sum(np.asarray(counts.visits) for counts in released)
    assert np.allclose(sums[1], total.sum(axis=0, keepdims=True) if stationary else total)
    noisy = np.array([
        np.asarray(counts.visits).sum(axis=2).sum(axis=1) - counts.users for counts in released
    ])  # fmt: skip
    assert np.abs(noisy).max() > 0


def test_policy_optimisation_moves_once_for_a_batch():
    learner = made("private-ucb-po", 50_000)
    assert isinstance(learner, Doubling)
    batches, done = 0, 0
    while done < 50_000:
        done, batches = done + learner.size_after(done), batches + 1
    printed = math.sqrt(2 * math.log(2) / batches) / 4
    assert learner.inside.rate == pytest.approx(learner.inside.settings.rate_scale * printed)


@pytest.mark.parametrize("name", NAMES)
def test_it_goes_on_from_its_state(name):
    first, again = made(name), made(name)
    told(first)
    first.ask()
    state = json.loads(json.dumps(first.state()))
    again.restore(state)
    for _ in range(3):
        assert (a := first.ask()).users == (b := again.ask()).users
        assert a.policy.key == b.policy.key
        told(first, 5)
        told(again, 5)
        again.rng.bit_generator.state = first.rng.bit_generator.state


def test_what_is_not_stationary_is_not_pooled():
    drifting = discreet.make("RandomMDP", states=3, actions=2, horizon=3, stationary=False)
    with pytest.raises(UnsupportedError, match="stationary MDP"):
        discreet.learn(drifting, learner="dp-ucbvi", trust=TRUST, episodes=10, stationary=True)


def test_a_study_runs_in_batches_too(tmp_path):
    study = discreet.start(
        tmp_path / "s.db", states=3, actions=2, horizon=4, learner="dp-ucbvi", trust=TRUST,
        episodes=5_000, start_states=[0], sampler="simulation", seed=1,
    )  # fmt: skip
    assert study.driver.schedule == "batch"
    assert study.driver.ask().users < 5_000


def started(tmp_path, learner, trust, **settings):
    """A study on paper; only its start matters."""
    sizes = {"states": 3, "actions": 2, "horizon": 3, "episodes": 3_000}
    options = {"learner": learner, "trust": trust, "sampler": "simulation", **sizes, **settings}
    return discreet.start(tmp_path / "study.db", **options)


@pytest.mark.parametrize("more", [{"mechanism": "bits"}, {"calibration": "paper"}], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_what_releases_no_visits_is_refused_before_anybody_is_asked(tmp_path, more):
    with pytest.raises(UnsupportedError, match="needs visits beside transitions"):
        started(tmp_path, "dp-ucbvi", Shuffle(1, 1e-6, **more))


@pytest.mark.parametrize("trust", [Shuffle(1, 1e-6), discreet.Local(1)], ids=str)
def test_a_study_has_no_literal_learners(tmp_path, trust):
    with pytest.raises(UnsupportedError, match="Expected literal=False"):
        started(tmp_path, "ldp-obi", trust, literal=True)
