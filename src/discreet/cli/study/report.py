"""`discreet study report`: the dossier, one page for the reviewer who must sign."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._options import Head, Json
from discreet.cli._output import Progress, echo_json, say
from discreet.cli.study._shared import StudyFile, opened, promise_of


def command(
    file: StudyFile,
    output: Annotated[
        Path | None, typer.Option(help="The page, .html; beside the study if left out.")
    ] = None,
    head: Head = None,
    json: Json = False,
) -> None:
    """Write the dossier: promise, trust, noise, certificate, audit, policy, ledger, on one page."""
    study = opened(file, head, to_read=True)
    page = file.with_suffix(".html") if output is None else output
    with Progress(quiet=json) as progress:
        study.report(page, progress)
    if json:
        answer = {"study": str(file), "report": str(page), **promise_of(study.guarantee)}
        echo_json({**answer, "head": study.head})
        return
    say(f"{page}: {study.guarantee}")
    say(f"It is about the head {study.head}")
