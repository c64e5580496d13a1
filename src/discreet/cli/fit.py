"""`discreet fit`: a better policy from a table of logged episodes, by one private release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._console import Progress, echo_json, say
from discreet.cli._options import Json, grouped
from discreet.cli.study._design import DesignOptions, Rehearsal
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet._types import BoolArray
    from discreet.mdp.vocabulary import Vocabulary
    from discreet.offline.result import Fit
    from discreet.study.design import Design


def logged(
    table: Annotated[
        Path, typer.Argument(help="Logged episodes, CSV or Parquet.", show_default=False)
    ],
    design: DesignOptions,
    rehearsal: Rehearsal,
    width: Annotated[
        float, typer.Option(help="Standard deviations of pessimism; below 2 was not found safe.")
    ] = 2.0,
    output: Annotated[
        Path | None, typer.Option(help="Write the policy here, .json or .csv.")
    ] = None,
    json: Json = False,
) -> None:
    """A policy that is better than what people do today, or DEFERs to it, by one release."""
    written = design.read()
    _check_output(output)
    with Progress(quiet=json, verb="reading") as progress:
        progress(str(table))
        found = _fit(written, table, {**rehearsal.arguments(), "width": width}, progress)
    if output is not None:
        found.save_policy(output)
    if json:
        echo_json({**found.to_dict(), "policy": found.rows(), "output": output and str(output)})
        return
    for line in str(found).splitlines():
        say(line)
    if output is not None:
        say(f"Policy: {output}")


command = grouped(logged)


def _check_output(output: Path | None) -> None:
    """Known before the release, which is made once."""
    if output is None:
        return
    if output.suffix.lower() not in (".json", ".csv"):
        raise InvalidInputError(f"Expected --output to end in .json or .csv, got {str(output)!r}.")
    if output.is_dir() or not output.parent.is_dir():
        raise InvalidInputError(
            f"Expected --output to be a file in a folder that exists, got {str(output)!r}."
        )


def _start(design: "Design", names: "Vocabulary") -> "BoolArray":
    import numpy as np

    from discreet.study.config import start_numbers

    mask = np.zeros(len(names.states), np.bool_)
    mask[start_numbers(design.start_states, names)] = True
    return mask


def _fit(design: "Design", table: Path, options: dict[str, Any], progress: Progress) -> "Fit":
    """Everything public is checked before the table is read."""
    from discreet.offline.fit import fit
    from discreet.offline.release import Randomness, check_trust

    trust, names = design.trust_model, design.vocabulary
    check_trust(trust)
    Randomness.of(options["sampler"], options["seed"])
    start = None if design.start_states is None else _start(design, names)
    form = design.format
    form.layout(names)
    episodes, _ = form.read(table, names)
    progress(f"{len(episodes):,} episodes of {table}")
    stationary = design.stationary
    return fit(episodes, trust, vocabulary=names, start=start, stationary=stationary, **options)
