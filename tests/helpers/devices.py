"""Descriptions, episodes and sources of bytes for tests of devices."""

import random
from collections import Counter
from fractions import Fraction

from discreet.device import ByteDraws, load


def histogram(**changes):
    """Four states, two actions, three steps; rewards are paid for the right action."""
    plain = {
        "version": 1,
        "encoder": "histogram",
        "states": 4,
        "actions": 2,
        "horizon": 3,
        "policy": [[0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]],
        "statistics": ["transitions", "rewards"],
        "last_transitions": False,
        "users": 2000,
        "lambda": [39371, 100],
    }
    return {key: value for key, value in (plain | changes).items() if value is not None}


FOLLOWS = {"states": [0, 1, 2, 3], "actions": [0, 1, 0], "rewards": [1.0, 0.25, 0.0]}
LEAVES = {"states": [0, 1, 2, 3], "actions": [0, 0, 0], "rewards": [0.0, 1.0, 1.0]}
"""Off the policy at the second step."""


class Bytes:
    """Seeded bytes; remembers how many were asked for, call by call."""

    def __init__(self, seed=0):
        self._random = random.Random(seed)
        self.asked = []

    def __call__(self, length):
        self.asked.append(length)
        return self._random.randbytes(length)


def split(**changes):
    """The same problem for split reports."""
    plain = histogram(encoder="split", flip=[3, 16], users=None) | changes
    return {key: value for key, value in plain.items() if value is not None and key != "lambda"}


ALL = {"histogram": histogram(), "split": split()}
"""One description of each encoder."""


class Recorded:
    """A source that hands out given bytes one after the other, and more when they run out."""

    def __init__(self, given, seed=0):
        self._left, self._more = given, random.Random(seed)
        self.used = b""

    def __call__(self, length):
        drawn, self._left = self._left[:length], self._left[length:]
        drawn += self._more.randbytes(length - len(drawn))
        self.used += drawn
        return drawn


def vector(description, episode, given=b"", seed=0):
    """Random bytes in, report and bytes out: what both languages must agree on."""
    device, source = load(description), Recorded(given, seed)
    report = device.encode(episode, ByteDraws(source))
    return {
        "description": description,
        "episode": episode,
        "random": source.used.hex(),
        "report": report,
        "bytes": device.to_bytes(report).hex(),
    }


class Exact:
    """Draws that follow a script of choices and multiply up their probabilities as fractions."""

    def __init__(self, script):
        self.script, self.taken, self.sizes = script, [], []
        self.probability = Fraction(1)

    def _choose(self, chances):
        at = len(self.taken)
        choice = self.script[at] if at < len(self.script) else 0
        self.taken.append(choice)
        self.sizes.append(len(chances))
        self.probability *= chances[choice]
        return choice

    def below(self, bound, count):
        return [self._choose([Fraction(1, bound)] * bound) for _ in range(count)]

    def noise(self, cells, weight, count):
        q = Fraction(weight, 2**32)
        return [self._choose([q / cells] * cells + [1 - q]) for _ in range(count)]

    def _bit(self, one):
        return int(one) if one in (0, 1) else self._choose([1 - one, one])

    def rewards(self, rewards):
        return [self._bit(Fraction(reward)) for reward in rewards]

    def bits(self, numerator, denominator, count):
        return [self._bit(Fraction(numerator, denominator)) for _ in range(count)]


def distribution(device, episode):
    """Every report of an episode with its exact probability."""
    found, todo = Counter(), [[]]
    while todo:
        script = todo.pop()
        draws = Exact(script)
        report = device.encode(episode, draws)
        found[tuple(map(tuple, report))] += draws.probability
        for at in range(len(script), len(draws.taken)):
            todo += [[*draws.taken[:at], other] for other in range(1, draws.sizes[at])]
    return found


BAD_DESCRIPTIONS = [
    ({"version": 2}, "unknownVersion"),
    ({"version": None}, "unknownVersion"),
    ({"version": True}, "unknownVersion"),
    ({"version": "1"}, "unknownVersion"),
    ({"encoder": "bits"}, "unknownEncoder"),
    ({"encoder": None}, "unknownEncoder"),
    ({"encoder": ["histogram"]}, "unknownEncoder"),
    ({"noise": 0}, "badDescription"),
    ({"states": 0}, "badDescription"),
    ({"states": "4"}, "badDescription"),
    ({"actions": True}, "badDescription"),
    ({"horizon": 2}, "badDescription"),
    ({"horizon": 2**16 + 1, "policy": None, "support": []}, "badDescription"),
    ({"states": 2**30, "actions": 2**30, "policy": None, "support": []}, "badDescription"),
    ({"policy": None}, "badDescription"),
    ({"support": [0]}, "badDescription"),
    ({"policy": [[0, 1, 0, 2]] * 3}, "badDescription"),
    ({"policy": [[0, 1, 0, 0.5]] * 3}, "badDescription"),
    ({"policy": [[0, 1, 0]] * 3}, "badDescription"),
    ({"policy": [0, 1, 0]}, "badDescription"),
    ({"policy": "0101"}, "badDescription"),
    ({"policy": None, "support": [0, 24]}, "badDescription"),
    ({"policy": None, "support": [1, 0]}, "badDescription"),
    ({"policy": None, "support": [1, 1]}, "badDescription"),
    ({"policy": None, "support": {"0": 1}}, "badDescription"),
    ({"policy": None, "support": [0], "start": [0]}, "badDescription"),
    ({"start": [4]}, "badDescription"),
    ({"start": 0}, "badDescription"),
]
"""Changes to any description (None: without this key), and the name of the refusal."""
BAD_FLIPS = [[0, 2], [2, 2], [1, 3], [3, 2], 0.25, "1/4", [1], [1, 2, 4], [1, "02"], [0.5, 1], None]
BAD_EPISODES = [
    {"states": [0, 1, 2]},
    {"states": [0, 1, 2, 4]},
    {"states": [0, 1, 2, -1]},
    {"states": [0, 1, 2, 0.5]},
    {"states": [0, 1, 2, True]},
    {"states": "0123"},
    {"actions": [0, 1, 2]},
    {"actions": [0, 1]},
    {"actions": None},
    {"rewards": [0, 0, 1.0000001]},
    {"rewards": [0, 0, -1e-9]},
    {"rewards": [0, 0, "1"]},
    {"rewards": [0, 0, True]},
    {"rewards": [0, 0, 0, 0]},
    {"name": "Ada"},
]
"""Changes to an episode."""
