"""The one place where numba is configured; only kernel modules import this."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile ``function`` without the interpreter, cached on disk between processes.

    Fast-math stays off: results must be bit-identical for any number of workers.
    """
    compiled: _Function = numba.njit(
        cache=True,
        fastmath=False,
        error_model="numpy",
        no_cfunc_wrapper=True,  # nobody calls kernels from C: a tenth of their compilation
    )(function)
    return compiled


def inlined(function: _Function) -> _Function:
    """Compile a helper into its callers: a call would cost more than what it does.

    Not cached on its own: a helper that is loaded from the cache is called, not inlined.
    """
    compiled: _Function = numba.njit(forceinline=True, error_model="numpy", no_cfunc_wrapper=True)(
        function
    )
    return compiled
