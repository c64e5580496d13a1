"""Episodes: read as they are or refused by name; who leaves the policy has left for good."""

import pytest

from discreet.device import DeviceError, load
from discreet.device.description import problem
from discreet.device.episode import LEFT, read_episode
from helpers.devices import ALL, BAD_EPISODES, FOLLOWS, LEAVES, classes

pytestmark = pytest.mark.core


def test_rows_number_what_is_played():
    sizes = problem(classes())
    assert read_episode(FOLLOWS, sizes).rows(sizes) == [0, 1, 2]
    assert read_episode(LEAVES, sizes).rows(sizes) == [0, LEFT, LEFT]


def test_an_unplayed_pair_beyond_the_last_row_has_left():
    sizes = problem(classes(policy=None, support=[0, 8, 16]))
    last = {"states": [3, 0, 0, 0], "actions": [1, 0, 0], "rewards": [0, 0, 0]}
    assert read_episode(last, sizes).rows(sizes) == [LEFT] * 3


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
        load(classes()).encode(data)
