"""Each rule of flow-ucb against a case computed by hand, and runs that once locked in."""

import math

import numpy as np
import pytest

import discreet
from discreet.learners.estimate import TOTAL, VISITS, visit_noise_factors, weight_of
from discreet.learners.flow_ucb.learner import FEW_CANDIDATES, MANY_CANDIDATES, Part
from discreet.learners.flow_ucb.planning import CandidatePolicy
from discreet.learners.flow_ucb.settings import usual_confidence
from discreet.mdp import make, uniform_policy
from discreet.mdp.planning import RegretMeter
from discreet.mdp.shape import Shape
from discreet.mdp.simulation import sample_counts
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.sampling.samplers import SimulationSampler
from helpers.flow_ucb import CENTRAL, learner_of, river


def test_width_is_for_rows_seen_less_and_for_users_who_come():
    learner = learner_of(river(0), discreet.NoPrivacy(), confidence=2.0, episodes=1000)
    model = learner._model()
    model.reward_sums[..., VISITS] = model.transition_sums[..., VISITS] = np.arange(2)
    learner._told = 300
    width = learner._width(model)
    assert width[0, 0, 0] == width[0, 0, 1] == pytest.approx(4 * math.log(301))
    model.reward_sums[..., VISITS] = model.transition_sums[..., VISITS] = 10.0
    assert learner._width(model)[0, 0, 0] == pytest.approx(4 * math.log(31))
    learner._told = 900
    assert learner._width(model)[0, 0, 0] == pytest.approx(4 * math.log(11))


def test_what_was_declared_stationary_is_pooled_from_the_first_user_on():
    model = learner_of(river(0), stationary=True)._model()
    assert model.pooled_rewards.all() and model.pooled_transitions.all()
    assert not learner_of(river(0))._model().pooled_transitions.any()


@pytest.mark.parametrize(
    ("trust", "ahead"),
    [(CENTRAL, 100), (discreet.Shuffle(1, 1e-6), 100), (discreet.Local(1), 1)],
)
def test_caution_is_for_users_to_come_where_batches_pay_their_noise_anew(monkeypatch, trust, ahead):
    learner = learner_of(river(0), trust, confidence=2.0, episodes=10**6)
    model = learner._model()
    model.reward_sums[..., VISITS] = model.transition_sums[..., VISITS] = 10.0
    learner._told = 300
    expected = 4 * math.log(1 + ahead * 30)
    assert learner._width(model)[0, 0, 0] == pytest.approx(expected, rel=1e-3)
    learner._told = 10**6 - 100  # nobody else will come
    monkeypatch.setattr(type(learner), "_close_caution", 0.0)
    assert learner._width(model)[0, 0, 0] == pytest.approx(4 * math.log(11))


@pytest.mark.parametrize(
    ("trust", "more"),
    [(CENTRAL, 1.0), (discreet.Shuffle(1, 1e-6), 1.0), (discreet.NoPrivacy(), 0.0)],
)
def test_close_calls_are_twice_as_wide_late_where_batches_pay_their_noise_anew(
    monkeypatch, trust, more
):
    learner = learner_of(river(0), trust, confidence=2.0, episodes=10**9)
    model = learner._model()
    model.reward_sums[..., VISITS] = model.transition_sums[..., VISITS] = 10.0
    model.reward_sums[..., 0, TOTAL], model.reward_sums[..., 1, TOTAL] = (
        10.0,
        8.5,
    )  # 0.15 is half of CLOSE
    learner._told = 10**9 // 2
    found = learner._width(model)[-1, 0]
    monkeypatch.setattr(type(learner), "_close_caution", 0.0)
    usual = learner._width(model)[-1, 0]
    assert found / usual == pytest.approx([1.0 + more, 1.0 + more / 2], rel=1e-3)


def test_what_noise_hides_and_close_calls_are_by_the_users_so_far():
    learner = learner_of(river(0), CENTRAL, episodes=10**9)
    assert learner._hiding == learner._close_caution == 0.0
    learner._told = 10**9
    assert learner._hiding == 1.0 and learner._close_caution == pytest.approx(1.0)


@pytest.mark.parametrize(("trust", "share"), [(CENTRAL, 0.8), (discreet.Local(1), 1)])
def test_the_usual_confidence_is_less_where_widths_are_larger_from_the_start(trust, share):
    learner = learner_of(river(0), trust)
    usual = share * usual_confidence(learner._plenty)
    assert learner.settings["confidence"] == pytest.approx(usual, rel=1e-3)
    assert learner_of(river(0), trust, confidence=0.3).settings["confidence"] == 0.3


