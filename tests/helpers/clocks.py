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
        self._elapsed = 0.0

    def now(self) -> float:
        """The time."""
        return self._now

    def elapsed(self) -> float:
        """Seconds that passed, whatever the clock was set to."""
        return self._elapsed

    def move(self, seconds: float) -> None:
        """Forwards, or backwards."""
        self._now += seconds
        self._elapsed += seconds

    def set(self, seconds: float) -> None:
        """As clocks sometimes are: no time has passed."""
        self._now += seconds
