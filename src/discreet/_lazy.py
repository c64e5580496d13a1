"""Lazy packages: a name is imported from its module when it is first used (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def attach(
    package: str, where: Mapping[str, str] | None = None, renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Build ``__getattr__``, ``__dir__`` and ``__all__`` of a package of names from submodules.

    ``where`` has the module of each name. Left out: as the stub ``__init__.pyi`` beside the package
    says it, in lines ``from module import name as name``; type checkers and editors read the same.
    ``renamed``: old names, which raise an error that says the new one.
    """
    if where is None:
        # To load `re` and `pathlib` would take longer than all the rest of `import discreet`.
        path = f"{sys.modules[package].__path__[0]}/__init__.pyi"
        with open(path, encoding="utf-8") as stub:  # noqa: PTH123
            lines = [line.split() for line in stub]
        where = {words[3]: words[1] for words in lines if words[:1] == ["from"]}

    def getattr_(name: str) -> Any:
        if renamed and name in renamed:  # `from ... import` would hide what an AttributeError says
            raise ImportError(f"{package}.{name} is called {package}.{renamed[name]} now.")
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if where[name] in (package, f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(where[name]), name)

    def dir_() -> list[str]:
        return sorted(where)

    return getattr_, dir_, [*where]
