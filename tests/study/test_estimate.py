"""What is pooled from releases: exact without noise, cautious with it."""

import numpy as np
import pytest

import discreet
from discreet.learners.base import Problem
from discreet.learners.estimate import Estimate, PolicyValue
from discreet.learners.learn import public_facts
from discreet.mdp import evaluate, plan
from discreet.mdp.policies import DeterministicPolicy, uniform_policy
from discreet.mdp.simulation import sample_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.study.estimate import StudyEstimate, of_release
from helpers.studies import RIVER

PROBLEM = public_facts(RIVER, 10_000)


def release(trust, users, seed, policy=None, **options):
    """One release of users who try everything, or follow a policy."""
    rng = np.random.default_rng(seed)
    support = uniform_policy(RIVER.shape) if policy is None else policy
    counts = sample_counts(RIVER, support, users, rng)
    made = trust.calibrate(RIVER.shape, statistics=("transitions", "rewards"), **options)
    mask = support.support(RIVER.shape, PROBLEM.start)
    return made.release(counts, sampler=SimulationSampler(rng), support=mask)


@pytest.mark.parametrize("last", [True, False])
def test_with_many_users_and_no_noise_the_optimum_is_found(last):
    estimate = StudyEstimate(PROBLEM)
    for seed in range(3):
        estimate.add(release(discreet.NoPrivacy(), 200_000, seed, last_transitions=last))
    answer = estimate.answer()
    best = plan(RIVER).value
    assert evaluate(RIVER, answer.policy) == pytest.approx(best, abs=0.01)
    assert answer.value.value == pytest.approx(best, abs=0.02)
    assert answer.value.high - answer.value.low < 0.1


@pytest.mark.parametrize("trust", [discreet.NoPrivacy(), discreet.Central(1, 1e-6)], ids=str)
def test_the_interval_covers_the_value_about_as_often_as_it_says(trust):
    policy = plan(RIVER).policy
    inside = 0
    for seed in range(60):
        estimate = StudyEstimate(PROBLEM)
        estimate.add(release(trust, 4_000, seed, policy))
        answer = estimate.answer()
        inside += answer.value.low <= evaluate(RIVER, answer.policy) <= answer.value.high
    assert inside >= 52


def test_noise_alone_is_not_knowledge():
    """Three users and a noise of dozens: hardly a row is taken for known."""
    shares = []
    for seed in range(20):
        estimate = StudyEstimate(PROBLEM)
        estimate.add(release(discreet.Central(0.1, 1e-6), 3, seed))
        shares.append(estimate.answer().known.mean())
    assert np.mean(shares) < 0.15


def test_where_nobody_can_have_been_hardly_anything_is_known():
    """From the left end the right one takes two steps: what is counted there is noise."""
    shares = []
    for seed in range(40):
        estimate = StudyEstimate(PROBLEM)
        estimate.add(release(discreet.Central(1, 1e-6), 4_000, seed))
        shares.append(estimate.answer().known[1, 2])
    assert np.mean(shares) < 0.2


def test_what_is_not_known_may_be_worth_all_that_is_left():
    """Of users who never moved only the first state is known; elsewhere anything is possible."""
    stay = DeterministicPolicy(plan(RIVER).policy.actions)
    estimate = StudyEstimate(PROBLEM)
    estimate.add(release(discreet.NoPrivacy(), 5_000, 1, stay))
    other = DeterministicPolicy(1 - stay.actions)
    value = estimate.answer(other).value
    assert (value.value, value.high) == (0.0, 4.0)


def test_a_small_batch_hardly_disturbs_a_large_one():
    trust = discreet.Central(1, 1e-6)
    alone, both = StudyEstimate(PROBLEM), StudyEstimate(PROBLEM)
    large = release(trust, 20_000, 1)
    for one in (alone, both):
        one.add(large)
    for seed in range(10):
        both.add(release(trust, 2, seed))
    assert both.answer().value.value == pytest.approx(alone.answer().value.value, abs=0.05)


def test_it_comes_back_from_its_state_and_the_state_stays_as_it_was():
    estimate = StudyEstimate(PROBLEM)
    estimate.add(release(discreet.Central(1, 1e-6), 500, 1))
    state = estimate.state()
    kept = {name: np.array(part) for name, part in state.items()}
    again = StudyEstimate(PROBLEM)
    again.restore({name: part.tolist() for name, part in state.items()})
    assert str(again.answer().value) == str(estimate.answer().value)
    estimate.add(release(discreet.Central(1, 1e-6), 500, 2))
    for name, part in state.items():
        np.testing.assert_array_equal(part, kept[name])


def test_stationary_problems_pool_their_steps():
    problem, inside = Problem(RIVER.shape, 100, RIVER.initial > 0, stationary=True), 0
    for seed in range(20):
        answer = of_release(problem, release(discreet.NoPrivacy(), 5_000, seed)).answer()
        assert answer.known.all()
        inside += answer.value.low <= evaluate(RIVER, answer.policy) <= answer.value.high
    assert inside >= 17


def test_an_estimate_is_read_as_a_sentence():
    assert str(Estimate(1.0, 0.5, 1.25)) == "1.000 (95% interval 0.500 to 1.250)"


def test_noise_does_not_add_up_to_a_value_that_is_too_high():
    """Counts cut off at zero would: a policy that earns almost nothing seemed to earn something."""
    policy = DeterministicPolicy(np.zeros((4, 3), np.int64))
    true, found = evaluate(RIVER, policy), []
    for seed in range(60):
        estimate = StudyEstimate(PROBLEM)
        estimate.add(release(discreet.Central(1, 1e-6), 3_000, seed, policy))
        values = PolicyValue(estimate._sums, 4, PROBLEM.start)
        found.append(float(values.step(3, np.zeros(3), cut=False)[0][0, 0]))
    reward = RIVER.rewards[3, 0, 0]
    assert abs(np.mean(found) - reward) < 5 * np.std(found) / np.sqrt(60)
    assert min(found) < 0 < max(found) or reward > 0.05
    assert estimate.answer(policy).policy is policy
    assert estimate.answer(policy).value.low <= true
