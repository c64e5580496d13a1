"""Descriptions and episodes: read as they are or refused by name, in both languages alike."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from discreet import device
from discreet.device import DeviceError, load
from discreet.device.description import (
    CODES,
    DROPPED_OUT,
    LARGEST,
    digest,
    fraction,
    plain_fraction,
    read_episode,
    read_sizes,
)
from helpers.devices import (
    ALL,
    BAD_DESCRIPTIONS,
    BAD_EPISODES,
    BAD_FLIPS,
    FOLLOWS,
    LEAVES,
    histogram,
    split,
)

pytestmark = pytest.mark.core


def code(description):
    with pytest.raises(DeviceError) as caught:
        load(description)
    assert str(caught.value).startswith(f"{caught.value.code}: Expected")
    return caught.value.code


def test_a_policy_and_its_rows_are_the_same_problem():
    rows = [
        (h * 4 + s) * 2 + a
        for h, row in enumerate(histogram()["policy"])
        for s, a in enumerate(row)
    ]
    assert read_sizes(histogram()) == read_sizes(histogram(policy=None, support=rows))
    known = read_sizes(histogram(start=[2]))
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
        load(histogram(**{"lambda": [f"{k}00", 100]})) for k in (39371, "39371" + "0" * 30)
    )
    assert small.groups == load(histogram(**{"lambda": [39371, 1]})).groups
    assert large.groups[0].noise > 10**30


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
    assert code(split(flip=flip)) == "badDescription"


def test_rows_number_the_support():
    sizes = read_sizes(histogram())
    assert read_episode(FOLLOWS, sizes).rows(sizes) == [0, 1, 2]
    assert read_episode(LEAVES, sizes).rows(sizes) == [0, DROPPED_OUT, DROPPED_OUT]


def test_an_unplayed_pair_beyond_the_last_row_has_left():
    sizes = read_sizes(histogram(policy=None, support=[0, 8, 16]))
    last = {"states": [3, 0, 0, 0], "actions": [1, 0, 0], "rewards": [0, 0, 0]}
    assert read_episode(last, sizes).rows(sizes) == [DROPPED_OUT] * 3


@pytest.mark.parametrize(
    "changes",
    [
        *BAD_EPISODES,
        {"rewards": [0, 0, float("nan")]},
        {"rewards": [0, 0, float("inf")]},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ALL)
def test_a_bad_episode_is_refused_by_name(name, changes):
    def source(length):
        raise AssertionError("nothing is drawn for an episode that is refused")

    with pytest.raises(DeviceError) as caught:
        load(ALL[name]).encode(FOLLOWS | changes, source)
    assert caught.value.code == "badEpisode"


@pytest.mark.parametrize("data", [None, [], 3, {"states": [0] * 4}])
def test_what_is_no_episode_is_refused(data):
    with pytest.raises(DeviceError, match="badEpisode"):
        load(histogram()).encode(data)


HERE = Path(device.__file__).parent


def test_an_error_carries_its_name_and_one_sentence():
    error = DeviceError("wrongLength", "Expected 4 bytes.")
    assert isinstance(error, ValueError)
    assert (error.code, str(error)) == ("wrongLength", "wrongLength: Expected 4 bytes.")


@pytest.mark.parametrize("files", ["*.py", "web/*.js"])
def test_both_languages_refuse_by_the_same_names(files):
    text = "".join(path.read_text("utf-8") for path in HERE.glob(files))
    used = set(re.findall(r'DeviceError\(\s*"(\w+)"', text))
    assert used == set(CODES)
