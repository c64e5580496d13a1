"""Tables of episodes for the tests of readers."""

import csv
import io
import warnings

import numpy as np
from hypothesis import strategies as st

from discreet._spelling import RefusedNameError, person, warn_of_lookalikes
from discreet.data import Vocabulary, read_table
from discreet.errors import DiscreetWarning
from discreet.mdp import Trajectories

NAMES = Vocabulary(states=["ill", "well", "dead"], actions=["wait", "treat"], steps=[1, 2, 3])

HEADER = ("user", "step", "state", "action", "reward")

VISITS = [
    ("ann", 1, "ill", "treat", 0.25),
    ("ann", 2, "well", "wait", 1.0),
    ("ann", 3, "well", "wait", 0.5),
    ("bob", 1, "ill", "wait", 0.0),
    ("bob", 2, "ill", "treat", 0.0),
    ("bob", 3, "ill", "treat", 0.75),
]
"""Two whole episodes; the state after the last step was not seen."""


def frame(rows, header=HEADER):
    """Rows as a dictionary of columns."""
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


def text(rows, header=HEADER, **dialect):
    """Rows as an open CSV file."""
    file = io.StringIO(newline="")
    csv.writer(file, **dialect).writerows([header, *rows])
    file.seek(0)
    return file


def changed(row, column, value, rows=VISITS):
    """The rows with one cell changed."""
    cells = list(rows[row])
    cells[HEADER.index(column)] = value
    return [*rows[:row], tuple(cells), *rows[row + 1 :]]


def read(rows, header=HEADER, names=NAMES, **options):
    """Episodes of rows, by way of a dictionary of columns."""
    return read_table(frame(rows, header), names, **options)


def same(one, other):
    """Whether two groups of episodes are equal."""
    return (
        np.array_equal(one.states, other.states)
        and np.array_equal(one.actions, other.actions)
        and np.array_equal(one.rewards, other.rewards)
    )


def plain_name(text):
    """Whether a name is taken without a word."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DiscreetWarning)
            warn_of_lookalikes([person(text)])
    except (RefusedNameError, DiscreetWarning):
        return False
    return True


USERS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=6).filter(
    plain_name
)


@st.composite
def logs(draw):
    """Vocabulary, episodes, users, and the rows that say all this, in any order."""
    users = draw(
        st.lists(USERS, min_size=1, max_size=5, unique_by=lambda name: person(name).casefold())
    )
    horizon = draw(st.integers(1, 4))
    number = st.integers(0, 2)
    row = st.tuples(number, number, st.floats(0, 1))
    episodes = [draw(st.lists(row, min_size=horizon, max_size=horizon)) for _ in users]
    ends = [draw(number) for _ in users]
    rows = [
        (users[k], h, *step, episodes[k][h + 1][0] if h + 1 < horizon else ends[k])
        for k, steps in enumerate(episodes)
        for h, step in enumerate(steps)
    ]
    states = np.array(
        [[step[0] for step in e] + [end] for e, end in zip(episodes, ends, strict=True)]
    )
    actions = np.array([[step[1] for step in e] for e in episodes])
    rewards = np.array([[step[2] for step in e] for e in episodes])
    rows = draw(st.permutations(rows))
    order = [users.index(name) for name in dict.fromkeys(row[0] for row in rows)]
    whole = Trajectories(states[order], actions[order], rewards[order])
    names = Vocabulary(states=3, actions=3, steps=horizon)
    return names, whole, [person(users[k]) for k in order], rows
