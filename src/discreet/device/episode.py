"""One user's episode: what a device is given, and where it left the public policy."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from discreet.device.description import Problem
from discreet.device.errors import DeviceError

LEFT = -1
"""The row of a step at which the user had left the policy."""


@dataclass(frozen=True)
class Episode:
    """What a user did: H + 1 states, H actions, H rewards from 0 to 1. Never leaves the device."""

    states: list[int]
    actions: list[int]
    rewards: list[float]

    def rows(self, problem: Problem) -> list[int]:
        """For every step the row (which played pair it is), `LEFT` from the first one outside.

        >>> still = Problem(states=1, actions=2, horizon=3, pairs=((0,), (0,), (0, 1)))
        >>> Episode([0] * 4, [0, 1, 1], [0.0] * 3).rows(still)
        [0, -1, -1]
        """
        rows, inside = [], True
        for h, pairs in enumerate(problem.pairs):
            pair = self.states[h] * problem.actions + self.actions[h]
            row = bisect_left(pairs, pair)
            inside = inside and row < len(pairs) and pairs[row] == pair
            rows.append(row if inside else LEFT)
        return rows


def read_episode(data: object, problem: Problem) -> Episode:
    """The episode, if it fits the problem. One that leaves the policy does."""
    if not isinstance(data, Mapping) or set(data) != {"states", "actions", "rewards"}:
        raise DeviceError("badEpisode", "Expected a dictionary of states, actions and rewards.")
    return Episode(
        _integers(data["states"], "states", problem.horizon + 1, problem.states),
        _integers(data["actions"], "actions", problem.horizon, problem.actions),
        _rewards(data["rewards"], problem.horizon),
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
