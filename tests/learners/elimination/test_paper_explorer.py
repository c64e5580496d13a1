"""The papers' explorer on exact counts: layer by layer, then fine, then policies are dropped."""

import json

import numpy as np
import pytest

import discreet
from discreet import Shuffle
from discreet.learners.base import PublicFacts
from discreet.learners.elimination.explorers import (
    CountPool,
    MeasuredVisits,
    PaperElimination,
    _one_step,
    _steps,
)
from discreet.learners.elimination.settings import EliminationSettings
from discreet.learners.learn import make_batch_learner
from discreet.learners.registry import get_learner
from discreet.mdp import (
    RandomMDP,
    RiverSwim,
    evaluate,
    occupancy,
    sample_counts,
    solve,
    uniform_policy,
)
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy
from discreet.mdp.shape import Shape
from discreet.privacy.sampling.samplers import SimulationSampler
from helpers.absorbing import is_listed

MDP = RiverSwim(states=3, horizon=3, relabel=5)


def explorer(**settings):
    problem = PublicFacts(MDP.shape, 10_000, MDP.initial > 0)
    return PaperElimination(problem, EliminationSettings(structure="paper", **settings))


def visits_of(policy):
    """``[H, X, A]``, also of a mixture."""
    if isinstance(policy, MixturePolicy):
        parts = zip(policy.weights, policy.components, strict=True)
        return sum(weight * occupancy(MDP, component) for weight, component in parts)
    return occupancy(MDP, policy)


def expected_counts(policy, users, variance=0.0):
    visits = users * visits_of(policy)
    noisy = np.full(MDP.shape.visits, variance)
    return CountPool(visits[..., None] * MDP.transitions, visits * MDP.rewards, noisy, noisy, users)


def explore(made, users=10**7, seed=0):
    """One crude exploration, layer by layer; returns the policies played."""
    rng, support = np.random.default_rng(seed), []
    for h in range(MDP.horizon):
        policy = made.policy(f"layer {h}", rng)
        made.learn(f"layer {h}", expected_counts(policy, users), float(users), rng)
        support.append(policy)
    return support


def finish(made, users=10**7, seed=1):
    rng = np.random.default_rng(seed)
    policy = made.policy("fine", rng)
    made.learn("fine", expected_counts(policy, users), float(users), rng)
    return policy


@pytest.mark.core
def test_parts_name_their_steps():
    assert _steps("layer 2", 4) == (2,)
    assert _steps("fine", 4) == (0, 1, 2, 3)


@pytest.mark.core
def test_a_layer_keeps_the_counters_of_its_step_only():
    rng = np.random.default_rng(0)
    shape = (3, 2, 2)
    batch = CountPool(
        rng.random((*shape, 2)), rng.random(shape), rng.random(shape), rng.random(shape), 9
    )
    kept = _one_step(batch, 1)
    for name in ("transitions", "rewards", "transition_variance", "reward_variance"):
        before, after = getattr(batch, name), getattr(kept, name)
        assert np.array_equal(after[1], before[1])
        assert not after[[0, 2]].any()
    assert kept.users == 9


def test_nothing_is_known_of_steps_that_were_not_explored():
    made = explorer()
    assert not made.crude_model().transitions.any()
    rng = np.random.default_rng(2)
    policy = made.policy("layer 0", rng)
    made.learn("layer 0", expected_counts(policy, 10**7), 1e7, rng)
    known = made.crude_model().transitions
    assert known[0].any()
    assert not known[1].any()


def test_a_layer_is_explored_wherever_a_listed_policy_can_be():
    support = explore(explorer())
    for h, policy in enumerate(support):
        reached = visits_of(policy)[h] > 0
        possible = np.zeros((3, 2), bool)
        everyone = explorer().active
        for index in range(0, len(everyone), 7):
            possible |= occupancy(MDP, everyone.policy(index))[h] > 0
        assert np.array_equal(reached, possible)


def test_with_plenty_of_data_the_model_is_the_truth():
    made = explorer()
    explore(made)
    model = made.crude_model()
    explored = model.transitions.sum(axis=-1) > 0
    assert explored[:2].any()
    np.testing.assert_allclose(
        model.transitions[:2][explored[:2]], MDP.transitions[:2][explored[:2]], atol=1e-5
    )


