"""One text per value, and no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInputError
from discreet.service.protocol.canonical import from_bytes, to_bytes

PLAIN = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), PLAIN))
def test_what_is_written_is_read_back(value):
    data = to_bytes(value)
    assert from_bytes(data, "thing") == value and data.isascii()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"3",
        b"{",
        b'{"a": 1}',
        b'{"b":1,"a":1}',
        b'{"a":1,"a":1}',
        b'{"a":1.0}',
        b'{"a":1e3}',
        b'{"a":NaN}',
        b'{"a":-0}',
        b'{"a":01}',
        b'{"a":1}\n',
        b"\xef\xbb\xbf{}",
        '{"a":"é"}'.encode(),
        b"\xff",
        b"[" * 100_000,
        b'{"a":"\\u0041"}',
    ],
)
def test_other_texts_are_refused(data):
    with pytest.raises(InvalidInputError, match="thing in canonical JSON"):
        from_bytes(data, "thing")
