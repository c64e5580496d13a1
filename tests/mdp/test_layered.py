"""Layered MDPs and their effective support."""

import pickle

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import RiverSwim, TabularMDP, uniform_policy
from discreet.mdp.layered import LayeredMDP, effective_support, tabular_losses
from discreet.mdp.planning import best_response, evaluate, occupancy, solve


def diamond(**changes):
    """0 -> {1, 2} -> 3, two actions."""
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0, 1:3] = 0.25, 0.75
    transitions[0, 1, 1:3] = 1, 0
    transitions[1:3, :, 3] = 1
    return {"transitions": transitions, "layers": [0, 1, 1, 2], **changes}


@pytest.mark.core
def test_states_in_layers_are_packed():
    mdp = LayeredMDP.from_states(**diamond())
    assert mdp.widths.tolist() == [1, 2, 1]
    assert (mdp.states, mdp.horizon, mdp.shape.actions) == (3, 2, 2)
    assert mdp.transitions[0, 0].tolist() == [[0.25, 0.75], [1, 0]]
    assert mdp.transitions[1, :, :, 0].tolist() == [[1, 1], [1, 1]]
    assert mdp.present.tolist() == [[True, False], [True, True]]
    assert not mdp.transitions[0, 1].any()
    assert repr(mdp) == "LayeredMDP(widths=[1, 2, 1], actions=2)"


def test_the_order_of_the_states_does_not_matter():
    order = np.array([3, 1, 0, 2])
    given = diamond()
    shuffled = LayeredMDP.from_states(
        transitions=given["transitions"][np.ix_(order, [0, 1], order)],
        layers=np.array(given["layers"])[order],
    )
    np.testing.assert_array_equal(shuffled.transitions, LayeredMDP.from_states(**given).transitions)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((0, 0, 3), "from layer 0 to layer 2"),
        ((1, 1, 2), "from layer 1 to layer 1"),
        ((2, 0, 0), "from layer 1 to layer 0"),
    ],
)
def test_loops_and_jumps_are_refused(change, message):
    given = diamond()
    given["transitions"][change] = 0.5
    with pytest.raises(InvalidInputError, match=message):
        LayeredMDP.from_states(**given)


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


def test_bad_layer_numbers_are_refused():
    with pytest.raises(InvalidInputError, match="integers >= 0"):
        LayeredMDP.from_states(**diamond(layers=[0.0, 1, 1, 2]))
    with pytest.raises(InvalidInputError, match=r"\(X, A, X\)"):
        LayeredMDP.from_states(**diamond(layers=[0, 1, 2]))


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
    best = best_response(layered.tabular, -losses)
    assert 5 + best.value == pytest.approx(solve(mdp).value)
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
    support = effective_support(LayeredMDP.from_states(**diamond()))
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
