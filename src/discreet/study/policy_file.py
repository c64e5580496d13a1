"""A policy as a file that people and programs read: JSON or CSV, with names."""

import csv
import io
import json
from pathlib import Path

from discreet._files import write_atomically
from discreet._types import Plain
from discreet.errors import StudyError
from discreet.mdp.vocabulary import Vocabulary
from discreet.privacy.guarantee import Guarantee
from discreet.study.knowledge import Answer

FORMAT = "discreet-policy-1"


def rows_of(answer: Answer, names: Vocabulary) -> list[dict[str, Plain]]:
    """One row per step and state: what to do, and whether that rests on data."""
    rows = list[dict[str, Plain]]()
    for h, step in enumerate(names.steps):
        for s, state in enumerate(names.states):
            action = names.actions[int(answer.policy.actions[h, s])]
            known = bool(answer.known[h, s])
            rows.append({"step": step, "state": state, "action": action, "known": known})
    return rows


def save(
    path: str | Path, answer: Answer, names: Vocabulary, guarantee: Guarantee, head: str
) -> None:
    """Write a policy; the ending of ``path`` says how.

    Args:
        path: ends in .json or .csv.
        answer: what the study knows.
        names: of states, actions and steps.
        guarantee: what was promised to those it was learnt from.
        head: of the study.
    """
    where = Path(path)
    writers = {".json": _as_json, ".csv": _as_csv}
    if where.suffix.lower() not in writers:
        raise StudyError(
            f"Expected a file that ends in .json or .csv, got {str(where)!r}; nothing was written."
        )
    text = writers[where.suffix.lower()](rows_of(answer, names), answer, guarantee, head)
    try:
        write_atomically(where, text.encode())
    except OSError as error:
        raise StudyError(
            f"Cannot write {str(where)!r}: {error.strerror}; choose a folder in which you may "
            f"write."
        ) from None


def _as_json(rows: list[dict[str, Plain]], answer: Answer, guarantee: Guarantee, head: str) -> str:
    value = answer.value._asdict()
    about = {"format": FORMAT, "guarantee": str(guarantee), "simulated": guarantee.simulated}
    content = {**about, "head": head, "value": value, "policy": rows}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _as_csv(rows: list[dict[str, Plain]], answer: Answer, guarantee: Guarantee, head: str) -> str:
    """Every row says what was promised: rows get copied into other tables."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0], "guarantee"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "guarantee": str(guarantee)} for row in rows)
    return text.getvalue()
