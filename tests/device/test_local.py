"""Local encoders on the device: how every report is distributed, slots, refusals."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from discreet.device import ByteDraws, DeviceError, load
from discreet.device.local import WEIGHTS, parts
from helpers.devices import BAD_FLIPS, FOLLOWS, LEAVES, Bytes, distribution, local

pytestmark = pytest.mark.core
TINY = {"states": 1, "actions": 2, "horizon": 2, "policy": None, "support": [0, 1, 2, 3]}


def users():
    """Everybody there is in the tiny problem."""
    for actions in itertools.product((0, 1), repeat=2):
        for rewards in itertools.product((0, 1), repeat=2):
            yield {"states": [0, 0, 0], "actions": list(actions), "rewards": list(rewards)}


def largest_ratio(device):
    distributions = [distribution(device, user) for user in users()]
    assert all(sum(one.values()) == 1 for one in distributions)
    return max(
        one[sent] / other[sent] for one in distributions for other in distributions for sent in one
    )


@pytest.mark.parametrize("flip", [[1, 4], [3, 16], [7, 64]])
@pytest.mark.parametrize("support", [[0, 1, 2, 3], [0, 3], [0, 1, 2]])
def test_one_step_keeps_the_ratio_of_its_proof(flip, support):
    """(1 - q)/q, in exact fractions; less where nobody can hold two categories."""
    q = Fraction(*flip)
    ratio = largest_ratio(load(local("one-step", **(TINY | {"flip": flip, "support": support}))))
    assert ratio == (1 - q) / q


@pytest.mark.parametrize("flip", [[1, 4], [3, 16]])
@pytest.mark.parametrize("names", [["visits"], ["rewards"], ["visits", "rewards"]])
def test_randomised_response_keeps_the_ratio_of_its_proof(flip, names):
    """((1 - q)/q) to the number of bits in which two users differ: 2 per step and statistic."""
    q = Fraction(*flip)
    tiny = TINY | {"flip": flip, "statistics": names, "horizon": 1, "support": [0, 1]}
    device = load(local("randomized-response", **tiny))
    steps = [{"actions": [a], "rewards": [r]} for a in (0, 1) for r in (0, 1)]
    distributions = [distribution(device, {"states": [0, 0]} | step) for step in steps]
    ratio = max(
        one[sent] / other[sent] for one in distributions for other in distributions for sent in one
    )
    assert ratio == ((1 - q) / q) ** (2 * len(names))


def test_what_one_step_reports_is_the_category_of_its_step():
    device = load(local("one-step"))
    truth = {h: Counter() for h in range(3)}
    for seed in range(400):
        (step,), bits = device.encode(FOLLOWS, ByteDraws(Bytes(seed)))
        truth[step].update(i for i, bit in enumerate(bits) if bit)
        truth[step]["reports"] += 1
    own = [0 * 8 + 2 * 1 + 1, None, 2 * 8 + 2 * 3 + 0]  # (row·S + s')·2 + bit
    for step in (0, 2):
        n = truth[step]["reports"]
        assert abs(truth[step][own[step]] / n - 1 / 2) < 5 * math.sqrt(0.25 / n)
        false = [truth[step][i] / n for i in range(32) if i != own[step]]
        assert abs(sum(false) / 31 - 3 / 16) < 0.02
    assert sum(truth[h]["reports"] for h in range(3)) == 400


class Silent:
    """No false bits; true ones are kept."""

    def __init__(self, step=0):
        self.step = step

    def below(self, bound, count):
        return [self.step]

    def rewards(self, rewards):
        return [int(reward > 0.5) for reward in rewards]

    def bits(self, numerator, denominator, count):
        return [int((numerator, denominator) == (1, 2))] * count


@pytest.mark.parametrize(("step", "place"), [(0, 3), (1, 12), (2, 22)])
def test_categories_are_numbered_by_row_next_state_and_bit(step, place):
    device = load(local("one-step"))
    assert device.encode(FOLLOWS, Silent(step)) == [[step], [int(i == place) for i in range(32)]]


def test_who_has_left_is_in_no_category():
    device = load(local("one-step"))
    assert sum(device.encode(LEAVES, Silent(0))[1]) == 1
    for step in (1, 2):
        assert device.encode(LEAVES, Silent(step)) == [[step], [0] * 32]


def test_counters_stand_in_the_order_of_the_statistics():
    names = ["rewards", "transitions", "visits"]
    device = load(local("randomized-response", statistics=names))
    (bits,) = device.encode(FOLLOWS, Silent())
    assert len(bits) == device.counters == 12 + 48 + 12
    ones = [i for i, bit in enumerate(bits) if bit]
    rewards, moves, visits = [0], [1, 16 + 4 + 2, 32 + 8 + 3], [0, 4 + 1, 8 + 2]
    assert ones == rewards + [12 + i for i in moves] + [60 + i for i in visits]
    (bits,) = device.encode(LEAVES, Silent())
    assert [i for i, bit in enumerate(bits) if bit] == [12 + 1, 60]


@pytest.mark.parametrize("name", ["one-step", "randomized-response"])
def test_the_number_of_random_bytes_does_not_depend_on_the_episode(name):
    device, asked = load(local(name)), set()
    for episode in (FOLLOWS, LEAVES, FOLLOWS | {"rewards": [0.5, 0.1, 1e-9]}):
        source = Bytes(9)
        device.encode(episode, ByteDraws(source))
        asked.add(tuple(source.asked))
    assert len(asked) == 1


TINY_SPLIT = {"states": 2, "actions": 1, "horizon": 1, "policy": None, "support": [0, 1]}


def split(**changes):
    return local("split", **changes)


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
