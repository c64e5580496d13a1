"""The design of a study as a TOML file: what `start` is told, written down before anybody is asked.

::

    learner = "trial"                   # flow-ucb, if nobody says
    episodes = 20000                    # users in all
    states = ["ill", "well"]            # or a number
    actions = ["wait", "treat"]         # or a number; the first is what is done today
    steps = 8                           # or names
    start_states = ["ill"]              # if that is public
    stationary = false
    batches = 3                         # at most so many recruitments

    [trust]
    model = "central"                   # central, local, shuffle or none
    epsilon = 1.0
    delta = 1e-6

    [settings]                          # the learner's own

    [[allowed]]                         # if not every action is possible everywhere
    states = ["well"]                   # all, if nobody says; and so steps
    actions = ["wait"]

    [table]                             # how tables are read: see `TableFormat`
    columns = {user = "patient", step = "visit"}
    reward_range = [0, 10]
    padding = {end = "lost"}

With ``[[table.cuts]]`` the states are those of the cut points, and ``states`` lists others besides.
`discreet.fit` reads the same file: names, trust, start states and the table.
"""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet import _settings
from discreet._settings import to_toml
from discreet._spelling import quoted
from discreet._types import JsonObject, Plain
from discreet.data.layout import TableFormat
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError
from discreet.privacy.trust import TrustModel, make_trust

_LEARNER = "flow-ucb"


@dataclass(frozen=True, kw_only=True)
class Design:
    """What a design file says; None: nothing.

    Attributes:
        states: number or names.
        actions: number or names.
        steps: number or names.
        trust: ``model`` and the options of `make_trust`.
        learner: by its registered name.
        episodes: users in all.
        start_states: where episodes can begin.
        stationary: the dynamics do not depend on the step.
        batches: at most so many recruitments.
        settings: the learner's own.
        table: how tables are read.
        allowed: which actions are possible where (`Vocabulary`); all, if nothing is said.
    """

    states: Any = None
    actions: Any = None
    steps: Any = None
    trust: JsonObject = field(default_factory=dict)
    learner: str = _LEARNER
    episodes: Any = None
    start_states: Any = None
    stationary: Any = False
    batches: Any = None
    settings: JsonObject = field(default_factory=dict)
    table: JsonObject = field(default_factory=dict)
    allowed: Any = ()

    @property
    def blanks(self) -> list[str]:
        """What a first design leaves open, and where it stands."""
        top = [name for name in ("states", "actions", "steps") if getattr(self, name) == []]
        if self.table.get("cuts"):
            top = [name for name in top if name != "states"]
        ranged = ["reward_range in [table]"] if self.table.get("reward_range") == [] else []
        columns = self.table.get("columns")
        roles = columns.items() if isinstance(columns, Mapping) else ()
        return [*top, *ranged, *(f"{role} in [table.columns]" for role, to in roles if to == "")]

    @property
    def names(self) -> dict[str, Any]:
        """States, actions and steps, all of them given."""
        if self.blanks:
            raise InvalidInputError(
                f"Expected a design without blanks, got nothing for {', '.join(self.blanks)}; fill "
                f"in what is public, from the protocol and not from the table."
            )
        found = {"states": self._states(), "actions": self.actions, "steps": self.steps}
        for kind, value in found.items():
            if value is None:
                raise InvalidInputError(
                    f"Expected the {kind} of the problem, got none; they are public and never read "
                    f"off the data: write {kind} = 4, or {kind} = [names], or --{kind}."
                )
        return found

    def _states(self) -> Any:
        cut = self.format.discretizer
        if cut is None:
            return self.states
        if self.states is None:
            return list(cut.names)
        if not isinstance(self.states, list):
            raise InvalidInputError(
                f"Expected states as a list of names beside those of the cuts, got "
                f"{quoted(self.states)}."
            )
        return [*cut.names, *self.states]

    @property
    def format(self) -> TableFormat:
        """How tables are read."""
        return TableFormat.from_dict(self.table)

    @property
    def vocabulary(self) -> Vocabulary:
        """The names of states, actions and steps."""
        return Vocabulary(**self.names, allowed=self.allowed)

    @property
    def trust_model(self) -> TrustModel:
        """Who sees raw episodes, with which (epsilon, delta)."""
        options = dict(self.trust)
        model = options.pop("model", None)
        if not isinstance(model, str):
            got = "nothing" if model is None else quoted(model)
            raise InvalidInputError(
                f"Expected a trust model by name, got {got}; choose central, local, shuffle or "
                f'none: model = "central" in [trust], or --trust central.'
            )
        if model != "none" and "epsilon" not in options:
            raise InvalidInputError(
                f"Expected an epsilon for trust model {model!r}, got none; give one: epsilon = 1, "
                f"or --epsilon 1."
            )
        return make_trust(model, **options)

    def arguments(self) -> dict[str, Any]:
        """The keywords of `start`, without those of the sampler."""
        if self.episodes is None:
            raise InvalidInputError(
                "Expected how many users will take part in all, got nothing; write "
                "episodes = 20000, or --episodes 20000."
            )
        names = self.names
        given = {
            "learner": self.learner,
            "trust": self.trust_model,
            "states": names["states"],
            "actions": names["actions"],
            "horizon": names["steps"],
            "episodes": self.episodes,
            "start_states": self.start_states,
            "stationary": self.stationary,
            "table": self.format.to_dict() or None,
            "allowed": self.allowed,
        }
        if self.batches is not None:
            given["batches"] = self.batches
        taken = [*given, "sampler", "seed"]
        for name in self.settings:
            if name in taken:
                raise InvalidInputError(
                    f"Expected the learner's own settings in [settings], got {name!r}, which "
                    f"belongs outside of it."
                )
        return {**dict(self.settings), **given}


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


def read_design(path: str | Path) -> Design:
    """The design in a TOML file; an unknown key is refused with a suggestion."""
    return design_of(_settings.read_toml(Path(path)))


def design_of(plain: JsonObject) -> Design:
    """The design that plain values describe."""
    return _settings.make(Design, plain, called="a design")
