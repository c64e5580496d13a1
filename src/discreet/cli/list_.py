"""`discreet list`: everything that has a name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options import Json
from discreet.cli.output import Table, answer
from discreet.errors import UnknownNameError

if TYPE_CHECKING:
    from discreet._types import Plain

    Section = list[dict[str, Plain]]


def command(
    section: Annotated[
        str,
        typer.Argument(
            help="environments, learners, mechanisms, experiments or papers. Left out: all."
        ),
    ] = "",
    json: Json = False,
) -> None:
    """List environments, learners, mechanisms, experiments and papers, each with one line."""
    sections: dict[str, Callable[[], Section]] = {
        "environments": _environments,
        "learners": _learners,
        "mechanisms": _mechanisms,
        "experiments": _experiments,
        "papers": lambda: _papers(short=not json),
    }
    if section and section not in sections:
        raise UnknownNameError("section", section, sections)
    found = {title: sections[title]() for title in ([section] if section else sections)}
    shown = [
        Table(title.capitalize(), [*entries[0]], [[*map(_text, one.values())] for one in entries])
        for title, entries in found.items()
        if entries
    ]
    answer(found, shown, json=json)


def _text(value: "Plain") -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={default}" for name, default in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _environments() -> "Section":
    from discreet.mdp.environments.registry import environment_names, listing

    found = map(listing, environment_names(optional=True))
    return [{"name": e.name, "summary": e.summary, "parameters": e.parameters} for e in found]


def _learners() -> "Section":
    from discreet.learners.registry import learner_names, listing

    return [
        {"name": e.name, "summary": e.summary, "schedule": e.schedule, "trust": list(e.trusts)}
        for e in map(listing, learner_names())
    ]


def _mechanisms() -> "Section":
    from discreet.privacy.mechanisms.registry import everything

    entries: dict[tuple[str, str], dict[str, Plain]] = {}
    schedules: dict[tuple[str, str], list[str]] = {}
    for mechanism in everything():
        key = (mechanism.trust, mechanism.name)
        if mechanism.trust == "none":
            continue
        schedules.setdefault(key, []).append(mechanism.schedule)
        if key not in entries:
            entries[key] = {"trust": key[0], "name": key[1], "schedules": schedules[key]}
            entries[key]["summary"] = mechanism.summary.replace("``", "")
    return list(entries.values())


def _experiments() -> "Section":
    from discreet.lab.spec import titles

    return [{"name": name, "summary": title} for name, title in titles().items()]


def _papers(*, short: bool) -> "Section":
    """All that is known, or one line each for people: the claim and what is delivered instead."""
    from discreet.papers.presets import PRESETS
    from discreet.privacy.guarantee import rounded_up

    if not short:
        return [preset.to_dict() for preset in PRESETS.values()]

    def pair(epsilon: float | None, delta: float) -> str:
        if epsilon is None:
            return "nothing"
        return f"{rounded_up(epsilon)}, {rounded_up(delta, 3)}"

    return [
        {
            "name": preset.name,
            "algorithm": preset.algorithm,
            "trust": preset.trust,
            "mechanism": preset.mechanism,
            "claims": pair(preset.reference.epsilon, preset.reference.delta),
            "delivers": pair(preset.delivers.epsilon, preset.delivers.delta),
            "deviations": len(preset.deviations),
        }
        for preset in PRESETS.values()
    ]
