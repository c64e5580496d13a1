"""What may be claimed."""

import numpy as np
import pytest

from discreet import Central, NoPrivacy
from discreet.mdp import evaluate, make, sample_counts, uniform_policy
from discreet.offline.fit import BehaviourValue, behaviour_value, gain_at_start, lower_value
from discreet.offline.improvement import gather
from discreet.offline.release import People, Randomness, Slots, release

pytestmark = pytest.mark.core

MDP = make("RiverSwim", states=4, horizon=4)
POLICY = uniform_policy(MDP.shape)
UNKNOWN = np.full(MDP.shape.visits, np.nan)


def released(users, seed, trust, statistics=("transitions", "rewards")):
    counts = sample_counts(MDP, POLICY, users, np.random.default_rng(seed))
    slots = Slots.of(np.ones(MDP.shape.visits, bool), MDP.start)
    noisy = release(
        counts,
        slots,
        trust,
        statistics=statistics,
        last_transitions=False,
        randomness=Randomness.of("simulation", seed),
        people=People.given(None, counts, NoPrivacy()),
    )
    return counts, noisy


def test_without_noise_it_is_the_mean_total_reward():
    counts, noisy = released(5_000, 0, NoPrivacy())
    found = behaviour_value(noisy, UNKNOWN, last_transitions=False)
    value = counts.rewards.sum() / 5_000
    assert found.value == pytest.approx(value)
    assert found.error == pytest.approx(np.sqrt(value * (4 - value) / 5_000))


def test_without_noise_known_rewards_weigh_the_visits():
    counts, noisy = released(5_000, 0, NoPrivacy(), ("transitions",))
    found = behaviour_value(noisy, np.array(MDP.full_rewards), last_transitions=False)
    assert found.value == pytest.approx((counts.visits * MDP.full_rewards).sum() / 5_000)


@pytest.mark.parametrize("known", [False, True])
def test_the_standard_error_covers(known):
    truth = evaluate(MDP, POLICY)
    rewards = np.array(MDP.full_rewards) if known else UNKNOWN
    statistics = ("transitions",) if known else ("transitions", "rewards")
    z = []
    for seed in range(80):
        _, noisy = released(20_000, seed, Central(1, 1e-6), statistics)
        found = behaviour_value(noisy, rewards, last_transitions=False)
        z.append((found.value - truth) / found.error)
    assert abs(np.mean(z)) < 0.4
    assert 0.2 < np.std(z) < 1.25  # the sampling part is a bound


def test_the_value_stays_in_its_range():
    _, noisy = released(10, 0, Central(0.1, 1e-6))
    found = behaviour_value(noisy, UNKNOWN, last_transitions=False)
    assert 0 <= found.value <= 4
    assert found.error > 0


def test_the_gain_at_the_start_is_cautious_about_first_states():
    _, noisy = released(10_000, 0, Central(1, 1e-6))
    evidence = gather(noisy, UNKNOWN, last_transitions=False)
    assert gain_at_start(evidence, np.full(4, 0.25), 2.0) == pytest.approx(0.25)
    assert gain_at_start(evidence, np.array([0.0, 1, 1, 1]), 2.0) == 0


def test_many_first_states_cost_their_noise():
    mdp = make("Recommender")
    counts = sample_counts(mdp, uniform_policy(mdp.shape), 10_000, np.random.default_rng(0))
    slots = Slots.of(np.ones(mdp.shape.visits, bool), np.ones(mdp.shape.states, bool))
    noisy = release(
        counts,
        slots,
        Central(1, 1e-6),
        statistics=("transitions", "rewards"),
        last_transitions=False,
        randomness=Randomness.of("simulation", 0),
        people=People.given(None, counts, NoPrivacy()),
    )
    evidence = gather(noisy, np.full(mdp.shape.visits, np.nan), last_transitions=False)
    gain = np.arange(mdp.shape.states) / mdp.shape.states
    mean = float(evidence.initial @ gain)
    assert gain_at_start(evidence, gain, 0.0) == pytest.approx(max(mean, 0))
    assert gain_at_start(evidence, gain, 2.0) < mean
    far = (gain - mean) ** 2
    spread = (
        evidence.initial @ far / 10_000
        + evidence.behaviour.rows.visit_variance[0] @ far / 10_000**2
    )
    assert gain_at_start(evidence, gain, 2.0) == pytest.approx(mean - 2 * np.sqrt(spread))
    assert spread > 2 * evidence.initial @ far / 10_000  # most of it is noise


def test_the_claim_is_today_less_its_error_plus_the_gain_and_never_negative():
    assert lower_value(BehaviourValue(2.0, 0.25), 0.75, 2.0) == 2.25
    assert lower_value(BehaviourValue(0.1, 0.25), 0.0, 2.0) == 0
