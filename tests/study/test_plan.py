"""What a plan says: worlds as they were stated, power as it is, and what it depends on."""

import dataclasses

import numpy as np
import pytest

import discreet
from discreet.errors import DiscreetError, UnsupportedError
from discreet.learners.base import Problem
from discreet.mdp import Shape
from discreet.study.design import Design
from discreet.study.plan import Assumed, Simulation, effects_of

CENTRAL = {"model": "central", "epsilon": 1.0, "delta": 1e-6}
ARMS = Design(
    states=1,
    actions=2,
    steps=1,
    episodes=1_000,
    learner="trial",
    settings={"aim": "policy"},
    trust=CENTRAL,
)
NONE = discreet.NoPrivacy()


def problem(states, actions, horizon, starts=(0,), stationary=False):
    start = np.zeros(states, np.bool_)
    start[list(starts)] = True
    return Problem(Shape(states, actions, horizon), 1_000, start, stationary)


@pytest.mark.parametrize(
    "facts",
    [
        problem(4, 3, 4),
        problem(5, 2, 3, starts=(0, 3)),
        problem(4, 3, 4, stationary=True),
        problem(6, 4, 1, starts=range(6)),
    ],
    ids=["one start", "two starts", "stationary", "contexts"],
)
def test_worlds_have_the_effect_and_the_reward_that_were_stated(facts):
    starts = np.flatnonzero(facts.start)
    for seed in range(10):
        world = Assumed(0.1, 0.4).world(facts, np.random.default_rng(seed))
        gains, reward, _ = effects_of(world)
        assert reward == pytest.approx(0.4)
        assert world.initial[starts] == pytest.approx(1 / len(starts))
        ordered = np.sort(gains[starts], axis=1)
        assert ordered[:, -1] == pytest.approx(0.1)
        assert (ordered[:, :-1] <= 0.05 + 1e-9).all() and (ordered >= -0.1 - 1e-9).all()
        assert (gains[starts, 0] == 0).all()
        if facts.stationary:
            assert (world.transitions == world.transitions[:1]).all()
            assert (world.rewards == world.rewards[:1]).all()


def test_worlds_have_the_mask_of_the_design():
    """The default is the first possible action, and the effect belongs to a possible one."""
    rules = [{"states": [0], "actions": [1, 2]}, {"states": [1], "actions": [2]}]
    design = dataclasses.replace(
        ARMS, states=3, actions=3, steps=2, start_states=[0, 1], allowed=rules
    )
    facts = Problem(design.vocabulary.shape, 1_000, np.array([True, True, False]))
    for seed in range(5):
        world = Assumed(0.1).world(facts, np.random.default_rng(seed))
        gains = effects_of(world).gains
        assert gains[0].tolist() == [-np.inf, 0, pytest.approx(0.1)]
        assert gains[1].tolist() == [-np.inf, -np.inf, 0]
    plan = discreet.plan_study(design, effect=0.3, people=[2_000], trust=["central"], runs=10)
    assert plan.rows[0].right > 0.5


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.3])
def test_worlds_have_the_spread_that_was_stated(spread):
    found = [
        effects_of(Assumed(0.1, 0.5, spread).world(problem(5, 3, 4), np.random.default_rng(s)))
        for s in range(20)
    ]
    assert np.mean([one.spread for one in found]) == pytest.approx(spread, abs=0.03)


def test_an_effect_beyond_the_reward_lies_in_where_the_action_leads():
    world = Assumed(0.3, 0.9, 0.5).world(problem(5, 2, 6), np.random.default_rng(1))
    gains, reward, _ = effects_of(world)
    assert (reward, gains[0, 1]) == (pytest.approx(0.9), pytest.approx(0.3))
    assert world.rewards[0, 0, 1] <= 1
    assert not np.allclose(world.transitions[0, 0, 0], world.transitions[0, 0, 1])


def by_hand(users, effect, runs):
    """Two arms without privacy and without any code of ours: a z-test with two standard errors."""
    rng, n = np.random.default_rng(8), users // 2
    one, two = rng.binomial(n, 0.5, runs) / n, rng.binomial(n, 0.5 + effect, runs) / n
    error = np.sqrt((one * (1 - one) + two * (1 - two)) / n)
    return (two - one > 2 * error).mean()


def test_two_arms_without_privacy_have_the_power_of_a_z_test():
    simulation = Simulation("trial", problem(1, 2, 1), {"aim": "policy"}, runs=250)
    found = simulation.outcome(Assumed(0.1), NONE, 1_000)
    assert found.right.mean() == pytest.approx(by_hand(1_000, 0.1, 100_000), abs=0.08)
    least = simulation.smallest_difference(Assumed(0.05), NONE, 1_000)
    assert by_hand(1_000, least, 100_000) == pytest.approx(0.8, abs=0.08)


