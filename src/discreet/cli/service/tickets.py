"""`discreet service tickets`: for the enroller to hand out, and their digests for the shuffler."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._options import Json
from discreet.cli._output import echo_json, need_extra, say
from discreet.cli.service._shared import PACKAGES

Folder = Annotated[
    Path, typer.Argument(help="The folder that `init` made, or the enroller's part of it.")
]


def command(
    folder: Folder,
    count: Annotated[int, typer.Option(help="How many more.")],
    json: Json = False,
) -> None:
    """Make tickets for the enroller, and their digests for the shuffler."""
    need_extra(PACKAGES, "service")
    from discreet.service.setup import make_tickets

    path, digests = make_tickets(folder, count)
    if json:
        echo_json({"tickets": str(path), "digests": str(digests), "count": count})
        return
    say(f"{count} more tickets in {path}: each participant gets one, nobody else sees them.")
    if digests.parent == path.parent:
        say(f"Give {digests} to the shuffler, in place of its own; it reads it at a start.")
    else:
        say(f"Their digests are in {digests}; the shuffler reads them at its next start.")
