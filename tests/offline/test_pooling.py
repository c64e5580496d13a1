"""Rows pooled over steps, and the gate that refuses what the data contradict."""

import numpy as np
import pytest

from discreet import Central, NoPrivacy
from discreet.mdp import make, sample_counts, uniform_policy
from discreet.offline.improvement import gather, pooled
from discreet.offline.release import People, Randomness, Slots, release

pytestmark = pytest.mark.core

SAME = {"states": 4, "actions": 2, "horizon": 5, "concentration": 0.5, "seed": 3}


def evidence(users, trust, stationary=True, seed=0):
    mdp = make("RandomMDP", stationary=stationary, **SAME)
    counts = sample_counts(mdp, uniform_policy(mdp.shape), users, np.random.default_rng(seed))
    slots = Slots.of(np.ones(mdp.shape.visits, bool), mdp.start)
    noisy = release(
        counts,
        slots,
        trust,
        statistics=("transitions", "rewards"),
        last_transitions=True,
        randomness=Randomness.of("simulation", seed),
        people=People.given(None, counts, NoPrivacy()),
    )
    found = gather(noisy, np.full(mdp.shape.visits, np.nan), last_transitions=True)
    return counts, found, pooled(found, slots.named)


def test_without_noise_pooled_rows_are_sums_over_steps():
    counts, _, found = evidence(20_000, NoPrivacy())
    assert found.stationary.all()
    rows = found.pooled.layer(0)
    assert np.allclose(rows.visits, counts.visits.sum(axis=0))
    assert np.allclose(rows.rewards, counts.rewards.sum(axis=0))
    assert np.allclose(rows.transitions, counts.transitions.sum(axis=0))
    assert np.allclose(rows.sampling, rows.visits)


def test_a_step_that_is_hardly_visited_gets_hardly_any_weight():
    _, single, found = evidence(3_000, Central(1, 1e-6))
    rows, noise = found.pooled.layer(0), single.released.noise
    assert (rows.noise < 5 * noise).all()
    nowhere = single.visits[0, 1:]  # nobody begins there
    assert nowhere.max() == 0
    weighted = rows.noise[0] / noise
    assert (weighted > rows.noise[1:].min() / noise).all()


def test_pooling_makes_variances_smaller():
    _, single, found = evidence(20_000, Central(1, 1e-6))
    own, all_steps = single.slots.layer(2), found.pooled.layer(0)
    before = own.visit_variance / own.visits**2
    after = all_steps.visit_variance / all_steps.visits**2
    busy = own.visits > 100
    assert (after[busy] < before[busy]).all()


def test_behaviour_is_never_pooled():
    _, single, found = evidence(20_000, Central(1, 1e-6))
    assert np.array_equal(found.behaviour.visits, single.behaviour.visits)
    assert np.array_equal(found.shares, single.shares)


@pytest.mark.parametrize("trust", [NoPrivacy(), Central(1, 1e-6)])
def test_the_gate_lets_stationary_dynamics_through(trust):
    passed = [
        evidence(users, trust, seed=seed)[2].stationary.mean()
        for users in (1_000, 100_000, 10_000_000)
        for seed in range(6)
    ]
    assert np.mean(passed) > 0.95


@pytest.mark.parametrize("users", [10_000, 1_000_000])
def test_the_gate_stops_other_dynamics_at_every_step(users):
    _, single, found = evidence(users, Central(1, 1e-6), stationary=False)
    assert not found.stationary.any()
    assert np.array_equal(found.at(2).visits, single.slots.layer(2).visits)


def test_rows_are_taken_from_the_pool_where_it_may_be_used():
    _, single, found = evidence(20_000, Central(1, 1e-6))
    chosen = np.zeros((4, 2), bool)
    chosen[1, 0] = True
    rows = found._replace(stationary=chosen).at(3)
    assert rows.visits[1, 0] == found.pooled.layer(0).visits[1, 0]
    assert rows.visits[1, 1] == single.visits[3, 1, 1]
    assert np.array_equal(rows.rows.transitions[1, 0], found.pooled.layer(0).transitions[1, 0])
