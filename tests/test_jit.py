"""Compiled functions: cached, without fast mathematics, dividing as NumPy does."""

import importlib
import inspect
import io
import re
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError

import discreet
from discreet._jit import BORROWED, _Compilation, inlined, kernel
from discreet.errors import DiscreetError


def divide(a, b):
    return a / b


def twice(x):
    return 2 * x


def test_kernels_divide_by_zero_as_numpy_does():
    compiled = kernel(divide)
    assert compiled(1.0, 0.0) == np.inf
    assert np.isnan(compiled(0.0, 0.0))  # fast mathematics would assume it away
    assert compiled(7.0, 2.0) == divide(7.0, 2.0)


def test_kernels_are_cached_and_inlined_helpers_are_not():
    assert kernel(divide).targetoptions.get("fastmath") is False
    assert type(kernel(divide)._cache).__name__ == "FunctionCache"
    assert type(inlined(twice)._cache).__name__ == "NullCache"


def lesser_first(x, y):
    kept = x
    for i in range(y.size):
        if kept[0] > y[i]:
            kept, y = y, kept
    return kept[0]


def first_of_zeros(x):
    zeros = np.zeros(x.size)
    return zeros[0]


def counts_references(helper):
    assert helper(np.array([2.0, 5.0]), np.array([1.0, 4.0])) == 1.0
    return any("NRT_incref" in code for code in helper.inspect_llvm().values())


@pytest.mark.skipif(not BORROWED, reason="this numba always counts references")
def test_an_inlined_helper_counts_no_references_and_makes_no_arrays():
    assert counts_references(numba.njit(forceinline=True)(lesser_first))
    assert not counts_references(inlined(lesser_first))
    with pytest.raises(TypingError, match="zeros"):
        inlined(first_of_zeros)(np.ones(3))


SCALARS = {"None", "float", "int", "bool", "np.uint64"}


def kernels():
    """All compiled functions of the library."""
    home = Path(discreet.__file__).parent
    for file in sorted(home.rglob("*.py")):
        if "from discreet._jit import" in file.read_text("utf-8"):
            name = ".".join(("discreet", *file.relative_to(home).with_suffix("").parts))
            for value in vars(importlib.import_module(name)).values():
                if isinstance(value, Dispatcher) and value.py_func.__module__ == name:
                    yield value


def borrows(function):
    return isinstance(function, Dispatcher) and function.targetoptions.get("_nrt") is False


def hands_back_arrays(function):
    """Read from its annotation: anything but numbers and tuples of them."""
    result = inspect.get_annotations(function.py_func)["return"]
    name = result if isinstance(result, str) else inspect.formatannotation(result)
    name = name.replace("numpy.", "np.")
    return not set(re.findall(r"[\w.]+", name)) <= {*SCALARS, "tuple"}


def hands_on(x: np.ndarray) -> np.ndarray:
    return x[:1]


@pytest.mark.skipif(not BORROWED, reason="this numba always counts references")
def test_no_borrowed_code_hands_back_arrays():
    """Code that counts references would release them without having taken them."""
    found = [f for f in kernels() if borrows(f)]
    assert len(found) > 20
    assert [f.__name__ for f in found if hands_back_arrays(f)] == []
    assert hands_back_arrays(inlined(hands_on))  # the search finds what there is


def test_a_kernel_may_call_an_inlined_helper():
    helper = inlined(twice)

    @kernel
    def calls(x):
        return helper(x) + 1

    assert calls(4) == 9


@pytest.mark.parametrize("terminal", [True, False])
def test_a_person_at_a_terminal_sees_how_many_functions_were_compiled(monkeypatch, terminal):
    screen = io.StringIO()
    screen.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", screen)
    notice = _Compilation()
    for step in (notice.on_start, notice.on_start, notice.on_end, notice.on_end):
        step(None)
    lines = screen.getvalue().split("\r\x1b[K")
    assert [line.split(": ")[-1] for line in lines[1:]] == (
        ["1 functions ...", "2 functions ...", ""] if terminal else []
    )


def test_nothing_is_written_across_a_bar_of_rich(monkeypatch):
    screen = io.StringIO()
    screen.isatty, screen.rich_proxied_file = lambda: True, sys.stderr
    monkeypatch.setattr(sys, "stderr", screen)
    _Compilation().on_start(None)
    assert screen.getvalue() == ""


def test_every_compilation_is_noticed_and_a_second_call_is_none(monkeypatch):
    noticed = []
    monkeypatch.setattr(_Compilation, "on_start", lambda self, event: noticed.append(1))
    compiled = inlined(lambda x: x + 1)
    compiled(1)
    first = len(noticed)
    compiled(2)
    assert first >= 1
    assert len(noticed) == first


def test_no_place_for_compiled_code_is_one_sentence(monkeypatch):
    def read_only(_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(caching._CacheLocator, "ensure_cache_path", read_only)
    with pytest.raises(DiscreetError, match=r"cannot cache function 'twice'.*NUMBA_CACHE_DIR"):
        kernel(twice)
    assert inlined(twice)(2) == 4  # never kept, so it needs no place
