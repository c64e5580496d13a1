"""The one place where numba is configured; only kernel modules import this."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import event, options

from discreet.errors import DiscreetError

_Function = TypeVar("_Function", bound=Callable[..., Any])

BORROWED: dict[str, Any] = {"_nrt": False} if hasattr(options.DefaultOptions, "_nrt") else {}
"""Option of code that makes no arrays and only uses those of its caller, who keeps them alive.

Otherwise numba counts references to an array, atomically, so that threads may share it, whenever it
is handed on: that was half of the time of an episode at S=A=H=2. With this option, code that makes
an array does not compile.

A view may be handed on inside borrowed code, never back to Python or to code that counts
references: there it would be released without having been taken. And a generator that Python hands
to borrowed code is never let go: code that counts references stands between, as in
`privacy.simulation.kernels.run_block`.

A private option of numba: where it is missing, references are counted and results are the same.
"""


class _Compilation(event.Listener):  # type: ignore[misc]
    """Shows a person at a terminal why the first run of a fresh install takes longer, and how far.

    A line that is written over and disappears. What is loaded from the disk is not compiled. Below
    a bar of rich, which owns the terminal, nothing is shown.
    """

    def __init__(self) -> None:
        self._under_way = self._begun = 0

    def on_start(self, event: object) -> None:
        """A function is compiled, maybe because another one that is being compiled calls it."""
        self._under_way += 1
        self._begun += 1
        self._write(f"compiling, once after an installation: {self._begun} functions ...")

    def on_end(self, event: object) -> None:
        """It is compiled."""
        self._under_way -= 1
        if not self._under_way:
            self._write("")

    def _write(self, text: str) -> None:
        if sys.stderr.isatty() and not hasattr(sys.stderr, "rich_proxied_file"):
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


event.register("numba:compile", _Compilation())


def kernel(function: _Function) -> _Function:
    """Compile ``function`` without the interpreter, cached on disk between processes.

    Fast-math stays off: results must be bit-identical for any number of workers.

    Raises:
        DiscreetError: there is no place where compiled code can be kept.
    """
    compile_ = numba.njit(
        cache=True,
        fastmath=False,
        error_model="numpy",
        no_cfunc_wrapper=True,  # nobody calls kernels from C: a tenth of their compilation
    )
    try:
        compiled: _Function = compile_(function)
    except RuntimeError as error:  # numba has tried its own folders, and says which function
        raise DiscreetError(
            f"Compiled code cannot be kept: this user can write neither where discreet is "
            f"installed nor to a cache of their own ({error}). Set NUMBA_CACHE_DIR to a folder "
            f"that this user can write to."
        ) from None
    return compiled


def inlined(function: _Function) -> _Function:
    """Compile a helper into its callers: a call would cost more than what it does.

    Not cached on its own: a helper that is loaded from the cache is called, not inlined. It makes
    no arrays, and one that hands back views has borrowed callers only (`BORROWED`).
    """
    compile_ = numba.njit(forceinline=True, error_model="numpy", no_cfunc_wrapper=True, **BORROWED)
    compiled: _Function = compile_(function)
    return compiled
