"""The TOML writer: what it writes is what was given."""

import tomllib

import pytest

from discreet._settings import to_toml as dumps
from discreet.errors import InvalidInputError
from helpers.properties import given, st

# TOML's basic strings cannot hold lone surrogates; 63-bit integers are what it promises.
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KEYS = WORDS  # dots and quotes included
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False, allow_infinity=False),
    WORDS,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_what_is_written_is_read_back(table):
    assert tomllib.loads(dumps(table)) == table


def test_lists_of_tables_come_last_and_keep_their_order():
    table = {"rows": [{"name": "a"}, {"name": "b", "more": {"x": 1}}], "title": "T"}
    text = dumps(table)
    assert text.index("title") < text.index("[[rows]]")
    assert tomllib.loads(text) == table


def test_text_is_escaped():
    value = {"text": 'quote " back\\slash é\nline', "list": [1, 2.5, True], "table": {"a": "b"}}
    assert tomllib.loads(dumps(value)) == value


def test_a_list_that_mixes_tables_and_words_stays_one_value():
    table = {"mixed": [{"a": 1}, "b"], "empty": []}
    assert tomllib.loads(dumps(table)) == table


def test_nothing_cannot_be_said():
    with pytest.raises(InvalidInputError, match="got None; leave the key out"):
        dumps({"horizon": None})
