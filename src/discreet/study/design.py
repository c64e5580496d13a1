"""The design of a study as a TOML file: what `start_study` is told, before anybody is asked.

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
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from discreet import _settings, _validate
from discreet._seeds import RunSeeds
from discreet._spelling import quoted
from discreet._types import BoolArray, JsonObject, Plain
from discreet.data.layout import Layout, TableFormat
from discreet.data.vocabulary import Vocabulary, key, nearest
from discreet.errors import InvalidInputError, StudyError, UnsupportedError
from discreet.learners.base import PublicFacts
from discreet.learners.learn import check_trust
from discreet.learners.registry import LearnerSpec, get_learner, learner_names, listing
from discreet.privacy import trust as trust_models
from discreet.privacy.trust import TrustModel, make_trust

_LEARNER = "flow-ucb"
_MOST_COUNTERS = 10**9
"""Of transitions of a problem: eight gigabytes for one array of them."""
_MOST_EPISODES = 10**12


@dataclass(frozen=True, kw_only=True)
class Design:
    """What a study is about: a design file, what `start_study` is told, and what a study keeps.

    None: nobody said. `checked` gives what a study keeps.

    Attributes:
        states: number or names.
        actions: number or names.
        steps: number or names.
        trust: a trust model, or ``model`` and the options of `make_trust`.
        learner: by its registered name.
        episodes: users in all.
        start_states: where episodes can begin.
        stationary: the dynamics do not depend on the step.
        batches: at most so many recruitments.
        settings: the learner's own.
        table: how tables are read.
        allowed: which actions are possible where (`Vocabulary`); all, if nothing is said.
        sampler: ``"secure"`` protects people; ``"simulation"`` is for rehearsals. No file says it.
        seed: of a rehearsal; of a secure study it breaks ties only.
    """

    states: Any = None
    actions: Any = None
    steps: Any = None
    trust: Any = field(default_factory=dict)
    learner: str = _LEARNER
    episodes: Any = None
    start_states: Any = None
    stationary: Any = False
    batches: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    table: JsonObject = field(default_factory=dict)
    allowed: Any = ()
    sampler: Any = "secure"
    seed: Any = None

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
        whole = all(name in self.states for name in cut.names)
        return self.states if whole else [*cut.names, *self.states]

    @cached_property
    def format(self) -> TableFormat:
        """How tables are read."""
        return TableFormat.from_dict(self.table)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names of states, actions and steps."""
        return Vocabulary(**self.names, allowed=self.allowed)

    @cached_property
    def trust_model(self) -> TrustModel:
        """Who sees raw episodes, with which (epsilon, delta)."""
        if not isinstance(self.trust, Mapping):
            trust_models.check_trust_model(self.trust)
            given: TrustModel = self.trust
            return given
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

    @cached_property
    def spec(self) -> LearnerSpec:
        """The learner; one that asks for no batches is refused, with those that do."""
        if not isinstance(self.learner, str):
            raise InvalidInputError(
                f"Expected the name of a learner, got learner={self.learner!r}."
            )
        spec, trust = get_learner(self.learner), self.trust_model
        if spec.schedule == "batch":
            check_trust(spec, trust)
            return spec
        known = [
            name
            for name in learner_names()
            if listing(name).schedule == "batch" and trust.name in listing(name).trusts
        ]
        raise UnsupportedError(
            f"Learner {spec.name!r} runs in simulations only: a study releases batch by batch. Its "
            f"learners under trust {trust.name!r} are {', '.join(known)}; whoever wants a new "
            f"policy after few people tells few at a time."
        )

    @cached_property
    def starts(self) -> list[int]:
        """Numbers of the states in which episodes can begin."""
        return start_numbers(self.start_states, self.vocabulary, self.format)

    @property
    def problem(self) -> PublicFacts:
        """What the learner may know."""
        shape = self.vocabulary.shape
        begin: BoolArray = np.zeros(shape.states, np.bool_)
        begin[self.starts] = True
        return PublicFacts(shape, self.episodes, begin, self.stationary)

    def generators(self) -> dict[str, np.random.Generator]:
        """For ties, for rehearsed noise and for the rounding of rewards."""
        seeds = RunSeeds(self.seed)
        purposes = {"policy": "policy", "noise": "noise", "rounding": "environment"}
        return {name: seeds.generator(purpose) for name, purpose in purposes.items()}

    def checked(self) -> Self:
        """The same as a study keeps it, everything resolved; what cannot be is refused."""
        self._check_numbers()
        kinds = ("states", "actions", "steps")
        read: dict[str, Any] = {kind: _plain_names(getattr(self, kind)) for kind in kinds}
        given = replace(self, **read)
        vocabulary, shape = given.vocabulary, given.vocabulary.shape
        cells = shape.states**2 * shape.actions * shape.horizon
        if cells > _MOST_COUNTERS:
            raise InvalidInputError(
                f"Expected states²·actions·horizon <= {_MOST_COUNTERS:.0e} counters, got "
                f"{cells:.3g} ({shape.states} states, {shape.actions} actions, horizon "
                f"{shape.horizon}); merge states."
            )
        if given.table:
            Layout(vocabulary, given.format)  # now, with the names, and not at the first table
        names: dict[str, Any] = {
            kind: value if isinstance(value, int) else list(getattr(vocabulary, kind))
            for kind, value in given.names.items()
        }
        separation = self.trust_model.separation
        if separation > 1:
            raise StudyError(
                f"A study counts how often people come, not how far apart, got "
                f"separation={separation}; leave it out."
            )
        settings = dict(self.settings)
        if self.batches is not None:
            settings["batches"] = self.batches
        return replace(
            given,
            **names,
            trust=given.trust_model,
            episodes=int(self.episodes),
            start_states=[vocabulary.states[i] for i in given.starts],
            batches=None,
            settings=_plain(settings),
            table=_plain(given.format.to_dict()),
            allowed=vocabulary.to_dict().get("allowed", ()),
            seed=secrets.randbits(63) if self.seed is None else int(self.seed),
        )

    def _check_numbers(self) -> None:
        _validate.choice(("secure", "simulation"), sampler=self.sampler)
        if self.sampler == "secure" and self.seed is not None:
            raise StudyError(
                f"A secure study cannot be seeded, got seed={self.seed!r}; leave out seed, or "
                f"rehearse with sampler='simulation'."
            )
        if self.seed is not None:
            _validate.count(0, seed=self.seed)
        _validate.truth(stationary=self.stationary)
        if self.episodes is None:
            raise InvalidInputError(
                "Expected how many users will take part in all, got nothing; write "
                "episodes = 20000, or --episodes 20000."
            )
        _validate.count(episodes=self.episodes)
        _validate.at_most(_MOST_EPISODES, "there are not so many people", episodes=self.episodes)
        for name in self.settings:
            if name in {item.name for item in fields(self)} and name != "batches":
                raise InvalidInputError(
                    f"Expected the learner's own settings in [settings], got {name!r}, which "
                    f"belongs outside of it."
                )

    def to_dict(self) -> dict[str, Plain]:
        """Plain values of a `checked` design, as a study's file has them."""
        trust, names = self.trust_model, dict(self.names)
        if self.allowed:
            names["allowed"] = self.allowed
        return {
            "learner": self.learner,
            "trust": {"model": type(trust).__name__, **asdict(trust)},
            "names": names,
            "episodes": self.episodes,
            "start_states": list[Plain](self.starts),
            "stationary": self.stationary,
            "sampler": self.sampler,
            "seed": self.seed,
            "settings": dict(self.settings),
            **({"table": dict(self.table)} if self.table else {}),
        }

    @classmethod
    def from_dict(cls, plain: JsonObject) -> Self:
        """The inverse of `to_dict`."""
        kept, trust = dict(plain), dict(plain["trust"])
        names = kept.pop("names")
        kept["trust"] = getattr(trust_models, trust.pop("model"))(**trust)
        states = Vocabulary(**names).states
        kept["start_states"] = [states[i] for i in plain["start_states"]]
        return cls(**kept, **names)


