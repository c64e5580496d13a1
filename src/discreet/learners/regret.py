"""Exact expected regret, recorded at log-spaced episodes.

A million episodes leave about a hundred rows, not a million; each row is exact.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet.errors import InvalidInputError

_MOST = 10**15  # counts and episode numbers stay exact in double precision


def record_points(episodes: int, per_decade: int = 20) -> NDArray[np.int64]:
    """Log-spaced episode numbers from 1 to ``episodes``, both included.

    >>> record_points(10, per_decade=3).tolist()
    [1, 2, 5, 10]
    """
    _validate.count(episodes=episodes, per_decade=per_decade)
    if episodes > _MOST:
        raise InvalidInputError(f"Expected episodes <= {_MOST:.0e}, got episodes={episodes:.3g}.")
    decades = np.log10(episodes)
    grid = np.logspace(0, decades, int(np.ceil(decades * per_decade)) + 1)
    return np.unique(np.append(np.rint(grid).astype(np.int64), episodes))


@dataclass(frozen=True, eq=False)
class RegretCurve:
    """Cumulative expected regret ``values[i]`` after ``episodes[i]`` episodes."""

    episodes: NDArray[np.int64]
    values: NDArray[np.float64]


class RegretRecorder:
    """Collects the cumulative expected regret of runs of episodes with one policy each."""

    def __init__(self, episodes: int, per_decade: int = 20) -> None:
        self.points = record_points(episodes, per_decade)
        self._values = np.zeros(len(self.points))
        self._next = 0
        self.episode = 0
        self.total = 0.0

    def add(self, users: int, per_episode: float) -> None:
        """``users`` more episodes, each with expected regret ``per_episode``."""
        end = self.episode + users
        while self._next < len(self.points) and self.points[self._next] <= end:
            ahead = int(self.points[self._next]) - self.episode
            self._values[self._next] = self.total + ahead * per_episode
            self._next += 1
        self.episode = end
        self.total += users * per_episode

    def curve(self) -> RegretCurve:
        """What has been recorded so far."""
        return RegretCurve(self.points[: self._next].copy(), self._values[: self._next].copy())
