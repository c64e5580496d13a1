"""`discreet list`: everything that has a name."""

from typing import Annotated

import typer

from discreet.cli import _roster
from discreet.cli._options import Json


def command(
    section: Annotated[
        str,
        typer.Argument(
            help="environments, learners, mechanisms, experiments or papers; all if none."
        ),
    ] = "",
    json: Json = False,
) -> None:
    """List environments, learners, mechanisms, experiments and papers, each with one line."""
    _roster.show(section, as_json=json)