def test_width_is_by_the_rarer_of_rewards_and_transitions_but_at_the_last_step():
    # An action that is right at the last step alone has a reward that everybody saw, and
    # transitions that hardly anybody did: the last step releases none.
    learner = learner_of(river(0), discreet.NoPrivacy(), confidence=2.0, episodes=1000)
    model = learner._model()
    model.reward_sums[..., VISITS], model.transition_sums[..., VISITS] = 300.0, 10.0
    learner._told = 300
    width = learner._width(model)
    assert width[:-1] == pytest.approx(4 * math.log(31))
    assert width[-1] == pytest.approx(4 * math.log(2))


@pytest.mark.parametrize(("episodes", "few"), [(10**9, 1), (20_000, FEW_CANDIDATES)])
def test_a_batch_that_has_to_be_large_holds_many_routes(monkeypatch, episodes, few):
    learner, sized = learner_of(river(0), episodes=episodes), []
    sized_as_ever = learner._sized

    def seen(model, tie, most):
        sized.append(sized_as_ever(model, tie, most))
        return sized[-1]

    monkeypatch.setattr(learner, "_sized", seen)
    learner._told = episodes // 4  # nothing is known: routes ask for few
    learner._next_request()
    assert len(sized) == few
    learner._batches = 250
    request = learner._next_request()
    assert len(sized) == few + MANY_CANDIDATES
    assert sum(part.users for part in sized[few:]) < request.users


def requested(told, batches=0, users=200, trust=CENTRAL, **settings):
    """The next request, of 1,000 users in all: routes take action 0, but the greedy one action 1.

    Each of the others needs so many ``users``.
    """
    learner = learner_of(river(0), trust, episodes=1000, **settings)
    learner._told, learner._batches = told, batches
    zeros, ones = CandidatePolicy.empty(6, 4), CandidatePolicy.empty(6, 4)
    ones.actions[:] = 1
    learner._sized = lambda model, tie, most: Part(zeros, users)
    learner._greedy = lambda tie: ones
    return learner._next_request()


@pytest.mark.parametrize(("left", "last"), [(299, True), (300, False)])
def test_users_who_are_fewer_than_half_a_batch_join_it_and_nobody_explores(left, last):
    request = requested(1000 - left, mixing=False)
    assert request.users == (left if last else 200)
    assert (request.policy.actions == last).all()


@pytest.mark.parametrize(("left", "last"), [(7, True), (8, False)])
def test_users_who_are_too_few_to_be_released_join_the_batch_before_them(left, last):
    # One honest user in four: no batch is smaller. Three left would be half of it and more.
    trust = discreet.Shuffle(1, 1e-6, honest=0.3)
    assert learner_of(river(0), trust).mechanism.min_users == 4
    request = requested(1000 - left, users=1, trust=trust, mixing=False)
    assert request.users == (left if last else 4)
    assert (request.policy.actions == last).all()


def test_the_gate_allows_for_what_noise_hides_by_now(monkeypatch):
    from discreet.learners.flow_ucb import learner as module

    told, usual = [], module.pooled_rows

    def pooled(sums, users, reward_share, hiding):
        told.append(hiding)
        return usual(sums, users, reward_share, hiding)

    monkeypatch.setattr(module, "pooled_rows", pooled)
    discreet.learn(river(0), learner="flow-ucb", trust=CENTRAL, episodes=10**6, seed=0)
    assert told == sorted(told) and told[0] == 0.0 and told[-1] == 1.0


@pytest.mark.parametrize("mixing", [True, False])
def test_what_a_route_does_not_need_of_a_least_size_is_greedy_unless_routes_are_not_mixed(mixing):
    # Ten batches for the other half: each grows by 2^(1/10), the first from 500 by 36.
    request = requested(500, batches=280, users=1, mixing=mixing)
    assert request.users == 36
    greedy = request.policy.distribution(Shape(4, 2, 6))[..., 1]
    np.testing.assert_allclose(greedy, (36 - MANY_CANDIDATES) / 36 if mixing else 0.0)


