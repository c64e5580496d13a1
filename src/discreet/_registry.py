"""What the registries of learners, environments and mechanisms share.

Plug-ins: an installed package adds by *entry points*, in the groups ``discreet.learners``,
``discreet.environments`` and ``discreet.mechanisms``; a module of your own adds when it is imported
(``--import my_module``, ``imports = ["my_module"]`` in an experiment file) by calling ``register``.
Nothing is loaded before its name is asked for. Results keep a fingerprint of the code that made
them.
"""

import functools
import hashlib
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
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
        InvalidInputError: its package cannot be imported, or lacks what it says.
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


# Source files, read without running them.

_PACKAGE = Path(__file__).parent
_LOGIC = (
    *("adversarial", "data", "device", "learners", "mdp", "papers", "privacy"),
    *("_jit.py", "_seeds.py", "_settings.py", "_validate.py"),
)
"""The parts of discreet that a simulated run depends on."""


def first_line(module: str, name: str) -> str:
    """The first line of the docstring of a class or function in a module of discreet.

    >>> first_line("discreet.mdp.environments.synthetic", "RiverSwim")
    'A chain against the current: far right pays 1, staying at the left end pays 0.005.'
    """
    pattern = rf'^(?:(?:class|def) {name}\b.*?|{name} = .*?\)\n)"""(.*?)(?:\n|""")'
    found = re.search(pattern, _text(module), re.DOTALL | re.MULTILINE)
    return found[1].strip() if found else ""


def _text(module: str) -> str:
    path = _PACKAGE.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.read_text("utf-8")


@functools.cache
def logic() -> str:
    """A fingerprint of the code of discreet that a run depends on; one edited line changes it."""
    return _digest(_PACKAGE, (_PACKAGE / part for part in _LOGIC))


@functools.cache
def of_object(thing: object) -> str:
    """A fingerprint of the code behind a class or function.

    Of ours: `logic`. Of another package: all its Python files; of a single module: its file. What
    has no file (typed into an interpreter) has its name only.
    """
    module = inspect.getmodule(thing)
    name = "" if module is None else module.__name__
    if name.partition(".")[0] == "discreet":
        return logic()
    file = getattr(module, "__file__", None)
    if file is None:
        return f"{name}.{getattr(thing, '__qualname__', '')}"
    path = Path(file)
    root = path.parents[name.count(".") - (path.name == "__init__.py")] if "." in name else path
    return of_file(path) if root == path else _digest(root, [root])


def of_file(path: Path) -> str:
    """A fingerprint of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _digest(root: Path, parts: Iterable[Path]) -> str:
    files: Mapping[str, Path] = {
        path.relative_to(root).as_posix(): path
        for part in parts
        for path in ([part] if part.is_file() else part.rglob("*.py"))
    }
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{name}\0".encode() + files[name].read_bytes() + b"\0")
    return whole.hexdigest()[:16]
