"""What tests hang onto every commit: a function that does nothing in a deployment."""

from collections.abc import Callable

At = Callable[[str], object]
"""Called with ``name.before`` and ``name.after`` wherever something is kept."""


def nothing_happens(_: str) -> None:
    """What a deployment does before and after a commit."""
