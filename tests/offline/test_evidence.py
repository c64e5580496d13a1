"""From a release to rows: flow consistency, rewards, and the variances that are stated."""

import numpy as np
import pytest

from discreet import Central, NoPrivacy
from discreet.mdp import make, sample_counts, uniform_policy
from discreet.offline.improvement import gather, slot_factors, state_factors
from discreet.offline.release import People, Randomness, Slots, release
from helpers.offline import dense

pytestmark = pytest.mark.core

MDP = make("RiverSwim", states=4, horizon=4)
BOTH = ("transitions", "rewards")
UNKNOWN = np.full(MDP.shape.visits, np.nan)


def released(
    users=100_000, trust=None, seed=0, last_transitions=False, declared=None, statistics=BOTH
):
    counts = sample_counts(MDP, uniform_policy(MDP.shape), users, np.random.default_rng(seed))
    everything = np.ones(MDP.shape.visits, bool) if declared is None else declared
    slots = Slots.of(everything, MDP.start)
    noisy = release(
        counts,
        slots,
        trust or Central(1, 1e-6),
        statistics=statistics,
        last_transitions=last_transitions,
        randomness=Randomness.of("simulation", seed),
        people=People.given(None, counts, NoPrivacy()),
    )
    return counts, noisy, slots


@pytest.mark.parametrize("last_transitions", [True, False])
def test_without_noise_the_rows_are_the_counts(last_transitions):
    counts, noisy, _ = released(trust=NoPrivacy(), last_transitions=last_transitions)
    found = gather(noisy, UNKNOWN, last_transitions=last_transitions)
    assert np.allclose(found.visits, counts.visits)
    assert np.allclose(dense(found.slots).rewards, counts.rewards)
    assert np.allclose(dense(found.slots).transitions[:-1], counts.transitions[:-1])
    assert np.allclose(found.behaviour.visits, counts.visits.sum(axis=2))
    assert np.allclose(found.behaviour.rows.rewards, counts.rewards.sum(axis=2))
    assert not found.visit_variance.any()
    assert found.initial.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("last_transitions", [True, False])
def test_noisy_rows_obey_the_flow(last_transitions):
    _, noisy, _ = released(last_transitions=last_transitions)
    found = gather(noisy, UNKNOWN, last_transitions=last_transitions)
    assert (dense(found.slots).transitions >= 0).all()
    assert np.allclose(found.visits.sum(axis=(1, 2)), 100_000)
    inflow = dense(found.slots).transitions[:-1].sum(axis=(1, 2))
    assert np.allclose(inflow, found.behaviour.visits[1:], atol=0.1)


def test_errors_of_visits_and_rewards_are_no_larger_than_stated():
    slots, states, rewards = [], [], []
    for seed in range(60):
        counts, noisy, _ = released(users=1_000_000, seed=seed)
        found = gather(noisy, UNKNOWN, last_transitions=False)
        slots.append(found.visits - counts.visits)
        states.append(found.behaviour.visits - counts.visits.sum(axis=2))
        reward_error = dense(found.slots).rewards - counts.rewards
        rewards.append(reward_error - 0.5 * slots[-1])
    busy = counts.visits > 10_000  # where no count is pushed up to zero
    stated = found.visit_variance
    assert (np.var(slots, axis=0)[busy] < 1.6 * stated[busy]).all()
    crowded = busy.all(axis=2)
    assert (
        np.var(states, axis=0)[crowded] < 1.6 * found.behaviour.rows.visit_variance[crowded] + 1e-6
    ).all()
    ratio = np.var(rewards, axis=0)[busy] / dense(found.slots).reward_noise[busy]
    assert 0.8 < ratio.mean() < 1.25


def test_a_collapsed_last_step_is_counted_with_the_noise_of_one_counter():
    errors = {}
    for last_transitions in (True, False):
        found = []
        for seed in range(25):
            counts, noisy, _ = released(
                users=1_000_000, seed=seed, last_transitions=last_transitions
            )
            rows = gather(noisy, UNKNOWN, last_transitions=last_transitions)
            found.append((rows.visits - counts.visits)[-1, :3])
        errors[last_transitions] = np.mean(np.square(found))
    assert errors[False] < 0.75 * errors[True]  # visits are measured by rewards as well


def test_known_rewards_are_not_estimated():
    known = np.array(MDP.full_rewards)
    _, noisy, _ = released(statistics=BOTH[:1])
    found = gather(noisy, known, last_transitions=False)
    assert np.allclose(dense(found.slots).rewards, known * found.visits)
    assert not dense(found.slots).reward_noise.any()
    assert not found.drawn.any()
    assert (found.anchor == known).all()
    assert np.allclose(found.behaviour.anchor, found.behaviour.means)


def test_known_rewards_leave_the_noise_of_who_took_which_action():
    _, noisy, _ = released(statistics=BOTH[:1])
    known = np.zeros(MDP.shape.visits)
    known[..., 1] = 1.0
    found = gather(noisy, known, last_transitions=False)
    means = found.behaviour.means
    stated = found.visit_variance * (known - means[..., None]) ** 2
    assert np.allclose(found.behaviour.rows.reward_noise, stated.sum(axis=2))
    assert found.behaviour.rows.reward_noise[1, 0] > 0


def test_shares_are_what_behaviour_does():
    _, noisy, _ = released(users=1_000_000)
    found = gather(noisy, UNKNOWN, last_transitions=False)
    assert found.shares[0, 0] == pytest.approx([0.5, 0.5], abs=0.01)


def test_rows_are_known_two_deviations_above_nothing():
    _, noisy, _ = released(users=1_000)
    found = gather(noisy, UNKNOWN, last_transitions=False)
    known = np.stack([found.at(step).known for step in range(4)])
    assert np.array_equal(known, found.visits - 2 * np.sqrt(found.visit_variance) > 0.5)
    assert known.any() and not known[0, 1:].any()  # nobody begins there


def test_factors_of_one_start_and_of_uneven_layers():
    support = np.ones((3, 4, 2), bool)
    support[0, 1:] = False
    support[1, 0, 1] = False
    columns = np.array([4.0, 4.0, 1.0])
    assert state_factors(support, columns)[0].tolist() == [0, 0, 0, 0]
    # Two rows flow in; four or eight counters flow out.
    assert state_factors(support, columns)[1] == pytest.approx([4 / 3, 1.6, 1.6, 1.6])
    assert slot_factors(support, columns)[1, 0].tolist() == pytest.approx([4 / 3, 0])
    assert slot_factors(support, columns)[1, 1].tolist() == pytest.approx([2.4, 2.4])
    assert state_factors(support, columns)[2, 0] == pytest.approx(14 / 9)
