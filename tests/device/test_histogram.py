"""Groups: how many messages, how much noise, whose cell is which, how reports are distributed."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.device import ByteDraws, DeviceError, HistogramDevice, cell_from_bytes, cell_to_bytes
from discreet.device.histogram import MessageGroup, layout
from helpers.devices import FOLLOWS, LEAVES, Bytes, distribution, histogram

pytestmark = pytest.mark.core


class Silent:
    """No noise but dummies; data cells go to the given place."""

    def __init__(self, place=0):
        self.place = place

    def below(self, bound, count):
        return [min(self.place, bound - 1)] * count

    def noise(self, cells, weight, count):
        return [cells] * count

    def rewards(self, rewards):
        return [int(reward > 0.5) for reward in rewards]


def own_cells(device, episode):
    """The data cells of a report without noise, group by group."""
    report = device.encode(episode, Silent())
    found = []
    for one, cells in zip(device.groups, report, strict=True):
        data = [cell for cell in cells if cell != one.cells]
        assert len(cells) == 1 + one.noise and len(data) == 1
        found += data
    return found


def test_groups_stand_in_public_order():
    steps = {"transitions": [0, 1], "rewards": [0, 1, 2], "visits": [0, 1, 2]}
    device = HistogramDevice(histogram(statistics=["visits", "rewards", "transitions"]))
    expected = [(name, step) for name, each in steps.items() for step in each]
    assert [(one.statistic, one.step) for one in device.groups] == expected
    assert [one.cells for one in device.groups] == [17, 17, 9, 9, 9, 5, 5, 5]
    last = HistogramDevice(histogram(last_transitions=True))
    assert [one.step for one in last.groups] == [0, 1, 2, 0, 1, 2]


def test_one_step_has_rewards_only():
    one = {"horizon": 1, "policy": [[0, 1, 0, 1]]}
    device = HistogramDevice(histogram(**one))
    assert [one.statistic for one in device.groups] == ["rewards"]
    with pytest.raises(DeviceError, match=r"badDescription.*two steps"):
        HistogramDevice(histogram(statistics=["transitions"], **one))


def test_every_group_gets_the_users_own_cell():
    device = HistogramDevice(histogram(statistics=["transitions", "rewards", "visits"]))
    # transitions: row·4 + next; rewards: 2·row + bit; visits: row
    assert own_cells(device, FOLLOWS) == [0 * 4 + 1, 1 * 4 + 2, 1, 2, 4, 0, 1, 2]


def test_dropping_out_is_for_good():
    """From the first step off the policy on, also where later steps would follow it again."""
    device = HistogramDevice(histogram(statistics=["transitions", "rewards", "visits"]))
    assert own_cells(device, LEAVES) == [0 * 4 + 1, 16, 0, 8, 8, 0, 4, 4]


def test_rows_follow_the_support():
    support = [
        0,
        3,
        5,
        8,
        9,
        10,
        20,
    ]  # step 0: s0a0 s1a1 s2a1; step 1: s0a0 s0a1 s1a0; step 2: s2a0
    device = HistogramDevice(histogram(policy=None, support=support, statistics=["visits"]))
    assert [one.cells for one in device.groups] == [4, 4, 2]
    episode = {"states": [2, 0, 2, 0], "actions": [1, 1, 0], "rewards": [0, 0, 0]}
    assert own_cells(device, episode) == [2, 1, 0]


def test_a_start_that_is_known_leaves_fewer_cells():
    device = HistogramDevice(histogram(start=[1, 3], statistics=["visits"]))
    assert [one.cells for one in device.groups] == [3, 5, 5]
    episode = {"states": [3, 0, 0, 0], "actions": [1, 1, 0], "rewards": [0, 0, 0]}
    assert own_cells(device, episode) == [1, 0, 0]
    assert own_cells(device, FOLLOWS) == [2, 4, 4]  # she did not start there


@pytest.mark.parametrize(("users", "noise"), [(6, 2), (11, 1), (4, 3)])
def test_the_distribution_of_a_report_is_one_data_cell_at_a_random_place_among_independent_noise(
    users, noise
):
    tiny = {"states": 1, "actions": 2, "horizon": 1, "policy": [[0]], "statistics": ["rewards"]}
    device = HistogramDevice(histogram(users=users, **(tiny | {"lambda": [3, 1]})))
    (one,) = device.groups
    assert (one.cells, one.noise) == (3, noise)
    q = Fraction(one.weight, 2**32)
    assert q == min(1, Fraction(-(-(2**32) * 9 // (users * noise)), 2**32))
    chance = [q / 3] * 3 + [1 - q]  # of one noise cell
    for reward, action, own in (
        (0, 0, {0: 1}),
        (0.75, 0, {0: Fraction(1, 4), 1: Fraction(3, 4)}),
        (0, 1, {one.dropped_out: 1}),  # she left the policy
    ):
        expected = Counter()
        for cells in itertools.product(range(4), repeat=1 + noise):
            for place, (cell, likely) in itertools.product(range(1 + noise), own.items()):
                others = [chance[other] for i, other in enumerate(cells) if i != place]
                hit = cells[place] == cell
                expected[(cells,)] += hit * likely * math.prod(others) / (1 + noise)
        seen = distribution(device, {"states": [0, 0], "actions": [action], "rewards": [reward]})
        assert +seen == +expected


def test_the_number_of_messages_and_of_random_bytes_does_not_depend_on_the_episode():
    device = HistogramDevice(histogram())
    asked, sizes = set(), set()
    still = {"states": [3, 3, 3, 3], "actions": [1, 1, 0], "rewards": [0, 1, 1e-300]}
    for episode in (FOLLOWS, LEAVES, still):
        source = Bytes(5)
        report = device.encode(episode, ByteDraws(source))
        asked.add(tuple(source.asked))
        sizes.add(tuple(len(cells) for cells in report))
    assert len(asked) == len(sizes) == 1
    assert sizes == {tuple(one.messages for one in device.groups)}


def test_noise_comes_from_the_operating_system_unless_a_test_brings_its_own():
    device = HistogramDevice(histogram(users=50))
    assert device.encode(FOLLOWS) != device.encode(FOLLOWS)
    one, other = (device.encode(FOLLOWS, ByteDraws(Bytes(1))) for _ in range(2))
    assert one == other


def test_a_report_that_is_too_large_is_refused_before_it_is_made():
    device = HistogramDevice(histogram(users=1, **{"lambda": [10**9, 1]}))
    assert device.messages > 10**9
    with pytest.raises(DeviceError, match="tooLarge"):
        device.encode(FOLLOWS)


@pytest.mark.parametrize(
    "changes",
    [
        {"statistics": []},
        {"statistics": ["losses"]},
        {"statistics": ["rewards", "rewards"]},
        {"statistics": "rewards"},
        {"last_transitions": 1},
        {"users": 0},
        {"users": True},
        {"users": 1.5},
        {"lambda": [0, 1]},
        {"lambda": [1, 0]},
        {"lambda": 393.71},
        {"lambda": [2**53, 1]},
        {"lambda": ["0393", "1"]},
        {"states": 2**17, "policy": None, "support": list(range(2**16)), "actions": 1},
    ],
    ids=str,
)
def test_a_bad_description_is_refused(changes):
    with pytest.raises(DeviceError, match=r"^badDescription: Expected"):
        HistogramDevice(histogram(**changes))


def test_a_cell_takes_four_bytes():
    one = MessageGroup("rewards", 0, 9, 1, 2**32)
    assert cell_to_bytes(7) == b"\0\0\0\7"
    assert [cell_from_bytes(cell_to_bytes(c), one) for c in range(10)] == list(range(10))
    for data, code in (
        (b"\0\0\0\x0a", "cellOutOfRange"),
        (b"\0\0\7", "wrongLength"),
        (7, "notBytes"),
    ):
        with pytest.raises(DeviceError) as caught:
            cell_from_bytes(data, one)
        assert caught.value.code == code
    for cell in (-1, 2**32, 0.5, "7", None, True):
        with pytest.raises(DeviceError, match="cellOutOfRange"):
            cell_to_bytes(cell)


@given(
    st.integers(1, 10**6),
    st.integers(1, 10**12),
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**9),
)
def test_noise_per_user_is_the_least_that_suffices(rows, users, mean):
    (one,) = layout(
        [rows],
        2,
        ["visits"],
        last_transitions=False,
        users=users,
        mean=(mean.numerator, mean.denominator),
    )
    assert one.cells == rows + 1
    exact = one.cells * mean / users
    assert one.noise == math.ceil(exact) >= 1
    per_user = one.noise * Fraction(one.weight, 2**32)
    assert exact <= per_user
    assert per_user <= one.noise and per_user - exact < Fraction(one.noise, 2**32)


def test_the_published_size():
    """22 messages at S=4, H=6, n=20,000 and 13,664 at the size of ICU-Sepsis."""
    size = {"statistics": ["transitions", "rewards"], "last_transitions": False}
    small = layout([4] * 6, 4, users=20_000, mean=(39371, 100), **size)
    assert sum(one.messages for one in small) == 22
    large = layout([716] * 20, 716, users=10**6, mean=(1393, 1), **size)
    assert sum(one.messages for one in large) == 13_664
    huge = layout([716] * 20, 716, users=10**8, mean=(1393, 1), **size)
    assert sum(one.messages for one in huge) == 211


def test_statistics_stand_in_one_order_however_they_are_asked_for():
    size = {"last_transitions": True, "users": 9, "mean": (1, 3)}
    one, other = (
        layout([1, 2], 3, names, **size)
        for names in (["rewards", "transitions"], ("transitions", "rewards"))
    )
    assert one == other
    assert [(c.statistic, c.step, c.cells) for c in one] == [
        ("transitions", 0, 4),
        ("transitions", 1, 7),
        ("rewards", 0, 3),
        ("rewards", 1, 5),
    ]
    assert [c.dropped_out for c in one] == [3, 6, 2, 4]


def test_a_step_that_plays_nothing_has_the_cell_of_dropouts_alone():
    (one,) = layout([0], 3, ["rewards"], last_transitions=False, users=9, mean=(10, 1))
    assert (one.cells, one.dropped_out, one.messages) == (1, 0, 3)
