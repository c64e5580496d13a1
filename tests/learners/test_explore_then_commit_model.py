"""What exploration has shown: sums of releases, what counts as known, the best policy in them."""

from types import SimpleNamespace

import numpy as np
import pytest

from discreet.learners.base import Batch
from discreet.learners.estimate import TOTAL, VISIT_VARIANCE, VISITS, CountSums
from discreet.learners.explore_then_commit import (
    ExploreThenCommit,
    greedy_policy,
    known_rows,
    model_probabilities,
)
from discreet.learners.learn import public_facts
from discreet.mdp.environments.synthetic import DoubleChain, RiverSwim
from discreet.mdp.planning import evaluate, solve
from discreet.mdp.policies import StochasticPolicy, uniform_policy
from discreet.mdp.simulation import sample_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import Central, Local, NoPrivacy, Shuffle

MDP = RiverSwim(states=3, horizon=4)
TRUSTS = {
    "none": NoPrivacy(),
    "central": Central(1, 1e-6),
    "shuffle": Shuffle(1, 1e-6),
    "local": Local(5),
}


def explored(
    trust, users=200_000, *, last=False, pooled=False, policy=None, mdp=MDP, visit_variance=None
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
    chances = model_probabilities(model, MDP.horizon)
    often = visits(model) > 20_000
    often[-1] = False  # its transitions are not needed
    assert often.any() and np.allclose(chances[often], MDP.transitions[often], atol=0.05)
    often = visits(model) > 20_000
    means = model.reward_sums[..., TOTAL] / np.maximum(visits(model), 1.0)
    assert np.allclose(means[often], MDP.rewards[often], atol=0.06)
    luck = np.random.default_rng(1).random(MDP.shape.visits)
    value = evaluate(MDP, greedy_policy(model, MDP.horizon, luck))
    assert value == pytest.approx(solve(MDP).value, rel=0.05)


def test_the_last_step_divides_its_visits_as_the_policy_does():
    """Nothing of its transitions is released: an equal split would mistake rare for bad."""
    rare = np.full(MDP.shape.visits, [0.9, 0.1])
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
    assert chances.shape == MDP.transitions.shape and np.allclose(
        chances, MDP.transitions, atol=0.1
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
