"""The public description that a device is given: a plain dictionary, the same in both languages.

Keys of every description: ``version`` (1), ``encoder``, ``states``, ``actions``, ``horizon`` and
what the batch's public policy can play, either as

- ``policy``: H lists of S actions, with ``start`` (the states a user can start in) where known, or
- ``support``: ascending numbers (h·S + s)·A + a.

Fractions are lists ``[numerator, denominator]`` of positive integers; from 2^53 on an integer is
written as a decimal string, because JSON in a browser cannot hold it. There are no floating-point
numbers in a description.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from discreet.device.errors import DeviceError

VERSION = 1
STATISTICS = ("transitions", "rewards", "visits")
"""In the order of their classes."""
LARGEST = (1 << 53) - 1
"""The largest integer that JavaScript's numbers hold exactly."""
LONGEST = 1 << 16
"""Steps."""
_DIGITS = 400
_COMMON = {"version", "encoder", "states", "actions", "horizon", "policy", "support", "start"}

Plain: TypeAlias = bool | int | str | Sequence["Plain"]
"""What a description may say."""
Description: TypeAlias = Mapping[str, Plain]


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
class Problem:
    """Sizes, and what the public policy can play.

    Attributes:
        states: S.
        actions: A.
        horizon: H.
        pairs: for every step the played s·A + a, ascending.
    """

    states: int
    actions: int
    horizon: int
    pairs: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> list[int]:
        """Played pairs per step."""
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


def problem(data: Description) -> Problem:
    """Sizes and played pairs of a description."""
    states = integer(data.get("states"), "states")
    actions = integer(data.get("actions"), "actions")
    horizon = integer(data.get("horizon"), "horizon", 1, LONGEST)
    integer(states * actions * horizon, "states·actions·horizon")
    if ("policy" in data) == ("support" in data):
        raise bad("Expected either policy or played.")
    if "policy" in data:
        pairs = _pairs_of_policy(data, states, actions, horizon)
    else:
        pairs = _pairs_of_rows(data, states * actions, horizon)
    return Problem(states, actions, horizon, pairs)


def _ascending(value: object, name: str, size: int) -> list[int]:
    if not isinstance(value, list | tuple):
        raise bad(f"Expected {name} to be a list.")
    numbers = [integer(number, name, 0, size - 1) for number in value]
    if any(low >= high for low, high in pairwise(numbers)):
        raise bad(f"Expected {name} in ascending order.")
    return numbers


def _pairs_of_rows(data: Description, width: int, horizon: int) -> tuple[tuple[int, ...], ...]:
    if "start" in data:
        raise bad("Expected start with a policy only; played says it already.")
    steps: list[list[int]] = [[] for _ in range(horizon)]
    for number in _ascending(data["support"], "support", horizon * width):
        steps[number // width].append(number % width)
    return tuple(map(tuple, steps))


def _pairs_of_policy(
    data: Description, states: int, actions: int, horizon: int
) -> tuple[tuple[int, ...], ...]:
    policy = _lists(data["policy"], horizon, states)
    start = _ascending(data.get("start", list(range(states))), "start", states)
    steps = []
    for h, row in enumerate(policy):
        chosen = [integer(action, "an action of the policy", 0, actions - 1) for action in row]
        steps.append(tuple(s * actions + chosen[s] for s in (range(states) if h else start)))
    return tuple(steps)


def _lists(value: object, horizon: int, states: int) -> Sequence[Sequence[object]]:
    if (
        not isinstance(value, list | tuple)
        or len(value) != horizon
        or any(not isinstance(row, list | tuple) or len(row) != states for row in value)
    ):
        raise bad("Expected policy as H lists of S actions.")
    return value


def read_statistics(value: object) -> list[str]:
    """Names of statistics, each of them once."""
    if not isinstance(value, list | tuple) or not value or any(v not in STATISTICS for v in value):
        raise bad(f"Expected statistics among {', '.join(STATISTICS)}.")
    if len(set(value)) != len(value):
        raise bad("Expected every statistic once.")
    return list(value)


def plain_copy(data: Description) -> dict[str, Plain]:
    """A description of its own: who changes one does not change the other."""
    return {key: _copied(value) for key, value in data.items()}


def _copied(value: Plain) -> Plain:
    return [_copied(part) for part in value] if isinstance(value, list | tuple) else value


def digest(data: Description) -> bytes:
    """SHA-256 of the description as JSON in ASCII, keys sorted, no spaces: names a batch."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).digest()
