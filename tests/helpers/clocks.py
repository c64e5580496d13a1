"""A clock for tests."""


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
