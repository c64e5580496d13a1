"""The chain of entries: each quotes the one before, and nothing can be changed unnoticed."""

import json

import pytest

from discreet.study import ledger
from discreet.study.ledger import BrokenChainError, Tail


def chain(*kinds):
    """The rows and the tail of a ledger with these entries."""
    tail, rows = Tail(), []
    for kind in kinds:
        facts = {"state": f"after {len(rows)}"} | ({"users": 3} if kind == "batch" else {})
        text = ledger.write(tail, kind, facts)
        row = (tail.number + 1, text, ledger.sha256(text.encode()))
        tail, _ = ledger.follow(tail, *row)
        rows.append(row)
    return rows, tail


def rewritten(row, **changes):
    """An entry with other facts and the hash that belongs to them."""
    number, text, _ = row
    other = ledger.canonical({**json.loads(text), **changes})
    return number, other, ledger.sha256(other.encode())


def followed(rows):
    tail = Tail()
    for row in rows:
        tail, _ = ledger.follow(tail, *row)
    return tail


def test_entries_add_up():
    rows, tail = chain("start", "batch", "reissue", "batch", "close")
    assert followed(rows) == tail
    assert (tail.number, tail.users, tail.batches, tail.closed) == (4, 6, 2, True)
    assert (tail.state, tail.head) == ("after 4", rows[-1][2])


def test_two_runs_write_the_same_chain_and_every_link_is_another():
    rows, _ = chain("start", "batch", "batch")
    assert rows == chain("start", "batch", "batch")[0]
    assert len({digest for *_, digest in rows}) == 3


@pytest.mark.parametrize(
    "broken",
    [
        lambda rows: rows[1:],
        lambda rows: [rows[0], rows[2]],
        lambda rows: [rows[0], rows[2], rows[1]],
        lambda rows: [rows[0], rows[0]],
        lambda rows: [rows[0], (1, rows[1][1].replace("3", "4"), rows[1][2])],
        lambda rows: [rows[0], (1, None, rows[1][2])],
        lambda rows: [rows[0], (2, *rows[1][1:])],
        lambda rows: [rows[0], rewritten(rows[1], users=2), rows[2]],
        lambda rows: [rows[0], rewritten(rows[1], number=7)],
        lambda rows: [rows[0], rewritten(rows[1], previous="")],
        lambda rows: chain("batch")[0],
        lambda rows: chain("start", "start")[0],
        lambda rows: chain("start", "other")[0],
    ],
)
def test_what_does_not_follow_is_refused(broken):
    rows, _ = chain("start", "batch", "batch")
    with pytest.raises(BrokenChainError):
        followed(broken(rows))


def test_an_entry_names_its_software_and_no_time():
    (_, text, _), *_ = chain("start")[0]
    entry = json.loads(text)
    assert entry["software"]["python"].startswith("3.")
    assert set(entry) == {"number", "kind", "previous", "state", "software"}


@pytest.mark.parametrize("place", range(4))
def test_evidence_has_another_hash_if_any_part_of_a_row_changes(place):
    row = ["name", "float64", "[1]", b"12345678"]
    changed = list(row)
    changed[place] = changed[place] + (b"0" if place == 3 else "0")
    rows = [tuple(row), ("other", "json", "[]", b"{}")]
    assert ledger.hash_of_rows(rows) == ledger.hash_of_rows(rows[::-1])
    assert ledger.hash_of_rows(rows) != ledger.hash_of_rows([tuple(changed), rows[1]])
    assert ledger.hash_of_rows(rows) != ledger.hash_of_rows(rows[:1])


@pytest.mark.parametrize("kind", ["batch", "reissue", "close"])
def test_nothing_comes_after_the_end(kind):
    with pytest.raises(BrokenChainError, match="after the end"):
        chain("start", "batch", "close", kind)
