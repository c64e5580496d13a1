"""Explore, then commit: who plays when and where, what is told, and what it is worth."""

from types import SimpleNamespace

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.learners.base import Batch, PublicFacts
from discreet.learners.estimate import TOTAL, VISIT_VARIANCE, VISITS, CountSums
from discreet.learners.explore_then_commit import (
    ExploreThenCommit,
    designed_policy,
    exploration_users,
    greedy_policy,
    known_rows,
    model_probabilities,
)
from discreet.learners.learn import make_batch_learner, public_facts, run_batches
from discreet.learners.registry import get_learner
from discreet.mdp.environments.synthetic import DoubleChain, RiverSwim
from discreet.mdp.planning import RegretMeter, evaluate, occupancy, solve
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy, uniform_policy
from discreet.mdp.shape import Shape
from discreet.mdp.simulation import sample_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import Central, Local, NoPrivacy, Shuffle

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


LONG = RiverSwim(states=5, horizon=8)


def problem(episodes=10**6, shape=LONG.shape):
    start = np.zeros(shape.states, np.bool_)
    start[0] = True
    return PublicFacts(shape, episodes, start)


def release(trust, shape=LONG.shape):
    return trust.calibrate(shape, statistics=("transitions", "rewards"), last_transitions=False)


def users(trust, episodes):
    return exploration_users(problem(episodes), release(trust))


def test_more_users_and_more_noise_explore_longer_and_a_smaller_share():
    for trust in (NoPrivacy(), Central(1, 1e-6)):
        lengths = [users(trust, k) for k in (10**4, 10**6, 10**8)]
        assert lengths == sorted(lengths) and lengths[0] > 1
        shares = [n / k for n, k in zip(lengths, (10**4, 10**6, 10**8), strict=True)]
        assert shares == sorted(shares, reverse=True)
    assert users(NoPrivacy(), 10**6) < users(Central(1, 1e-6), 10**6) < users(Local(1), 10**6)
    assert users(Central(1, 1e-6), 10**6) < users(Central(0.1, 1e-6), 10**6)


