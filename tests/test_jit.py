"""Compiled functions: cached, without fast mathematics, dividing as NumPy does."""

import numpy as np

from discreet._jit import inlined, kernel


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


def test_a_kernel_may_call_an_inlined_helper():
    helper = inlined(twice)

    @kernel
    def calls(x):
        return helper(x) + 1

    assert calls(4) == 9
