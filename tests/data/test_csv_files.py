"""CSV files of every make are read as a stream; damaged ones are refused with the line."""

import codecs
import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data import read_csv, readers
from discreet.errors import InvalidInputError
from helpers.tables import HEADER, NAMES, VISITS, changed, logs, read, same, text

pytestmark = pytest.mark.core
WHOLE, USERS = read(VISITS)
TEXT = text(VISITS).read()


@given(logs(), st.sampled_from([",", ";", "\t"]), st.sampled_from(["\n", "\r\n"]))
def test_a_file_is_the_episodes_it_was_written_from(log, delimiter, ending):
    names, whole, users, rows = log
    # Python 3.11 leaves a lone carriage return unquoted where lines end with a newline.
    form = {"delimiter": delimiter, "lineterminator": ending, "quoting": csv.QUOTE_ALL}
    file = text(rows, (*HEADER, "next_state"), **form)
    episodes, found = read_csv(file, names, delimiter=delimiter)
    assert found == users
    assert same(episodes, whole)


@given(logs(), st.integers(1, 4))
def test_how_much_is_read_at_a_time_does_not_matter(log, size):
    names, whole, users, rows = log
    before, readers._ROWS = readers._ROWS, size
    try:
        episodes, found = read_csv(text(rows, (*HEADER, "next_state")), names)
    finally:
        readers._ROWS = before
    assert found == users
    assert same(episodes, whole)


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        TEXT.replace("\r\n", "\n").encode(),
        TEXT.replace("\r\n", "\r").encode(),
        b"\n\n" + TEXT.replace("\r\n", "\n\n").encode(),
        TEXT.rstrip().encode(),
        TEXT.replace("user,", "\u200b user ,").encode(),
        TEXT.replace("ann", '" ann"').encode(),
    ],
    ids=["plain", "mark", "unix", "old mac", "blank lines", "no last end", "spaces", "quotes"],
)
def test_files_of_every_make_are_read(content, tmp_path):
    (tmp_path / "visits.csv").write_bytes(content)
    episodes, users = read_csv(tmp_path / "visits.csv", NAMES)
    assert users == USERS
    assert same(episodes, WHOLE)


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "utf-8"])
def test_other_encodings_are_read_when_they_are_named(encoding, tmp_path):
    (tmp_path / "visits.csv").write_text(TEXT.replace("bob", "zoé"), encoding, newline="")
    _, users = read_csv(tmp_path / "visits.csv", NAMES, encoding=encoding)
    assert users == ["ann", "zoé"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "Expected a header and rows, got nothing: .*visits.csv' is empty"),
        (b"\n\n\n", "is empty"),
        (codecs.BOM_UTF8, "is empty"),
        (TEXT.splitlines()[0].encode(), "Expected at least one row, got a table without any"),
        (
            TEXT.split("\n", 1)[1].encode(),
            r"Expected a column 'user', got 'ann', '1', 'ill', 'treat', '0.25'; .*give the table a "
            r"header if it has none",
        ),
        (
            TEXT.replace("state", "status").encode(),
            "a column 'state', got .*mean 'status'",
        ),
        (TEXT.replace("reward", "user").encode(), "one column 'user', got 2; rename all but one"),
        (TEXT.replace(",", ";").encode(), "several columns, got one, 'user;step.*delimiter=';'"),
        (
            TEXT.replace("bob", "zoé").encode("cp1252"),
            "text in 'utf-8-sig', got other bytes in line 5 of .*encoding='cp1252'",
        ),
        (TEXT.encode("utf-16"), "got other bytes in line 1 of .*encoding='utf-16'"),
        (TEXT.replace("well,wait", "well").encode(), "5 fields as in the header, got 4 at line 3"),
        (TEXT.replace("0.75", "0,75").encode(), "5 fields as in the header, got 6 at line 7"),
        (TEXT.replace("bob", '"bob').encode(), "a row that is none at line 5 of"),
        (TEXT.replace("bob", '"b"ob').encode(), "a row that is none at line 5 of"),
        (TEXT.replace("bob", "b" * 200_000).encode(), "a row that is none at line 5 of.*limit"),
        (b"PAR1\x00\x00\xff\xfe", "got other bytes in line 1"),
    ],
    ids=[
        "empty",
        "blank",
        "only a mark",
        "only a header",
        "no header",
        "misspelled header",
        "column twice",
        "semicolons",
        "latin letters",
        "utf-16",
        "field missing",
        "decimal comma",
        "open quote",
        "broken quote",
        "huge field",
        "binary",
    ],
)
def test_damaged_files_are_one_sentence(content, sentence, tmp_path):
    (tmp_path / "visits.csv").write_bytes(content)
    with pytest.raises(InvalidInputError, match=sentence) as refusal:
        read_csv(tmp_path / "visits.csv", NAMES)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        (("state", "il"), "got 'il' in column 'state', line 6 of the file; did you mean 'ill'?"),
        (("state", ""), "one of the states in every row, got '' in column 'state', line 6"),
        (("step", "4.5"), "one of the steps of the vocabulary, got '4.5' in column 'step', line 6"),
        (("action", "cut"), "one of the actions of the vocabulary, got 'cut' .*known: 'wait'"),
        (("user", " "), "a name for every user, got ' ' in column 'user', line 6"),
        (("reward", "much"), "a number, got 'much' in column 'reward', line 6"),
        (("reward", "1_0"), "a number, got '1_0' in column 'reward', line 6"),
        (
            ("reward", "1.5"),
            "rewards from 0 to 1, got 1.5 in column 'reward', line 6.*_range",
        ),
        (("reward", "-inf"), "rewards from 0 to 1, got -inf in column 'reward', line 6"),
        (("reward", "nan"), "got no reward; .*user 'bob', step '2', line 6 of the file"),
    ],
)
def test_a_wrong_cell_is_refused_with_its_line(cell, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        read_csv(text(changed(4, *cell)), NAMES)


def test_lines_are_those_that_an_editor_shows():
    """Fields over several lines and blank lines count."""
    rows = changed(4, "state", "il", changed(0, "user", "an\nn\n\n", changed(3, "user", "b\nob")))
    file = io.StringIO(text(rows).read().replace("ann,3", "\r\nann,3"), newline="")
    with pytest.raises(InvalidInputError, match="got 'il' in column 'state', line 11 of the file"):
        read_csv(file, NAMES)


def test_an_error_shows_no_control_characters():
    rows = changed(0, "state", "\x1b[2J\u202e" + "x" * 1000)
    with pytest.raises(InvalidInputError) as refusal:
        read_csv(text(rows), NAMES)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", '"', None])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(InvalidInputError, match="a delimiter of one character"):
        read_csv(text(VISITS), NAMES, delimiter=delimiter)


def test_files_that_cannot_be_read_are_one_sentence(tmp_path):
    with pytest.raises(InvalidInputError, match=r"got '.*none.csv': No such file"):
        read_csv(tmp_path / "none.csv", NAMES)
    with pytest.raises(InvalidInputError, match="Is a directory"):
        read_csv(tmp_path, NAMES)
    (tmp_path / "visits.csv").write_text(TEXT)
    with pytest.raises(InvalidInputError, match="an encoding that Python knows, got 'utf-80'"):
        read_csv(tmp_path / "visits.csv", NAMES, encoding="utf-80")


def test_a_file_opened_by_the_caller_stays_open():
    file = text(VISITS)
    read_csv(file, NAMES)
    assert not file.closed
