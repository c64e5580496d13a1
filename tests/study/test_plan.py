"""What a plan says: problems as they were stated, power as it is, and what it depends on."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr

import discreet
from discreet.errors import DiscreetError, UnsupportedError
from discreet.learners.base import PublicFacts
from discreet.mdp import Shape, TabularMDP, sample_trajectories
from discreet.mdp.policies import DeterministicPolicy
from discreet.study import plan as planning
from discreet.study.design import Design
from discreet.study.plan import Simulation, effects_of, weakened
from helpers.studies import rehearsed

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
    return PublicFacts(Shape(states, actions, horizon), 1_000, start, stationary)


def chain(states, actions, horizon, seed, **more):
    """A random problem in which today's action is the worst of the first step's."""
    rng = np.random.default_rng(seed)
    rewards = rng.uniform(0.2, 0.8, (states, actions))
    first = np.argmax(more.get("allowed", np.ones((states, actions))), axis=1)
    rewards[np.arange(states), first] = 0.1
    moves = rng.dirichlet(np.ones(states), (states, actions))
    start = np.eye(states)[0]
    return TabularMDP(transitions=moves, rewards=rewards, horizon=horizon, initial=start, **more)


def test_masks_are_the_designs_in_every_problem():
    rules = [{"states": [0], "actions": [1, 2]}, {"states": [1], "actions": [2]}]
    design = dataclasses.replace(
        ARMS, states=3, actions=3, steps=2, start_states=[0, 1], allowed=rules
    )
    free = TabularMDP(  # its mask is the design's, whatever it says of other actions
        transitions=np.full((3, 3, 3), 1 / 3),
        rewards=[[1, 0.2, 0.6], [1, 1, 0.2], [0.5] * 3],
        horizon=2,
        initial=[0.5, 0.5, 0],
    )
    asked = {"people": [2_000], "trust": ["central"], "runs": 10}
    plan = discreet.plan_study(design, problem=free, **asked)
    assert plan.rows[0].right > 0.5
    assert plan.effect == pytest.approx(0.4)
    assert discreet.plan_study(design, **asked).rows[0].smallest_difference < 0.4


def by_hand(users, effect, runs):
    """Two arms without privacy and without any code of ours: a z-test with two standard errors."""
    rng, n = np.random.default_rng(8), users // 2
    one, two = rng.binomial(n, 0.5, runs) / n, rng.binomial(n, 0.5 + effect, runs) / n
    error = np.sqrt((one * (1 - one) + two * (1 - two)) / n)
    return (two - one > 2 * error).mean()


def arms(effect, **changes):
    moves = np.ones((1, 2, 1))
    return TabularMDP(transitions=moves, rewards=[[0.5, 0.5 + effect]], horizon=1, **changes)


def test_two_arms_without_privacy_have_the_power_of_a_z_test():
    simulation = Simulation("trial", problem(1, 2, 1), {"aim": "policy"}, arms(0.4), runs=250)
    found = simulation.outcome(0.1, NONE, 1_000)
    assert found.right.mean() == pytest.approx(by_hand(1_000, 0.1, 100_000), abs=0.08)
    least = simulation.smallest_difference(0.05, NONE, 1_000)
    assert by_hand(1_000, least, 100_000) == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize("trust", [NONE, discreet.Central(1, 1e-6)], ids=str)
def test_standard_errors_tell_the_difference_that_eight_of_ten_studies_find(trust):
    """Among two arms, and among two actions of the first of two steps, on seeds of their own."""
    for facts, model in (
        (problem(1, 2, 1), arms(0.4)),
        (
            problem(2, 2, 2),
            TabularMDP(
                transitions=np.full((2, 2, 2), 0.5),
                rewards=[[[0.5, 0.9]] * 2, [[0.5, 0.5]] * 2],
                initial=[1, 0],
            ),
        ),
    ):
        simulation = Simulation("trial", facts, {"aim": "policy"}, runs=20)
        least = simulation.nothing(trust, 4_000).smallest_difference()
        given = dataclasses.replace(simulation, model=model, runs=200, seed=9)
        assert given.outcome(least, trust, 4_000).right.mean() == pytest.approx(0.8, abs=0.1)


def test_errors_that_differ_are_averaged_as_power_is():
    errors = np.array([[0.01, 0.04], [0.02, np.inf]])
    found = planning.Nothing(np.array([True, False]), errors[:, :1], np.ones(2))
    power = ndtr(found.smallest_difference() / errors[:, 0] - 2).mean()
    assert power == pytest.approx(0.8, abs=1e-3) and found.error == 0.5
    blind = planning.Nothing(np.array([False, False]), errors, np.ones(2))
    assert blind.smallest_difference() == math.inf  # a quarter of all is never found


def test_a_null_has_todays_action_everywhere_and_its_studies_find_it_by_chance():
    made = chain(4, 3, 4, 1)
    nothing = planning.null_of(made)
    assert effects_of(nothing).effect == 0
    assert np.array_equal(nothing.transitions, np.repeat(made.transitions[:, :, :1], 3, axis=2))
    simulation = Simulation("trial", problem(1, 2, 1), {"aim": "policy"}, runs=400)
    for model in (None, arms(0.3)):
        found = dataclasses.replace(simulation, model=model).nothing(NONE, 1_000)
        assert found.error == pytest.approx(ndtr(-2), abs=0.03)  # above two standard errors


def test_the_smallest_difference_is_found_with_probability_eight_tenths():
    """On fresh seeds, under privacy, with states and steps."""
    facts, trust = problem(3, 2, 2), discreet.Central(1, 1e-6)
    simulation = Simulation("trial", facts, {"aim": "policy"}, chain(3, 2, 2, 4), runs=150)
    least = simulation.smallest_difference(0.1, trust, 2_000)
    again = dataclasses.replace(simulation, seed=9).outcome(least, trust, 2_000)
    assert again.right.mean() == pytest.approx(0.8, abs=0.1)
    assert again.wrong.mean() <= 0.05


@pytest.mark.parametrize("tried", [0.45, 0.1], ids=["from above", "from below"])
def test_the_smallest_difference_among_many_arms_is_found_as_often(tried):
    """Where studies of smaller effects prefer one of the many wrong arms."""
    means = np.r_[0.5, 0.95, np.random.default_rng(3).uniform(0.2, 0.7, 18)]
    model = TabularMDP(transitions=np.ones((1, 20, 1)), rewards=means[None], horizon=1)
    many = Simulation("trial", problem(1, 20, 1), {"aim": "policy"}, model, runs=50, seed=1)
    for trust in (NONE, discreet.Central(1, 1e-6)):
        least = many.smallest_difference(tried, trust, 4_000)
        again = dataclasses.replace(many, runs=200, seed=9).outcome(least, trust, 4_000)
        assert again.right.mean() == pytest.approx(0.8, abs=0.09)


CURVES = {
    "two arms": (lambda effect: ndtr(30 * effect - 2), 0.0947),
    "many problems": (lambda effect: min(1.0, 0.05 + 1.2 * effect**0.5), 0.3906),
    "a jump": (lambda effect: 0.1 + 0.85 * (effect > 0.2), 0.2),
    "at the end": (lambda effect: 0.81 * (effect >= 0.49), 0.5),
    "flat": (lambda effect: min(0.75, 3 * effect), math.inf),
    "nothing": (lambda effect: 0.02, math.inf),
}


@pytest.mark.parametrize("first", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("curve", CURVES)
def test_the_search_ends_where_the_curve_of_power_says(monkeypatch, curve, first):
    power, due = CURVES[curve]
    tried = list[float]()

    def outcome(_, effect, trust, people):
        tried.append(effect)
        return SimpleNamespace(right=np.array(power(effect)))

    monkeypatch.setattr(Simulation, "outcome", outcome)
    found = Simulation("trial", problem(1, 2, 1), {}, arms(0.5)).smallest_difference(
        first, NONE, 1_000
    )
    assert found == pytest.approx(due, rel=0.1)
    assert len(set(tried)) == len(tried) <= 12


def test_the_power_of_a_problem_is_that_of_its_studies(tmp_path):
    """Six steps with nearly certain moves, which remember the first action to the end."""
    ways = np.array([[1, 2], [1, 1], [2, 2]])
    model = TabularMDP(
        transitions=0.94 * np.eye(3)[ways] + 0.02,
        rewards=[[0.5, 0.5], [0.5, 0.5], [0.54, 0.54]],
        horizon=6,
    )
    design = dataclasses.replace(
        ARMS, states=3, steps=6, start_states=[0], trust={"model": "none"}, episodes=600
    )
    given = discreet.plan_study(design, problem=model, people=[600], trust=[], runs=100)
    right = 0
    for i in range(60):
        study = rehearsed(tmp_path / f"{i}.db", design, i)
        episodes = sample_trajectories(model, study.ask(), 600, np.random.default_rng((i, 1)))
        study.tell(episodes, users=[str(i) for i in range(600)])
        right += study.policy.actions[0, 0] == 1
    assert given.rows[0].right == pytest.approx(right / 60, abs=0.15)
    alone = discreet.plan_study(design, people=[600], trust=[], runs=10).rows[0]
    assert alone.smallest_difference < given.effect  # where actions lead alike, errors are smaller


def test_a_weaker_problem_has_the_effect_that_was_asked_for():
    """Every action does today's with one probability, the same for all."""
    made = chain(4, 3, 4, 1)
    weak = weakened(made, 0.1)
    assert effects_of(weak).effect == pytest.approx(0.1, rel=0.01)
    with np.errstate(invalid="ignore"):
        shares = (weak.rewards - weak.rewards[..., :1]) / (made.rewards - made.rewards[..., :1])
    assert np.nanmin(shares) == pytest.approx(np.nanmax(shares)) and 0 < np.nanmin(shares) < 1
    assert weakened(made, 1.0) is made
    mask = np.array([[False, True, True], [True, True, False], [True] * 3, [True] * 3])
    masked = chain(4, 3, 4, 1, allowed=mask)
    weak, today = weakened(masked, 0.05), mask.argmax(axis=1)
    assert effects_of(weak).effect == pytest.approx(0.05, rel=0.02)
    now = (slice(None), range(4), today)
    assert np.allclose(weak.rewards[now], masked.rewards[now])
    assert np.allclose(weak.transitions[now], masked.transitions[now])


