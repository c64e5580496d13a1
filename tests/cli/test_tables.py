"""Tables as text: what is wrapped, what gives way, what stays whole."""

import pytest

from discreet.cli import _tables
from discreet.cli._tables import as_lines, least_width, table

pytestmark = pytest.mark.core

COLUMNS = ["name", "number of users", "what it says"]
ROWS = [
    ["a", "12,345,678", "words that may be wrapped wherever there is a space between them"],
    ["longer-name", "7", "short"],
]


def shown(width, rows=ROWS, right=()):
    head, body = table(COLUMNS, rows, right, width)
    return [*head, *body]


def test_the_narrowest_table_breaks_no_word_and_no_number():
    width = least_width(COLUMNS, ROWS)
    lines = shown(width)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for cell in [*COLUMNS, *(cell for row in ROWS for cell in row)]:
        assert set(cell.split()) <= set(words)


@pytest.mark.parametrize("width", range(44, 130, 7))
def test_lines_fit_and_use_the_width(width):
    lines = shown(width)
    assert max(map(len, lines)) <= width
    natural = 3 * 2 + len("longer-name") + len("number of users") + len(ROWS[0][2])
    assert (len(lines) == 4) == (width >= natural)


def test_the_widest_column_gives_way_first():
    _, body = table(["a", "b"], [["x " * 30, "y " * 15]], (), 64)
    assert body[0] == " " + "─" * 62
    assert body[1].count("y") == 15
    assert body[1].count("x") < 30


def test_numbers_stand_on_the_right():
    lines = shown(200, right=[1])
    assert lines[3].index("7") == lines[2].index("678") + 2
    assert shown(200)[3].index("7") == shown(200)[2].index("12,345")


def test_a_line_break_in_a_cell_stays_one():
    _, body = table(["a", "b"], [["one\ntwo", "x"]], (), 80)
    assert body[1:] == [" one  x", " two"]


def test_an_empty_cell_and_no_rows_are_no_trouble():
    assert table(["a", "b"], [], (), 80) == ([" a  b"], [" ────"])
    assert table(["a"], [[""]], (), 80)[1] == [" ─", ""]


def test_where_a_table_does_not_fit_rows_are_paragraphs():
    assert as_lines(["name", "text"], [["a", "b c d"], ["e", ""]], 8) == [
        "name: a",
        "text: b",
        "c d",
        "",
        "name: e",
    ]


def test_short_cells_are_those_of_a_guarantee():
    assert len("(0.3333, 1e-06)-SDP") > _tables._SHORT >= len("(0.1, 1e-06)-SDP")
