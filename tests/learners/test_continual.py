"""Every continual learner: compiled runs walk through the printed policies; ties and induction."""

import sys

import numba
import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, learn
from discreet._seeds import RunSeeds
from discreet.errors import DiscreetError, InvalidInputError
from discreet.learners.continual import (
    TIE,
    CompiledRun,
    break_ties,
    choose,
    greedy,
    make_learner,
    walk,
)
from discreet.learners.dp_ucbvi import DpUcbvi, Ucbvi
from discreet.learners.ldp_obi import LdpObi
from discreet.learners.private_ucb import PrivateUcbPo, PrivateUcbVi, Pucb
from discreet.learners.psrl import LdpPsrl, Psrl
from discreet.mdp import RiverSwim
from discreet.privacy.simulation.users import no_counts
from helpers.compiled import ModelDraws

TREE = Central(100, 1e-6, mechanism="tree-gaussian")
LAPLACE = Local(60, mechanism="laplace")

CASES = [
    (Ucbvi, NoPrivacy(), {}),
    (Ucbvi, NoPrivacy(), {"constants": "theory"}),
    (Ucbvi, NoPrivacy(), {"bonus": "hoeffding", "clip": True, "stationary": True}),
    (Ucbvi, NoPrivacy(), {"terms": ("variance", "correction"), "bonus_scale": 1e-4}),
    (DpUcbvi, NoPrivacy(), {"stationary": True}),
    (DpUcbvi, TREE, {}),
    (DpUcbvi, Central(100), {"stationary": True, "clip": True}),
    (DpUcbvi, Central(100), {"constants": "theory", "bonus_scale": 1e-4, "privacy_scale": 1e-5}),
    (DpUcbvi, LAPLACE, {}),
    (DpUcbvi, Local(1, 1e-6, mechanism="gaussian"), {"constants": "theory"}),
    (PrivateUcbVi, TREE, {}),
    (PrivateUcbVi, LAPLACE, {"stationary": True, "bonus_scale": 0.1, "clip": True}),
    (PrivateUcbPo, TREE, {}),
    (PrivateUcbPo, NoPrivacy(), {"stationary": True}),
    (Pucb, Central(1000), {"stationary": True}),
    (Pucb, NoPrivacy(), {"constants": "theory", "bonus_scale": 0.01}),
    (LdpObi, LAPLACE, {}),
    (LdpObi, LAPLACE, {"constants": "theory", "stationary": False}),
    (LdpObi, Local(60, 1e-3, mechanism="gaussian"), {}),
    (LdpObi, Local(60, mechanism="randomized-response"), {}),
    (LdpObi, Local(60, mechanism="randomized-response"), {"stationary": False}),
    (LdpObi, Local(60, 1e-3, mechanism="bounded"), {}),
    (LdpObi, Local(60, mechanism="one-step"), {}),
    (LdpObi, Local(60, mechanism="one-step"), {"stationary": False}),
    (LdpObi, NoPrivacy(), {}),
    (LdpObi, LAPLACE, {"literal": True}),
    (LdpObi, LAPLACE, {"literal": True, "stationary": False}),
    (LdpObi, Local(60, mechanism="randomized-response"), {"literal": True}),
    (LdpObi, Local(60, mechanism="randomized-response"), {"literal": True, "stationary": False}),
    (LdpObi, TREE, {"literal": True}),  # a tree counts the last transition all the same
    (LdpObi, TREE, {}),
    (Psrl, NoPrivacy(), {}),
    (Psrl, NoPrivacy(), {"stationary": True, "prior": 0.3}),
    (LdpPsrl, LAPLACE, {}),
    (LdpPsrl, LAPLACE, {"constants": "theory", "stationary": False}),
]


