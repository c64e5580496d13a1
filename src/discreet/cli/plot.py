"""`discreet plot`: figures from a result folder."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._console import echo_json, say


def command(
    folder: Annotated[Path, typer.Argument(help="A result folder of `discreet run`.")],
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Draw the figures of a finished experiment as SVG and PNG."""
    from discreet.lab.report import write_figures
    from discreet.lab.results import load

    paths = write_figures(load(folder))
    if json:
        echo_json({"figures": [str(path) for path in paths]})
        return
    for path in paths:
        say(str(path))
