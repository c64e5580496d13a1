"""What is pooled from releases: exact without noise, cautious with it."""

import numpy as np
import pytest

import discreet
from discreet.learners.base import PublicFacts
from discreet.learners.estimate import Estimate
from discreet.learners.learn import public_facts
from discreet.mdp import evaluate, solve
from discreet.mdp.policies import DeterministicPolicy, uniform_policy
from discreet.mdp.simulation import sample_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.study.estimate import Answer, StudyEstimate
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


def estimate_of(*releases, trust=None, problem=PROBLEM):
    """What a study of this trust model makes of releases."""
    trust = trust or discreet.NoPrivacy()
    mechanism = trust.calibrate(RIVER.shape, statistics=("transitions", "rewards"))
    estimate = StudyEstimate(problem, mechanism)
    for one in releases:
        estimate.add(one)
    return estimate


@pytest.mark.parametrize("last", [True, False])
def test_with_many_users_and_no_noise_the_optimum_is_found(last):
    estimate = estimate_of()
    for seed in range(3):
        estimate.add(release(discreet.NoPrivacy(), 200_000, seed, last_transitions=last))
    answer = estimate.answer()
    best = solve(RIVER).value
    assert evaluate(RIVER, answer.policy) == pytest.approx(best, abs=0.01)
    assert answer.value.value == pytest.approx(best, abs=0.02)
    assert answer.value.high - answer.value.low < 0.1


@pytest.mark.parametrize("trust", [discreet.NoPrivacy(), discreet.Central(1, 1e-6)], ids=str)
def test_the_interval_covers_the_value_about_as_often_as_it_says(trust):
    policy = solve(RIVER).policy
    inside = 0
    for seed in range(60):
        estimate = estimate_of()
        estimate.add(release(trust, 4_000, seed, policy))
        answer = estimate.answer()
        inside += answer.value.low <= evaluate(RIVER, answer.policy) <= answer.value.high
    assert inside >= 52


def test_noise_alone_is_no_evidence():
    """Three users and a noise of dozens: hardly anything can be said."""
    trust, said, told = discreet.Central(0.1, 1e-6), [], 0
    for seed in range(20):
        answer = estimate_of(release(trust, 3, seed), trust=trust).answer()
        said.append(np.isfinite(answer.standard_error).mean())
        told += int((~answer.defer).sum())
    assert np.mean(said) < 0.15
    assert told == 0


def test_where_nobody_can_have_been_nothing_is_recommended():
    """From the left end the right one takes two steps: what is counted there is noise."""
    trust, told = discreet.Central(1, 1e-6), 0
    for seed in range(40):
        answer = estimate_of(release(trust, 4_000, seed), trust=trust).answer()
        told += not answer.defer[1, 2]
    assert told <= 1


def coins(effect, states=1, actions=2):
    """One step in which the second action pays more."""
    rewards = np.full((states, actions), 0.45)
    rewards[:, 1] += effect
    moves = np.full((states, actions, states), 1 / states)
    return discreet.TabularMDP(transitions=moves, rewards=rewards, horizon=1)


def trial_of(mdp, trust, users, seed):
    """A randomised trial, and what a study says of it."""
    rng, problem = np.random.default_rng(seed), public_facts(mdp, users)
    mechanism = trust.calibrate(mdp.shape, statistics=("transitions", "rewards"))
    policy = uniform_policy(mdp.shape)
    counts = sample_counts(mdp, policy, users, rng)
    estimate = StudyEstimate(problem, mechanism)
    estimate.add(mechanism.release(counts, sampler=SimulationSampler(rng)), policy)
    return estimate.answer()


@pytest.mark.parametrize("trust", [discreet.NoPrivacy(), discreet.Central(0.2, 1e-6)], ids=str)
def test_differences_are_unbiased_and_their_standard_errors_true(trust):
    """Halved noise (0.60 of the stated error), or noise that is not in the error, would show."""
    answers = [trial_of(coins(0.1), trust, 600, seed) for seed in range(400)]
    found = np.array([answer.difference[0, 0] for answer in answers])
    errors = np.array([answer.standard_error[0, 0] for answer in answers])
    assert abs(found.mean() - 0.1) < 4 * found.std() / 20
    assert found.std() == pytest.approx(np.sqrt((errors**2).mean()), rel=0.12)
    covered = (np.abs(found - 0.1) < 2 * errors).mean()
    assert 0.92 < covered < 0.985


@pytest.mark.parametrize("trust", [discreet.NoPrivacy(), discreet.Central(1, 1e-6)], ids=str)
def test_actions_that_lead_elsewhere_have_the_errors_of_where_they_lead(trust):
    """Nothing pays more, but each action leads to a state of its own, whose value is uncertain."""
    moves = np.broadcast_to(np.eye(2), (2, 2, 2))
    mdp = discreet.TabularMDP(transitions=moves, rewards=np.full((2, 2), 0.5), horizon=3, initial=0)
    answers = [trial_of(mdp, trust, 3_000, seed) for seed in range(200)]
    z = np.array([a.difference[0, 0] / a.standard_error[0, 0] for a in answers])
    assert 0.6 < z.std() < 1.2  # without them 1.6 and more
    assert (np.abs(z) > 2).mean() < 0.1


