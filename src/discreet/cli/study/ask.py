"""`discreet study ask`: the policy for the next users, and what their devices run."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._options import Head, Json
from discreet.cli._output import echo_json, say, warn
from discreet.cli.study._shared import StudyFile, counted, opened, policy_table, promise_of

if TYPE_CHECKING:
    from discreet.study.study import Study


def command(
    file: StudyFile,
    policy: Annotated[
        Path | None, typer.Option(help="Write the policy here, .json or .csv.")
    ] = None,
    encoder: Annotated[
        Path | None,
        typer.Option(help="Local and shuffle: write what devices need here, .json."),
    ] = None,
    head: Head = None,
    json: Json = False,
) -> None:
    """What the next users are asked to do; the same until they have been told."""
    study = opened(file, head, to_read=True)
    _check(study, encoder)
    if study.key_file is not None and not study.key_file.is_file():
        warn(
            f"Note: the study's key {study.key_file} is not there; whoever is asked cannot be "
            f"counted."
        )
    if policy is not None:
        study.save_question(policy)
    if encoder is not None:
        from discreet._files import write_text

        described = study.encoder().to_dict()
        write_text(encoder, json_text.dumps(described, indent=1) + "\n")
    if json:
        echo_json(_plain(study, policy, encoder))
    else:
        _show(study, policy, encoder)


def _check(study: "Study", encoder: Path | None) -> None:
    """Nothing is written before everything can be."""
    from discreet.errors import StudyError

    study.ask()
    if encoder is not None and not study.encoded:
        raise StudyError(
            "This study is central: its users hand over episodes and need no encoder; leave out "
            "--encoder."
        )


def _say_who_runs(study: "Study") -> None:
    """Not every mechanism has code for phones."""
    from discreet.study.files import on_devices

    if not on_devices(study.encoder()):
        shuffled = study.guarantee.notion == "SDP"
        names = '"classes"' if shuffled else '"one-step" or "randomized-response"'
        say(
            f"This mechanism needs the whole library where people are. For phones and pages choose "
            f"mechanism = {names} in [trust]."
        )


def _plain(study: "Study", policy: Path | None, encoder: Path | None) -> dict[str, Any]:
    from discreet.study.files import how, question_rows

    asked = study.ask()
    written = {"policy": policy, "encoder": encoder}
    return {
        "study": str(study.path),
        **promise_of(study.guarantee),
        "batch": study.batches,
        "users": study.batch_size,
        "token": study.token,
        "how": how(asked),
        "policy": question_rows(asked, study.names),
        "encoder": dict(study.encoder().to_dict()) if study.encoded else None,
        "written": {name: str(path) for name, path in written.items() if path is not None},
        "head": study.head,
    }


def _show(study: "Study", policy: Path | None, encoder: Path | None) -> None:
    from discreet.study.files import how, question_rows

    asked, users = study.ask(), study.batch_size
    rows = question_rows(asked, study.names)
    title = f"Batch {study.batches} of {study.path}: {counted(users, 'user')}"
    if policy is None:
        policy_table(title, study, rows)
    else:
        say(f"{title}. Policy: {policy}. {study.guarantee}")
    say(f"How: {how(asked)}.")
    if encoder is not None:
        say(f"Encoder for their devices: {encoder}")
        _say_who_runs(study)
    if study.encoded:
        say(f"Token, to be told with the reports: {study.token}")
