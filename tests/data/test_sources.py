"""Every source of a table gives the same episodes, and refuses with the place."""

import codecs
import csv
import io
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data import Vocabulary, read_table, sources
from discreet.data.problems import Problems
from discreet.data.sources import find_columns
from discreet.errors import InvalidInputError, MissingExtraError
from helpers.loading import loaded
from helpers.tables import HEADER, NAMES, VISITS, changed, frame, logs, read, same, text


@pytest.mark.core
def test_columns_are_found_in_upper_and_lower_case():
    names = ["User", "diary", "step", "STEP"]
    assert find_columns(names, {"step": "", "user": ""}, Problems()) == {
        "step": "step",
        "user": "User",
    }
    rows = text(VISITS, [name.upper() for name in HEADER])
    assert same(read_table(rows, NAMES)[0], WHOLE)


@pytest.mark.core
@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("User", "USER"), "one column 'user', got 2; rename all but one"),
        (("Usser",), "a column 'user', got 'Usser'; did you mean 'Usser'?"),
        (
            ("patient",),
            r"got 'patient'; known: 'patient'. Say which .*columns = \{user = \"NAME\"\}",
        ),
        ((), "a column 'user', got none;"),
        ([f"c{i}" for i in range(99)], "'c10', 'c11', ...; known"),
        (["x" * 1000], "got 'x{28}...; known: 'x{58}...\\."),
    ],
)
def test_a_missing_column_is_named_with_what_there_is(names, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        find_columns(names, {"user": 'columns = {user = "NAME"}'}, Problems())


WHOLE, USERS = read(VISITS)
COLUMNS = frame(VISITS)


class Capsule:
    """A frame that only speaks Arrow."""

    def __init__(self, columns):
        self._table = pytest.importorskip("pyarrow").table(columns)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def pandas(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def polars(columns):
    return pytest.importorskip("polars").DataFrame(columns, strict=False)


def pyarrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


def pyarrow_batch(columns):
    return pytest.importorskip("pyarrow").RecordBatch.from_pydict(columns)


def parquet(columns):
    path = Path(FOLDER.name, "visits.parquet")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow(columns), path, row_group_size=2)
    return path


def arrays(columns):
    return {name: np.array(values) for name, values in columns.items()}


FOLDER = tempfile.TemporaryDirectory()
MAKES = [dict, arrays, pandas, polars, pyarrow, pyarrow_batch, Capsule, parquet]
LIBRARIES = [pandas, polars, pyarrow, parquet]


@pytest.mark.parametrize("make", MAKES)
def test_every_make_gives_the_same_episodes(make):
    episodes, users = read_table(make(COLUMNS), NAMES)
    assert users == USERS
    assert same(episodes, WHOLE)


@pytest.mark.parametrize("make", LIBRARIES)
@given(log=logs())
def test_a_frame_is_the_episodes_it_was_made_from(make, log):
    names, whole, users, rows = log
    made = make(frame(rows, (*HEADER, "next_state")))
    episodes, found = read_table(made, names)
    assert found == users
    assert same(episodes, whole)


@pytest.mark.parametrize("make", MAKES)
def test_a_wrong_cell_is_refused_with_its_row(make):
    made = make(frame(changed(4, "state", "il")))
    with pytest.raises(InvalidInputError, match=r"got 'il' in column 'state', row 4 \(the first"):
        read_table(made, NAMES)


@pytest.mark.parametrize("make", LIBRARIES)
@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("user", "a name for every user, got .* in column 'user', row 2"),
        ("step", "one of the steps in every row, got .* in column 'step', row 2"),
        ("state", "one of the states in every row, got none from 'state'; .*row 2"),
        ("action", "got no action; .*user 'ann', step '3', row 2"),
        ("reward", "got no reward; .*user 'ann', step '3', row 2"),
    ],
)
def test_nothing_is_nothing_in_every_library(make, column, sentence):
    made = make(frame(changed(2, column, None)))
    with pytest.raises(InvalidInputError, match=sentence):
        read_table(made, NAMES)


