"""`discreet report`: one self-contained HTML page from a result folder."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._console import echo_json, say


def command(
    folder: Annotated[Path, typer.Argument(help="A result folder of `discreet run`.")],
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Write the report page of a finished experiment."""
    from discreet.lab.report import write_report
    from discreet.lab.results import load

    path = write_report(load(folder))
    if json:
        echo_json({"report": str(path)})
    else:
        say(str(path))
