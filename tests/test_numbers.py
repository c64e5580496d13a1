"""Measured numbers on pages come from files, and the files from commands.

A table or paragraph with measured numbers has the comment ``<!-- data: FILE.csv -->``: every
number in it that is not code or a formula stands in that file, rounded to the digits that are
shown, with its sign. `docs/data/commands.toml` names the command of every file; those that take
seconds are functions of `research.numbers` and run again here. Those of shipped experiments come
from `research.experiments`; what a later version has not measured again has the key ``measured``,
and its page says so.

Not seen: a number in the wrong cell, if another cell of its file has it; a number in words, or in a
block without a comment.
"""

import csv
import re
import tomllib
from pathlib import Path

import pytest
from research import experiments, numbers

ROOT = Path(__file__).parents[1]
DOCS, DATA = ROOT / "docs", ROOT / "docs" / "data"
PLACES = (DATA, ROOT / "research" / "tables")
PAGES = [ROOT / "README.md", *sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)]
COMMANDS = tomllib.loads((DATA / "commands.toml").read_text("utf-8"))

SOURCE = re.compile(r"<!-- data: ([^>]+?) -->")
QUIET = re.compile(
    r"arXiv:[\w.]+|``.*?``|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<[^>]+>", re.DOTALL
)
NUMBER = re.compile(r"(?<![\w.^])(\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|\.\d+)(?![\d_^]|\.\d)")
MINUS = re.compile(r"(?<![\w)\]])[-\u2212]$")


def blocks(text):
    """The blocks of a page that name files, without code and formulas; and these files."""
    for block in re.split(r"\n\s*\n", text):
        named = [name.strip() for found in SOURCE.findall(block) for name in found.split(",")]
        if named:
            yield QUIET.sub(" ", SOURCE.sub("", block)), named


def numbers_of(text):
    """The numbers of a text: as written, their value, and half a unit of their last digit."""
    for found in NUMBER.finditer(text):
        written = found[1].rstrip(",")
        mantissa, _, power = written.replace(",", "").partition("e")
        digits = len(mantissa.partition(".")[2])
        scale = 10.0 ** int(power or 0)
        percent = text[found.end() :].lstrip()[:1] == "%"
        sign = -1 if MINUS.search(text[max(0, found.start() - 2) : found.start()]) else 1
        yield written, sign * float(mantissa) * scale, 0.5 * 10.0**-digits * scale, percent


def path_of(name):
    """The file that a page names."""
    found = [place / name for place in PLACES if (place / name).is_file()]
    assert found, f"no file {name} in docs/data or research/tables"
    return found[0]


def values_of(name):
    """All numbers in a file."""
    with path_of(name).open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    found = set()
    for cell in cells:
        try:
            found.add(float(cell))
        except ValueError:
            found |= {value for _, value, _, _ in numbers_of(cell)}
    return found


def strange(text, names):
    """Numbers of a block that none of its files has."""
    known = sorted(set().union(*map(values_of, names)))
    for written, value, half, percent in numbers_of(text):
        wanted = [(value, half), (value / 100, half / 100)] if percent else [(value, half)]
        if not any(abs(k - v) <= h * (1 + 1e-6) + 1e-12 for v, h in wanted for k in known):
            yield written


def test_every_number_is_in_its_file():
    wrong, checked = [], 0
    for page in PAGES:
        for text, names in blocks(page.read_text("utf-8")):
            checked += 1
            if not text.strip():
                wrong.append(f"{page.name}: an empty line parts {', '.join(names)} from its block")
            wrong += [f"{page.name}: {each} is not in {names}" for each in strange(text, names)]
    assert wrong == []
    assert checked > 100


def test_every_file_has_a_command_and_a_page():
    there = {path.name for path in DATA.glob("*.csv")}
    assert there == set(COMMANDS)
    named = {
        name
        for page in PAGES
        for _, names in blocks(page.read_text("utf-8"))
        for name in names
        if (DATA / name).is_file()
    }
    assert there - named == set()


@pytest.mark.parametrize("name", sorted(numbers.TABLES))
def test_what_takes_seconds_is_found_again(name):
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        kept = list(csv.reader(file))
    assert kept == numbers.rows_of(name)
    assert COMMANDS[name]["command"] == f"python -m research.numbers {name}"


@pytest.mark.parametrize("name", sorted(experiments.PAGES))
def test_an_experiment_writes_the_table_of_its_page(name):
    path = (DATA / f"{experiments.PAGES[name].table}.csv").resolve()
    with path.open(encoding="utf-8", newline="") as file:
        header = tuple(next(csv.reader(file)))
    if path.parent == DATA:
        known = COMMANDS[path.name]
        assert known["command"].startswith(f"python -m research.experiments {name}")
        assert header == experiments.HEADER or known["measured"].startswith("before version")
    else:
        assert header == experiments.HEADER


def test_a_command_has_no_unknown_key():
    assert {key for known in COMMANDS.values() for key in known} == {
        "command",
        "minutes",
        "measured",
    }


def test_the_check_finds_a_number_that_no_file_has(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PLACES", (tmp_path,))
    (tmp_path / "a.csv").write_text("users,regret,share\n20000,1330.6,0.226\n")
    assert list(strange("| 20,000 | 1,331 | 23% |", ["a.csv"])) == []
    assert list(strange("| 20,000 | 1,332 | 24% |", ["a.csv"])) == ["1,332", "24"]
    assert list(strange("| -1,331 | 1,331users | 5.5x |", ["a.csv"])) == ["1,331", "5.5"]
