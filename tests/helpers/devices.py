"""Descriptions, episodes and sources of bytes for tests of devices."""

import random

from discreet.device import ByteDraws, load


def classes(**changes):
    """Four states, two actions, three steps; rewards are paid for the right action."""
    plain = {
        "version": 1,
        "encoder": "classes",
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


def local(encoder, **changes):
    """The same problem for one-step or randomised response."""
    plain = classes(encoder=encoder, flip=[3, 16])
    for key in ("statistics", "last_transitions", "users", "lambda"):
        del plain[key]
    if encoder == "randomized-response":
        plain["statistics"] = ["transitions", "visits", "rewards"]
    return {key: value for key, value in (plain | changes).items() if value is not None}


ALL = {
    "classes": classes(),
    "one-step": local("one-step"),
    "randomized-response": local("randomized-response"),
}
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
