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
