"""Descriptions: what is played, exact fractions, and every bad one refused by name."""

import hashlib
import json

import pytest

from discreet.device import DeviceError, load
from discreet.device.description import LARGEST, digest, fraction, plain_fraction, problem
from helpers.devices import ALL, BAD_DESCRIPTIONS, BAD_FLIPS, classes, local

pytestmark = pytest.mark.core


def code(description):
    with pytest.raises(DeviceError) as caught:
        load(description)
    assert str(caught.value).startswith(f"{caught.value.code}: Expected")
    return caught.value.code


def test_a_policy_and_its_rows_are_the_same_problem():
    rows = [
        (h * 4 + s) * 2 + a for h, row in enumerate(classes()["policy"]) for s, a in enumerate(row)
    ]
    assert problem(classes()) == problem(classes(policy=None, support=rows))
    known = problem(classes(start=[2]))
    assert known.rows == [1, 4, 4] and known.pairs[0] == (4,)


@pytest.mark.parametrize("name", ALL)
def test_a_description_survives_json_and_names_its_batch(name):
    device = load(ALL[name])
    copy = load(json.loads(json.dumps(device.to_dict())))
    assert copy.to_dict() == ALL[name] and copy.batch == device.batch and len(device.batch) == 32
    assert device.batch != load(ALL[name] | {"policy": [[1] * 4] * 3}).batch


def test_a_digest_is_that_of_sorted_json():
    text = b'{"a":[1,"x"],"b":true}'
    assert digest({"b": True, "a": [1, "x"]}) == hashlib.sha256(text).digest()


def test_large_integers_travel_as_text():
    assert plain_fraction(LARGEST, LARGEST + 1) == [LARGEST, str(LARGEST + 1)]
    assert fraction(["9" * 400, 1], "x") == (int("9" * 400), 1)
    small, large = (
        load(classes(**{"lambda": [f"{k}00", 100]})) for k in (39371, "39371" + "0" * 30)
    )
    assert small.classes == load(classes(**{"lambda": [39371, 1]})).classes
    assert large.classes[0].noise > 10**30


@pytest.mark.parametrize(
    ("changes", "expected"),
    BAD_DESCRIPTIONS,
    ids=str,
)
@pytest.mark.parametrize("name", ALL)
def test_every_bad_description_is_refused_by_name(name, changes, expected):
    data = ALL[name] | changes
    assert code({key: value for key, value in data.items() if value is not None}) == expected


@pytest.mark.parametrize("data", [None, [], "histogram", 1, [["version", 1]]])
def test_what_is_no_dictionary_is_no_description(data):
    assert code(data) == "badDescription"


@pytest.mark.parametrize("flip", BAD_FLIPS, ids=str)
def test_a_flip_is_a_fraction_below_one_with_a_power_of_two(flip):
    assert code(local("one-step", flip=flip)) == "badDescription"
    assert code(local("randomized-response", flip=flip)) == "badDescription"
