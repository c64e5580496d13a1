"""Frames of every library give the same episodes; none of them is needed."""

import sys

import numpy as np
import pytest
from hypothesis import given

from discreet.data import Vocabulary, read_frame
from discreet.errors import InvalidInputError, MissingExtraError
from helpers.loading import loaded
from helpers.tables import HEADER, NAMES, VISITS, changed, frame, logs, read, same

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


def arrays(columns):
    return {name: np.array(values) for name, values in columns.items()}


MAKES = [dict, arrays, pandas, polars, pyarrow, pyarrow_batch, Capsule]
LIBRARIES = [pandas, polars, pyarrow]


@pytest.mark.parametrize("make", MAKES)
def test_every_make_gives_the_same_episodes(make):
    episodes, users = read_frame(make(COLUMNS), NAMES)
    assert users == USERS
    assert same(episodes, WHOLE)


@pytest.mark.parametrize("make", LIBRARIES)
@given(log=logs())
def test_a_frame_is_the_episodes_it_was_made_from(make, log):
    names, whole, users, rows = log
    made = make(frame(rows, (*HEADER, "next_state")))
    episodes, found = read_frame(made, names)
    assert found == users
    assert same(episodes, whole)


@pytest.mark.parametrize("make", MAKES)
def test_a_wrong_cell_is_refused_with_its_row(make):
    made = make(frame(changed(4, "state", "il")))
    with pytest.raises(InvalidInputError, match=r"got 'il' in column 'state', row 4 \(the first"):
        read_frame(made, NAMES)


@pytest.mark.parametrize("make", LIBRARIES)
@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("user", "a name for every user, got .* in column 'user', row 2"),
        ("step", "one of the steps in every row, got .* in column 'step', row 2"),
        ("state", "one of the states in every row, got .* in column 'state', row 2"),
        ("action", "got no action; .*user 'ann', step '3', row 2"),
        ("reward", "got no reward; .*user 'ann', step '3', row 2"),
    ],
)
def test_nothing_is_nothing_in_every_library(make, column, sentence):
    made = make(frame(changed(2, column, None)))
    with pytest.raises(InvalidInputError, match=sentence):
        read_frame(made, NAMES)


@pytest.mark.parametrize("make", LIBRARIES)
def test_closing_rows_turn_no_number_into_another(make):
    """Whole numbers beside a missing one become floats in pandas; their names stay."""
    rows = [(7, 0, 1, 1, 1), (7, 1, 0, 0, 0), (7, 2, 1, None, None)]
    made = make(frame(rows))
    episodes, users = read_frame(made, Vocabulary(states=2, actions=2, steps=2))
    assert users == ["7"]
    assert episodes.states.tolist() == [[1, 0, 1]]
    assert episodes.actions.tolist() == [[1, 0]]


def test_pandas_kinds_of_columns():
    pd = pytest.importorskip("pandas")
    kinds = {"user": "category", "step": "Int64", "state": "string", "reward": "Float64"}
    made = pd.DataFrame(COLUMNS).astype(kinds).set_index(pd.Index(range(100, 106)))
    episodes, users = read_frame(made, NAMES)
    assert users == USERS
    assert same(episodes, WHOLE)
    made.loc[103, "step"] = pd.NA
    with pytest.raises(InvalidInputError, match=r"got <NA> in column 'step', row 3 \(the first"):
        read_frame(made, NAMES)


def test_polars_kinds_of_columns():
    pl = pytest.importorskip("polars")
    made = pl.DataFrame(COLUMNS).with_columns(
        pl.col("state").cast(pl.Categorical), pl.col("step").cast(pl.UInt8)
    )
    assert same(read_frame(made, NAMES)[0], WHOLE)


def test_dictionaries_of_arrow():
    pa = pytest.importorskip("pyarrow")
    made = pa.table({**COLUMNS, "state": pa.array(COLUMNS["state"]).dictionary_encode()})
    assert same(read_frame(made, NAMES)[0], WHOLE)


def test_large_numbers_of_users_are_not_rounded():
    pd = pytest.importorskip("pandas")
    large = 2**53
    rows = [(large + k // 3, *VISITS[k][1:]) for k in range(6)]
    _, users = read_frame(pd.DataFrame(frame(rows)), NAMES)
    assert users == [str(large), str(large + 1)]
    floats = pd.DataFrame(frame(rows)).astype({"user": float})
    with pytest.raises(InvalidInputError, match=r"users named by text or by integers, got 9007199"):
        read_frame(floats, NAMES)


def test_a_column_that_comes_twice_is_refused_in_pandas():
    pd = pytest.importorskip("pandas")
    made = pd.DataFrame(COLUMNS)
    both = pd.concat([made, made[["user"]]], axis=1)
    with pytest.raises(InvalidInputError, match="one column of each name, got 'user' 2 times"):
        read_frame(both, NAMES)


def test_columns_without_a_name_do_no_harm():
    made = pandas({**COLUMNS, 0: range(6)})
    assert same(read_frame(made, NAMES)[0], WHOLE)


@pytest.mark.parametrize("lazy", [lambda: polars(COLUMNS).lazy(), lambda: "visits.csv", list, int])
def test_what_is_no_frame_is_refused(lazy):
    with pytest.raises(InvalidInputError, match=r"Expected a dataframe .*collect\(\) what is lazy"):
        read_frame(lazy(), NAMES)


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
        read_frame(columns, NAMES)


def test_what_arrow_cannot_read_is_one_sentence():
    pytest.importorskip("pyarrow")

    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ValueError("no stream today\nnor tomorrow")

    with pytest.raises(
        InvalidInputError, match=r"that Arrow can read, got Broken: no stream today$"
    ):
        read_frame(Broken(), NAMES)


def test_arrow_without_pyarrow_names_the_extra(monkeypatch):
    made = Capsule(COLUMNS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pyarrow.*tables"):
        read_frame(made, NAMES)


@pytest.mark.core
def test_no_dataframe_library_is_loaded():
    code = (
        "import io\n"
        "from discreet.data import Vocabulary, read_csv, read_frame\n"
        "names = Vocabulary(states=1, actions=1, steps=1)\n"
        "table = {'user': [1], 'step': [0], 'state': [0], 'action': [0], 'reward': [0]}\n"
        "read_frame(table, names)\n"
        "file = io.StringIO('user,step,state,action,reward\\n1,0,0,0,0\\n')\n"
        "read_csv(file, names)\n"
    )
    assert loaded(code, ["pandas", "polars", "pyarrow", "numba", "scipy"]) == []
