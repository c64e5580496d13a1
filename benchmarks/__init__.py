"""Speed against peers, in turns in one process, on one thread. Modules have ``run(quick) -> rows``.

`make bench-peers` installs the peers that are packages of their own into ``.venv-peers``, and runs
the benchmarks there; without them, rows that need them are left out or say what stands in.
"""

import importlib
import os
import pkgutil
import sys

from discreet.errors import UnknownNameError

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


def run_all(quick: bool, only: str = "") -> list[dict]:
    """The rows of all modules ``bench_*`` whose name contains ``only``; says which is running."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith("bench_"))
    asked = [name for name in names if only in name]
    if not asked:
        known = [name.removeprefix("bench_") for name in names]
        raise UnknownNameError("benchmark", only, known)
    rows = []
    for done, module in enumerate(asked, start=1):
        name = module.removeprefix("bench_")
        print(f"{name} ({done} of {len(asked)}) ...", file=sys.stderr, flush=True)
        found = importlib.import_module(f".{module}", __name__).run(quick)
        if not found:
            print(f"{name}: its peer is not installed (make bench-peers)", file=sys.stderr)
        rows += found
    return rows
