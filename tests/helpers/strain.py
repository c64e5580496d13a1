"""What the soaks of studies and of the service share: sizes from the command line, a folder."""

import argparse
import contextlib
import pathlib
import tempfile


@contextlib.contextmanager
def strain(about, **sizes):
    """Numbers by name, each with its usual value, and a folder that is gone afterwards."""
    parser = argparse.ArgumentParser(description=about)
    for name, usual in sizes.items():
        parser.add_argument(f"--{name}", type=type(usual), default=usual)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        yield chosen, pathlib.Path(folder)
