"""The table of promises in docs/service.md names tests that there are, and all of them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAME = r"test_p\d\d_\w+"


def test_every_promise_is_listed_with_its_tests():
    table = (ROOT / "docs" / "service.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (P\d+) \| (.*) \|$", table, re.MULTILINE))
    assert list(rows) == [f"P{k}" for k in range(1, 21)]
    files = (ROOT / "tests" / "service").rglob("test_*.py")
    there = {name for file in files for name in re.findall(rf"def ({NAME})", file.read_text())}
    named = {name for row in rows.values() for name in re.findall(rf"`({NAME})`", row)}
    assert named <= there
    for k in range(1, 21):
        own = {name for name in there if name.startswith(f"test_p{k:02d}_")}
        assert own - named == set() or "more" in rows[f"P{k}"], own - named
