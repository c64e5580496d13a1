"""`discreet study tell`: what the users of a batch sent, counted once or not at all."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._options import Head, Json
from discreet.cli._output import Progress, say, warn
from discreet.cli.study._shared import StudyFile, answer, counted, facts_of, opened, worth
from discreet.errors import StudyError

if TYPE_CHECKING:
    from discreet.study.study import Study


def command(
    file: StudyFile,
    data: Annotated[
        Path,
        typer.Argument(
            help="Central: a CSV or Parquet file. Local and shuffle: a folder of reports, a file "
            "of reports, or an array of integers (.npy).",
            show_default=False,
        ),
    ],
    users: Annotated[
        Path | None,
        typer.Option(help="With reports: a text file of the users' names, one per line."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="With reports: the token that `study ask` printed.")
    ] = None,
    show_left_out: Annotated[
        bool,
        typer.Option(
            "--show-left-out",
            help="Central: how many left the policy, on the screen. Raw data: write it nowhere.",
        ),
    ] = False,
    head: Head = None,
    json: Json = False,
) -> None:
    """Count the pending batch: all of it, once, or not at all."""
    study = opened(file, head)
    with Progress(quiet=json, verb="reading") as progress:
        progress(str(data))
        told, people = _told(study, data, users)
    with Progress(quiet=json, verb="counting") as progress:
        progress(counted(len(people), "user"))
        look, note = _look if show_left_out else None, _note(study, data)
        study.tell(told, users=people, token=token, left_out=look, note=note)
    _show(study, len(people), note, json=json)


def _told(study: "Study", data: Path, users: Path | None) -> tuple[Any, list[str]]:
    """What `Study.tell` takes, from files."""
    if not study.encoded:
        if users is not None:
            raise StudyError(
                "In a central study the table names its users; leave out --users. Nothing was "
                "counted."
            )
        return study.read_table(data)
    if data.suffix.lower() in (".csv", ".parquet", ".pq"):
        raise StudyError(
            f"Expected reports, got the table {data.name!r}: nobody sees raw episodes under "
            f"{study.guarantee.notion}. Each device encodes its own (`study ask --encoder`), and "
            f"tell takes what they send. Nothing was counted."
        )
    if users is None:
        raise StudyError(
            "Reports do not say whose they are; name the users with --users FILE, one per line. "
            "Nothing was counted."
        )
    from discreet.study.files import read_names

    return study.read_reports(data), read_names(users)


def _note(study: "Study", data: Path) -> dict[str, str]:
    """What the ledger shall say: under shuffle, who was trusted with whole reports."""
    from discreet.study.files import WHOLE, mixed

    whole = study.plan.guarantee.notion == "SDP" and not mixed(data)
    return {"reports": WHOLE} if whole else {}


def _look(left: int) -> None:
    """For the eyes of the trusted operator: never on standard output, which scripts keep."""
    warn(f"{left:,} users left the policy (raw data: do not write it down).")


def _show(study: "Study", users: int, note: dict[str, str], *, json: bool) -> None:
    rows = [
        ("counted now", counted(users, "user")),
        ("counted in all", f"{study.users:,} of {study.episodes:,} users"),
        ("promised to each", str(study.guarantee)),
        *((f"note: {name}", text) for name, text in note.items()),
        ("value of the policy so far", worth(study)),
        ("head", study.head),
    ]
    answer(
        {**facts_of(study), "counted": users, "note": note}, f"Study {study.path}", rows, json=json
    )
    if not json:
        next_ = "report" if study.finished else "ask"
        say(f"Note the head, away from the file. Next: discreet study {next_} {study.path}")
