"""Recommender: people like variety, and leave when they are bored."""

import numpy as np

from discreet import _validate
from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import TabularMDP

_APPEAL = np.array([[0.70, 0.55, 0.40], [0.40, 0.55, 0.70]])
_FATIGUE = 0.3
_LEAVES_LIKED, _LEAVES_DISLIKED = 0.03, 0.25


def Recommender(*, horizon: int = 8, relabel: int | None = None) -> TabularMDP:
    """Choose what to show next: repeats tire people, and who is bored leaves.

    Two tastes of equal share (known from the profile), three kinds of item. A state is the taste,
    the kind shown last and whether it was shown once or more often in a row; one more state per
    taste before the first item, and one for people who have left: 15 states. The action is the
    kind shown next; the reward is a like.

    From publications: 55% of the ratings in MovieLens-100K are likes (four stars or more), the
    average appeal here; appeal falls with each recent exposure to the same kind and recovers after
    a pause, as Warlop, Lazaric and Mary (2018), "Fighting Boredom in Recommender Systems with
    Linear Reinforcement Learning", found in MovieLens, and Leqi, Kilinc-Karzan, Lipton and
    Montgomery (2021), "Rebounding Bandits for Modeling Satiation Effects", model it.

    Stylised by us: the appeals 0.70, 0.55, 0.40 of the three kinds for the first taste (reversed
    for the second), a loss of 30% of the appeal per repeat (twice at most), and that 3% leave after
    a like but 25% after a dislike (likes and leaving are drawn independently of each other, with
    these rates).

    Args:
        horizon: items per session.
        relabel: a seed to rename the actions at random in each state.
    """
    _validate.count(horizon=horizon)
    transitions = np.zeros((15, 3, 15))
    rewards = np.zeros((15, 3))
    gone = 14
    for taste in range(2):
        first = 7 * taste
        for place in range(7):
            last, repeats = divmod(place - 1, 2) if place else (-1, -1)
            for kind in range(3):
                streak = repeats + 1 if kind == last else 0
                like = _APPEAL[taste, kind] * (1 - _FATIGUE) ** streak
                leaves = like * _LEAVES_LIKED + (1 - like) * _LEAVES_DISLIKED
                ahead = first + 1 + 2 * kind + min(streak, 1)
                transitions[first + place, kind, [gone, ahead]] = leaves, 1 - leaves
                rewards[first + place, kind] = like
    transitions[gone, :, gone] = 1
    initial = np.zeros(15)
    initial[[0, 7]] = 0.5
    mdp = TabularMDP(
        transitions=transitions,
        rewards=rewards,
        initial=initial,
        horizon=horizon,
        name="Recommender",
    )
    return relabel_actions(mdp, relabel)