def test_right_counts_by_what_can_be_gained_and_wrong_by_people(monkeypatch):
    """Two kinds of people: the best actions earn 0.4 and 0.2 more than today's."""
    model = TabularMDP(
        transitions=np.full((2, 4, 2), 0.5),
        rewards=[[0.5, 0.9, 0.6, 0.4], [0.5, 0.4, 0.7, 0.6]],
        horizon=1,
        initial=[0.25, 0.75],
    )
    simulation = Simulation("trial", problem(2, 4, 1, starts=(0, 1)), {}, model, runs=2)
    assert simulation.most == pytest.approx(0.4 * 0.4 + 0.6 * 0.2)
    for actions, right, wrong in (
        ([1, 2], 1, 0),
        ([2, 2], 0.6, 0),  # better than today's, by less than half of the best
        ([1, 3], 1, 0),  # by half
        ([3, 2], 0.6, 0.25),
        ([3, 1], 0, 1),
        ([0, 0], 0, 0),
    ):
        answer = SimpleNamespace(policy=DeterministicPolicy(np.array([actions])))
        monkeypatch.setattr(planning, "run_study", lambda *_, a=answer: (a, 3))
        found = simulation.outcome(simulation.most, NONE, 100)
        assert found.right == pytest.approx([right] * 2)
        assert found.wrong == pytest.approx([wrong] * 2)
        assert found.recruitments.tolist() == [3, 3]


