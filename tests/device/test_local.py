"""Local encoders on the device: how every report is distributed, slots, refusals."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from discreet.device import ByteDraws, DeviceError, load
from discreet.device.local import WEIGHTS, parts
from helpers.devices import BAD_FLIPS, FOLLOWS, LEAVES, Bytes, distribution, split

pytestmark = pytest.mark.core
TINY_SPLIT = {"states": 2, "actions": 1, "horizon": 1, "policy": None, "support": [0, 1]}


def split_users():
    """Everybody there is in the tiny problem."""
    for first, then, reward in itertools.product((0, 1), repeat=3):
        yield {"states": [first, then], "actions": [0], "rewards": [reward]}


@pytest.mark.parametrize("flip", [[1, 4], [3, 16]])
@pytest.mark.parametrize("support", [[0, 1], [0]])
@pytest.mark.parametrize(
    "names", [["transitions", "rewards"], ["rewards"], ["transitions"], ["visits"]]
)
def test_no_report_tells_more_than_its_proof_says(flip, support, names):
    """(1 - q)/q in exact fractions, whether a user follows the policy or has left it."""
    changes = {"flip": flip, "support": support, "statistics": names, "last_transitions": True}
    device, q = load(split(**(TINY_SPLIT | changes))), Fraction(*flip)
    distributions = [distribution(device, user) for user in split_users()]
    assert all(sum(one.values()) == 1 for one in distributions)
    ratio = max(
        one[sent] / other[sent] for one in distributions for other in distributions for sent in one
    )
    assert ratio == (1 - q) / q


def test_two_thirds_report_a_move_and_every_step_is_as_likely():
    device, told = load(split()), Counter()
    for user in (FOLLOWS, LEAVES):
        counts = Counter(device.encode(user, ByteDraws(Bytes(seed)))[0][0] for seed in range(1500))
        assert set(counts) == set(range(5))  # two steps of transitions, three of rewards
        told += counts
    for slot, share in enumerate([1 / 3] * 2 + [1 / 9] * 3):
        deviation = math.sqrt(3000 * share * (1 - share))
        assert abs(told[slot] - 3000 * share) < 5 * deviation
    assert WEIGHTS == {"transitions": 2, "rewards": 1}


class SilentSplit:
    """No false bits, true ones kept; a script says which statistic and step."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def below(self, bound, count):
        return [self.numbers.pop(0)]

    def rewards(self, rewards):
        return [int(reward > 0.5) for reward in rewards]

    def bits(self, numerator, denominator, count):
        return [int((numerator, denominator) == (1, 2))] * count


@pytest.mark.parametrize(
    ("numbers", "slot", "cell", "cells"),
    [
        ((0, 0), 0, 0 * 4 + 1, 16),
        ((1, 1), 1, 1 * 4 + 2, 16),
        ((2, 0), 2, 2 * 0 + 1, 8),
        ((2, 1), 3, 2 * 1 + 0, 8),
        ((2, 2), 4, 2 * 2 + 0, 8),
    ],
)
def test_cells_are_numbered_by_row_and_next_state_or_bit(numbers, slot, cell, cells):
    report = load(split()).encode(FOLLOWS, SilentSplit(*numbers))
    assert report == [[slot], [int(i == cell) for i in range(cells)]]


@pytest.mark.parametrize(("numbers", "ones"), [((0, 0), 1), ((0, 1), 0), ((2, 0), 1), ((2, 2), 0)])
def test_who_has_left_is_in_no_cell_from_then_on(numbers, ones):
    (_, bits) = load(split()).encode(LEAVES, SilentSplit(*numbers))
    assert sum(bits) == ones


def test_the_number_of_random_bytes_of_split_does_not_depend_on_the_episode():
    device = load(split())
    for seed in range(20):
        asked = set()
        for episode in (FOLLOWS, LEAVES, FOLLOWS | {"rewards": [0.5, 0.1, 1e-9]}):
            source = Bytes(seed)
            device.encode(episode, ByteDraws(source))
            asked.add(tuple(source.asked))
        assert len(asked) == 1


def test_what_there_is_to_report():
    both = parts(["rewards", "transitions"], 3, 4, last_transitions=True)
    assert [(part.statistic, part.steps, part.width) for part in both] == [
        ("transitions", 4, 3),
        ("rewards", 4, 2),
    ]
    assert [part.steps for part in parts(["visits"], 3, 4, last_transitions=False)] == [4]
    assert parts(["transitions"], 3, 1, last_transitions=False) == ()
    device = load(split(statistics=["rewards"]))
    assert device.slots == 3 and {device.cells(slot) for slot in range(3)} == {8}


@pytest.mark.parametrize("flip", BAD_FLIPS)
def test_bad_flips_of_split_are_refused(flip):
    with pytest.raises(DeviceError, match="badDescription"):
        load(split(flip=flip))


@pytest.mark.parametrize(
    "changes",
    [
        {"statistics": None},
        {"statistics": ["transitions", "transitions"]},
        {"statistics": ["losses"]},
        {"last_transitions": None},
        {"last_transitions": 1},
        {"users": 100},
        TINY_SPLIT | {"statistics": ["transitions"], "last_transitions": False},
    ],
)
def test_bad_descriptions_of_split_are_refused(changes):
    with pytest.raises(DeviceError, match="badDescription"):
        load(split(**changes))


def test_slots_out_of_range_and_padding_are_refused():
    device = load(split())
    data = device.to_bytes(device.encode(FOLLOWS, ByteDraws(Bytes(0))))
    for slot in (5, 2**32 - 1):
        with pytest.raises(DeviceError, match="cellOutOfRange"):
            device.from_bytes(data[:38] + slot.to_bytes(4) + data[42:])
    for slot in (5, -1):
        with pytest.raises(DeviceError, match="cellOutOfRange"):
            device.to_bytes([[slot], [0] * 8])
    with pytest.raises(DeviceError, match="cellOutOfRange"):
        device.to_bytes([[0], [2] + [0] * 15])
    short = device.to_bytes([[2], [1] * 8])
    assert short[42:] == b"\xff\0" and device.from_bytes(short) == [[2], [1] * 8]
    with pytest.raises(DeviceError, match="badPadding"):
        device.from_bytes(short[:-1] + b"\1")
