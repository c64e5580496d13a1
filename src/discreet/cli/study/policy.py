"""`discreet study policy`: what was learnt so far."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._options import Head, Json
from discreet.cli._output import echo_json, say
from discreet.cli.study._shared import StudyFile, opened, policy_table, promise_of


def command(
    file: StudyFile,
    output: Annotated[Path | None, typer.Option(help="Write it here, .json or .csv.")] = None,
    head: Head = None,
    json: Json = False,
) -> None:
    """The greedy policy of all that was released; reading it costs no privacy."""
    from discreet.study.files import rows_of

    study = opened(file, head, to_read=True)
    found = study.answer
    rows = rows_of(found, study.names)
    if output is not None:
        study.save_policy(output)
    if json:
        echo_json(
            {
                "study": str(file),
                **promise_of(study.guarantee),
                "value": found.value._asdict(),
                "policy": rows,
                "output": None if output is None else str(output),
                "head": study.head,
            }
        )
    elif output is None:
        policy_table(f"Policy of {file}, worth {found.value}", study, rows)
    else:
        say(f"{output}: worth {found.value}. {study.guarantee}")