@pytest.mark.parametrize("make", LIBRARIES)
def test_closing_rows_turn_no_number_into_another(make):
    """Whole numbers beside a missing one become floats in pandas; their names stay."""
    rows = [(7, 0, 1, 1, 1), (7, 1, 0, 0, 0), (7, 2, 1, None, None)]
    made = make(frame(rows))
    episodes, users = read_table(made, Vocabulary(states=2, actions=2, steps=2))
    assert users == ["7"]
    assert episodes.states.tolist() == [[1, 0, 1]]
    assert episodes.actions.tolist() == [[1, 0]]


def test_pandas_kinds_of_columns():
    pd = pytest.importorskip("pandas")
    kinds = {"user": "category", "step": "Int64", "state": "string", "reward": "Float64"}
    made = pd.DataFrame(COLUMNS).astype(kinds).set_index(pd.Index(range(100, 106)))
    episodes, users = read_table(made, NAMES)
    assert users == USERS
    assert same(episodes, WHOLE)
    made.loc[103, "step"] = pd.NA
    with pytest.raises(InvalidInputError, match=r"got <NA> in column 'step', row 3 \(the first"):
        read_table(made, NAMES)


def test_polars_kinds_of_columns():
    pl = pytest.importorskip("polars")
    made = pl.DataFrame(COLUMNS).with_columns(
        pl.col("state").cast(pl.Categorical), pl.col("step").cast(pl.UInt8)
    )
    assert same(read_table(made, NAMES)[0], WHOLE)


def test_dictionaries_of_arrow():
    pa = pytest.importorskip("pyarrow")
    made = pa.table({**COLUMNS, "state": pa.array(COLUMNS["state"]).dictionary_encode()})
    assert same(read_table(made, NAMES)[0], WHOLE)


