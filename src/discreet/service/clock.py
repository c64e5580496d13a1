"""Where time comes from: an object that is handed in. Nothing else here looks at a clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since 1970."""

    def now(self) -> float:
        """The time."""


class SystemClock:
    """The machine's."""

    def now(self) -> float:
        """The time."""
        return time.time()


class ManualClock:
    """Stands still until it is moved.

    >>> clock = ManualClock(100.0)
    >>> clock.move(5)
    >>> clock.now()
    105.0
    """

    def __init__(self, now: float = 1_000_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        """The time."""
        return self._now

    def move(self, seconds: float) -> None:
        """Forwards, or backwards as clocks sometimes do."""
        self._now += seconds
