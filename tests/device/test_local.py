"""One step and randomised response on the device: the exact law of every report."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from discreet.device import ByteDraws, load
from helpers.devices import FOLLOWS, LEAVES, Bytes, law, local

pytestmark = pytest.mark.core
TINY = {"states": 1, "actions": 2, "horizon": 2, "policy": None, "support": [0, 1, 2, 3]}


def users():
    """Everybody there is in the tiny problem."""
    for actions in itertools.product((0, 1), repeat=2):
        for rewards in itertools.product((0, 1), repeat=2):
            yield {"states": [0, 0, 0], "actions": list(actions), "rewards": list(rewards)}


def largest_ratio(device):
    laws = [law(device, user) for user in users()]
    assert all(sum(one.values()) == 1 for one in laws)
    return max(one[sent] / other[sent] for one in laws for other in laws for sent in one)


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
    laws = [law(device, {"states": [0, 0]} | step) for step in steps]
    ratio = max(one[sent] / other[sent] for one in laws for other in laws for sent in one)
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
