"""DoubleChain: the short-sighted chain, the rich one, and the way back."""

import numpy as np
import pytest

from discreet.mdp import evaluate, make, plan


def test_double_chain_by_hand():
    mdp = make("DoubleChain", length=2, horizon=4, success=1.0, consolation=0.5)
    # Enter, advance, then two paid steps.
    assert plan(mdp).value == pytest.approx(2)
    assert max(evaluate(mdp, np.full((4, 5), a)) for a in (0, 1)) == pytest.approx(1)


def test_going_back_leads_to_the_start_from_everywhere_in_a_chain():
    moves = make("DoubleChain", length=3).transitions[0]
    assert moves.shape == (7, 2, 7)
    assert (moves[1:, 1, 0] == 1).all()


def test_only_the_ends_pay():
    rewards = make("DoubleChain", length=3, consolation=0.6).rewards[0]
    paid = {(int(s), int(a)): float(rewards[s, a]) for s, a in np.argwhere(rewards > 0)}
    assert paid == {(3, 0): 0.6, (6, 0): 1.0}


@pytest.mark.parametrize("success", [0.25, 1.0])
def test_an_advance_fails_as_often_as_promised(success):
    moves = make("DoubleChain", success=success).transitions[0]
    assert moves[1, 0, 2] == success
    assert moves[1, 0, 1] == 1 - success


def test_chains_of_one_state_are_two_arms():
    mdp = make("DoubleChain", length=1, horizon=3, consolation=0.5)
    assert mdp.shape.states == 3
    assert plan(mdp).value == pytest.approx(2)