def test_elimination_keeps_the_best_policies_and_never_takes_one_back():
    made = explorer()
    explore(made)
    before = len(made.active)
    finish(made)
    middle = set(made.active.indices.tolist())
    assert 1 <= len(middle) < before
    best = solve(MDP)
    assert is_listed(made.active, made._greedy_policy(np.random.default_rng(0)))
    values = [evaluate(MDP, made.active.policy(index)) for index in middle]
    assert max(values) == pytest.approx(best.value)
    explore(made, seed=3)
    finish(made, seed=4)
    assert set(made.active.indices.tolist()) <= middle


def test_the_tail_plays_the_best_policy_of_the_refined_model():
    made = explorer()
    explore(made)
    finish(made)
    policy = made.policy("tail", np.random.default_rng(5))
    assert isinstance(policy, DeterministicPolicy)
    assert evaluate(MDP, policy) == pytest.approx(solve(MDP).value, abs=1e-3)


def test_before_fine_exploration_the_tail_is_any_listed_policy():
    made = explorer()
    keys = {made.policy("tail", np.random.default_rng(seed)).key for seed in range(8)}
    assert len(keys) > 4


def test_a_stage_that_forgets_starts_with_nothing():
    for forgetting, users in ((True, 0), (False, 30)):
        made = explorer(forgetting=forgetting)
        explore(made, users=30)
        finish(made, users=30)
        rng = np.random.default_rng(6)
        made.learn("layer 0", expected_counts(made.policy("layer 0", rng), 30), 30.0, rng)
        assert made.refined.users == users
        assert made.crude.users == (30 if forgetting else 120)


def test_the_coverage_design_is_certified_and_the_mixture_needs_none():
    made = explorer()
    explore(made)
    finish(made)
    [found] = made.designs
    assert found["tuples"] <= found["value"] <= 1.01 * found["tuples"] * (1 + 1e-9)
    plain = explorer(fine="mixture")
    explore(plain)
    finish(plain)
    assert plain.designs == []


def listed_values(transitions):
    """Of every policy, none dropped, in the model with these transitions."""
    kept = transitions.copy()
    kept[-1] = 0.0
    return explorer().active.values(kept, MDP.initial, MDP.rewards)


def test_the_refined_model_absorbs_what_the_crude_one_calls_infrequent():
    """Definition 5 with plenty of data: P' of every listed policy, and Lemma 8: V(P') <= V(P)."""
    made = explorer(constants="theory")
    explore(made, users=8_000)  # so few that tuples are infrequent
    finish(made, users=10**9)
    crude = made.processed(made.crude)
    frequent = crude.transitions > made._threshold(crude)[..., None]
    model = made.refined_model()
    lost = MDP.transitions[:-1] * ~frequent[:-1]
    reached = model.visits[:-1] > 0
    assert (lost.sum(axis=-1)[reached] > 0).any()
    assert model.absorbed[:-1][reached] == pytest.approx(lost.sum(axis=-1)[reached])
    absorbing = listed_values(np.where(frequent, MDP.transitions, 0.0))
    truth = listed_values(MDP.transitions)
    assert (absorbing <= truth + 1e-12).all()
    assert (absorbing < truth - 1e-3).any()
    assert listed_values(model.transitions) == pytest.approx(absorbing, abs=1e-9)


def test_estimates_of_a_long_run_stay_below_the_best_value():
    """RiverSwim S=3, H=4, printed constants, no noise, K = 1e7: Lemma 8 up to sampling."""
    mdp = RiverSwim(states=3, horizon=4)
    result = discreet.learn(
        mdp, learner="pe", episodes=10**7, structure="paper", constants="theory", seed=0
    )
    best, late = solve(mdp).value, result.extras["estimates"][-4:]
    assert max(late) <= best + 0.002
    assert min(late) > best - 0.01  # and it has learnt by then