@pytest.mark.parametrize("trust", [CENTRAL, discreet.NoPrivacy()])
def test_what_was_counted_outside_the_declared_starts_is_no_evidence(trust):
    # One start is declared, and rows of the first step in all states are told. Their noise has no
    # weight anyway, since nobody is expected there; counts without noise would count in full.
    mdp = river(0)
    learner, rng = learner_of(mdp, trust), np.random.default_rng(3)
    policy = learner.ask().policy
    anywhere = TabularMDP(
        transitions=mdp.transitions, rewards=mdp.rewards, horizon=6, initial=[0.25] * 4
    )
    counts = sample_counts(anywhere, policy, 1000, rng)
    release = learner.mechanism.release(
        counts, sampler=SimulationSampler(rng), support=policy.support(mdp.shape)
    )
    outside = ~learner.problem.start
    assert release.transitions[0, outside].any() and release.rewards[0, outside].any()
    learner.tell(release)
    sums = learner._sums
    for part in (sums.transition_sums, sums.reward_sums):
        assert part[0, ~outside].any() and part[1:, outside].any()
        assert not part[0, outside].any()
    assert (sums.number[0, outside] == -1).all()


def test_weight_by_hand():
    learner = learner_of(river(0))
    np.testing.assert_allclose(weight_of(np.array([0.0, 1000.0]), 100.0, learner._ease), [0.0, 0.5])
    np.testing.assert_array_equal(weight_of(np.array([0.0, 7.0]), 0.0, learner._ease), [1.0, 1.0])


def test_the_first_batch_shows_one_reward_above_its_noise():
    learner = learner_of(river(0))
    noise = learner.mechanism.noise_variance(1000)
    factors = visit_noise_factors(4, 6, 1, last_transitions=False, look=0.5)
    needed = 2 * math.sqrt(noise["rewards"] + noise["transitions"] * factors.max() / 4)
    assert needed <= learner.ask().users <= needed + 2


def test_a_batch_is_not_sized_for_what_lies_behind_an_unknown_action():
    # The first state's rows are not known, so that all that lies behind them is not counted: one
    # who counts it, as if users came out of them anywhere, asks for several times as many.
    learner = learner_of(river(0))
    learner._told = 10**6
    model, tie = learner._model(), np.zeros(learner.problem.shape.visits)
    reachable = learner._sized(model, tie, 10**6).users
    learner._planner.reachable = lambda model, plan: plan
    assert 4 * reachable < learner._sized(model, tie, 10**6).users < 10**6


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 10.0])
def test_visit_variance_of_one_step_reports_by_enumeration(epsilon):
    horizon = 5
    plan = discreet.Local(epsilon, mechanism="one-step").calibrate(
        Shape(3, 2, horizon), schedule="batch", statistics=("transitions", "rewards")
    )
    q, scale = plan.flip, horizon / (0.5 - plan.flip)

    def variance(one):  # of a category whose bit is one with this probability when reported
        outcomes = np.array([scale * (1 - q), -scale * q, 0.0])
        chances = np.array([one / horizon, (1 - one) / horizon, 1 - 1 / horizon])
        return chances @ outcomes**2 - (chances @ outcomes) ** 2

    assert plan.visit_variance == pytest.approx(variance(0.5) - variance(q))


@pytest.mark.core
def test_visits_that_are_all_reported_add_no_variance():
    assert learner_of(river(0)).mechanism.visit_variance == 0


def test_thinned_reports_do_not_lock_in():
    # Each visit counts for 12 or not at all; taken for exact counts, this run lost 129,566.
    result = discreet.learn(
        river(16),
        learner="flow-ucb",
        trust=discreet.Local(epsilon=10),
        episodes=10**6,
        seed=0,
        run=16,
    )
    assert result.final_regret < 20_000


def test_counted_noise_does_not_lock_in():
    # Projected noise was taken for visits without reward: 6.25% of the uniform regret were kept.
    mdp = make("DemandResponse", relabel=0)
    trust = discreet.Shuffle(epsilon=1, delta=1e-6)
    result = discreet.learn(mdp, learner="flow-ucb", trust=trust, episodes=10**7, seed=0, run=0)
    assert result.final_regret < 0.025 * 10**7 * RegretMeter(mdp).regret(uniform_policy(mdp.shape))


def test_a_few_unlucky_visits_without_noise_do_not_lock_in():
    # This run kept 1.01% of the uniform regret.
    mdp = make("Treatment", relabel=7)
    result = discreet.learn(mdp, learner="flow-ucb", episodes=10**7, seed=0, run=7, stationary=True)
    assert result.final_regret < 0.002 * 10**7 * RegretMeter(mdp).regret(uniform_policy(mdp.shape))


@pytest.mark.parametrize("mechanism", ["auto", "one-step"])
def test_an_epsilon_of_nearly_nothing_divides_by_nothing(mechanism):
    mdp = make("RiverSwim", states=3, horizon=3)
    trust = discreet.Local(1e-9, mechanism=mechanism)
    result = discreet.learn(mdp, learner="flow-ucb", trust=trust, episodes=100)
    assert np.isfinite(result.final_regret)
