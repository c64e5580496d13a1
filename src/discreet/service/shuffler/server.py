"""The shuffler as a process: uvicorn, with slow clients cut and a bounded end.

It listens at one address for devices, and perhaps at a second one, for the analyser and for health
checks. Each has places of its own: however many connections devices open, the analyser finds one.
Where all places are taken, whoever has kept the server waiting longest loses theirs.
"""

import asyncio
import contextlib
import logging
import resource
import signal
import socket
import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from discreet.errors import DiscreetError, InvalidInputError
from discreet.service.configs import At, ShufflerConfig, addresses, listen, nothing_happens
from discreet.service.health import Format, set_up_logging
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter
from discreet.service.shuffler.shuffler import Shuffler
from discreet.service.shuffler.state import Store, open_store
from discreet.service.shuffler.web import Studies

log = logging.getLogger("discreet.service.shuffler")
HEADER_SECONDS = 10.0
"""In which a request's first line and headers must have arrived."""
ANSWER_SECONDS = 30.0
"""In which a client must have read some of what was written for it (64 kB wait at most)."""
UNREAD_BYTES = 1 << 20
"""Headers that have no end, or what follows a request before it is answered. One reading of a
socket gives at most a quarter of it."""
PLACES = 1000
"""Connections of each address at which it listens."""
_FILES = 8192
"""Descriptors that it asks the system for."""
_GRACE = 5
"""Seconds for requests that are under way when the process is asked to end."""


class _Places:
    """Connections of one address: how many, and those of which something is awaited, in order."""

    def __init__(self) -> None:
        self.taken = 0
        self.awaited: dict[PromptProtocol, None] = {}


_PLACES: WeakKeyDictionary[ServerState, defaultdict[object, _Places]] = WeakKeyDictionary()


class PromptProtocol(HttpToolsProtocol):
    """HTTP for clients that say what they want in time: who opens a connection has to use it."""

    header_seconds = HEADER_SECONDS
    answer_seconds = ANSWER_SECONDS
    places = PLACES
    _unread = 0
    _timer: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        addresses = _PLACES.setdefault(self.server_state, defaultdict(_Places))
        self._here = addresses[transport.get_extra_info("sockname")]
        self._here.taken += 1
        if self._here.taken > self.places and self._here.awaited:
            next(iter(self._here.awaited))._give_up()
        self._here.awaited[self] = None
        self._wait()

    def on_message_complete(self) -> None:
        """A whole request has come: from now on this connection waits for us."""
        super().on_message_complete()
        self._here.awaited.pop(self, None)

    def data_received(self, data: bytes) -> None:
        """Something arrived: perhaps the last of the headers."""
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering:
            self._stop()
        if answering and self.cycle.more_body:  # the application bounds what it reads of a body
            self._unread = 0
            return
        self._unread += len(data)
        if self._unread > UNREAD_BYTES:
            self._cut()
        elif not answering and self._timer is None:
            self._wait()

    def pause_writing(self) -> None:
        """Somebody does not read: not for ever."""
        super().pause_writing()
        if self._reader is None:
            self._reader = self.loop.call_later(self.answer_seconds, self._give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_reader()

    def _give_up(self) -> None:
        """At once: what waits in the system's own memory is not delivered either."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.pipeline.clear()
        self.transport.abort()

    def _stop_reader(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._stop_reader()
        self._here.taken -= 1
        self._here.awaited.pop(self, None)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """The next request of this connection has its own time."""
        super().on_response_complete()
        self._here.awaited[self] = None
        self._unread = 0
        self._stop()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.header_seconds, self._cut)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut(self) -> None:
        self._stop()
        if not self.transport.is_closing():
            self.transport.close()


def make_server(app: ASGIApp, host: str, port: int, **options: Any) -> uvicorn.Server:
    """A server for the application; it writes down nothing about requests."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=PromptProtocol,
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=2 * PLACES,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE,
        **options,
    )
    return uvicorn.Server(config)


def make_shuffler(
    config: ShufflerConfig, *, rehearsal: bool = False, at: At = nothing_happens
) -> Shuffler:
    """The shuffler of a file, with the tickets of the file admitted."""
    charter = Charter.read(config.path(config.charter))
    charter.prepare()
    digests = ticket.read_digests(config.path(config.digests))

    def make_store() -> Store:
        return open_store(config.where, charter, at)

    return Shuffler(
        charter,
        make_store,
        token_digests=config.token_digests,
        digests=digests,
        rehearsal=rehearsal,
    )


def serve(
    config: ShufflerConfig,
    *,
    rehearsal: bool = False,
    at: At = nothing_happens,
    log_format: Format = "text",
) -> None:
    """Run the shuffler until SIGTERM or SIGINT."""
    set_up_logging(log_format)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])  # it waits until all is read once
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, _FILES), most))
    with contextlib.ExitStack() as stack:
        places = [(config.host, config.port), *addresses(config.private)]
        listeners = [stack.enter_context(listen(host, port)) for host, port in places]
        files = [config, *(ShufflerConfig.read(config.path(name)) for name in config.studies)]
        shufflers = [make_shuffler(one, rehearsal=rehearsal, at=at) for one in files]
        check_studies(shufflers)
        app = Studies([(one, file.model) for one, file in zip(shufflers, files, strict=True)])
        where = " and ".join("http://{}:{}".format(*one.getsockname()[:2]) for one in listeners)
        names = ", ".join(one.charter.id.hex() for one in shufflers)
        log.info("the shuffler of study %s listens on %s", names, where)

        server = make_server(app, config.host, config.port)
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(_serve(server, listeners, list(zip(shufflers, files, strict=True))))


async def _serve(
    server: uvicorn.Server,
    listeners: list[socket.socket],
    studies: Sequence[tuple[Shuffler, ShufflerConfig]],
) -> None:
    """Serve, and reload on SIGHUP.

    A handler of the loop only notes the signal. One of the interpreter runs between any two
    instructions of the main thread, and waits for ever for a lock that this thread holds.
    """
    loop, under_way = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    async def reload_all() -> None:
        for one, file in studies:
            await reload(one, file)

    def on_hangup() -> None:
        task = loop.create_task(reload_all())
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    loop.add_signal_handler(signal.SIGHUP, on_hangup)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
    await server.serve(listeners)


def check_studies(shufflers: Sequence[Shuffler]) -> None:
    """Refuse one study twice: of its two stores each would know a part of who was counted."""
    names = [one.charter.id.hex() for one in shufflers]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(
                f"The study {name[:16]}... stands twice in studies = [...]; name each file once."
            )


async def reload(shuffler: Shuffler, config: ShufflerConfig) -> None:
    """Read the file again for what may change under way: tickets and the analyser's token."""
    try:
        new = ShufflerConfig.read(config.file)
        await shuffler.reload(new.token_digests, ticket.read_digests(new.path(new.digests)))
        log.info("tickets and the analyser's token were read again")
    except DiscreetError as error:
        log.error("the file was not taken, all is as before: %s", error)


def recover(config: ShufflerConfig, chain: Sequence[bytes], *, rehearsal: bool = False) -> int:
    """Go on after the store was lost, or put back from a copy; how many tickets are void."""
    charter = Charter.read(config.path(config.charter))
    charter.check_rehearsal(rehearsal)
    with contextlib.closing(open_store(config.where, charter)) as store:
        store.adopt(on_new=charter.verify)
        digests = config.path(config.digests)
        void = store.recover(chain, ticket.read_digests(digests))
        ticket.write_mark(digests.with_name("recovery.txt"), store.mark)
        return void