def both_ways(kind, mdp, trust, episodes, **settings):
    """Posterior sampling draws ahead when compiled: its reference gets the same numbers."""
    seeds = RunSeeds(3)
    learner = make_learner(kind, mdp, trust, episodes, seeds.generator("policy"), settings)
    if issubclass(kind, Psrl):
        learner.rng = ModelDraws(learner.rng, no_counts(learner.mechanism).visits.shape)
    reference = [r for _, r in walk(learner, mdp, seeds)]
    learner = make_learner(kind, mdp, trust, episodes, seeds.generator("policy"), settings)
    compiled = np.concatenate(list(CompiledRun(mdp, learner, seeds).blocks()))
    return np.array(reference), compiled


def name_of(value):
    return getattr(value, "name", None) or str(value).partition("(")[0]


@pytest.mark.parametrize(("kind", "trust", "settings"), CASES, ids=name_of)
def test_the_compiled_run_is_the_printed_algorithm(kind, trust, settings):
    mdp = RiverSwim(states=3, horizon=4, relabel=1)
    reference, compiled = both_ways(kind, mdp, trust, 120, **settings)
    np.testing.assert_allclose(compiled, reference, atol=1e-12)


@pytest.mark.parametrize("kind", [Ucbvi, Psrl, PrivateUcbPo, LdpObi])
def test_the_two_ways_meet_more_than_one_policy(kind):
    mdp = RiverSwim(states=3, horizon=4, relabel=1)
    reference, _ = both_ways(kind, mdp, NoPrivacy(), 60)
    assert len(np.unique(reference.round(9))) > 3


@pytest.mark.core
def test_a_learner_needs_only_private_counts():
    """Reference learners plan from `PrivateCounts` alone, before the first user as well."""
    mdp = RiverSwim(states=3, horizon=4)
    learner = make_learner(DpUcbvi, mdp, NoPrivacy(), 10, np.random.default_rng(0), {})
    policy = learner.next_policy(no_counts(learner.mechanism))
    assert policy.actions.shape == (4, 3)


def test_blocks_do_not_change_the_run(monkeypatch):
    mdp = RiverSwim(states=3, horizon=4, relabel=1)
    whole = learn(mdp, learner="dp-ucbvi", trust=TREE, episodes=300, seed=5)
    monkeypatch.setattr("discreet.privacy.simulation.users._BLOCK_BYTES", 8 * 200 * 7)
    pieces = learn(mdp, learner="dp-ucbvi", trust=TREE, episodes=300, seed=5)
    np.testing.assert_allclose(pieces.regret.values, whole.regret.values, rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "trust"), [(LdpObi, LAPLACE), (LdpPsrl, LAPLACE), (PrivateUcbPo, TREE)], ids=name_of
)
def test_blocks_let_go_of_the_learners_generator_and_memory(monkeypatch, kind, trust):
    monkeypatch.setattr("discreet.privacy.simulation.users._BLOCK_BYTES", 8 * 200)
    mdp = RiverSwim(states=3, horizon=4)
    learner = make_learner(kind, mdp, trust, 60, np.random.default_rng(0), {})
    memory = learner.memory()
    monkeypatch.setattr(learner, "memory", lambda: memory)
    references = [
        (sys.getrefcount(learner.rng), sys.getrefcount(memory))
        for _ in CompiledRun(mdp, learner, RunSeeds(0)).blocks()
    ]
    assert len(references) > 3
    assert len(set(references)) == 1


class Forgetful(LdpPsrl):
    """One that keeps Q alone, where its planner also keeps random numbers."""

    def memory(self):
        return super().memory()[:1]


class Misshapen(LdpObi):
    """One whose Q has a step too few."""

    def memory(self):
        return np.zeros((2, 3, 3, 2))


@pytest.mark.parametrize("kind", [Forgetful, Misshapen])
def test_a_memory_that_is_too_small_for_the_planner_is_refused(kind):
    mdp = RiverSwim(states=3, horizon=4)
    learner = make_learner(kind, mdp, LAPLACE, 10, np.random.default_rng(0), {})
    with pytest.raises(InvalidInputError, match=r"\(H, S, A\) = \(4, 3, 2\) and at least \d+ numb"):
        next(CompiledRun(mdp, learner, RunSeeds(0)).blocks())


