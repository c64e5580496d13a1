"""What an extra brings, asked for before the first long step."""

import importlib.util
from collections.abc import Iterable

from discreet.errors import MissingExtraError


def need_extra(packages: Iterable[str], extra: str) -> None:
    """Refuse a command whose packages are not there.

    Args:
        packages: all of them.
        extra: that brings them.

    Raises:
        MissingExtraError: one of them is missing.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra)
