"""What a cell means does not depend on how its library writes it."""

import datetime
import decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data.episodes import (
    NOTHING,
    Decided,
    Foreign,
    RefusedCellError,
    Users,
    name_decider,
    numbers,
    plain,
)

pytestmark = pytest.mark.core
STATES = {"ill": 0, "1": 1, "True": 2}


def named(values, *, optional=False):
    return Decided(name_decider(STATES, "states", optional=optional)).numbers(values).tolist()


@pytest.mark.parametrize("value", ["ill", " ill", np.str_("ill"), "\ufeffill"])
def test_text_is_text(value):
    assert named([value]) == [0]


@pytest.mark.parametrize("value", [1, 1.0, "1", "01", "1.0", np.int8(1), np.float32(1)])
def test_a_number_is_its_name(value):
    assert named([value]) == [1]


@pytest.mark.parametrize("flag", [True, np.True_, "True"])
def test_a_truth_is_no_number(flag):
    """Python takes True for 1; a column that mixes them says two things."""
    assert named([1, flag, 1, flag]) == [1, 2, 1, 2]
    assert named([flag, 1]) == [2, 1]


@pytest.mark.parametrize("nothing", [None, float("nan"), np.float64("nan"), "", "  ", "\u200b"])
def test_nothing_is_nothing(nothing):
    assert named(["ill", nothing], optional=True) == [0, NOTHING]
    assert np.isnan(numbers([1, nothing])).tolist() == [False, True]
    with pytest.raises(RefusedCellError, match="one of the states in every row") as refused:
        named(["ill", nothing])
    assert refused.value.index == 1


@pytest.mark.parametrize(
    "foreign",
    [
        "well",
        2,
        0.5,
        1e300,
        float("inf"),
        False,
        b"ill",
        ["ill"],
        {"ill": 1},
        datetime.date(2020, 1, 1),
        decimal.Decimal("0.5"),
        1j,
    ],
    ids=repr,
)
def test_what_the_vocabulary_lacks_is_refused_at_its_first_place(foreign):
    with pytest.raises(RefusedCellError, match="of the vocabulary") as refused:
        named(["ill", 1, foreign, "ill", foreign], optional=True)
    assert refused.value.index == 2
    assert refused.value.value == foreign


@given(st.lists(st.sampled_from(["ill", 1, "1", 1.0, True, None]), max_size=20), st.integers(1, 5))
def test_decisions_are_remembered_across_parts(values, size):
    decided = Decided(name_decider(STATES, "states", optional=True))
    parts = [decided.numbers(values[i : i + size]) for i in range(0, len(values), size)]
    assert [int(n) for part in parts for n in part] == named(values, optional=True)


def test_plain_values_are_passed_on_as_they_are():
    values = ["ill", 1, None]
    assert plain(values) is values
    assert isinstance(plain([b"ill"])[0], Foreign)


class TestUsers:
    """Numbers in the order in which users first come."""

    def read(self, values):
        users = Users()
        return Decided(users.decide).numbers(values).tolist(), list(users)

    def test_spellings_are_one_user(self):
        values = ["bob", "ann", " bob", "b\u200bob", "\uff42ob\ufe0f", "Bob"]
        assert self.read(values) == ([0, 1, 0, 0, 0, 2], ["bob", "ann", "Bob"])

    def test_a_whole_number_is_one_user(self):
        assert self.read([7, 7.0, np.int64(7), "7"]) == ([0, 0, 0, 0], ["7"])

    def test_text_of_digits_stays_as_it_is(self):
        assert self.read(["007", "7", "7.0"]) == ([0, 1, 2], ["007", "7", "7.0"])

    @pytest.mark.parametrize(
        ("value", "sentence"),
        [
            (True, "by text or by integers"),
            (0.5, "by text or by integers"),
            (2.0**53, "by text or by integers"),
            (2**64, "by text or by integers"),
            (b"ann", "by text or by integers"),
            (["ann"], "by text or by integers"),
            (datetime.date(2020, 1, 1), "by text or by integers"),
            (None, "a name for every user"),
            (float("nan"), "a name for every user"),
            ("", "a name for every user"),
            ("\ufeff ", "a name for every user"),
            ("\ud800", "names of whole characters"),
            ("ann\0", "names without control characters"),
        ],
        ids=ascii,
    )
    def test_who_is_nobody_is_refused(self, value, sentence):
        with pytest.raises(RefusedCellError, match=sentence) as refused:
            self.read([1, "ann", value])
        assert refused.value.index == 2


@given(st.lists(st.floats(allow_nan=False) | st.integers(-9, 9), max_size=9))
def test_numbers_are_read_to_the_last_digit(values):
    assert numbers(values).tolist() == values
    assert numbers([repr(value) for value in values]).tolist() == values
    assert numbers([*map(repr, values), ""]).tolist()[:-1] == values


@pytest.mark.parametrize("flag", [True, np.True_])
def test_a_success_is_a_reward_of_one(flag):
    assert numbers([flag, None])[0] == 1


def test_decimals_of_a_data_base_are_numbers():
    assert numbers([decimal.Decimal("0.25"), None])[0] == 0.25


@pytest.mark.parametrize(
    "wrong", ["much", "1_0", "0,5", "0x1", 10**400, [1], 1j, datetime.date(2020, 1, 1)], ids=str
)
def test_what_is_no_number_is_refused_at_its_place(wrong):
    for values in ([1, wrong], [None, wrong, "x"]):
        with pytest.raises(RefusedCellError, match="a number") as refused:
            numbers(values)
        assert refused.value.index == 1
