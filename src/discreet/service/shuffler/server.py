"""The shuffler as a process: uvicorn with a bounded end, behind a reverse proxy.

It listens at one address for devices, and perhaps at a second one, for the analyser and for health
checks, so that the proxy can give each a share. Slow clients are the proxy's: it hands on whole
requests only. So the shuffler listens on loopback, unless its file says that a proxy is before it.
"""

import asyncio
import contextlib
import logging
import resource
import signal
import socket
from collections.abc import Sequence
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from discreet.errors import DiscreetError, InvalidInputError
from discreet.service.configs import (
    THIS_MACHINE,
    At,
    ShufflerConfig,
    addresses,
    listen,
    nothing_happens,
)
from discreet.service.health import Format, set_up_logging
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter
from discreet.service.shuffler.shuffler import Shuffler
from discreet.service.shuffler.store import Store, open_store
from discreet.service.shuffler.web import Studies

log = logging.getLogger("discreet.service.shuffler")
PLACES = 2000
"""Connections; whoever comes then is told to come again."""
_FILES = 8192
"""Descriptors that it asks the system for."""
_GRACE = 5
"""Seconds for requests that are under way when the process is asked to end."""


def make_server(app: ASGIApp, host: str, port: int, **options: Any) -> uvicorn.Server:
    """A server for the application; it writes down nothing about requests."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=PLACES,
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


def serve(config: ShufflerConfig, *, rehearsal: bool = False, log_format: Format = "text") -> None:
    """Run the shuffler until SIGTERM or SIGINT."""
    set_up_logging(log_format)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])  # it waits until all is read once
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, _FILES), most))
    with contextlib.ExitStack() as stack:
        places = [(config.host, config.port), *addresses(config.private)]
        check_proxied(places, config.behind_proxy)
        listeners = [stack.enter_context(listen(host, port)) for host, port in places]
        files = [config, *(ShufflerConfig.read(config.path(name)) for name in config.studies)]
        shufflers = [make_shuffler(one, rehearsal=rehearsal) for one in files]
        check_studies(shufflers)
        app = Studies([(one, file.model) for one, file in zip(shufflers, files, strict=True)])
        where = " and ".join("http://{}:{}".format(*one.getsockname()[:2]) for one in listeners)
        names = ", ".join(one.charter.id.hex() for one in shufflers)
        log.info("the shuffler of study %s listens on %s", names, where)

        server = make_server(app, config.host, config.port)
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(_serve(server, listeners, list(zip(shufflers, files, strict=True))))


def check_proxied(places: Sequence[tuple[str, int]], behind_proxy: bool) -> None:
    """Refuse to serve devices without a proxy: half a request of each of 2,000 would stop it."""
    for host, _ in places:
        if not behind_proxy and host not in THIS_MACHINE:
            raise InvalidInputError(
                f"Expected host and private on this machine (127.0.0.1), got {host!r}: a shuffler "
                f"is never without a reverse proxy, which adds TLS and holds slow connections. If "
                f"one is before it on another machine, say behind_proxy = true in its file."
            )


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
