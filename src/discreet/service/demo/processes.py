"""The roles as processes of the operating system, which may be killed and come back."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError
from discreet.service.client import Client, UnreachableError
from discreet.service.protocol.problems import Refusal

_GRACE = 10.0
_START = 600.0
"""Seconds for a shuffler to answer, which proves its charter first, on however busy a machine."""


class Role:
    """One process that is started again with the same words.

    Args:
        name: for messages.
        arguments: of the Python interpreter.
        log: takes what it writes.
    """

    def __init__(self, name: str, arguments: Sequence[str], log: Path) -> None:
        self.name, self._arguments, self._log = name, list(arguments), log
        self._process: subprocess.Popen[bytes] | None = None
        self.kills = 0

    def start(self) -> None:
        """Start it, or start it again."""
        # five processes on one machine: numerical libraries must not take all of its cores
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    @property
    def number(self) -> int:
        """Of its process."""
        return 0 if self._process is None else self._process.pid

    @property
    def ended(self) -> int | None:
        """Its exit code, if it has ended by itself."""
        return None if self._process is None else self._process.poll()

    @property
    def words(self) -> str:
        """The last line that it wrote."""
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def check(self) -> None:
        """Refuse to go on with a role that has failed."""
        if self.ended:
            raise DiscreetError(f"The {self.name} ended with code {self.ended}: {self.words}")

    def kill(self) -> bool:
        """SIGKILL in the middle of whatever it does, and a new start; False if it had ended."""
        process = self._process
        if process is None or process.poll() is not None:
            return False
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.kills += 1
        self.start()
        return True

    def wait(self, seconds: float) -> bool:
        """Whether it ends by itself within so many seconds."""
        try:
            if self._process is not None:
                self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ask_to_end(self) -> None:
        """SIGTERM."""
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()

    def stop(self) -> None:
        """SIGTERM; SIGKILL if that is not enough."""
        process = self._process
        self.ask_to_end()
        if process is not None and not self.wait(_GRACE):
            process.kill()
            process.wait()


@contextlib.contextmanager
def ending(roles: Sequence[Role]) -> Iterator[None]:
    """Whatever happens, SIGTERM too, none of these processes is left behind."""
    before = _on_sigterm(_interrupted)
    try:
        yield
    finally:
        _on_sigterm(signal.SIG_IGN)
        for role in roles:
            role.ask_to_end()
        for role in roles:
            role.stop()
        _on_sigterm(before)


def _interrupted(*_: object) -> None:
    _on_sigterm(signal.SIG_IGN)  # once is enough
    raise SystemExit(128 + signal.SIGTERM)


def _on_sigterm(do: Any) -> Any:
    """What SIGTERM does from now on, and did before; another thread than the first has no say."""
    if threading.current_thread() is threading.main_thread():
        return signal.signal(signal.SIGTERM, do)
    return None


def wait_until_there(client: Client, shuffler: Role) -> None:
    """Until the shuffler answers."""
    last = time.monotonic() + _START
    while time.monotonic() < last:
        shuffler.check()
        with contextlib.suppress(UnreachableError, Refusal):
            client.metrics()
            return
        time.sleep(0.1)
    raise DiscreetError(f"The shuffler does not answer: {shuffler.words}")