@pytest.mark.parametrize("episodes", [1, 2, 3, 100])
def test_at_least_one_and_at_most_half_of_the_users_explore(episodes):
    assert 1 <= users(Central(1, 1e-6), episodes) <= max(1, episodes // 2)


def test_a_design_comes_where_random_actions_hardly_ever_do():
    rng = np.random.default_rng(0)
    chosen = designed_policy(problem(), LONG.transitions, LONG.initial, 1e-4, rng)
    random, designed = occupancy(LONG, uniform_policy(LONG.shape)), occupancy(LONG, chosen)
    reached = random > 0
    assert (designed[reached] > 0).all()
    assert designed[reached].min() > 5 * random[reached].min()
    assert (designed[-1, -1] > 5 * random[-1, -1]).all()  # the far end of the river


def test_what_is_out_of_reach_is_not_covered():
    rng = np.random.default_rng(0)
    easy = designed_policy(problem(), LONG.transitions, LONG.initial, 0.2, rng)
    hard = designed_policy(problem(), LONG.transitions, LONG.initial, 1e-4, rng)
    assert occupancy(LONG, easy)[-1, -1].sum() < occupancy(LONG, hard)[-1, -1].sum()
    nothing = designed_policy(problem(), LONG.transitions, LONG.initial, 2.0, rng)
    assert np.array_equal(nothing.probabilities, uniform_policy(LONG.shape).probabilities)


def test_designs_that_would_not_fit_are_refused():
    shape, rng = Shape(states=716, actions=25, horizon=20), np.random.default_rng(0)
    with pytest.raises(UnsupportedError, match="exploration='uniform'"):
        ExploreThenCommit(problem(shape=shape), release(NoPrivacy(), shape), rng)


def test_a_length_is_a_batch_that_can_be_released():
    """Under shuffle nobody is hidden alone, and one of the users has to be honest."""
    plan = release(Shuffle(2, 1e-6, honest=0.5))
    assert plan.min_users == 2
    for episodes in (2, 3, 3000):
        assert 2 <= exploration_users(problem(episodes), plan) <= max(2, episodes // 2)


MDP_ = RiverSwim(states=3, horizon=4)
TRUSTS = {
    "none": NoPrivacy(),
    "central": Central(1, 1e-6),
    "shuffle": Shuffle(1, 1e-6),
    "local": Local(5),
}


def explored(
    trust, users=200_000, *, last=False, pooled=False, policy=None, mdp=MDP_, visit_variance=None
):
    """A model after one batch."""
    policy = policy or uniform_policy(mdp.shape)
    rng = np.random.default_rng(0)
    release = trust.calibrate(
        mdp.shape, statistics=("transitions", "rewards"), last_transitions=last
    )
    start = mdp.initial > 0
    counts = release.simulate(
        lambda n: sample_counts(mdp, policy, n, rng),
        users,
        sampler=SimulationSampler(rng),
        support=policy.support(mdp.shape, start),
    )
    problem = public_facts(mdp, 2 * users, stationary=pooled)
    learner = ExploreThenCommit(problem, release, rng, length=users, exploration="uniform")
    if visit_variance is not None:
        seen = ("shape", "min_users", "noise_variance", "last_transitions", "reward_visit_variance")
        known = {name: getattr(release, name) for name in seen}
        learner.mechanism = SimpleNamespace(visit_variance=visit_variance, **known)
    learner._pending = Batch(policy, users)
    learner.tell(counts)
    return learner.sums


def visits(sums):
    return sums.reward_sums[..., VISITS]


def visit_variance_of(sums):
    return sums.reward_sums[..., VISIT_VARIANCE]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", TRUSTS)
def test_many_users_show_the_model_and_its_best_policy(name, last):
    model = explored(TRUSTS[name], last=last)
    chances = model_probabilities(model, MDP_.horizon)
    often = visits(model) > 20_000
    often[-1] = False  # its transitions are not needed
    assert often.any() and np.allclose(chances[often], MDP_.transitions[often], atol=0.05)
    often = visits(model) > 20_000
    means = model.reward_sums[..., TOTAL] / np.maximum(visits(model), 1.0)
    assert np.allclose(means[often], MDP_.rewards[often], atol=0.06)
    luck = np.random.default_rng(1).random(MDP_.shape.visits)
    value = evaluate(MDP_, greedy_policy(model, MDP_.horizon, luck))
    assert value == pytest.approx(solve(MDP_).value, rel=0.05)


def test_the_last_step_divides_its_visits_as_the_policy_does():
    """Nothing of its transitions is released: an equal split would mistake rare for bad."""
    rare = np.full(MDP_.shape.visits, [0.9, 0.1])
    model = explored(Central(1, 1e-6), policy=StochasticPolicy(rare))
    last = visits(model)[-1]
    assert np.allclose(last[:, 1] / last.sum(axis=1), 0.1, atol=0.02)
    exact = explored(NoPrivacy(), last=True, policy=StochasticPolicy(rare)).reward_sums[
        -1, ..., VISITS
    ]
    assert np.allclose(last, exact, atol=1000)


def test_pooled_steps_are_one():
    model = explored(NoPrivacy(), 2000, last=True, pooled=True)
    assert visits(model).shape == (1, 3, 2) and visits(model).sum() == 2000 * 4
    chances = model_probabilities(model, 4)
    assert chances.shape == MDP_.transitions.shape and np.allclose(
        chances, MDP_.transitions, atol=0.1
    )


def test_unknown_rows_are_shunned_and_lead_anywhere():
    mdp = DoubleChain()
    model = CountSums.empty(mdp.horizon, mdp.shape.states, mdp.shape.actions)
    assert not known_rows(model).any()
    assert np.allclose(model_probabilities(model, mdp.horizon), 1 / 7)
    model.reward_sums[:, :, 1, TOTAL], visits(model)[:, :, 1] = 1.0, 100.0
    visit_variance_of(model)[:] = 99.0**2
    luck = np.zeros(mdp.shape.visits)
    luck[..., 0] = 1.0
    assert (greedy_policy(model, mdp.horizon, luck).actions == 1).all()
    visit_variance_of(model)[:] = 101.0**2
    assert (greedy_policy(model, mdp.horizon, luck).actions == 0).all()


def test_noise_that_looks_like_visits_is_not_known():
    """Hardly anybody explores: all that is counted is noise."""
    model = explored(Central(0.1, 1e-6), 50)
    assert known_rows(model).mean() < 0.5 and (visit_variance_of(model) > 0).any()


def test_visits_that_are_reported_in_part_are_doubted_by_half_of_their_variance():
    # No noise besides: n visits of which each carries 6 are known above sqrt(3·n), from 4 on.
    model = explored(NoPrivacy(), 30, last=True, visit_variance=6.0)
    assert np.allclose(visit_variance_of(model), 3 * visits(model))
    few = (visits(model) > 0) & (visits(model) < 3)
    assert few.any() and not known_rows(model)[few].any()
    assert known_rows(model)[visits(model) > 3].all()
    assert not visit_variance_of(explored(NoPrivacy(), 30, last=True)).any()


def test_a_model_travels_as_plain_values():
    model = explored(NoPrivacy(), 100)
    copy = CountSums.from_dict(model.to_dict())
    for one, other in zip(model, copy, strict=True):
        assert np.array_equal(one, other)
