"""Options that describe a problem: a design file, and what is typed instead of it or over it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from discreet._types import JsonObject, Plain
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet.study.design import Design

Text = str | None
"""An option that may be left out."""


@dataclass(frozen=True)
class DesignOptions:
    """A design file; every other option holds instead of what the file says."""

    design: Annotated[
        Path | None, Option(help="A TOML file with names, trust and table (see the docs).")
    ] = None
    states: Annotated[Text, Option(help="Number of states, or names separated by commas.")] = None
    actions: Annotated[Text, Option(help="Number of actions, or names separated by commas.")] = None
    steps: Annotated[Text, Option(help="Steps per episode, or names separated by commas.")] = None
    start: Annotated[
        Text, Option(help="States in which episodes can begin, if that is public.")
    ] = None
    stationary: Annotated[
        bool, Option("--stationary", help="The dynamics do not depend on the step.")
    ] = False
    trust: Annotated[Text, Option(help="central, local, shuffle or none.")] = None
    epsilon: Annotated[float | None, Option(help="Of the guarantee.")] = None
    delta: Annotated[float | None, Option(help="Of the guarantee; 0: pure.")] = None
    mechanism: Annotated[Text, Option(help="Of the release (the best one).")] = None
    honest: Annotated[
        float | None, Option(help="Shuffle: fraction of users who add their noise.")
    ] = None

    def read(self, more: "dict[str, Any] | None" = None) -> "Design":
        """The file's design with what was typed; ``more`` is what the command adds."""
        from discreet.study.design import Design, read_design

        written = Design() if self.design is None else read_design(self.design)
        given: dict[str, Any] = {
            "states": _names(self.states),
            "actions": _names(self.actions),
            "steps": _names(self.steps),
            "start_states": None if self.start is None else _list(self.start),
            "stationary": self.stationary or None,
            **(more or {}),
        }
        given["trust"] = self._trust(dict(written.trust))
        given["settings"] = {**written.settings, **given.get("settings", {})}
        typed = {name: value for name, value in given.items() if value is not None}
        return replace(written, **typed)

    def _trust(self, written: JsonObject) -> dict[str, Plain]:
        """Another trust model has other options: those of the file are then not its own."""
        if self.trust is not None and self.trust != written.get("model"):
            kept = () if self.trust == "none" else ("epsilon", "delta")
            shared = {name: value for name, value in written.items() if name in kept}
            written = {"model": self.trust, **shared}
        names = ("epsilon", "delta", "mechanism", "honest")
        given = {name: getattr(self, name) for name in names}
        return {**written, **{name: value for name, value in given.items() if value is not None}}


@dataclass(frozen=True)
class Rehearsal:
    """Options on whom the noise protects."""

    rehearse: Annotated[
        bool,
        Option("--rehearse", help="Seeded noise for a rehearsal: it protects nobody."),
    ] = False
    seed: Annotated[int | None, Option(help="Of a rehearsal.")] = None

    def arguments(self) -> dict[str, Any]:
        """The keywords of `discreet.start` and `discreet.fit`."""
        if self.seed is not None and not self.rehearse:
            raise InvalidInputError(
                f"Noise that protects people cannot be seeded, got --seed {self.seed}; leave it "
                f"out, or give --rehearse."
            )
        return {"sampler": "simulation" if self.rehearse else "secure", "seed": self.seed}


def _names(text: str | None) -> Any:
    """A number, or names."""
    from discreet.cli._options import parse_value

    if text is None:
        return None
    if "," in text:
        return _list(text)
    value = parse_value(text)
    return [text.strip()] if isinstance(value, str) else value


def _list(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
