"""Files for people and programs: policies as JSON or CSV, every row with its promise; text."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet._files import write_atomically
from discreet._plain import Plain
from discreet.errors import InvalidInputError

Row = Mapping[str, Plain]


def write_rows(path: str | Path, rows: Sequence[Row], about: Mapping[str, Plain]) -> None:
    """Write rows, whole or not at all; the ending of ``path`` says how.

    Args:
        path: ends in .json or .csv.
        rows: all with the same keys.
        about: what JSON says beside the rows; its ``guarantee`` stands in every row of a CSV
            file, because rows get copied into other tables.
    """
    where = Path(path)
    if where.suffix.lower() not in (".json", ".csv"):
        raise InvalidInputError(
            f"Expected a file that ends in .json or .csv, got {str(where)!r}; nothing was written."
        )
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


def _as_json(rows: Sequence[Row], about: Mapping[str, Plain]) -> str:
    return json.dumps({**about, "policy": list(rows)}, indent=1, ensure_ascii=False) + "\n"


def _as_csv(rows: Sequence[Row], about: Mapping[str, Plain]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0], "guarantee"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "guarantee": about["guarantee"]} for row in rows)
    return text.getvalue()
