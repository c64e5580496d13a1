"""Compiled functions: cached, without fast mathematics, dividing as NumPy does."""

import io
import subprocess
import sys

import numpy as np
import pytest
from numba.core import caching
from numba.core.errors import TypingError

from discreet._jit import _FirstCompilation, inlined, kernel
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


def zeros_like_it(x):
    return np.zeros(x.size)


def first_of_row(x):
    row = x[0]
    return row[0]


def test_an_inlined_helper_counts_no_references_and_makes_no_arrays():
    helper = inlined(first_of_row)
    assert helper(np.ones((2, 2))) == 1.0
    assert not any("NRT_incref" in code for code in helper.inspect_llvm().values())
    with pytest.raises(TypingError, match="returning of array"):
        inlined(zeros_like_it)(np.ones(3))


def test_a_kernel_may_call_an_inlined_helper():
    helper = inlined(twice)

    @kernel
    def calls(x):
        return helper(x) + 1

    assert calls(4) == 9


@pytest.mark.parametrize("terminal", [True, False])
def test_a_person_at_a_terminal_is_told_once_that_something_compiles(monkeypatch, terminal):
    screen = io.StringIO()
    screen.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", screen)
    notice = _FirstCompilation()
    for _ in range(3):
        notice.on_start(None)
        notice.on_end(None)
    assert screen.getvalue().count("compiling, once") == terminal


def test_every_compilation_is_noticed_and_a_second_call_is_none(monkeypatch):
    noticed = []
    monkeypatch.setattr(_FirstCompilation, "on_start", lambda self, event: noticed.append(1))
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


def test_kernels_load_without_scipys_linear_algebra_and_may_still_call_it():
    """Numba's own and anybody's functions find what they need, in a process of their own."""
    code = """
import sys
import numba, numpy as np
import discreet._jit
assert not [name for name in sys.modules if name.startswith("scipy.linalg")]
assert "refresh" not in vars(numba.core.registry.cpu_target.target_context)

@numba.njit
def product(a, b):
    text = {"sum": "of products".upper()}
    return np.dot(a, b).sum(), text["sum"], sorted([3.0, 1.0]), np.linalg.inv(a)[0, 0]

assert product(2 * np.eye(3), np.ones((3, 3))) == (18.0, "OF PRODUCTS", [1.0, 3.0], 0.5)
assert "scipy.linalg.cython_blas" in sys.modules
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.parametrize(
    ("module", "owner", "missing"),
    [
        ("numba.np.linalg", "", "ensure_blas"),
        ("numba.core.base", "BaseContext", "install_registry"),
        ("numba.core.registry", "", "cpu_target"),
        ("numba.core.compiler_lock", "", "global_compiler_lock"),
    ],
)
def test_a_numba_without_these_internals_loads_by_itself(module, owner, missing):
    """Another version may call them otherwise: the first kernel then takes its time."""
    code = f"""
import importlib
import numba, numpy as np
place = importlib.import_module({module!r})
place = getattr(place, {owner!r}, place)
kept = getattr(place, {missing!r})
delattr(place, {missing!r})
import discreet._jit as jit
setattr(place, {missing!r}, kept)
product = numba.njit(lambda a, b: np.dot(a, b).sum())
assert product(2 * np.eye(3), np.ones((3, 3))) == 18.0
assert "refresh" not in vars(numba.core.registry.cpu_target.target_context)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
