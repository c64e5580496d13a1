"""What a study is about, as `start` was told it, and what it guarantees to every user."""

import dataclasses
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Literal, TypeAlias

import numpy as np

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet._types import BoolArray, JsonObject, Plain
from discreet.data.layout import Layout, TableFormat
from discreet.data.vocabulary import Vocabulary, key, nearest
from discreet.errors import InvalidInputError, StudyError, UnsupportedError
from discreet.learners.base import Problem
from discreet.learners.learn import check_trust
from discreet.learners.registry import LearnerSpec, get_learner, learner_names, listing
from discreet.privacy import trust as trust_models
from discreet.privacy.guarantee import Guarantee, said
from discreet.privacy.trust import TrustModel

OPERATOR = (
    "every well-formed episode counts, up to the step at which it leaves the policy",
    "the trusted operator may be shown how many people left a policy; the number is not stored",
)
"""What a central study assumes of who runs it."""
CRASH = (
    "if a crash interrupts `tell`, its release is dropped; a copy of the disk that was made before "
    "the study is opened again may show one more release of those people"
)
"""What a central study assumes of a crash: its log can hold a release that was not counted."""
PUBLIC = "who took part, and how many in each batch, is public: that is not protected"


def study_guarantee(released: Guarantee, *, secure: bool, releases: int = 1) -> Guarantee:
    """The guarantee of a study from that of one release.

    Args:
        released: of one release.
        secure: whether the noise protects real people.
        releases: how many a user can be in: epsilons and deltas add up.
    """
    fields = {f.name: getattr(released, f.name) for f in dataclasses.fields(released)}
    if released.notion != "none":
        operator = (*OPERATOR, CRASH) if released.notion == "JDP" else ()
        again = (f"a user may have reported {releases} times: all are charged",)
        extra = (PUBLIC, *(again if releases > 1 else ()))
        fields["assumptions"] = (*released.assumptions, *operator, *extra)
        fields["epsilon"] = releases * released.epsilon
        fields["delta"] = min(1.0, releases * released.delta)
    return said(Guarantee(**{**fields, "simulated": not secure}))


SamplerName = Literal["secure", "simulation"]
Names: TypeAlias = "int | Iterable[str | int]"
"""How many there are, or what they are called."""

_MOST_CELLS = 10**9
"""Transition counters of a problem: eight gigabytes for one array of them."""
_MOST_EPISODES = 10**12


def make_config(
    *,
    learner: str,
    trust: TrustModel,
    names: Mapping[str, Names],
    episodes: int,
    start_states: Iterable[int | str] | None,
    stationary: bool,
    sampler: SamplerName,
    seed: int | None,
    settings: Mapping[str, object],
    table: JsonObject | None = None,
    allowed: Sequence[JsonObject] = (),
) -> dict[str, Plain]:
    """Plain values of everything that `start` takes; refuses what cannot be."""
    _validate.choice(("secure", "simulation"), sampler=sampler)
    if sampler == "secure" and seed is not None:
        raise StudyError(
            f"A secure study cannot be seeded, got seed={seed!r}; leave out seed, or rehearse with "
            f"sampler='simulation'."
        )
    if seed is not None:
        _validate.count(0, seed=seed)
    trust_models.check_trust_model(trust)
    if getattr(trust, "separation", 1) > 1:
        raise StudyError(
            f"A study counts how often people come, not how far apart, got "
            f"separation={getattr(trust, 'separation', 1)}; leave it out."
        )
    _validate.truth(stationary=stationary)
    _validate.count(episodes=episodes)
    _validate.at_most(_MOST_EPISODES, "there are not so many people", episodes=episodes)
    if not isinstance(learner, str):
        raise InvalidInputError(f"Expected the name of a learner, got learner={learner!r}.")
    given = {kind: _plain_names(value) for kind, value in names.items()}
    vocabulary = _vocabulary(given | ({"allowed": allowed} if allowed else {}))
    for kind, value in given.items():  # as they are spelled from here on
        given[kind] = value if isinstance(value, int) else list(getattr(vocabulary, kind))
    if allowed:
        given["allowed"] = vocabulary.to_dict()["allowed"]
    form = None if table is None else TableFormat.from_dict(table)
    if form is not None:
        Layout(vocabulary, form)  # checked now, with the names, and not at the first table
    return {
        "learner": learner,
        "trust": {"model": type(trust).__name__, **dataclasses.asdict(trust)},
        "names": given,
        "episodes": int(episodes),
        "start_states": list[Plain](start_numbers(start_states, vocabulary, form)),
        "stationary": stationary,
        "sampler": sampler,
        "seed": secrets.randbits(63) if seed is None else int(seed),
        "settings": _plain_settings(settings),
        **({} if form is None else {"table": _plain_settings(form.to_dict())}),
    }


def vocabulary_of(config: JsonObject) -> Vocabulary:
    """The names of states, actions and steps."""
    return Vocabulary(**config["names"])


def table_of(config: JsonObject) -> TableFormat:
    """How tables of episodes are read; as usual if `start` was not told."""
    return TableFormat.from_dict(config.get("table", {}))


def trust_of(config: JsonObject) -> TrustModel:
    fields = dict(config["trust"])
    trust: TrustModel = getattr(trust_models, fields.pop("model"))(**fields)
    return trust


def learner_of(config: JsonObject) -> LearnerSpec:
    """The learner; one that asks for no batches is refused, with those that do."""
    spec, trust = get_learner(config["learner"]), trust_of(config)
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
        f"learners under trust {trust.name!r} are {', '.join(known)}; whoever wants a new policy "
        f"after few people tells few at a time."
    )


def problem_of(config: JsonObject) -> Problem:
    """What the learner may know."""
    shape = vocabulary_of(config).shape
    begin: BoolArray = np.zeros(shape.states, np.bool_)
    begin[list(config["start_states"])] = True
    return Problem(shape, config["episodes"], begin, config["stationary"])


def generators(config: JsonObject) -> dict[str, np.random.Generator]:
    """For ties, for rehearsed noise and for the rounding of rewards."""
    seeds = RunSeeds(config["seed"])
    return {
        "policy": seeds.generator("policy"),
        "noise": seeds.generator("noise"),
        "rounding": seeds.generator("environment"),
    }


def _plain_names(given: Names) -> Plain:
    """A number stays a number; names become a list, read once."""
    if isinstance(given, Integral) and not isinstance(given, bool):
        return int(given)
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        return given  # type: ignore[return-value] # refused by Vocabulary, in its words
    return list(given)


def _vocabulary(given: Mapping[str, Plain]) -> Vocabulary:
    vocabulary = Vocabulary(**given)  # type: ignore[arg-type]
    shape = vocabulary.shape
    cells = shape.states**2 * shape.actions * shape.horizon
    if cells > _MOST_CELLS:
        raise InvalidInputError(
            f"Expected states²·actions·horizon <= {_MOST_CELLS:.0e} counters, got {cells:.3g} "
            f"({shape.states} states, {shape.actions} actions, horizon {shape.horizon}); merge "
            f"states."
        )
    return vocabulary


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


def _plain_settings(settings: Mapping[str, object]) -> dict[str, Plain]:
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
