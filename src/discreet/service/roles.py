"""The roles as processes: from a file of settings to what runs until it is told to end."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from discreet._files import hold_alone, reason, write_atomically
from discreet.errors import InvalidInputError
from discreet.service.analyser.analyser import Analyser
from discreet.service.analyser.keys import read_signing_key
from discreet.service.analyser.opening import Opener, in_processes, on_ray
from discreet.service.client import Client
from discreet.service.configs import AnalyserConfig, DeviceConfig, ShufflerConfig
from discreet.service.participant.participant import Chain, FileOutbox, Participant, fetch_charter
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.manifest import Manifest
from discreet.service.protocol.manifest import read as read_manifest
from discreet.service.shuffler.shuffler import Shuffler
from discreet.service.shuffler.stores import open_store
from discreet.service.shuffler.stores.base import At, Store, nothing_happens
from discreet.study.study import resume

log = logging.getLogger("discreet.service.roles")
GRACE = 5
"""Seconds for what is under way when a role is told to end."""


def read_charter(path: Path) -> Charter:
    """A charter's file."""
    return Charter.from_bytes(_read(path, repr(str(path))))


def _read(path: Path, called: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"Cannot read {called}: {reason(error)}.") from None


def make_shuffler(
    config: ShufflerConfig, *, rehearsal: bool = False, at: At = nothing_happens
) -> Shuffler:
    """The shuffler of a file, with the tickets of the file admitted."""
    charter = read_charter(config.path(config.charter))
    digests = ticket.read(config.path(config.tickets))

    def make_store() -> Store:
        return open_store(config.where, charter, at)

    return Shuffler(
        charter,
        make_store,
        token=config.token,
        tickets=digests,
        rehearsal=rehearsal,
    )


def serve(config: ShufflerConfig, *, rehearsal: bool = False, at: At = nothing_happens) -> None:
    """Run the shuffler until SIGTERM or SIGINT."""
    from discreet.service.shuffler.server import listen, make_server, set_up_logging
    from discreet.service.shuffler.web import make_app

    set_up_logging()
    with listen(config.host, config.port) as listener:
        shuffler = make_shuffler(config, rehearsal=rehearsal, at=at)
        app = make_app(shuffler, world=_world(config))
        where = f"{config.host}:{listener.getsockname()[1]}"
        log.info("the shuffler of study %s listens on http://%s", shuffler.charter.id.hex(), where)
        make_server(app, config.host, config.port).run([listener])


def _world(config: ShufflerConfig) -> bytes:
    """The public model that the page plays, if the file names one."""
    if not config.world:
        return b""
    return _read(config.path(config.world), f"the world {config.world!r}")


def make_analyser(
    config: AnalyserConfig, *, rehearsal: bool = False, at: At = nothing_happens
) -> Analyser:
    """The analyser of a file."""
    charter = read_charter(config.path(config.charter))
    if charter.rehearsal and not rehearsal:
        raise InvalidInputError(
            "This charter is of a rehearsal and protects nobody; say --rehearsal to run it."
        )
    signing_key = read_signing_key(config.path(config.signing_key))
    return Analyser(
        charter,
        resume(config.path(config.study)),
        Client(config.url, config.token),
        signing_key,
        config.folder,
        opener=_opener(config),
        at=at,
    )


def analyse(config: AnalyserConfig, *, rehearsal: bool = False, at: At = nothing_happens) -> str:
    """Run the analyser until the study is finished, or SIGTERM or SIGINT; what became of it."""
    from discreet.service.shuffler.server import set_up_logging

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


def make_participant(
    config: DeviceConfig,
    client: Client,
    pause: Callable[[float], object],
    *,
    own: str = "",
    rehearsal: bool = False,
) -> tuple[Chain, Participant]:
    """The device of a file.

    Args:
        config: the file.
        client: to the shuffler.
        pause: waits for so many seconds.
        own: the ticket, if the file holds none.
        rehearsal: take part although nobody is protected.
    """
    try:
        pass_ = bytes.fromhex(own or config.ticket)
        study = bytes.fromhex(config.study)
    except ValueError:
        raise InvalidInputError("Expected ticket and study in hexadecimal digits.") from None
    if len(pass_) != ticket.SIZE:
        raise InvalidInputError("Expected a ticket of 64 hexadecimal digits; give --ticket.")
    folder = config.path(config.outbox)
    charter, outbox = fetch_charter(client, study, rehearsal=rehearsal), FileOutbox(folder)
    chain = Chain(charter, client, *_remembered(folder / "seen.manifest", charter))
    return chain, Participant(chain, client, pass_, outbox, delay=config.delay, pause=pause)


def _remembered(path: Path, charter: Charter) -> tuple[Manifest | None, Callable[[bytes], object]]:
    """The last manifest that a device has checked, and how it keeps the next one."""
    seen = read_manifest(path.read_bytes(), charter).manifest if path.exists() else None
    return seen, lambda signed: write_atomically(path, signed)


def on_signals(do: Callable[[], object]) -> None:
    """Let SIGTERM and SIGINT end things in order."""
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: do())


def _opener(config: AnalyserConfig) -> Opener:
    if config.engine == "processes":
        return in_processes(config.jobs)
    if config.engine == "ray":
        return on_ray(config.ray_address or None, config.jobs)
    raise InvalidInputError(f"Expected engine 'processes' or 'ray', got {config.engine!r}.")
