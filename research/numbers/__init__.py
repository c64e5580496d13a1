"""Numbers on the pages of the site that are computed in seconds.

    python -m research.numbers              # all of them, into docs/data
    python -m research.numbers noise.csv    # one file

A module of this folder has functions that return rows, the first of them the header, and a table
``TABLES`` from file to function. Files that take longer are written by the commands in
docs/data/commands.toml.
"""

import importlib
import pkgutil

_MODULES = [
    importlib.import_module(f"{__name__}.{found.name}")
    for found in pkgutil.iter_modules(__path__)
    if found.name != "__main__"
]
TABLES = {name: make for module in _MODULES for name, make in module.TABLES.items()}


def rows_of(name):
    """The rows of a file, as a CSV reader would return them."""
    return [[str(cell) for cell in row] for row in TABLES[name]()]
