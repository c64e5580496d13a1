"""SixArms: doors, rooms and what they pay."""

import numpy as np
import pytest

from discreet.mdp import make, plan


def test_six_arms_by_hand():
    mdp = make("SixArms", horizon=3)
    # Two paid steps behind the sure door, or two attempts at a harder one: door k pays
    # p (2 r) + (1 - p) p r over three steps.
    doors = zip((1, 0.15, 0.1, 0.05, 0.03, 0.01), (50, 133, 300, 800, 1660, 6000), strict=True)
    worth = [(2 * p + (1 - p) * p) * r / 6000 for p, r in doors]
    assert plan(mdp).value >= max(worth) - 1e-12
    first = int(plan(mdp).policy.actions[0, 0])
    assert worth[first] == pytest.approx(max(worth), abs=0.003)


def test_every_room_has_one_paying_action_which_stays():
    mdp = make("SixArms")
    rewards, moves = mdp.rewards[0], mdp.transitions[0]
    assert not rewards[0].any()
    for room in range(1, 7):
        (action,) = np.flatnonzero(rewards[room])
        assert action == 6 - room
        assert moves[room, action, room] == 1
        others = np.delete(np.arange(6), action)
        assert (moves[room, others, 0] == 1).all()


def test_harder_doors_pay_more():
    mdp = make("SixArms")
    opens = [mdp.transitions[0, 0, door, door + 1] for door in range(6)]
    pays = [mdp.rewards[0, door + 1].max() for door in range(6)]
    assert opens == sorted(opens, reverse=True)
    assert pays == sorted(pays)
    assert pays[-1] == 1
