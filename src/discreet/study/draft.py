"""A first design for a table, written by looking at its header alone."""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence

from discreet._settings import to_toml
from discreet._types import Plain

_ROLES = {
    "user": "user person id name patient pupil student participant subject customer client member",
    "episode": "episode course admission stay enrolment",
    "step": "step visit time day week month quarter year grade gr period session round wave",
    "state": "state condition status stage severity context",
    "action": "action treatment arm drug care dose therapy intervention offer cltype",
    "reward": "reward score outcome result wellbeing points payoff value",
    "next_state": "next_state",
}
"""What columns of a role are often called."""
_ABOUT = {
    "user": "who",
    "step": "when",
    "state": "how they were",
    "action": "what was done",
    "reward": "how it went",
}


def guess_columns(header: Sequence[str]) -> dict[str, str]:
    """Role -> column, where a column's name says so; to be looked at by a person.

    >>> guess_columns(["Pupil id", "grade", "class", "score"])
    {'user': 'Pupil id', 'step': 'grade', 'reward': 'score'}
    """
    found = dict[str, str]()
    for role, words in _ROLES.items():
        for word in words.split():
            named = [
                name
                for name in header
                if name not in found.values()
                and (name.casefold() == word or word in re.split(r"[\W_]+", name.casefold()))
            ]
            if named:
                found[role] = named[0]
                break
    return found


def first_design(
    table: str, header: Sequence[str], facts: Mapping[str, Plain], known: Mapping[str, Plain]
) -> str:
    """The text of a first design file; `Design.blanks` are to be filled in.

    Args:
        table: the name of the table's file.
        header: the names of its columns.
        facts: of its format.
        known: what somebody who knows it said: states, actions, steps, reward_range, columns.
    """
    columns = {**guess_columns(header), **known.get("columns", {})}  # type: ignore[dict-item]
    others = [json.dumps(n, ensure_ascii=False) for n in header if n not in columns.values()]

    def line(name: str, comment: str, value: Plain = None, empty: Plain = None) -> str:
        said = to_toml({name: empty if value is None else value}).strip()
        return f"{said:<35} # {'FILL IN: ' if value is None else ''}{comment}"

    def named(name: str, comment: str) -> str:
        return line(name, comment, known.get(name), [])

    lines = [
        f"# A first design for {json.dumps(table)}, written by looking at its header alone.",
        "#",
        "# What is left to fill in is public: everybody may read it, and no guarantee covers it.",
        "# Do not look it up in the table. The states that occur, and the least and the largest",
        "# reward, are facts about the people in it, and looking is not private. Take them from",
        "# the protocol, the questionnaire, a guideline or another population.",
        "",
        'learner = "trial"                   # up to some 50,000 people; beyond, "flow-ucb"',
        "# episodes = 3000                   # of a study: people in all",
        named("states", "all that can be, those of absent people (below) too"),
        named("actions", "all that can be done; the first is what is done today"),
        named("steps", "their names in order, or a number"),
        '# start_states = ["ill", "not yet"] # where people can begin, if that is public',
        "",
        "# [[allowed]]                       # where nothing is decided there is no choice",
        '# states = ["not yet", "away", "gone"]',
        '# actions = ["wait"]                # the first action',
        "",
        "[trust]",
        'model = "central"                   # whoever has this table sees it',
        "epsilon = 1.0",
        "delta = 1e-6                        # far below one over the number of people",
        "# participations = 2                # if people come back: how often, at most",
        "",
        "[table]",
        named("reward_range", "[least, largest] reward of a step that can be"),
        *(to_toml({name: value}).strip() for name, value in facts.items()),
        '# decimal = ","                     # if a comma stands before the decimals',
        '# missing = ["n/a"]                 # words that stand for nothing',
        '# missing_state = "unknown"         # the state of rows that have none',
        "# missing_reward = 0                # what a row with an action and no reward earned",
        '# late = {state = "not yet", reward = 0}    # steps before the first row of somebody',
        '# gap = {state = "away", reward = 0}        # steps between two rows',
        '# padding = {end = "gone", reward = 0}      # steps after the last row',
        "",
        "[table.columns]                     # which is which, guessed by their names",
        *textwrap.wrap(
            f"Others: {', '.join(others)}" if others else "",
            90,
            initial_indent="# ",
            subsequent_indent="# ",
        ),
        *(line(role, about, columns.get(role), "") for role, about in _ABOUT.items()),
    ]
    more = {"episode": "which of the person's episodes", "next_state": "how they were afterwards"}
    lines += [line(role, about, columns[role]) for role, about in more.items() if role in columns]
    if "episode" not in columns:
        lines.append(
            '# episode = "COLUMN"                # which of the person\'s episodes, if several'
        )
    return "\n".join(lines) + "\n"
