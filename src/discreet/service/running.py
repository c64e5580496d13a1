"""What every role does as a process: says what happens, and ends when it is told to."""

import logging
import signal
from collections.abc import Callable


def set_up_logging() -> None:
    """Our own lines, and the server's warnings, on standard error. No request stands in them."""
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("discreet").setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def on_signals(do: Callable[[], object]) -> None:
    """Let SIGTERM and SIGINT end things in order."""
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: do())
