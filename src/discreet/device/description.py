"""What a device is given, in both languages alike: a public description, and one user's episode.

A description is a plain dictionary. Keys of every one: ``version`` (1), ``encoder``, ``states``,
``actions``, ``horizon`` and what the batch's public policy can play, either as

- ``policy``: H lists of S actions, with ``start`` (the states a user can start in) where known, or
- ``support``: ascending numbers (h·S + s)·A + a.

Fractions are lists ``[numerator, denominator]`` of positive integers; from 2^53 on an integer is
written as a decimal string, because JSON in a browser cannot hold it. There are no floating-point
numbers in a description.
"""

import hashlib
import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

VERSION = 1
STATISTICS = ("transitions", "rewards", "visits")
"""In the order of their groups."""
LARGEST = (1 << 53) - 1
"""The largest integer that JavaScript's numbers hold exactly."""
LONGEST = 1 << 16
"""Steps."""
DROPPED_OUT = -1
"""The row of a step at which the user had left the policy."""
CODES = (
    "unknownVersion",  # of a description or of bytes
    "unknownEncoder",
    "badDescription",
    "badEpisode",
    "badReport",  # messages that no encoder made
    "notBytes",
    "wrongLength",
    "otherBatch",  # bytes made for another description: another K, policy or mechanism
    "cellOutOfRange",
    "badPadding",
    "badRandomness",  # the source of bytes gave another number of them
    "tooLarge",  # a report of more than 16 MB
)
"""Reasons for a refusal, the same in Python and in JavaScript."""
_DIGITS = 400
_COMMON = {"version", "encoder", "states", "actions", "horizon", "policy", "support", "start"}

Plain: TypeAlias = bool | int | str | Sequence["Plain"]
"""What a description may say."""
Description: TypeAlias = Mapping[str, Plain]


class DeviceError(ValueError):
    """Something was refused; nothing was encoded, sent or counted.

    Attributes:
        code: the reason, one of `CODES`.
    """

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(f"{code}: {sentence}")
        self.code = code


def bad(sentence: str) -> DeviceError:
    return DeviceError("badDescription", sentence)


def integer(value: object, name: str, least: int = 1, most: int = LARGEST) -> int:
    """The value, if it is an integer from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise bad(f"Expected {name} to be an integer from {least} to {most}.")
    return value


def fraction(value: object, name: str) -> tuple[int, int]:
    """Numerator and denominator, positive both."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise bad(f"Expected {name} as [numerator, denominator].")
    return _large(value[0], name), _large(value[1], name)


def _large(value: object, name: str) -> int:
    if not isinstance(value, str):
        return integer(value, f"{name} (a decimal string from 2^53 on)")
    if not (value.isascii() and value.isdigit() and value[0] != "0" and len(value) <= _DIGITS):
        raise bad(f"Expected {name} in decimal digits.")
    return int(value)


def plain_fraction(numerator: int, denominator: int) -> list[int | str]:
    """As a description says it.

    >>> plain_fraction(3, 1 << 60)
    [3, '1152921504606846976']
    """
    return [n if n <= LARGEST else str(n) for n in (numerator, denominator)]


@dataclass(frozen=True)
class Sizes:
    """Sizes, and what the public policy can play.

    Attributes:
        states: S.
        actions: A.
        horizon: H.
        pairs: for every step the support s·A + a, ascending.
    """

    states: int
    actions: int
    horizon: int
    pairs: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> list[int]:
        """Pairs of the support, per step."""
        return [len(step) for step in self.pairs]


def check(data: object, encoder: str, more: set[str]) -> Description:
    """The dictionary, if its version, encoder and keys are known."""
    if not isinstance(data, Mapping):
        raise bad("Expected a dictionary.")
    if type(data.get("version")) is not int or data["version"] != VERSION:
        raise DeviceError("unknownVersion", f"Expected a description of version {VERSION}.")
    if data.get("encoder") != encoder:
        raise DeviceError("unknownEncoder", f"Expected a description of the encoder {encoder!r}.")
    if unknown := sorted(str(key) for key in data if key not in _COMMON | more):
        raise bad(f"Expected no key {unknown[0]!r}.")
    return data


def read_sizes(data: Description) -> Sizes:
    """Sizes and support of a description."""
    states = integer(data.get("states"), "states")
    actions = integer(data.get("actions"), "actions")
    horizon = integer(data.get("horizon"), "horizon", 1, LONGEST)
    integer(states * actions * horizon, "states·actions·horizon")
    if ("policy" in data) == ("support" in data):
        raise bad("Expected either policy or support.")
    if "policy" in data:
        pairs = _pairs_of_policy(data, states, actions, horizon)
    else:
        pairs = _pairs_of_rows(data, states * actions, horizon)
    return Sizes(states, actions, horizon, pairs)


