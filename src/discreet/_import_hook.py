"""Do something once another package is imported, without importing it."""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_imported(package: str, action: Callable[[], None]) -> None:
    """Call ``action`` now if ``package`` is loaded, else right after it is imported.

    >>> when_imported("sys", lambda: None)
    """
    if package in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Watcher(package, action))


class _Watcher:
    """A finder that finds nothing itself but lets ``action`` follow the import of ``package``."""

    def __init__(self, package: str, action: Callable[[], None]) -> None:
        self.package = package
        self.action = action

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The package's own spec, with the action appended to its execution."""
        if name != self.package:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._follow(spec)
                return spec
        return None

    def _follow(self, spec: ModuleSpec) -> None:
        loader = spec.loader
        if loader is None:
            return
        execute = loader.exec_module

        def execute_then_act(module: ModuleType) -> None:
            execute(module)
            self.action()

        loader.exec_module = execute_then_act  # type: ignore[method-assign]
