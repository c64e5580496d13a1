"""What exploration has shown: sums of releases, what counts as known, the best policy in them."""

import numpy as np
import pytest

from discreet.learners.explore_then_commit import ExploredModel
from discreet.mdp.environments.synthetic import DoubleChain, RiverSwim
from discreet.mdp.planning import evaluate, plan
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
    model = ExploredModel.empty(mdp.shape, pooled=pooled)
    if visit_variance is None:
        visit_variance = release.visit_variance
    model.add(counts, policy, start, visit_variance)
    return model


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", TRUSTS)
def test_many_users_show_the_model_and_its_best_policy(name, last):
    model = explored(TRUSTS[name], last=last)
    chances = model.probabilities(MDP.horizon)
    often = model.reward_visits > 20_000
    often[-1] = False  # its transitions are not needed
    assert often.any() and np.allclose(chances[often], MDP.transitions[often], atol=0.05)
    often = model.reward_visits > 20_000
    means = model.rewards / np.maximum(model.reward_visits, 1.0)
    assert np.allclose(means[often], MDP.rewards[often], atol=0.06)
    luck = np.random.default_rng(1).random(MDP.shape.visits)
    value = evaluate(MDP, model.greedy(MDP.horizon, luck))
    assert value == pytest.approx(plan(MDP).value, rel=0.05)


def test_the_last_step_divides_its_visits_as_the_policy_does():
    """Nothing of its transitions is released: an equal split would mistake rare for bad."""
    rare = np.full(MDP.shape.visits, [0.9, 0.1])
    model = explored(Central(1, 1e-6), policy=StochasticPolicy(rare))
    last = model.reward_visits[-1]
    assert np.allclose(last[:, 1] / last.sum(axis=1), 0.1)
    exact = explored(NoPrivacy(), last=True, policy=StochasticPolicy(rare)).reward_visits[-1]
    assert np.allclose(last, exact, atol=1000)


def test_pooled_steps_are_one():
    model = explored(NoPrivacy(), 2000, last=True, pooled=True)
    assert model.rewards.shape == (1, 3, 2) and model.reward_visits.sum() == 2000 * 4
    chances = model.probabilities(4)
    assert chances.shape == MDP.transitions.shape and np.allclose(
        chances, MDP.transitions, atol=0.1
    )


def test_unknown_rows_are_shunned_and_lead_anywhere():
    mdp = DoubleChain()
    model = ExploredModel.empty(mdp.shape, pooled=False)
    assert not model.known.any()
    assert np.allclose(model.probabilities(mdp.horizon), 1 / 7)
    model.rewards[:, :, 1], model.reward_visits[:, :, 1], model.doubt[:] = 1.0, 100.0, 99.0**2
    luck = np.zeros(mdp.shape.visits)
    luck[..., 0] = 1.0
    assert (model.greedy(mdp.horizon, luck).actions == 1).all()
    model.doubt[:] = 101.0**2
    assert (model.greedy(mdp.horizon, luck).actions == 0).all()


def test_noise_that_looks_like_visits_is_not_known():
    """Hardly anybody explores: all that is counted is noise."""
    model = explored(Central(0.1, 1e-6), 50)
    assert model.known.mean() < 0.5 and (model.doubt > 0).any()


def test_visits_that_are_reported_in_part_are_doubted_by_half_of_their_variance():
    # No noise besides: n visits of which each carries 6 are known above sqrt(3·n), from 4 on.
    model = explored(NoPrivacy(), 30, visit_variance=6.0)
    assert np.allclose(model.doubt, 3 * model.reward_visits)
    few = (model.reward_visits > 0) & (model.reward_visits < 3)
    assert few.any() and not model.known[few].any()
    assert model.known[model.reward_visits > 3].all()
    assert not explored(NoPrivacy(), 30).doubt.any()


def test_a_model_travels_as_plain_values():
    model = explored(NoPrivacy(), 100)
    copy = ExploredModel.from_dict(model.to_dict())
    for name, array in vars(model).items():
        assert np.array_equal(array, getattr(copy, name))