def assumption_4(made, counts, seed):
    """Whether one release, as the papers process it, is what Assumption 4 says."""
    release = made.mechanism.release(counts, sampler=SimulationSampler(np.random.default_rng(seed)))
    pool = CountPool.of_release(release)
    processed = made.explorer.processed(pool)
    error, visits = made.explorer.error(pool), processed.transitions.sum(axis=-1)
    return bool(
        (np.abs(visits - counts.visits) <= error).all()
        and (np.abs(processed.transitions - counts.transitions) <= error).all()
        and (np.abs(processed.rewards - counts.rewards) <= error).all()
        and (visits >= counts.visits).all()
        and (processed.transitions > 0).all()
    )


def paper_learner(mdp, trust, users=20_000):
    """`sdp-pe` with the papers' structure and constants."""
    problem = PublicFacts(mdp.shape, users, mdp.initial > 0)
    chosen = {"structure": "paper", "constants": "theory"}
    rng = np.random.default_rng(0)
    return make_batch_learner(get_learner("sdp-pe"), problem, trust, rng, chosen)


@pytest.mark.parametrize("states, horizon", [(12, 2), (16, 2)])
def test_assumption_4_holds_where_there_are_many_states(states, horizon):
    """200 of 200 draws: visits are released, not summed."""
    mdp = RandomMDP(states=states, actions=2, horizon=horizon, seed=3)
    made = paper_learner(mdp, Shuffle(epsilon=1, delta=1e-5, mechanism="bits"))
    counts = sample_counts(mdp, uniform_policy(mdp.shape), 2_000, np.random.default_rng(1))
    assert all(assumption_4(made, counts, seed) for seed in range(200))


def test_sums_of_transitions_would_underestimate_visits():
    """What Assumption 4 needs the released visits for: without them it fails."""
    made = explorer(constants="theory")
    rng = np.random.default_rng(1)
    pool = CountPool.empty(Shape(states=24, actions=2, horizon=2))
    pool.transition_variance[:] = pool.reward_variance[:] = 100.0
    pool.transitions += 100 + rng.normal(0.0, 10.0, pool.transitions.shape)
    sums = made.processed(pool).transitions.sum(axis=-1)
    assert (sums < 2400).any()
    visits = 2400 + rng.normal(0.0, 10.0, pool.rewards.shape)
    pool.measured = MeasuredVisits(visits, np.full(pool.rewards.shape, 100.0))
    assert (made.processed(pool).transitions.sum(axis=-1) >= 2400).all()


def test_sums_are_held_against_the_released_visits_alone():
    """Equation 6: not against an average of the counter and the sum."""
    made = explorer(constants="theory")
    pool = CountPool.empty(made.problem.shape)
    pool.transition_variance[:] = pool.reward_variance[:] = 1e-6
    pool.transitions += 100.0
    noise = np.full(pool.rewards.shape, 1e-6)
    pool.measured = MeasuredVisits(np.full(pool.rewards.shape, 900.0), noise)
    sums = made.processed(pool).transitions.sum(axis=-1)
    assert sums == pytest.approx(900.0, abs=made.error(pool))


def test_noisy_counts_become_valid_before_they_are_used():
    """Visits are never underestimated by more than the noise, and no count is negative."""
    made = explorer()
    rng = np.random.default_rng(7)
    pool = expected_counts(made.policy("fine", rng), 400, variance=25.0)
    pool.transitions += rng.normal(0.0, 5.0, pool.transitions.shape)
    processed = made.processed(pool)
    assert (processed.transitions >= 0).all()
    exact = expected_counts(made.policy("fine", np.random.default_rng(7)), 400)
    assert processed.users == exact.users
    pool.transition_variance[1] = pool.reward_variance[1] = 0.0  # a step that nobody explored
    assert not made.processed(pool).transitions[1].any()


def test_without_noise_counts_stay_as_they_are():
    made = explorer()
    pool = expected_counts(made.policy("fine", np.random.default_rng(8)), 50)
    processed = made.processed(pool)
    assert np.array_equal(processed.transitions, pool.transitions)
    assert processed is not pool


def test_a_saved_explorer_goes_on_where_it_was():
    made, other = explorer(), explorer()
    explore(made)
    finish(made)
    other.restore(json.loads(json.dumps(made.state())))
    assert np.array_equal(other.active.indices, made.active.indices)
    assert other.greedy == made.greedy
    for part in ("layer 1", "fine", "tail"):
        one, two = (e.policy(part, np.random.default_rng(9)) for e in (made, other))
        assert one.key == two.key
