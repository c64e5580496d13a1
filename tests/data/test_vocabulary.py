"""Names of states, actions and steps are public, distinct and the same in every spelling."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._spelling import spelled
from discreet.data import Vocabulary
from discreet.data.vocabulary import key, nearest
from discreet.errors import InvalidInputError
from discreet.mdp import Shape

pytestmark = pytest.mark.core
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1).filter(
    spelled
)
NAMES = st.lists(TEXT | st.integers(-99, 99), min_size=1, max_size=6, unique_by=key)


@given(NAMES, NAMES, NAMES)
def test_a_vocabulary_survives_json(states, actions, steps):
    names = Vocabulary(states=states, actions=actions, steps=steps)
    assert Vocabulary.from_dict(json.loads(json.dumps(names.to_dict()))) == names
    assert names.shape == Shape(len(states), len(actions), len(steps))


@given(NAMES)
def test_every_name_has_its_number(states):
    names = Vocabulary(states=states, actions=2, steps=3)
    assert [names.numbers("states")[key(state)] for state in states] == list(range(len(states)))


def test_a_number_stands_for_numbers():
    names = Vocabulary(states=3, actions=np.int64(2), steps=1)
    assert names.states == ("0", "1", "2")
    assert names.actions == ("0", "1")


@pytest.mark.parametrize(
    ("steps", "closing"),
    [
        (4, "4"),
        (range(1, 4), "4"),
        (["01", "02"], "3"),
        (["1", "3"], None),
        (["spring", "autumn"], None),
        (["2.0"], None),
    ],
)
def test_consecutive_numbers_have_a_closing_moment(steps, closing):
    assert Vocabulary(states=2, actions=2, steps=steps).closing == closing


def test_a_closing_moment_can_be_named():
    names = Vocabulary(states=2, actions=2, steps=["spring", "autumn"], closing="last visit")
    assert names.numbers("steps") == {"spring": 0, "autumn": 1, "last visit": 2}
    assert names.shape.horizon == 2
    assert Vocabulary.from_dict(names.to_dict()) == names


@pytest.mark.parametrize("spelling", [1, "1", " 1", "01", "+1", "1.", "1.000", 1.0, np.int8(1)])
def test_a_whole_number_is_one_name(spelling):
    assert key(spelling) == "1"


@pytest.mark.parametrize(
    "nothing", [None, 0.5, float("nan"), float("inf"), 2.0**53, 2**64, "", " ", b"1", [1]]
)
def test_what_names_nothing(nothing):
    assert key(nothing) is None


@pytest.mark.parametrize("zero", [0, "-0", "000", -0.0, "0.0"])
def test_zero_has_no_sign(zero):
    assert key(zero) == "0"


def test_a_number_too_long_to_print_names_nothing():
    assert key(10**5000) is None


def test_a_number_of_ten_thousand_digits_is_only_text():
    assert key("1" * 10_000) == "1" * 10_000


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"states": 0}, "Expected 1 to 1000000 states, got 0"),
        ({"states": 10**12}, "Expected 1 to 1000000 states"),
        ({"states": 10**5000}, "got a huge int"),
        ({"actions": "treat"}, "Expected actions as a number or as a list of names, got 'treat'"),
        ({"actions": True}, "Expected actions as a number or as a list of names, got True"),
        ({"actions": None}, "got None"),
        ({"actions": {"a": 1}}, "as a list of names"),
        ({"actions": 2.5}, "as a list of names, got 2.5"),
        ({"steps": []}, "Expected at least one of steps"),
        ({"states": ["ill", " ill"]}, "got 'ill' and 'ill', which are one"),
        ({"states": ["1", "01"]}, "got '1' and '01', which are one"),
        ({"states": ["ill", ""]}, "names of states as text or as integers, got ''"),
        ({"states": ["ill", 0.5]}, "as text or as integers, got 0.5"),
        ({"states": [True, False]}, "as text or as integers, got True"),
        ({"states": ["ill", "\ud800"]}, "lone surrogate"),
        ({"states": ["ill", "\x1b[2Jwell"]}, r"printed on one line, got '\\x1b\[2Jwell'"),
        ({"actions": ["wait\nand see", "treat"]}, "printed on one line"),
        ({"steps": ["a\u2028b", "c"]}, "printed on one line"),
        ({"steps": ["a", "b"], "closing": "b"}, "got 'b' and 'b', which are one"),
        ({"steps": ["a", "b"], "closing": ""}, "names of steps"),
    ],
)
def test_what_is_no_vocabulary_is_one_sentence(change, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Vocabulary(**{"states": 2, "actions": 2, "steps": 2, **change})


@pytest.mark.parametrize("plain", [{}, {"states": 2}, {"states": 2, "actions": 2, "stepps": 2}])
def test_a_foreign_dictionary_is_refused(plain):
    with pytest.raises(
        InvalidInputError, match="Expected a vocabulary with states, actions, steps"
    ):
        Vocabulary.from_dict(plain)


def test_near_misses_are_suggested_and_long_lists_cut():
    assert nearest("trest", ["wait", "treat"]) == "did you mean 'treat'?"
    assert nearest("x", [f"state {i}" for i in range(20)]).endswith("'state 7', ....")
