"""Speed against peers, side by side in one process. Each module has ``run(quick) -> rows``."""

import importlib
import pkgutil


def run_all(quick: bool, only: str = "") -> list[dict]:
    """The rows of all modules ``bench_*`` whose name contains ``only``."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith("bench_"))
    chosen = [name for name in names if only in name]
    return [
        row for name in chosen for row in importlib.import_module(f".{name}", __name__).run(quick)
    ]
