"""The one place where numba is configured; only kernel modules import this."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile ``function`` without the interpreter, cached on disk between processes.

    Fast-math stays off: results must be bit-identical for any number of workers.
    """
    compiled: _Function = numba.njit(cache=True, fastmath=False, error_model="numpy")(function)
    return compiled
