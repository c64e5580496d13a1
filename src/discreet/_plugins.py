"""What other packages add to the rosters.

An installed package adds by *entry points*, in the groups ``discreet.learners``,
``discreet.environments`` and ``discreet.mechanisms``; a module of your own adds when it is imported
(``--import my_module``, ``imports = ["my_module"]`` in an experiment file) by calling ``register``.
Nothing is loaded before its name is asked for.
"""

import functools
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FAILURES = (Exception, SystemExit)
"""What other people's modules may raise when they are imported: one that ends the program does not
end ours with a good exit code."""
_imported: dict[str, None] = {}


@functools.cache
def entry_points(kind: str) -> "dict[str, EntryPoint]":
    """The entry points of the group ``discreet.<kind>`` by name."""
    from importlib import metadata

    return {point.name: point for point in metadata.entry_points(group=f"discreet.{kind}")}


def load(kind: str, name: str) -> Any:
    """What the entry point ``name`` of ``discreet.<kind>`` stands for.

    Raises:
        InvalidInputError: its package cannot be imported, or lacks what it promises.
    """
    point = entry_points(kind)[name]
    try:
        return point.load()
    except FAILURES as error:
        owner = point.dist.name if point.dist else point.module
        raise InvalidInputError(
            f"The plug-in {name!r} of package {owner!r} cannot be loaded from {point.value!r}: "
            f"{type(error).__name__}: {error}. Repair the package, or uninstall it."
        ) from error


def import_modules(names: Iterable[str]) -> None:
    """Import modules for what they register: installed ones, or files of the current folder.

    Raises:
        InvalidInputError: there is no such module, or it cannot be imported.
    """
    here = str(Path.cwd())
    for name in names:
        if here not in sys.path:
            sys.path.append(here)
        try:
            importlib.import_module(name)
        except FAILURES as error:
            raise InvalidInputError(
                f"Cannot import {name!r}: {type(error).__name__}: {error}. Expected an installed "
                f"module, or a file {name}.py in the current folder."
            ) from error
        _imported[name] = None


def imported() -> tuple[str, ...]:
    """The modules that were imported for what they register, in order."""
    return tuple(_imported)
