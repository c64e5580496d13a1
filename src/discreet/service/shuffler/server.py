"""The shuffler as a process: uvicorn, with slow clients cut and a bounded end."""

import asyncio
import logging
import socket
import struct
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from discreet._files import reason
from discreet.errors import InvalidInputError
from discreet.service.configs import At, ShufflerConfig, nothing_happens, set_up_logging
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter
from discreet.service.shuffler.shuffler import Shuffler
from discreet.service.shuffler.state import Store, open_store
from discreet.service.shuffler.web import make_app

log = logging.getLogger("discreet.service.shuffler")
HEADER_SECONDS = 10.0
"""In which a request's first line and headers must have arrived."""
ANSWER_SECONDS = 30.0
"""In which a client must have read some of what was written for it (64 kB wait at most)."""
UNREAD_BYTES = 1 << 20
"""Headers that have no end, or what follows a request before it is answered. One reading of a
socket gives at most a quarter of it."""
_CONNECTIONS = 1000
_BACKLOG = 2048
"""Connections that may wait to be taken."""
_GRACE = 5
"""Seconds for requests that are under way when the process is asked to end."""


class PromptProtocol(HttpToolsProtocol):
    """HTTP for clients that say what they want in time: who opens a connection has to use it."""

    header_seconds = HEADER_SECONDS
    answer_seconds = ANSWER_SECONDS
    _unread = 0
    _timer: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

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
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """The next request of this connection has its own time."""
        super().on_response_complete()
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
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE,
        **options,
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """The place where the server will listen, or a sentence why not."""
    if not 0 <= port < 1 << 16:
        raise InvalidInputError(f"Expected a port from 0 to 65535, got port={port}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        why = reason(error).partition(" (while")[0]
        raise InvalidInputError(
            f"Cannot listen on host={host!r}, port={port}: {why}; end what uses the "
            f"port, or choose another host or port in the shuffler's file."
        ) from None


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
        token_digest=config.token_digest,
        digests=digests,
        rehearsal=rehearsal,
    )


def serve(config: ShufflerConfig, *, rehearsal: bool = False, at: At = nothing_happens) -> None:
    """Run the shuffler until SIGTERM or SIGINT."""
    set_up_logging()
    with listen(config.host, config.port) as listener:
        shuffler = make_shuffler(config, rehearsal=rehearsal, at=at)
        app = make_app(shuffler, world=config.model)
        where = f"{config.host}:{listener.getsockname()[1]}"
        log.info("the shuffler of study %s listens on http://%s", shuffler.charter.id.hex(), where)
        make_server(app, config.host, config.port).run([listener])
