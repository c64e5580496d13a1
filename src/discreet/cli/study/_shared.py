"""What the commands of a study share: its options, its opening, its facts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._output import FACTS, echo_json, print_table

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.study.study import Study

StudyFile = Annotated[Path, typer.Argument(help="The study's file.", show_default=False)]


def opened(file: Path, head: str | None, *, to_read: bool = False) -> "Study":
    """A study, to go on with or only to look at."""
    from discreet.study.study import Study

    return Study.read(file, head) if to_read else Study.resume(file, head)


def promise_of(guarantee: "Guarantee") -> dict[str, Any]:
    """What every JSON answer says first: nobody takes a rehearsal for a promise."""
    return {"guarantee": str(guarantee), "simulated": guarantee.simulated}


def facts_of(study: "Study") -> dict[str, Any]:
    """Where a study stands, in plain values."""
    value = study.value
    return {
        "study": str(study.path),
        **promise_of(study.guarantee),
        "epsilon": study.guarantee.to_dict()["epsilon"],
        "delta": study.guarantee.delta,
        "notion": study.guarantee.notion,
        "assumptions": list(study.guarantee.assumptions),
        "users": study.users,
        "episodes": study.episodes,
        "batches": study.batches,
        "finished": study.finished,
        "next_batch": None if study.finished else study.batch_size,
        "value": {"estimate": value.value, "low": value.low, "high": value.high},
        "key": key_of(study),
        "head": study.head,
    }


def key_of(study: "Study") -> dict[str, Any] | None:
    """Where the key of a central stream is, and whether it is there."""
    where = study.key_file
    return None if where is None else {"file": str(where), "present": where.is_file()}


def key_rows(study: "Study") -> list[tuple[str, str]]:
    """The same for a person."""
    key = key_of(study)
    if key is None:
        return []
    kept = "keep this file, apart from the study's backups: without it nobody more can be counted"
    missing = "is not there: nobody can be counted until it is back"
    return [("key", f"{key['file']}: {kept if key['present'] else missing}")]


def counted(number: int, noun: str) -> str:
    """How people count.

    >>> [counted(1, "user"), counted(1200, "user"), counted(2, "batch")]
    ['1 user', '1,200 users', '2 batches']
    """
    more = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else more}"


def worth(study: "Study") -> str:
    """What the policy earns, with its unit."""
    steps = study.plan.shape.horizon
    return f"{study.value}, of at most {steps} for a user: rewards count from 0 to 1 a step"


def policy_table(title: str, study: "Study", rows: Sequence[dict[str, Any]]) -> None:
    """A policy for people; the promise stands below it, whoever copies it."""
    columns = list(rows[0])
    cells = [[_cell(row[name]) for name in columns] for row in rows]
    print_table(title, columns, cells, caption=str(study.guarantee))


def answer(
    plain: dict[str, Any], title: str, rows: Sequence[tuple[str, str]], *, json: bool
) -> None:
    """Facts as JSON, or as a table of two columns."""
    if json:
        echo_json(plain)
    else:
        print_table(title, FACTS, rows)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
