"""What a test needs besides Python, found in its code: so nobody marks tests by hand."""

import contextlib
import functools
import importlib
import inspect
import pathlib
import types

TESTS = str(pathlib.Path(__file__).parents[1])
STARTERS = {"subprocess", "multiprocessing", "fork"}
HELPERS = {"helpers/browser.py": "browser", "helpers/postgres.py": "postgres"}


def mark(item):
    """Mark a test by its function, its fixtures, and all of ours that these name."""
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    found = needs(item.function).union(*(needs(one.func) for some in fixtures for one in some))
    for name in sorted(found | ({"postgres"} if "postgres" in item.name else set())):
        item.add_marker(name)


@functools.cache
def needs(function):
    """Of browser, postgres and process."""
    found, seen, waiting = set(), set(), [function]
    while waiting:
        for code, space in _codes(waiting.pop()):
            home = code.co_filename.removeprefix(TESTS + "/")
            if code in seen or home == code.co_filename:  # the library's
                continue
            seen.add(code)
            if home in HELPERS:
                found.add(HELPERS[home])
                continue
            found |= {"process"} if STARTERS.intersection(code.co_names) else set()
            waiting += _named(code.co_names, space)
    return frozenset(found)


def _codes(thing):
    """The code of a function or of a class's functions, and of what is defined in it."""
    for one in vars(thing).values() if inspect.isclass(thing) else [thing]:
        plain = inspect.unwrap(one) if callable(one) else getattr(one, "fget", None)
        codes = [plain.__code__] if isinstance(plain, types.FunctionType) else []
        for code in codes:
            codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
            yield code, plain.__globals__


def _named(names, space):
    """The functions and classes behind names, also of helpers that are imported on the spot."""
    for name in names:
        if name.startswith("helpers."):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                space = space | vars(importlib.import_module(name))
    things = (space.get(name) for name in names)
    return [one for one in things if inspect.isroutine(one) or inspect.isclass(one)]
