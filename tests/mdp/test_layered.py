"""Layered MDPs and their effective support."""

import pickle

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import RiverSwim, TabularMDP, uniform_policy
from discreet.mdp.layered import LayeredMDP, effective_support, tabular_losses
from discreet.mdp.planning import evaluate, occupancy, solve


def diamond():
    """One state, then two, then one; two actions."""
    transitions = np.zeros((2, 2, 2, 2))
    transitions[0, 0] = [[0.25, 0.75], [1, 0]]
    transitions[1, :, :, 0] = 1
    return LayeredMDP(transitions=transitions, widths=[1, 2, 1])


@pytest.mark.core
def test_a_layered_problem_says_its_sizes():
    mdp = diamond()
    assert mdp.widths.tolist() == [1, 2, 1]
    assert (mdp.states, mdp.horizon, mdp.shape.actions) == (3, 2, 2)
    assert mdp.present.tolist() == [[True, False], [True, True]]
    assert not mdp.transitions[0, 1].any()
    assert repr(mdp) == "LayeredMDP(widths=[1, 2, 1], actions=2)"


@pytest.mark.parametrize(
    ("transitions", "widths", "message"),
    [
        (np.ones((1, 2, 1, 2)) / 2, [2, 1], "one state in the first and in the last"),
        (np.ones((1, 2, 1, 2)) / 2, [1, 2], "one state in the first and in the last"),
        (np.ones((1, 1, 1, 2)), [1, 1], r"Expected transitions \(H, W, A, W\)"),
        (np.full((1, 1, 1, 1), 0.5), [1, 1], "sum to 1, got 0.5"),
        (np.ones((2, 1, 1, 1)), [1, 0, 1], "a state in every layer"),
        (np.ones((2, 2, 1, 2)) / 2, [1, 2, 1], "into the 1 states of layer 2 only"),
        (np.ones((1, 1, 1, 1)), [1], "widths of layers"),
    ],
)
def test_bad_layers_are_refused(transitions, widths, message):
    with pytest.raises(InvalidInputError, match=message):
        LayeredMDP(transitions=transitions, widths=widths)


def test_the_callers_arrays_stay_as_they_are():
    moves = np.zeros((2, 2, 1, 2))
    moves[0, 0, 0] = 0.5
    moves[1, :, 0, 0] = 1
    before = moves.copy()
    mdp = LayeredMDP(transitions=moves, widths=[1, 2, 1])
    np.testing.assert_array_equal(moves, before)
    for each in (mdp, pickle.loads(pickle.dumps(mdp))):
        with pytest.raises(ValueError, match="read-only"):
            each.transitions[0] = 0


@pytest.mark.parametrize("initial", [0, 2, [0.5, 0.25, 0.25, 0.0]])
def test_stage_expansion_keeps_every_value(initial):
    river = RiverSwim(states=4, horizon=5)
    mdp = TabularMDP(
        transitions=river.transitions, rewards=river.rewards, initial=initial, horizon=5
    )
    layered, losses = LayeredMDP.from_tabular(mdp), tabular_losses(mdp)
    best = solve(layered.tabular.replace(rewards=1 - losses)).value - layered.horizon
    assert 5 + best == pytest.approx(solve(mdp).value)
    measure = occupancy(layered.tabular, uniform_policy(layered.shape))
    uniform = evaluate(mdp, uniform_policy(mdp.shape))
    assert 5 - (measure * losses).sum() == pytest.approx(uniform)
    assert not measure[~layered.present].any()


def test_stage_expansion_of_one_step():
    mdp = TabularMDP(
        transitions=np.full((2, 1, 2), 0.5), rewards=[[0.25], [0.5]], initial=1, horizon=1
    )
    layered = LayeredMDP.from_tabular(mdp)
    assert layered.widths.tolist() == [1, 1]
    assert tabular_losses(mdp).tolist() == [[[0.5]]]


def test_effective_support_by_hand():
    support = effective_support(diamond())
    expected = (2 * np.sqrt(0.25 * 0.75)) ** 2
    assert support.pairs[0, 0].tolist() == pytest.approx([expected, 0])
    assert not support.pairs[1].any()
    assert support.cumulative == pytest.approx(np.sqrt(expected))


def test_effective_support_of_uniform_moves_is_the_largest():
    """C_{x,a} <= width - 1, with equality for the uniform distribution (Bourel et al., 2020)."""
    moves = np.zeros((2, 5, 1, 5))
    moves[0, 0, 0] = 0.2
    moves[1, :, 0, 0] = 1
    support = effective_support(LayeredMDP(transitions=moves, widths=[1, 5, 1]))
    assert support.pairs[0, 0, 0] == pytest.approx(4)
    assert support.cumulative == pytest.approx(2)
