"""Whatever a table holds, it is read or refused in one printable line; nothing else happens."""

import datetime
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data import Cuts, Discretizer, Padding, Vocabulary, read_csv, read_frame
from discreet.errors import InvalidInputError
from helpers.tables import HEADER, NAMES, VISITS, text

pytestmark = pytest.mark.core
TEXT = text(VISITS).read()
SIZE = len(TEXT.encode())
CUTS = Discretizer(Cuts("state", [1], missing="bin"))
NUMBERED = Vocabulary(states=[*CUTS.names, "dead"], actions=2, steps=2)

CELLS = (
    st.sampled_from(["ann", "ill", "well", "dead", "wait", "treat", 1, 2, 3, 0.5, None, "", 4])
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=3)
    | st.binary(max_size=2)
    | st.dates()
    | st.lists(st.integers(), max_size=1)
    | st.just(datetime.timedelta(1))
)
TABLES = st.integers(0, 4).flatmap(
    lambda n: st.fixed_dictionaries(
        {name: st.lists(CELLS, min_size=n, max_size=n) for name in (*HEADER, "next_state")}
    )
)
OPTIONS = st.sampled_from([{}, {"padding": Padding("dead")}, {"clip_rewards": True}])


def read_or_refused(read, *arguments, **options):
    """Well-formed episodes, or one sentence."""
    try:
        episodes, users = read(*arguments, **options)
    except InvalidInputError as refusal:
        assert str(refusal).isprintable()
        assert len(str(refusal)) < 600
        return
    episodes.check(arguments[1].shape)
    assert len(episodes) == len(users) == len(set(users)) > 0


@given(TABLES, OPTIONS)
def test_any_cells(table, options):
    read_or_refused(read_frame, table, NAMES, **options)


@given(TABLES, OPTIONS)
def test_any_cells_with_a_discretizer(table, options):
    read_or_refused(read_frame, table, NUMBERED, discretizer=CUTS, **options)


@given(st.text())
def test_any_text(content):
    read_or_refused(read_csv, io.StringIO(content, newline=""), NAMES)


@given(st.integers(0, SIZE), st.integers(0, 3), st.binary(max_size=4))
def test_any_damage_to_the_bytes_of_a_file(place, lost, found):
    content = TEXT.encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.csv"
        path.write_bytes(content[:place] + found + content[place + lost :])
        read_or_refused(read_csv, path, NAMES, padding=Padding("dead"))
