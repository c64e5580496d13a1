"""Files for people and programs: policies as JSON or CSV, every row with its promise; text."""

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet._files import write_atomically
from discreet._plain import Plain
from discreet._spelling import guarded
from discreet.errors import InvalidInputError

Row = Mapping[str, Plain]
TABLES = (".json", ".csv")
"""Endings of the files that `write_rows` writes."""


def write_rows(path: str | Path, rows: Sequence[Row], about: Mapping[str, Plain]) -> None:
    """Write rows, whole or not at all; the ending of ``path`` says how.

    Args:
        path: ends in .json or .csv.
        rows: all with the same keys. In a CSV file texts are `guarded`: people open it in
            spreadsheets.
        about: what JSON says beside the rows; its ``guarantee`` stands in every row of a CSV
            file, because rows get copied into other tables.
    """
    where = Path(path)
    check_ending(where, *TABLES)
    text = _as_json(rows, about) if where.suffix.lower() == ".json" else _as_csv(rows, about)
    write_text(where, text)


def write_text(path: str | Path, text: str) -> None:
    """Write a file, whole or not at all; refusals in one sentence."""
    where = Path(path)
    try:
        write_atomically(where, text.encode())
    except OSError as error:
        raise InvalidInputError(
            f"Cannot write {str(where)!r}: {error.strerror}; choose a folder in which you may "
            f"write."
        ) from None


def check_output(path: Path, *endings: str) -> None:
    """Refuse a path at which no file can be written; for whoever wants to know before the work.

    Args:
        path: of a file, there or not.
        endings: one of which the path must have, if there are any.
    """
    check_ending(path, *endings)
    folder = path.parent
    if path.is_dir():
        problem = "which is a folder; name a file in it"
    elif not folder.is_dir():
        problem = f"but there is no folder {str(folder)!r}; make it first"
    elif not os.access(folder, os.W_OK | os.X_OK):
        problem = f"but you may not write in {str(folder)!r}; choose another"
    else:
        return
    raise InvalidInputError(
        f"Expected a file in a folder that exists and takes files, got {str(path)!r}, {problem}. "
        f"Nothing was written."
    )


def check_ending(path: Path, *endings: str) -> None:
    """Refuse a path that ends otherwise."""
    if endings and path.suffix.lower() not in endings:
        raise InvalidInputError(
            f"Expected a file that ends in {' or '.join(endings)}, got {str(path)!r}; nothing was "
            f"written."
        )


def _as_json(rows: Sequence[Row], about: Mapping[str, Plain]) -> str:
    return json.dumps({**about, "policy": list(rows)}, indent=1, ensure_ascii=False) + "\n"


def _as_csv(rows: Sequence[Row], about: Mapping[str, Plain]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0], "guarantee"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        said = {**row, "guarantee": about["guarantee"]}
        writer.writerow({k: guarded(v) if isinstance(v, str) else v for k, v in said.items()})
    return text.getvalue()
