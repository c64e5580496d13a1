"""How constants were chosen and what was measured: see README.md."""

import argparse
import os

# Processes are the parallelism: threads of a matrix library would only wait for each other.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


def parser(name: str, text: str | None) -> argparse.ArgumentParser:
    """Of a script, which its docstring describes."""
    kind = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(f"python -m {name}", description=text, formatter_class=kind)


def asked_to_record(name: str, text: str | None) -> bool:
    """``--record`` or ``--compare``: what this code does, or with what is on file."""
    made = parser(name, text)
    what = made.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", action="store_true", help="write what this code answers")
    what.add_argument("--compare", action="store_true", help="with what is on file")
    return bool(made.parse_args().record)
