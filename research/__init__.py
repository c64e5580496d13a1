"""How constants were chosen and what was measured: see README.md."""

import argparse
import contextlib
import io
import json
import os
import runpy
import socket
import sys

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


def called(*words: str) -> tuple[int, str]:
    """The exit code and the output of `discreet` in this process."""
    out, before = io.StringIO(), sys.argv
    sys.argv = ["discreet", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            runpy.run_module("discreet", run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1, out.getvalue()
    except Exception as error:  # a fault of the command
        return -1, json.dumps({"fault": repr(error)})
    finally:
        sys.argv = before
    return 0, out.getvalue()


def free_url() -> str:
    """An address of this machine at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
