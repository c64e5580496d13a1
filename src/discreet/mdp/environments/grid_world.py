"""GridWorld: slippery moves on a small map."""

import numpy as np

from discreet import _validate
from discreet.errors import InvalidInputError
from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import TabularMDP

_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""Up, right, down, left; the neighbours of a move in this list are its perpendiculars."""


def GridWorld(
    *,
    layout: str = "S...|.#..|..O.|...G",
    slip: float = 0.2,
    horizon: int = 12,
    relabel: int | None = None,
) -> TabularMDP:
    """Walk from S to G on slippery ground; G pays 1 per step until the end, O is a hole.

    Actions are up, right, down and left. With probability ``slip`` the walker goes to one of the
    two perpendicular sides instead (half each). Walls and the border stop a move. Holes and the
    goal are never left.

    Args:
        layout: rows of the map separated by ``|``: ``.`` ground, ``#`` wall, ``O`` hole, ``S``
            start (one), ``G`` goal.
        slip: probability of slipping aside.
        horizon: steps per episode.
        relabel: a seed to rename the actions at random in each state.
    """
    _validate.probability(slip=slip)
    rows = _rows(layout)
    cells = [(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark != "#"]
    number = {cell: i for i, cell in enumerate(cells)}
    transitions = np.zeros((len(cells), 4, len(cells)))
    rewards = np.zeros((len(cells), 4))
    for (r, c), s in number.items():
        if rows[r][c] in "OG":
            transitions[s, :, s] = 1
            rewards[s] = rows[r][c] == "G"
            continue
        for a in range(4):
            for turn, probability in ((0, 1 - slip), (1, slip / 2), (-1, slip / 2)):
                step = _MOVES[(a + turn) % 4]
                transitions[s, a, number.get((r + step[0], c + step[1]), s)] += probability
    start = next(number[r, c] for r, c in cells if rows[r][c] == "S")
    mdp = TabularMDP(
        transitions=transitions, rewards=rewards, initial=start, horizon=horizon, name="GridWorld"
    )
    return relabel_actions(mdp, relabel)


def _rows(layout: str) -> list[str]:
    rows = str(layout).split("|")
    marks = "".join(rows)
    if len({len(row) for row in rows}) != 1 or set(marks) - set(".#OSG"):
        raise InvalidInputError(
            f"Expected a layout of equally long rows of . # O S G separated by |, got {layout!r}."
        )
    if marks.count("S") != 1 or "G" not in marks:
        raise InvalidInputError(f"Expected one start S and a goal G in the layout, got {layout!r}.")
    return rows
