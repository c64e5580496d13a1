"""The analyser as a process: from its file to the end of the study, or until it is told to end."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator

from discreet._files import hold_alone
from discreet.errors import InvalidInputError
from discreet.service.analyser.analyser import Analyser
from discreet.service.analyser.opening import Opener, in_processes, on_ray, read_signing_key
from discreet.service.client import Client
from discreet.service.configs import AnalyserConfig, At, nothing_happens, on_signals, set_up_logging
from discreet.service.protocol.charter import Charter
from discreet.study.study import resume

log = logging.getLogger("discreet.service.analyser")
GRACE = 5
"""Seconds for what is under way when the process is told to end."""


def make_analyser(
    config: AnalyserConfig, *, rehearsal: bool = False, at: At = nothing_happens
) -> Analyser:
    """The analyser of a file."""
    charter = Charter.read(config.path(config.charter))
    charter.check_rehearsal(rehearsal)
    signing_key = read_signing_key(config.path(config.signing_key))
    return Analyser(
        charter,
        resume(config.path(config.study)),
        Client(config.url, config.token, proxy=config.proxy),
        signing_key,
        config.folder,
        opener=_opener(config),
        at=at,
    )


def analyse(config: AnalyserConfig, *, rehearsal: bool = False, at: At = nothing_happens) -> str:
    """Run the analyser until the study is finished, or SIGTERM or SIGINT; what became of it."""
    set_up_logging()
    ended = threading.Event()
    on_signals(lambda: _end(ended))
    with _alone(config):
        analyser = make_analyser(config, rehearsal=rehearsal, at=at)
        log.info("the analyser works with the shuffler at %s", config.url)
        try:
            return analyser.run(ended.wait, ended.is_set)
        except _EndedError:
            return "told to end"
        finally:
            signal.alarm(0)
            analyser.close()


@contextlib.contextmanager
def _alone(config: AnalyserConfig) -> Iterator[None]:
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


def _opener(config: AnalyserConfig) -> Opener:
    if config.engine == "processes":
        return in_processes(config.jobs)
    if config.engine == "ray":
        return on_ray(config.ray_address or None, config.jobs)
    raise InvalidInputError(f"Expected engine 'processes' or 'ray', got {config.engine!r}.")
