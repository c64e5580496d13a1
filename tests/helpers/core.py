"""The core alone, in an environment with everything: what only extras bring is not found.

Set ``DISCREET_TESTS=core`` (`make core-tests`). Programs that tests start still see the extras: an
environment without them is for continuous integration.
"""

import contextlib
import importlib.metadata
import pathlib
import re
import sys
import tomllib
from importlib.machinery import PathFinder

PROJECT = pathlib.Path(__file__).parents[2] / "pyproject.toml"
TOOLS = ("hypothesis", "pip", "pytest", "pytest-xdist", "setuptools")


def required(names):
    """These distributions and all that they need, without extras."""
    found, waiting = set(), list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name not in found:
            found.add(name)
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # another system's
                needs = importlib.metadata.requires(name) or ()
                waiting += [re.match(r"[\w.-]+", one)[0] for one in needs if "extra ==" not in one]
    return found


def of_extras():
    """Top-level modules that no distribution of the core has."""
    listed = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["dependencies"]
    core = {"discreet"} | required([*TOOLS, *(re.match(r"[\w.-]+", one)[0] for one in listed)])
    owners = importlib.metadata.packages_distributions().items()
    plain = ((module, {re.sub(r"[-_.]+", "-", one).lower() for one in of}) for module, of in owners)
    return frozenset(module for module, of in plain if not of & core)


class Core(PathFinder):
    """Finds modules as usual, but none of an extra."""

    hidden = frozenset()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in cls.hidden else super().find_spec(name, path, target)


def hide_extras():
    """From now on, in this process."""
    Core.hidden = of_extras() - sys.modules.keys()  # pytest loads plug-ins of its own
    sys.meta_path[:] = [Core if one is PathFinder else one for one in sys.meta_path]