def test_a_start_that_nobody_has_counts_for_nothing():
    design = dataclasses.replace(ARMS, states=2, start_states=[0, 1])
    model = TabularMDP(
        transitions=np.full((2, 2, 2), 0.5), rewards=[[0.5, 0.9], [0.5, 0.6]], horizon=1, initial=0
    )
    plan = discreet.plan_study(design, problem=model, people=[500], trust=[], runs=1)
    assert plan.effect == pytest.approx(0.4, rel=1e-6)


def test_batches_are_counted_and_too_few_people_are_none():
    facts, shuffle = problem(3, 2, 2), discreet.Shuffle(1, 1e-6)
    for settings, batches in (({"batches": 3}, 3), ({"aim": "policy"}, 1)):
        found = Simulation("trial", facts, settings, runs=2).nothing(NONE, 2_000)
        assert found.recruitments.tolist() == [batches] * 2
    alone = Simulation("trial", facts, {}, runs=2).nothing(shuffle, 1)  # nobody to hide among
    assert alone.recruitments.tolist() == [0, 0] and alone.smallest_difference() == math.inf


def test_rows_are_people_by_trust_by_epsilon_beside_no_privacy():
    told = list[str]()
    plan = discreet.plan_study(ARMS, problem=arms(0.4), effect=0.1, runs=25, progress=told.append)
    kinds = [(row.trust, row.epsilon) for row in plan.rows if row.people == 1_000]
    assert kinds == [
        ("none", None),
        ("central", 0.5),
        ("central", 1),
        ("central", 2),
        ("shuffle", 1),
        ("local", 1),
    ]
    assert sorted({row.people for row in plan.rows}) == [500, 1_000, 2_000]
    assert len(told) == len(plan.rows) == 10
    by = {(row.people, row.trust, row.epsilon): row for row in plan.rows}
    none, central = by[1_000, "none", None], by[1_000, "central", 0.5]
    assert none.smallest_difference < central.smallest_difference
    assert none.right > central.right > by[1_000, "local", 1].right
    assert by[2_000, "central", 1].smallest_difference < by[500, "central", 1].smallest_difference
    assert none.gain == pytest.approx(none.right, rel=1e-3)  # one state, one step: all or nothing
    assert {row.recruitments for row in plan.rows} == {1}