SamplerName = Literal["secure", "simulation"]
Names: TypeAlias = "int | Iterable[str | int]"
"""How many there are, or what they are called."""


def read_design(path: str | Path) -> Design:
    """The design in a TOML file; an unknown key is refused with a suggestion."""
    return design_of(_settings.read_toml(Path(path)))


def design_of(plain: JsonObject) -> Design:
    """The design that plain values describe."""
    _settings.checked("trust", plain.get("trust", {}), JsonObject)
    return _settings.make(Design, plain, called="a design", sampler="secure", seed=None)


def _plain_names(given: Names) -> Plain:
    """A number stays a number; names become a list, read once."""
    if isinstance(given, Integral) and not isinstance(given, bool):
        return int(given)
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        return given  # type: ignore[return-value] # refused by Vocabulary, in its words
    return list(given)


def start_numbers(
    given: Iterable[int | str] | None, vocabulary: Vocabulary, form: TableFormat | None
) -> list[int]:
    """Numbers of the states in which episodes can begin; all of them if that is not public."""
    if given is None:
        return list(range(len(vocabulary.states)))
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidInputError(
            f"Expected start_states as a list of states, got start_states={given!r}."
        )
    numbers = vocabulary.numbers("states")
    found = list[int]()
    for state in given:
        name = key(state)
        if name is None or name not in numbers:
            raise InvalidInputError(
                f"Expected start states among the {len(numbers)} states, got {state!r}; "
                f"{nearest(state, vocabulary.states)}"
            )
        found.append(numbers[name])
    if not found:
        raise InvalidInputError("Expected at least one start state, got none; name one, or None.")
    late = None if form is None or form.late is None else form.late.state
    if late is not None and numbers.get(str(key(late))) not in found:
        raise InvalidInputError(
            f"Expected start states with {late!r}, in which whoever comes late begins, got "
            f"{[vocabulary.states[i] for i in found]}; add it to start_states."
        )
    return found


def _plain(settings: Mapping[str, object]) -> dict[str, Plain]:
    for name, value in settings.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"Expected settings as numbers, text or lists, which a file can keep, got "
                f"{name}={value!r}."
            ) from None
    plain: dict[str, Plain] = json.loads(json.dumps(dict(settings)))
    return plain