def test_large_numbers_of_users_are_not_rounded():
    pd = pytest.importorskip("pandas")
    large = 2**53
    rows = [(large + k // 3, *VISITS[k][1:]) for k in range(6)]
    _, users = read_table(pd.DataFrame(frame(rows)), NAMES)
    assert users == [str(large), str(large + 1)]
    floats = pd.DataFrame(frame(rows)).astype({"user": float})
    with pytest.raises(InvalidInputError, match=r"users named by text or by integers, got 9007199"):
        read_table(floats, NAMES)


def parquet(columns, folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


FRAMES = {
    "a dictionary": lambda columns, folder: columns,
    "a list": lambda columns, folder: {**columns, "user": list(columns["user"])},
    "pandas": lambda columns, folder: pandas(columns),
    "polars": lambda columns, folder: polars(columns),
    "Arrow": lambda columns, folder: pyarrow(columns),
    "Parquet": parquet,
}


@pytest.mark.parametrize("made", FRAMES)
@pytest.mark.parametrize(("kind", "most"), [(np.float32, 2**24), (np.float16, 2**11)])
def test_names_that_a_narrow_float_rounded_are_refused(tmp_path, made, kind, most):
    """Both tables would name the same people, or others than the same table of integers does."""
    below = np.array([most - 2, most - 2, most - 2, most - 1, most - 1, most - 1], kind)
    columns = {**COLUMNS, "user": below}
    assert read_table(FRAMES[made](columns, tmp_path), NAMES)[1] == [str(most - 2), str(most - 1)]
    columns["user"] = np.array([most + 1] * 3 + [most + 5] * 3).astype(kind)
    said = f"got .* in column 'user', row 0 .*integers or as text .* not as {kind.__name__}"
    with pytest.raises(InvalidInputError, match=said):
        read_table(FRAMES[made](columns, tmp_path), NAMES)


@pytest.mark.parametrize("name", [Decimal(7), True, b"ann", 1.5])
def test_a_name_of_another_type_is_refused_by_the_name_of_its_type(tmp_path, name):
    table = parquet({**COLUMNS, "user": [name] * 6}, tmp_path)
    said = f"users named by text or by integers, got .*, not as {type(name).__name__}"
    with pytest.raises(InvalidInputError, match=said):
        read_table(table, NAMES)


def test_a_column_that_comes_twice_is_refused_in_pandas():
    pd = pytest.importorskip("pandas")
    made = pd.DataFrame(COLUMNS)
    both = pd.concat([made, made[["user"]]], axis=1)
    with pytest.raises(InvalidInputError, match="one column of each name, got 'user' 2 times"):
        read_table(both, NAMES)


def test_columns_without_a_name_do_no_harm():
    made = pandas({**COLUMNS, 0: range(6)})
    assert same(read_table(made, NAMES)[0], WHOLE)


@pytest.mark.parametrize("lazy", [lambda: polars(COLUMNS).lazy(), list, int])
def test_what_is_no_frame_is_refused(lazy):
    with pytest.raises(InvalidInputError, match=r"Expected a dataframe .*collect\(\) what is lazy"):
        read_table(lazy(), NAMES)


@pytest.mark.core
@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({}, "Expected a column 'user', got none"),
        ({name: [] for name in HEADER}, "Expected at least one row"),
        ({**COLUMNS, "reward": [1]}, "columns of one length, got 'user': 6, .*'reward': 1"),
        ({**COLUMNS, "user": "abcdef"}, "columns that are lists or arrays, got one of type str"),
        ({**COLUMNS, "user": 7}, "columns that are lists or arrays, got one of type int"),
    ],
)
def test_a_dictionary_that_is_no_table_is_refused(columns, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        read_table(columns, NAMES)


def test_what_arrow_cannot_read_is_one_sentence():
    pytest.importorskip("pyarrow")

    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ValueError("no stream today\nnor tomorrow")

    with pytest.raises(
        InvalidInputError, match=r"that Arrow can read, got Broken: no stream today$"
    ):
        read_table(Broken(), NAMES)


def test_arrow_without_pyarrow_names_the_extra(monkeypatch):
    made = Capsule(COLUMNS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pyarrow.*tables"):
        read_table(made, NAMES)


@pytest.mark.core
def test_no_dataframe_library_is_loaded():
    code = (
        "import io\n"
        "from discreet.data import Vocabulary, read_table\n"
        "names = Vocabulary(states=1, actions=1, steps=1)\n"
        "table = {'user': [1], 'step': [0], 'state': [0], 'action': [0], 'reward': [0]}\n"
        "read_table(table, names)\n"
        "file = io.StringIO('user,step,state,action,reward\\n1,0,0,0,0\\n')\n"
        "read_table(file, names)\n"
    )
    assert loaded(code, ["pandas", "polars", "pyarrow", "numba", "scipy"]) == []


TEXT = text(VISITS).read()


@pytest.mark.core
@given(logs(), st.sampled_from([",", ";", "\t"]), st.sampled_from(["\n", "\r\n"]))
def test_a_file_is_the_episodes_it_was_written_from(log, delimiter, ending):
    names, whole, users, rows = log
    # Python 3.11 leaves a lone carriage return unquoted where lines end with a newline.
    form = {"delimiter": delimiter, "lineterminator": ending, "quoting": csv.QUOTE_ALL}
    file = text(rows, (*HEADER, "next_state"), **form)
    episodes, found = read_table(file, names, delimiter=delimiter)
    assert found == users
    assert same(episodes, whole)


@pytest.mark.core
@given(logs(), st.integers(1, 4))
def test_how_much_is_read_at_a_time_does_not_matter(log, size):
    names, whole, users, rows = log
    before, sources._ROWS = sources._ROWS, size
    try:
        episodes, found = read_table(text(rows, (*HEADER, "next_state")), names)
    finally:
        sources._ROWS = before
    assert found == users
    assert same(episodes, whole)


@pytest.mark.core
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
    episodes, users = read_table(tmp_path / "visits.csv", NAMES)
    assert users == USERS
    assert same(episodes, WHOLE)


@pytest.mark.core
@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "utf-8"])
def test_other_encodings_are_read_when_they_are_named(encoding, tmp_path):
    (tmp_path / "visits.csv").write_text(TEXT.replace("bob", "zoé"), encoding, newline="")
    _, users = read_table(tmp_path / "visits.csv", NAMES, encoding=encoding)
    assert users == ["ann", "zoé"]


@pytest.mark.core
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
        (
            TEXT.replace(",", ";").encode(),
            'several columns, got one, \'user;step.*delimiter = ";" in',
        ),
        (
            TEXT.replace("bob", "zoé").encode("cp1252"),
            "text in 'utf-8-sig', got other bytes in line 5 of .*encoding = \"cp1252\"",
        ),
        (TEXT.encode("utf-16"), 'got other bytes in line 1 of .*encoding = "utf-16"'),
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
        read_table(tmp_path / "visits.csv", NAMES)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 500


@pytest.mark.core
@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        (("state", "il"), "got 'il' in column 'state', line 6 of the file; did you mean 'ill'?"),
        (("state", ""), "one of the states in every row, got none from 'state'; .*line 6"),
        (("step", "4.5"), "one of the steps of the design, got '4.5' in column 'step', line 6"),
        (("action", "cut"), "one of the actions of the design, got 'cut' .*known: 'wait'"),
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
        read_table(text(changed(4, *cell)), NAMES)


@pytest.mark.core
def test_lines_are_those_that_an_editor_shows():
    """Fields over several lines and blank lines count."""
    rows = changed(4, "state", "il", changed(0, "user", "an\nn\n\n", changed(3, "user", "b\nob")))
    file = io.StringIO(text(rows).read().replace("ann,3", "\r\nann,3"), newline="")
    with pytest.raises(InvalidInputError, match="got 'il' in column 'state', line 11 of the file"):
        read_table(file, NAMES)


@pytest.mark.core
def test_an_error_shows_no_control_characters():
    rows = changed(0, "state", "\x1b[2J\u202e" + "x" * 1000)
    with pytest.raises(InvalidInputError) as refusal:
        read_table(text(rows), NAMES)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 300


@pytest.mark.core
@pytest.mark.parametrize("delimiter", ["", ",,", "\n", '"', None])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(InvalidInputError, match="a delimiter of one character"):
        read_table(text(VISITS), NAMES, delimiter=delimiter)


@pytest.mark.core
def test_files_that_cannot_be_read_are_one_sentence(tmp_path):
    with pytest.raises(InvalidInputError, match=r"got '.*none.csv': No such file"):
        read_table(tmp_path / "none.csv", NAMES)
    with pytest.raises(InvalidInputError, match="Is a directory"):
        read_table(tmp_path, NAMES)
    (tmp_path / "visits.csv").write_text(TEXT)
    with pytest.raises(InvalidInputError, match="an encoding that Python knows, got 'utf-80'"):
        read_table(tmp_path / "visits.csv", NAMES, encoding="utf-80")


@pytest.mark.core
def test_a_file_opened_by_the_caller_stays_open():
    file = text(VISITS)
    read_table(file, NAMES)
    assert not file.closed


@pytest.mark.core
@pytest.mark.parametrize("first", ["sep=;\n", '\ufeff"sep=;"\r\n', "SEP=;\n"])
def test_the_line_for_excel_names_the_delimiter(first, tmp_path):
    content = first + text(VISITS, delimiter=";").read()
    (tmp_path / "visits.csv").write_text(content, encoding="utf-8", newline="")
    assert same(read_table(tmp_path / "visits.csv", NAMES)[0], WHOLE)
    wrong = first + text(changed(4, "state", "il"), delimiter=";").read()
    with pytest.raises(InvalidInputError, match="'il' in column 'state', line 7 of the file"):
        read_table(io.StringIO(wrong, newline=""), NAMES)
