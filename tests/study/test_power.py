"""The smallest difference that a trial sees: held against simulation, and what it depends on."""

import numpy as np
import pytest

import discreet
from discreet.errors import InvalidInputError
from discreet.learners.learn import public_facts
from discreet.mdp import Shape
from discreet.mdp.policies import DeterministicPolicy, uniform_policy
from discreet.mdp.simulation import sample_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.study.estimate import StudyEstimate
from discreet.study.power import TOO_LARGE, smallest_difference, what_it_sees

RUNS = 500


def world(states, actions, horizon, effect):
    """Nothing matters but the second action in the first state at the first step."""
    rng = np.random.default_rng(states)
    rewards = np.repeat(rng.uniform(0.35, 0.55, (horizon, states, 1)), actions, axis=2)
    moves = rng.dirichlet(np.ones(states), size=(horizon, states, 1))
    rewards[0, 0, 1] += effect
    return discreet.TabularMDP(
        transitions=np.repeat(moves, actions, axis=2), rewards=rewards, horizon=horizon
    )


def recommended(mdp, mechanism, users, releases, seed):
    """How often the second action is recommended there, by a trial in equal releases."""
    rng, problem, found = np.random.default_rng(seed), public_facts(mdp, users), 0
    random, second = uniform_policy(mdp.shape), np.zeros(mdp.shape.visits[:2], np.int64)
    second[0, 0] = 1
    for _ in range(RUNS):
        estimate = StudyEstimate(problem, mechanism)
        for _ in range(releases):
            counts = sample_counts(mdp, random, users // releases, rng)
            support = random.support(mdp.shape, problem.start)
            made = mechanism.release(counts, sampler=SimulationSampler(rng), support=support)
            estimate.add(made, random)
        found += not estimate.answer(DeterministicPolicy(second)).defer[0, 0]
    return found / RUNS


@pytest.mark.parametrize(
    ("size", "trust", "users", "releases"),
    [
        ((1, 2, 1), discreet.NoPrivacy(), 1_000, 1),
        ((1, 2, 1), discreet.Shuffle(1, 1e-6), 1_000, 1),
        ((4, 3, 4), discreet.NoPrivacy(), 5_000, 1),
        ((4, 3, 4), discreet.Central(1, 1e-6), 5_000, 1),
        ((4, 3, 4), discreet.Shuffle(1, 1e-6), 5_000, 4),
        ((7, 3, 8), discreet.Central(1, 1e-6), 20_000, 1),
    ],
    ids=str,
)
def test_it_is_seen_with_the_stated_probability_and_nothing_is_seen_without_it(
    size, trust, users, releases
):
    """Eighty of a hundred; 0.07 is four standard errors of 500 runs. (In thirteen releases, where
    the second order counts, 0.72.)"""
    mechanism = trust.calibrate(
        Shape(*size), statistics=("transitions", "rewards"), last_transitions=size[2] == 1
    )
    nothing = world(*size, 0.0)
    ahead = discreet.mdp.plan(nothing).values[1]
    options = {"releases": releases, "spread": ahead.std(), "reward": nothing.rewards[0, 0, 0]}
    difference = smallest_difference(mechanism, users, **options)
    assert difference < TOO_LARGE
    power = recommended(world(*size, difference), mechanism, users, releases, 1)
    assert power == pytest.approx(0.8, abs=0.07)
    assert recommended(nothing, mechanism, users, releases, 2) <= 0.05


def test_more_users_less_noise_and_fewer_releases_see_more():
    shape = Shape(4, 3, 4)
    central, none = (
        discreet.Central(1, 1e-6).calibrate(shape),
        discreet.NoPrivacy().calibrate(shape),
    )

    def seen(*arguments, **options):
        return smallest_difference(*arguments, spread=0.1, **options)

    assert seen(none, 5_000) < seen(central, 5_000) < seen(central, 5_000, releases=13)
    assert seen(central, 50_000) < seen(central, 5_000) < seen(central, 5_000, share=0.25)
    assert seen(none, 5_000, releases=13) == seen(none, 5_000)  # nothing but noise is paid anew
    assert seen(discreet.Local(1).calibrate(shape), 5_000) > TOO_LARGE


def test_where_later_states_are_lost_in_noise_it_says_nothing():
    """Seven states, eight steps, four releases: the formula said 0.11, and the power was 0.4."""
    both = ("transitions", "rewards")
    central = discreet.Central(1, 1e-6).calibrate(
        Shape(7, 3, 8), statistics=both, last_transitions=False
    )
    assert smallest_difference(central, 5_000, releases=4) == float("inf")
    assert smallest_difference(central, 5_000, spread=0.1) < TOO_LARGE
    assert what_it_sees(float("inf"), float("inf"), 5_000).startswith("Too small to say")


def test_a_stream_is_one_release_of_all():
    trust = discreet.Central(1, 1e-6, mechanism="tree-gaussian")
    stream = trust.calibrate(Shape(3, 2, 4), schedule="continual", episodes=50_000)
    batch = discreet.Central(1, 1e-6).calibrate(Shape(3, 2, 4))
    assert smallest_difference(stream, 50_000) > smallest_difference(batch, 50_000)


def test_it_says_what_it_sees_in_the_units_of_who_asks():
    assert "a difference of 5.8 between two actions" in what_it_sees(5.8, 5.8, 5_000, 100.0)
    assert "a difference of 5.8 to 17 between two actions" in what_it_sees(5.8, 17, 5_000, 100.0)
    assert "a difference of 5.8 or more between" in what_it_sees(5.8, 27, 5_000, 100.0)
    assert what_it_sees(21.0, 22.0, 50, 100.0).startswith("Too small to say: 50 users")


@pytest.mark.parametrize("wrong", [{"share": 0}, {"spread": float("nan")}, {"reward": 7}], ids=str)
def test_what_cannot_be_is_refused(wrong):
    none = discreet.NoPrivacy().calibrate(Shape(2, 2, 4))
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        smallest_difference(none, 5_000, **wrong)


def test_without_a_spread_the_largest_there_can_be_is_assumed():
    """Two next states, worth 0 and H - 1: the deviation is (H - 1)/2, and none is larger."""
    none = discreet.NoPrivacy().calibrate(Shape(2, 2, 4))
    assert smallest_difference(none, 5_000) == smallest_difference(none, 5_000, spread=1.5)
