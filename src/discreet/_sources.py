"""Source files, read without running them: what a name says of itself, and fingerprints.

`discreet list` shows everything without importing what it lists; results keep a fingerprint of the
code that made them.
"""

import ast
import functools
import hashlib
import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet._types import Plain

_PACKAGE = Path(__file__).parent
_LOGIC = ("device", "learners", "mdp", "papers", "privacy", "_jit.py", "_seeds.py", "_validate.py")
"""The parts of discreet that a simulated run depends on."""


def first_line(module: str, name: str) -> str:
    """The first line of the docstring of a class or function in a module of discreet.

    >>> first_line("discreet.mdp.environments.chains", "RiverSwim")
    'A chain against the current: far right pays 1, staying at the left end pays 0.005.'
    """
    pattern = rf'^(?:class|def) {name}\b.*?"""(.*?)(?:\n|""")'
    found = re.search(pattern, _text(module), re.DOTALL | re.MULTILINE)
    return found[1].strip() if found else ""


def defaults(module: str, name: str) -> "dict[str, Plain]":
    """The keyword arguments of a function in a module of discreet, with their defaults.

    >>> defaults("discreet.mdp.environments.chains", "RiverSwim")
    {'states': 4, 'horizon': 6, 'relabel': None}
    """
    functions = [f for f in ast.parse(_text(module)).body if isinstance(f, ast.FunctionDef)]
    found = next(f for f in functions if f.name == name).args
    pairs = zip(found.kwonlyargs, found.kw_defaults, strict=True)
    return {key.arg: ast.literal_eval(value) for key, value in pairs if value is not None}


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
