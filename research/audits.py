"""What `discreet audit` finds, as tables: every row, and one line for each mechanism.

    python -m research.audits               # some minutes of processor time
    python -m research.audits audit.json    # of a file that `discreet audit --json` has written

It writes docs/data/audit.csv and docs/data/audit_summary.csv (docs/understand/audit.md).
"""

import csv
import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from research import called, parser

FOLDER = Path(__file__).parents[1] / "docs" / "data"
COLUMNS = ("mechanism", "calibration", "kind", "path", "epsilon", "delta", "exact epsilon")


def main() -> None:
    """Audit, or read; write both tables."""
    made = parser("research.audits", __doc__)
    made.add_argument("file", nargs="?", type=Path, help="an audit that was made before")
    file = made.parse_args().file
    text = file.read_text("utf-8") if file else called("audit", "--json")[1]
    rows = json.loads(text)["results"]
    write("audit.csv", [[*COLUMNS, "attack proves", "holds"], *map(line, rows)])
    head = ["mechanism", "calibration", "rows", "claimed epsilon", "claimed delta"]
    head += ["least exact epsilon", "largest exact epsilon", "attack proves", "rows that hold"]
    rows.sort(key=named)
    write("audit_summary.csv", [head, *(summary(list(group)) for _, group in groupby(rows, named))])


def write(name: str, rows: Iterable[Sequence[object]]) -> None:
    with (FOLDER / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def named(row: dict[str, Any]) -> tuple[str, str]:
    """What a line of the summary is about."""
    return row["calibration"], row["mechanism"]


def exact(row: dict[str, Any]) -> float:
    """The exact epsilon; infinity where there is none."""
    return float("inf") if row["exact_epsilon"] is None else row["exact_epsilon"]


def shown(value: float) -> str:
    """Six digits; nothing for a bound that proves nothing."""
    return f"{value:.6g}" if value else ""


def line(row: dict[str, Any]) -> list[object]:
    claim = row["claimed"]
    said = [row["mechanism"], row["calibration"], row["kind"], row["path"]]
    numbers = [shown(exact(row)), shown(row["empirical_epsilon_low"])]
    return [*said, claim["epsilon"], claim["delta"], *numbers, row["holds"]]


def summary(rows: list[dict[str, Any]]) -> list[object]:
    """One line for a mechanism."""
    first, claim = rows[0], rows[0]["claimed"]
    values = list(map(exact, rows))
    proven = max(row["empirical_epsilon_low"] for row in rows)
    head = [first["mechanism"], first["calibration"], len(rows), claim["epsilon"], claim["delta"]]
    found = [shown(min(values)), shown(max(values)), shown(proven)]
    return [*head, *found, sum(row["holds"] for row in rows)]


if __name__ == "__main__":
    main()
