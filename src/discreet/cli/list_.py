"""`discreet list`: everything that has a name."""

from typing import Annotated

import typer

from discreet.cli import _roster
from discreet.cli._options import Json


def command(
    section: Annotated[
        str, typer.Argument(help="environments, learners, mechanisms or experiments; all if none.")
    ] = "",
    json: Json = False,
) -> None:
    """List environments, learners, mechanisms and experiments, each with one line."""
    _roster.show(section, as_json=json)