@pytest.mark.parametrize("trust", [discreet.NoPrivacy(), discreet.Shuffle(1, 1e-6)], ids=str)
def test_what_is_no_better_is_rarely_recommended(trust):
    wrong = [not trial_of(coins(0.0), trust, 600, seed).defer[0, 0] for seed in range(400)]
    assert np.mean(wrong) < 0.05  # one-sided, beyond two standard errors: 0.023
    right = [not trial_of(coins(0.3), trust, 600, seed).defer[0, 0] for seed in range(50)]
    assert np.mean(right) > 0.95


def test_what_the_learner_does_not_prefer_is_not_recommended():
    sure = trial_of(coins(0.5), discreet.NoPrivacy(), 5_000, 1)
    assert not sure.defer[0, 0] and sure.policy.actions[0, 0] == 1
    estimate = estimate_of(*(release(discreet.NoPrivacy(), 5_000, seed) for seed in range(2)))
    first = DeterministicPolicy(np.zeros((4, 3), np.int64))
    answer = estimate.answer(first)
    assert answer.defer.all() and (answer.alternative == 1).all()
    assert (answer.policy.actions == 0).all()


def test_an_answer_speaks_the_units_of_who_asks():
    answer = Answer(
        DeterministicPolicy(np.zeros((2, 1), np.int64)),
        np.ones((2, 1), bool),
        np.ones((2, 1), np.int64),
        np.full((2, 1), 0.25),
        np.full((2, 1), 0.5),
        Estimate(1.0, 0.5, 1.5),
        Estimate(0.5, 0.0, 1.0),
    ).in_units(-10, 30)
    assert answer.difference.tolist() == [[10.0], [10.0]]
    assert answer.standard_error.tolist() == [[20.0], [20.0]]
    assert answer.value == (20.0, 0.0, 40.0)
    assert answer.today == (0.0, -20.0, 20.0)


@pytest.mark.parametrize("trust", [discreet.NoPrivacy(), discreet.Central(1, 1e-6)], ids=str)
def test_what_is_done_today_has_an_interval_that_covers(trust):
    """The default everywhere, by the same releases."""
    today = [trial_of(coins(0.3), trust, 600, seed).today for seed in range(200)]
    assert sum(one.low <= 0.45 <= one.high for one in today) >= 184


def test_what_is_not_known_may_be_worth_all_that_is_left():
    """Of users who never moved only the first state is known; elsewhere anything is possible."""
    stay = DeterministicPolicy(solve(RIVER).policy.actions)
    estimate = estimate_of()
    estimate.add(release(discreet.NoPrivacy(), 5_000, 1, stay))
    other = DeterministicPolicy(1 - stay.actions)
    value = estimate.answer(other).value
    assert (value.value, value.high) == (0.0, 4.0)


def test_a_small_batch_hardly_disturbs_a_large_one():
    trust = discreet.Central(1, 1e-6)
    alone, both = estimate_of(), estimate_of()
    large = release(trust, 20_000, 1)
    for one in (alone, both):
        one.add(large)
    for seed in range(10):
        both.add(release(trust, 2, seed))
    assert both.answer().value.value == pytest.approx(alone.answer().value.value, abs=0.05)


def test_it_comes_back_from_its_state_and_the_state_stays_as_it_was():
    estimate = estimate_of()
    estimate.add(release(discreet.Central(1, 1e-6), 500, 1))
    state = estimate.state()
    kept = {name: np.array(part) for name, part in state.items()}
    again = estimate_of()
    again.restore({name: part.tolist() for name, part in state.items()})
    assert str(again.answer().value) == str(estimate.answer().value)
    estimate.add(release(discreet.Central(1, 1e-6), 500, 2))
    for name, part in state.items():
        np.testing.assert_array_equal(part, kept[name])


def test_stationary_problems_pool_their_steps():
    problem, inside = PublicFacts(RIVER.shape, 100, RIVER.initial > 0, stationary=True), 0
    for seed in range(20):
        one = release(discreet.NoPrivacy(), 5_000, seed)
        answer = estimate_of(one, problem=problem).answer()
        assert np.isfinite(answer.standard_error).all()
        inside += answer.value.low <= evaluate(RIVER, answer.policy) <= answer.value.high
    assert inside >= 17


def test_an_estimate_is_read_as_a_sentence():
    assert str(Estimate(1.0, 0.5, 1.25)) == "1.000 (95% interval 0.500 to 1.250)"


def test_noise_does_not_add_up_to_a_value_that_is_too_high():
    """Counts cut off at zero would: a policy that earns almost nothing seemed to earn something."""
    policy = DeterministicPolicy(np.zeros((4, 3), np.int64))
    true, trust, found, above = evaluate(RIVER, policy), discreet.Central(1, 1e-6), [], 0
    for seed in range(60):
        value = estimate_of(release(trust, 3_000, seed, policy), trust=trust).answer(policy).value
        found.append(value.value)
        above += value.low > true
    assert above <= 3  # of a two-sided 95% interval
    assert np.mean(found) < true + 4 * np.std(found) / np.sqrt(60) + 0.01