def test_the_smallest_difference_is_found_with_probability_eight_tenths():
    """On fresh seeds, under privacy, with states and steps; 0.1 is three standard errors."""
    facts, trust = problem(3, 2, 2), discreet.Central(1, 1e-6)
    simulation = Simulation("trial", facts, {"aim": "policy"}, runs=150)
    least = simulation.smallest_difference(Assumed(0.1), trust, 2_000)
    again = dataclasses.replace(simulation, seed=9).outcome(Assumed(least), trust, 2_000)
    assert again.right.mean() == pytest.approx(0.8, abs=0.1)
    assert again.wrong.mean() <= 0.05


def test_rows_are_people_by_trust_by_epsilon_beside_no_privacy():
    told = list[str]()
    plan = discreet.plan_study(ARMS, effect=0.1, runs=25, progress=told.append)
    kinds = [(row.trust, row.epsilon) for row in plan.rows[:6]]
    assert kinds == [
        ("none", None),
        ("central", 0.5),
        ("central", 1),
        ("central", 2),
        ("shuffle", 1),
        ("local", 1),
    ]
    assert sorted({row.people for row in plan.rows}) == [500, 1_000, 2_000, 5_000]
    assert len(told) == len(plan.rows) == 24
    by = {(row.people, row.trust, row.epsilon): row for row in plan.rows}
    none, central = by[1_000, "none", None], by[1_000, "central", 0.5]
    assert none.smallest_difference < central.smallest_difference
    assert none.right > central.right > by[1_000, "local", 1].right
    assert by[5_000, "central", 1].smallest_difference < by[500, "central", 1].smallest_difference
    assert none.gain == pytest.approx(none.right)  # one state, one step: all or nothing
    assert {row.recruitments for row in plan.rows} == {1}


def test_every_trust_model_is_planned_for_the_same_people():
    """Who returns does so under each, and a pure design still has a shuffler beside it."""
    pure = {"model": "central", "epsilon": 1.0, "participations": 4}
    for own in ({**pure, "delta": 1e-6}, {**pure, "participations": 1}):
        design = dataclasses.replace(ARMS, trust=own, episodes=4_000)
        one, four = (
            discreet.plan_study(
                dataclasses.replace(design, trust={**own, "participations": times}),
                effect=0.2,
                people=[4_000],
                runs=10,
            ).rows
            for times in (1, own["participations"])
        )
        assert [row.trust for row in four[-2:]] == ["shuffle", "local"]
        assert four[-2].delta == 1e-6 and four[-1].delta == own.get("delta", 0)
        if own["participations"] > 1:
            for once, often in zip(one[-2:], four[-2:], strict=True):
                assert (often.smallest_difference or 1) > (once.smallest_difference or 1)


def test_what_was_asked_for_is_planned_in_the_design_s_own_units():
    asked = {"people": [1_000], "epsilon": [2, 4], "trust": ["shuffle"], "runs": 20}
    plan = discreet.plan_study(ARMS, effect=0.1, **asked)
    assert [(row.trust, row.epsilon) for row in plan.rows] == [
        ("none", None),
        ("shuffle", 2),
        ("shuffle", 4),
    ]
    scaled = dataclasses.replace(ARMS, table={"reward_range": [-10, 90]})
    other = discreet.plan_study(scaled, effect=10, reward=40, **asked)
    assert [row.right for row in other.rows] == [row.right for row in plan.rows]
    for one, two in zip(plan.rows, other.rows, strict=True):
        assert two.smallest_difference == pytest.approx(100 * one.smallest_difference)
    assert "earns 10 more than today's" in other.assumed
    assert "Rewards are -10 or 90, 40 on average" in other.assumed
    assert "over many steps: of one such problem 87% were stated and 24% found" in other.assumed


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"effect": -1}, "effect > 0"),
        ({"effect": 3}, "effect <= 1, what 1 steps can earn"),
        ({"reward": 7}, "reward from 0 to 1"),
        ({"spread": 0.2}, "spread from 0 to 0"),
        ({"people": [0]}, "people to be an integer"),
        ({"epsilon": [-1]}, "epsilon"),
        ({"trust": ["nobody"]}, "nobody"),
        ({"runs": 0}, "runs"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_before_anything_is_simulated(wrong, said):
    told = list[str]()
    with pytest.raises(DiscreetError, match=said):
        discreet.plan_study(ARMS, **wrong, progress=told.append)
    assert told == []


def test_a_learner_without_batches_and_a_design_without_a_choice_are_refused():
    with pytest.raises(UnsupportedError, match="nothing to tell it apart from"):
        discreet.plan_study(dataclasses.replace(ARMS, actions=1))
    with pytest.raises(UnsupportedError, match="rehearse the study"):
        discreet.plan_study(dataclasses.replace(ARMS, learner="private-ucb-vi"))
