"""Lazy packages: a name is imported from its module when it is first used (PEP 562)."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def attach(
    package: str, where: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Build ``__getattr__``, ``__dir__`` and ``__all__`` of a package of names from submodules.

    Args:
        package: the package's ``__name__``.
        where: public name -> module (absolute) that defines it; a module listed under its
            own last component is exposed as a submodule.
    """

    def getattr_(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(where[name])
        return module if where[name] == f"{package}.{name}" else getattr(module, name)

    def dir_() -> list[str]:
        return sorted(where)

    return getattr_, dir_, [*where]
