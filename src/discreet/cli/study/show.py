"""`discreet study show`: where a study stands, and its ledger."""

from typing import TYPE_CHECKING

from discreet._types import JsonObject
from discreet.cli._options import Head, Json
from discreet.cli._output import print_table
from discreet.cli.study._shared import StudyFile, answer, counted, facts_of, key_rows, opened, worth

if TYPE_CHECKING:
    from discreet.study.study import Study

_SHOWN = 40
"""Entries of the ledger in a table; --json has all of them."""


def command(file: StudyFile, head: Head = None, json: Json = False) -> None:
    """Where a study stands: promise, users, value, head, and every entry of its ledger."""
    study = opened(file, head, to_read=True)
    entries = study.ledger
    answer({**facts_of(study), "ledger": entries}, f"Study {file}", _rows(study), json=json)
    if not json:
        print_table(
            "Ledger" if len(entries) <= _SHOWN else f"Ledger, last {_SHOWN} of {len(entries):,}",
            ("number", "what", "users", "asked", "policy"),
            [_entry(entry) for entry in entries[-_SHOWN:]],
            right=(0, 2, 3),
            caption=str(study.guarantee),
        )


def _rows(study: "Study") -> list[tuple[str, str]]:
    state = "finished" if study.finished else f"next batch {counted(study.batch_size, 'user')}"
    return [
        ("promised to every user", str(study.guarantee)),
        *(("assumed" if not i else "", t) for i, t in enumerate(study.guarantee.assumptions)),
        ("users", f"{study.users:,} of {study.episodes:,} in {counted(study.batches, 'batch')}"),
        ("state", state),
        ("value of the policy so far", worth(study)),
        *key_rows(study),
        ("head", study.head),
    ]


def _entry(entry: JsonObject) -> tuple[str, ...]:
    names = ("number", "kind", "users", "asked", "policy")
    return tuple(str(entry.get(name, "")) for name in names)
