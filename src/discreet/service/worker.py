"""The analyser as a process: from its file to the end of the study, with backups on the way."""

import contextlib
import json
import logging
import math
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator

from discreet._files import hold_alone, read_parsed, write_atomically
from discreet.errors import DiscreetError, InvalidInputError
from discreet.service.analyser import Analyser
from discreet.service.client import Client
from discreet.service.configs import (
    AnalyserConfig,
    At,
    Clock,
    SystemClock,
    nothing_happens,
    on_signals,
)
from discreet.service.health import Format, set_up_logging
from discreet.service.opening import Opener, destroy, in_processes, old_of, on_ray, read_signing_key
from discreet.service.protocol.charter import Charter
from discreet.study.store import alone_in
from discreet.study.study import open_study

log = logging.getLogger("discreet.service.worker")
BACKUP_SECONDS = 600
"""For which a backup is waited for."""
_BACKED_UP = "backup.json"
"""Says when the last one was made."""
GRACE = 5
"""Seconds for what is under way when the process is told to end."""

Watched = Callable[
    [Analyser, AnalyserConfig], contextlib.AbstractContextManager[Callable[[str], object]]
]
"""Watches an analyser for the time of a block; what to tell after every step."""


def make_analyser(
    config: AnalyserConfig,
    *,
    rehearsal: bool = False,
    at: At = nothing_happens,
    accepted: int | None = None,
) -> Analyser:
    charter = Charter.read(config.path(config.charter))
    charter.check_rehearsal(rehearsal)
    signing_key = config.path(config.signing_key)
    old = old_of(signing_key)
    study = open_study(config.path(config.study))
    analyser = Analyser(
        charter,
        study,
        Client(
            config.url,
            config.token,
            proxy=config.proxy,
            ca_file=config.optional(config.ca_file),
        ),
        read_signing_key(signing_key),
        config.folder,
        opener=opener_of(config),
        at=at,
        old_key=read_signing_key(old) if old.exists() else None,
        backup=lambda: back_up(config, study.batches),
        accepted=accepted,
    )
    if old.exists() and analyser.handed_over:
        destroy(old)
    return analyser


def back_up(config: AnalyserConfig, batches: int, clock: Clock | None = None) -> None:
    """Run the command of the file, in the analyser's folder, and wait for it, not for ever.

    Nobody opens the study meanwhile: files of the database that come and go would spoil a copy.

    Args:
        config: the analyser's file.
        batches: how many the study has counted; written down with the time if all went well.
        clock: where time comes from.
    """
    command = shlex.split(config.backup)
    if not command:
        return
    try:
        with alone_in(config.path(config.study).resolve().parent, math.inf):
            subprocess.run(
                command,
                cwd=config.folder,
                check=True,
                stdin=subprocess.DEVNULL,
                timeout=BACKUP_SECONDS,
            )
        done = {"batches": batches, "at": (clock or SystemClock()).now()}
        write_atomically(config.path(_BACKED_UP), json.dumps(done).encode())
    except (OSError, subprocess.SubprocessError) as error:
        raise DiscreetError(
            f"The backup failed: {str(error).rstrip('.')}. The batch is counted here and stays at "
            f"the shuffler until backup = {config.backup!r} ends well; mend it and start again."
        ) from None


def last_backup(config: AnalyserConfig) -> tuple[int, float]:
    """How many batches the last one that went well holds, and when it was made; zeros: none."""

    def parsed(data: bytes) -> tuple[int, float]:
        done = json.loads(data)
        try:
            return int(done["batches"]), float(done["at"])
        except (KeyError, TypeError):
            raise ValueError("expected 'batches' and 'at'") from None

    path = config.path(_BACKED_UP)
    return read_parsed(path, parsed, "the last backup") if path.exists() else (0, 0.0)


def analyse(
    config: AnalyserConfig,
    *,
    rehearsal: bool = False,
    log_format: Format = "text",
    watched: Watched = lambda *_: contextlib.nullcontext(lambda _: None),
    accepted: int | None = None,
) -> str:
    """Run the analyser until the study is finished, or SIGTERM or SIGINT; what became of it."""
    set_up_logging(log_format)
    ended = threading.Event()
    on_signals(lambda: _end(ended))
    with working_alone(config):
        analyser = make_analyser(config, rehearsal=rehearsal, accepted=accepted)
        log.info("the analyser works with the shuffler at %s", config.url)
        try:
            with watched(analyser, config) as look:
                return analyser.run(ended.wait, ended.is_set, look)
        except _EndedError:
            return "told to end"
        finally:
            signal.alarm(0)
            analyser.close()


@contextlib.contextmanager
def working_alone(config: AnalyserConfig) -> Iterator[None]:
    """Two analysers would overwrite each other's batch keys, and nobody could open the batch."""
    try:
        lock = hold_alone(config.path(config.study))
    except BlockingIOError:
        raise InvalidInputError(
            f"Another analyser works on {config.study!r}; end it, or let it go on alone."
        ) from None
    try:
        yield
    finally:
        os.close(lock)


class _EndedError(Exception):
    """The time for a step that was under way is over."""


def _end(ended: threading.Event) -> None:
    """A step may finish, or is given up: whatever is killed here loses nothing."""

    def give_up(*_: object) -> None:
        raise _EndedError

    if not ended.is_set():
        ended.set()
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(GRACE)


def opener_of(config: AnalyserConfig) -> Opener:
    if config.engine == "processes":
        return in_processes(config.jobs)
    if config.engine == "ray":
        return on_ray(config.ray_address or None, config.jobs)
    raise InvalidInputError(f"Expected engine 'processes' or 'ray', got {config.engine!r}.")
