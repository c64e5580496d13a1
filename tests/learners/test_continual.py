"""Every continual learner: asked one by one it plays what compiled runs play; ties."""

import sys

import numba
import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, learn
from discreet._seeds import RunSeeds
from discreet.errors import DiscreetError, InvalidInputError, UnsupportedError
from discreet.learners.base import ContinualLearner
from discreet.learners.continual import (
    TIE,
    CompiledRun,
    break_ties,
    greedy,
    make_learner,
    run_continual,
    walk,
)
from discreet.learners.ldp_obi import LdpObi
from discreet.learners.optimists import DpUcbvi, PrivateUcbPo, PrivateUcbVi, Pucb, Ucbvi
from discreet.learners.psrl import LdpPsrl, Psrl
from discreet.mdp import RiverSwim

TREE = Central(100, mechanism="tree-laplace")
LAPLACE = Local(60, mechanism="laplace")

CASES = [
    (Ucbvi, NoPrivacy(), {"stationary": True}),
    (DpUcbvi, TREE, {"clip": True}),
    (PrivateUcbVi, LAPLACE, {}),
    (PrivateUcbPo, TREE, {}),
    (Pucb, Central(1000), {"stationary": True}),
    (LdpObi, Local(60, mechanism="randomized-response"), {"literal": True}),
    (LdpObi, TREE, {}),
    (Psrl, NoPrivacy(), {"prior": 0.3}),
    (LdpPsrl, LAPLACE, {}),
]


def name_of(value):
    return getattr(value, "name", None) or str(value).partition("(")[0]


@pytest.mark.parametrize(("kind", "trust", "settings"), CASES, ids=name_of)
def test_who_asks_one_by_one_gets_the_policies_of_the_compiled_run(kind, trust, settings):
    mdp, seeds = RiverSwim(states=3, horizon=4, relabel=1), RunSeeds(3)
    learner = make_learner(kind, mdp, trust, 120, seeds.generator("policy"), settings)
    one_by_one = [regret for _, regret in walk(learner, mdp, seeds)]
    learner = make_learner(kind, mdp, trust, 120, seeds.generator("policy"), settings)
    compiled = np.concatenate(list(CompiledRun(mdp, learner, seeds).blocks()))
    np.testing.assert_allclose(compiled, one_by_one, atol=1e-12)
    assert len(np.unique(compiled.round(9))) > 3


def test_policies_that_were_handed_out_stay_as_they_were():
    mdp = RiverSwim(states=3, horizon=4)
    learner = make_learner(PrivateUcbPo, mdp, NoPrivacy(), 20, np.random.default_rng(0), {})
    policies = [policy for policy, _ in walk(learner, mdp, RunSeeds(0))]
    assert (policies[0].probabilities == 0.5).all()
    assert not (policies[-1].probabilities == 0.5).all()


def test_a_learner_without_planner_and_policy_says_what_it_lacks():
    class Empty(ContinualLearner):
        name = "empty"

    mdp = RiverSwim(states=3, horizon=4)
    with pytest.raises(UnsupportedError, match="'empty' has neither a planner nor a method"):
        run_continual(Empty, mdp, NoPrivacy(), 10, RunSeeds(0))


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


class Misshapen(LdpObi):
    """One whose Q has a step too few."""

    def memory(self):
        return np.zeros((2, 3, 3, 2))


def test_a_memory_that_does_not_fit_the_planner_is_refused():
    mdp = RiverSwim(states=3, horizon=4)
    learner = make_learner(Misshapen, mdp, LAPLACE, 10, np.random.default_rng(0), {})
    with pytest.raises(InvalidInputError, match=r"\(H, S, A\) = \(4, 3, 2\), got one of"):
        next(CompiledRun(mdp, learner, RunSeeds(0)).blocks())


def test_result_says_what_was_used():
    mdp = RiverSwim(states=3, horizon=4)
    result = learn(mdp, learner="ldp-obi", trust=LAPLACE, episodes=50, seed=1)
    assert result.settings["constants"] == "practical"
    assert result.settings["stationary"] is True
    assert result.guarantee.notion == "LDP"
    assert result.mechanism == "laplace"
    assert result.noise["visits"] == pytest.approx(
        LAPLACE.calibrate_stream(mdp.shape, episodes=50, stationary=True).noise_variance(50)[
            "visits"
        ]
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