def test_result_says_what_was_used():
    mdp = RiverSwim(states=3, horizon=4)
    result = learn(mdp, learner="ldp-obi", trust=LAPLACE, episodes=50, seed=1)
    assert result.settings["constants"] == "practical"
    assert result.settings["stationary"] is True
    assert result.guarantee.notion == "LDP"
    assert result.mechanism == "laplace"
    assert result.noise["visits"] == pytest.approx(
        LAPLACE.calibrate(
            mdp.shape, schedule="continual", episodes=50, stationary=True
        ).noise_variance(50)["visits"]
        ** 0.5
    )
    assert result.regret.episodes[-1] == 50


def test_stationary_counts_need_a_stationary_mdp():
    mdp = RiverSwim(states=3, horizon=3)
    varying = type(mdp)(
        transitions=np.array(mdp.transitions),
        rewards=np.array(mdp.rewards) * np.linspace(0.5, 1, 3)[:, None, None],
    )
    with pytest.raises(DiscreetError, match="stationary"):
        learn(varying, learner="ucbvi", episodes=10, stationary=True)
    assert learn(varying, learner="ldp-obi", episodes=10).settings["stationary"] is False


@pytest.mark.parametrize(
    ("learner", "trust"), [("ucbvi", LAPLACE), ("pucb", LAPLACE), ("psrl", Central(1))]
)
def test_a_trust_model_it_cannot_use_gets_one_sentence(learner, trust):
    with pytest.raises(DiscreetError, match=learner):
        learn(RiverSwim(states=3, horizon=3), learner=learner, trust=trust, episodes=10)


@numba.njit
def pick(q, actions, values):
    close = False
    for h in range(q.shape[1]):
        for s in range(q.shape[2]):
            close |= greedy(q, h, s, actions, values)
    return close


def picked(rows):
    """Actions, values and the warning of a tie, for Q values ``[H, S, A]``."""
    q = np.array(rows, float)[None]
    actions, values = np.zeros(q.shape[1:3], np.int64), np.zeros(q.shape[1:3])
    return actions, values, pick(q, actions, values)


def test_the_largest_value_wins():
    actions, values, close = picked([[[1.0, 3.0, 2.0], [5.0, -1.0, 4.0]]])
    assert actions.tolist() == [[1, 0]]
    assert values.tolist() == [[3.0, 5.0]]
    assert not close


@pytest.mark.parametrize("best", [2.0, np.inf])
def test_equal_values_are_noticed_also_when_infinite(best):
    _, values, close = picked([[[0.0, best, best]]])
    assert close
    assert values[0, 0] == best


def test_ties_are_broken_uniformly_and_only_where_they_are():
    q = np.array([[[[2.0, 2.0 - TIE / 2, 1.0, 2.0], [0.0, 0.0, 7.0, 0.0]]]])
    rng, counts = np.random.default_rng(4), np.zeros((2, 4), int)
    rounds = 9000
    for _ in range(rounds):
        actions = np.array([[0, 2]])
        break_ties(q, actions, rng)
        counts[[0, 1], actions[0]] += 1
    assert counts[1].tolist() == [0, 0, rounds, 0]
    assert counts[0, 2] == 0
    assert abs(counts[0, [0, 1, 3]] - rounds / 3).max() < 5.5 * np.sqrt(rounds * 2 / 9)


def test_ties_take_the_numbers_that_the_reference_takes():
    """From the last step to the first, one number per tie, none elsewhere."""
    rng = np.random.default_rng(6)
    q = rng.integers(0, 2, size=(1, 5, 4, 3)).astype(float)
    actions = q[0].argmax(axis=-1)
    one, other = np.random.default_rng(9), np.random.default_rng(9)
    break_ties(q, actions, one)
    expected = np.zeros((5, 4), int)
    for h in reversed(range(5)):
        for s in range(4):
            expected[h, s] = choose(q[0, h, s], other)
    assert np.array_equal(actions, expected)
    assert one.random() == other.random()