def _ascending(value: object, name: str, size: int) -> list[int]:
    if not isinstance(value, list | tuple):
        raise bad(f"Expected {name} to be a list.")
    numbers = [integer(number, name, 0, size - 1) for number in value]
    if any(low >= high for low, high in pairwise(numbers)):
        raise bad(f"Expected {name} in ascending order.")
    return numbers


def _pairs_of_rows(data: Description, width: int, horizon: int) -> tuple[tuple[int, ...], ...]:
    if "start" in data:
        raise bad("Expected start with a policy only; support says it already.")
    steps: list[list[int]] = [[] for _ in range(horizon)]
    for number in _ascending(data["support"], "support", horizon * width):
        steps[number // width].append(number % width)
    return tuple(map(tuple, steps))


def _pairs_of_policy(
    data: Description, states: int, actions: int, horizon: int
) -> tuple[tuple[int, ...], ...]:
    policy = data["policy"]
    if (
        not isinstance(policy, list | tuple)
        or len(policy) != horizon
        or any(not isinstance(row, list | tuple) or len(row) != states for row in policy)
    ):
        raise bad("Expected policy as H lists of S actions.")
    start = _ascending(data.get("start", list(range(states))), "start", states)
    steps = []
    for h, row in enumerate(policy):
        chosen = [integer(action, "an action of the policy", 0, actions - 1) for action in row]
        steps.append(tuple(s * actions + chosen[s] for s in (range(states) if h else start)))
    return tuple(steps)


def read_statistics(value: object) -> list[str]:
    """Names of statistics, each of them once."""
    if not isinstance(value, list | tuple) or not value or any(v not in STATISTICS for v in value):
        raise bad(f"Expected statistics among {', '.join(STATISTICS)}.")
    if len(set(value)) != len(value):
        raise bad("Expected every statistic once.")
    return list(value)


def read_truth(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise bad(f"Expected {name} to be true or false.")
    return value


def plain_copy(data: Description) -> dict[str, Plain]:
    """A description of its own: who changes one does not change the other."""
    return {key: _copied(value) for key, value in data.items()}


def _copied(value: Plain) -> Plain:
    return [_copied(part) for part in value] if isinstance(value, list | tuple) else value


def digest(data: Description) -> bytes:
    """SHA-256 of the description as JSON in ASCII, keys sorted, no spaces: names a batch."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).digest()


@dataclass(frozen=True)
class Episode:
    """What a user did: H + 1 states, H actions, H rewards from 0 to 1. Never leaves the device."""

    states: list[int]
    actions: list[int]
    rewards: list[float]

    def rows(self, sizes: Sizes) -> list[int]:
        """For every step its row in the support, `DROPPED_OUT` from the first step outside on.

        >>> still = Sizes(states=1, actions=2, horizon=3, pairs=((0,), (0,), (0, 1)))
        >>> Episode([0] * 4, [0, 1, 1], [0.0] * 3).rows(still)
        [0, -1, -1]
        """
        rows, inside = [], True
        for h, pairs in enumerate(sizes.pairs):
            pair = self.states[h] * sizes.actions + self.actions[h]
            row = bisect_left(pairs, pair)
            inside = inside and row < len(pairs) and pairs[row] == pair
            rows.append(row if inside else DROPPED_OUT)
        return rows


def read_episode(data: object, sizes: Sizes) -> Episode:
    """The episode, if it fits the sizes. One that leaves the policy does."""
    if not isinstance(data, Mapping) or set(data) != {"states", "actions", "rewards"}:
        raise DeviceError("badEpisode", "Expected a dictionary of states, actions and rewards.")
    return Episode(
        _integers(data["states"], "states", sizes.horizon + 1, sizes.states),
        _integers(data["actions"], "actions", sizes.horizon, sizes.actions),
        _rewards(data["rewards"], sizes.horizon),
    )


def _list(value: object, name: str, length: int) -> list[object]:
    if not isinstance(value, list | tuple) or len(value) != length:
        raise DeviceError("badEpisode", f"Expected {length} {name}.")
    return list(value)


def _integers(value: object, name: str, length: int, size: int) -> list[int]:
    numbers = []
    for number in _list(value, name, length):
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < size:
            raise DeviceError("badEpisode", f"Expected {name} from 0 to {size - 1}.")
        numbers.append(number)
    return numbers


def _rewards(value: object, length: int) -> list[float]:
    numbers = []
    for number in _list(value, "rewards", length):
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
            raise DeviceError("badEpisode", "Expected rewards in [0, 1].")
        numbers.append(float(number))
    return numbers
