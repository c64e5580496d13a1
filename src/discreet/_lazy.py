"""Lazy packages: a name is imported from its module when it is first used (PEP 562)."""

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def attach(
    package: str, where: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Build ``__getattr__``, ``__dir__`` and ``__all__`` of a package of names from submodules.

    Args:
        package: the package's ``__name__``.
        where: public name -> module (absolute) that defines it. Left out: as the stub
            ``__init__.pyi`` beside the package says it, in lines ``from module import name as
            name``; type checkers and editors read the same.
    """
    if where is None:
        stub = Path(sys.modules[package].__path__[0], "__init__.pyi").read_text("utf-8")
        lines = re.findall(r"^from (\S+) import (\w+) as \2$", stub, re.MULTILINE)
        where = {name: module for module, name in lines}

    def getattr_(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if where[name] in (package, f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(where[name]), name)

    def dir_() -> list[str]:
        return sorted(where)

    return getattr_, dir_, [*where]
