"""The picture: one square per step and state, with names."""

import numpy as np

from discreet.mdp import DeterministicPolicy, Vocabulary
from discreet.study.dossier.page import MOST_STATES, colour, heat_map, legend
from discreet.study.knowledge import Answer, Estimate


def answer(actions, known):
    return Answer(DeterministicPolicy(np.array(actions)), np.array(known), Estimate(0, 0, 1))


def test_squares_names_and_doubts():
    names = Vocabulary(states=["<ill>", "well"], actions=["wait", "treat"], steps=["a", "b"])
    said = heat_map(answer([[0, 1], [1, 0]], [[True, False], [True, True]]), names)
    assert said.count("<rect") == 4
    assert said.count('fill-opacity="0.25"') == 1
    assert "a, well: treat (rests on no data)" in said
    assert "&lt;ill&gt;" in said
    assert said.count(colour(0)) == said.count(colour(1)) == 2
    assert "(2)" in said  # readable without colours
    assert "2 treat" in legend(names)


def test_large_problems_are_cut_and_long_names_shortened():
    names = Vocabulary(
        states=[f"a state with a long name {i}" for i in range(99)], actions=9, steps=1
    )
    said = heat_map(answer(np.full((1, 99), 8), np.ones((1, 99), bool)), names)
    assert said.count("<rect") == MOST_STATES
    assert "a state with a lon…" in said
    assert colour(8) == colour(0)
