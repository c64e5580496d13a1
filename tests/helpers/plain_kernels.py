"""Compiled functions as the Python they were written in, and generators that obey."""

from collections.abc import Iterable
from types import ModuleType

import pytest


def plainly(
    patch: pytest.MonkeyPatch, module: ModuleType, *, but: Iterable[str] = ()
) -> ModuleType:
    """Replace the compiled functions of a module by what they were compiled from."""
    for name, value in list(vars(module).items()):
        if hasattr(value, "py_func") and name not in but:
            patch.setattr(module, name, value.py_func)
    return module


class Scripted:
    """Stands for a generator: hands out given uniforms, and no more of them."""

    def __init__(self, uniforms: Iterable[float]) -> None:
        self.left = [float(u) for u in uniforms]

    def random(self) -> float:
        return self.left.pop(0)


def midpoints(cells: int) -> list[float]:
    """One uniform in each of ``cells`` equal parts of [0, 1): exact distributions by counting."""
    return [(2 * i + 1) / (2 * cells) for i in range(cells)]
