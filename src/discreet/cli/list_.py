"""`discreet list`: everything that has a name."""

from collections.abc import Callable
from typing import Annotated

import typer

from discreet._types import Plain
from discreet.cli._console import echo_json, print_table
from discreet.errors import UnknownNameError

Section = list[dict[str, Plain]]


def command(
    section: Annotated[
        str, typer.Argument(help="environments, learners, mechanisms or experiments; all if none.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """List environments, learners, mechanisms and experiments, each with one line."""
    sections: dict[str, Callable[[], Section]] = {
        "environments": _environments,
        "learners": _learners,
        "mechanisms": _mechanisms,
        "experiments": _experiments,
    }
    if section and section not in sections:
        raise UnknownNameError("section", section, sections)
    found = {title: sections[title]() for title in ([section] if section else sections)}
    if json:
        echo_json(found)
        return
    for title, entries in found.items():
        if entries:
            columns = list(entries[0])
            rows = [[_text(entry[column]) for column in columns] for entry in entries]
            print_table(title.capitalize(), columns, rows)


def _text(value: Plain) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={default}" for name, default in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _environments() -> Section:
    from discreet.mdp.environments.registry import environment_names, get_environment

    specs = [get_environment(name) for name in environment_names(optional=True)]
    return [{"name": s.name, "summary": s.summary, "parameters": s.parameters} for s in specs]


def _learners() -> Section:
    from discreet.learners.registry import get_learner, learner_names

    specs = [get_learner(name) for name in learner_names()]
    return [
        {"name": s.name, "summary": s.summary, "rhythm": s.rhythm, "trust": list(s.trusts)}
        for s in specs
    ]


def _mechanisms() -> Section:
    from discreet.privacy.trust import TRUST_MODELS

    entries: dict[tuple[str, str], dict[str, Plain]] = {}
    rhythms: dict[tuple[str, str], list[str]] = {}
    for trust, model in TRUST_MODELS.items():
        for rhythm, table in model.mechanisms.items() if trust != "none" else ():
            for name, where in table.items():
                key = (trust, name)
                rhythms.setdefault(key, []).append(rhythm)
                if key not in entries:
                    entries[key] = {"trust": trust, "name": name, "rhythms": rhythms[key]}
                    entries[key]["summary"] = _first_line(where)
    return list(entries.values())


def _first_line(where: str) -> str:
    """The first line of a mechanism's docstring."""
    import importlib
    import inspect

    module, _, attribute = where.partition(":")
    try:
        mechanism = getattr(
            importlib.import_module(f"discreet.privacy.mechanisms.{module}"), attribute
        )
    except (ImportError, AttributeError):
        return "(not available)"
    return (inspect.getdoc(mechanism) or "").split("\n")[0]


def _experiments() -> Section:
    from discreet.lab.spec import experiment_names, load_experiment

    return [{"name": name, "summary": load_experiment(name).title} for name in experiment_names()]
