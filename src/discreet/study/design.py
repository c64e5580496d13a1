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

    [table]                             # how tables are read: see `TableFormat`
    columns = {user = "patient", step = "visit"}
    reward_range = [0, 10]
    padding = {end = "lost"}

With ``[[table.cuts]]`` the states are those of the cut points, and ``states`` lists others besides.
`discreet.fit` reads the same file: names, trust, start states and the table.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet import _settings
from discreet._spelling import quoted
from discreet._types import JsonObject
from discreet.data.tables import TableFormat
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

    @property
    def names(self) -> dict[str, Any]:
        """States, actions and steps, all of them given."""
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
        return Vocabulary(**self.names)

    @property
    def trust_model(self) -> TrustModel:
        """Who sees raw episodes, with which (epsilon, delta)."""
        options = dict(self.trust)
        model = options.pop("model", None)
        if not isinstance(model, str):
            raise InvalidInputError(
                f"Expected a trust model by name, got {quoted(model)}; choose central, local, "
                f"shuffle or none."
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


def read_design(path: str | Path) -> Design:
    """The design in a TOML file; an unknown key is refused with a suggestion."""
    return design_of(_settings.read_toml(Path(path)))


def design_of(plain: JsonObject) -> Design:
    """The design that plain values describe."""
    return _settings.make(Design, plain, called="a design")