def test_every_trust_model_is_planned_for_the_same_people():
    """Who returns does so under each, and a pure design still has a shuffler beside it."""
    pure = {"model": "central", "epsilon": 1.0, "participations": 4}
    for own in ({**pure, "delta": 1e-6}, {**pure, "participations": 1}):
        design = dataclasses.replace(ARMS, trust=own, episodes=4_000)
        one, four = (
            discreet.plan_study(
                dataclasses.replace(design, trust={**own, "participations": times}),
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
    plan = discreet.plan_study(ARMS, **asked)
    assert [(row.trust, row.epsilon) for row in plan.rows] == [
        ("none", None),
        ("shuffle", 2),
        ("shuffle", 4),
    ]
    scaled = dataclasses.replace(ARMS, table={"reward_range": [-10, 90]})
    other = discreet.plan_study(scaled, **asked)
    assert [row.null_error for row in other.rows] == [row.null_error for row in plan.rows]
    for one, two in zip(plan.rows, other.rows, strict=True):
        assert two.smallest_difference == pytest.approx(100 * one.smallest_difference)
        assert one.right is one.wrong is one.gain is None
    assert "rewards -10 or 90 with even chances" in other.assumed
    assert "where they lead to others a study finds less" in other.assumed
    given = discreet.plan_study(scaled, problem=arms(0.3, name="Arms"), **asked)
    assert (given.effect, given.most) == (pytest.approx(30), pytest.approx(30))
    said = "in Arms, whose best action of the first step earns 30 more than today's"
    assert said in given.assumed
    assert "without a private release, no guarantee covers it" in given.assumed


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"effect": -1}, "effect > 0"),
        ({"effect": 0.1}, "effect beside a problem that has it"),
        ({"effect": 0.3, "problem": arms(0.2)}, "effect <= 0.2, the problem's own"),
        ({"problem": arms(-0.2)}, "another action than today's"),
        ({"problem": discreet.make("RiverSwim")}, "the design's 1 states, 2 actions and 1 steps"),
        ({"problem": arms(0.2, allowed=[[True, False]])}, "with the design's .* actions"),
        ({"people": [0]}, "people to be an integer"),
        ({"epsilon": [-1]}, "epsilon"),
        ({"trust": ["nobody"]}, "nobody"),
        ({"runs": 0}, "runs"),
    ],
    ids=lambda value: str(list(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_is_refused_before_anything_is_simulated(wrong, said):
    told = list[str]()
    with pytest.raises(DiscreetError, match=said):
        discreet.plan_study(ARMS, **wrong, progress=told.append)
    assert told == []
    begin = dataclasses.replace(ARMS, states=2, start_states=[0])
    elsewhere = TabularMDP(
        transitions=np.full((2, 2, 2), 0.5), rewards=[[0, 1]] * 2, horizon=1, initial=[0.5, 0.5]
    )
    with pytest.raises(DiscreetError, match="start_states of the design, got state 1"):
        discreet.plan_study(begin, problem=elsewhere)
    later = TabularMDP(  # nothing to find at the first step, and much at the second
        transitions=np.ones((2, 1, 2, 1)), rewards=[[[0.5, 0.1]], [[0.1, 0.9]]]
    )
    two = dataclasses.replace(ARMS, steps=2)
    with pytest.raises(DiscreetError, match="a plan looks at the first step alone"):
        discreet.plan_study(two, problem=later)
    alike = dataclasses.replace(two, stationary=True)
    with pytest.raises(DiscreetError, match="stationary = true in the design says, got one that"):
        discreet.plan_study(alike, problem=later)


def test_a_learner_without_batches_and_a_design_without_a_choice_are_refused():
    with pytest.raises(UnsupportedError, match="nothing to tell it apart from"):
        discreet.plan_study(dataclasses.replace(ARMS, actions=1))
    with pytest.raises(UnsupportedError, match=r"Its learners under trust .central. are .* trial"):
        discreet.plan_study(dataclasses.replace(ARMS, learner="private-ucb-vi"))
