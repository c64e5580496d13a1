"""The shuffler as a process: from its file to what serves until it is told to end."""

import logging

from discreet._files import read_file
from discreet.service.configs import ShufflerConfig
from discreet.service.hooks import At, nothing_happens
from discreet.service.protocol import noise, ticket
from discreet.service.protocol.charter import Charter
from discreet.service.running import set_up_logging
from discreet.service.shuffler.server import listen, make_server
from discreet.service.shuffler.shuffler import Shuffler
from discreet.service.shuffler.stores import open_store
from discreet.service.shuffler.stores.base import Store
from discreet.service.shuffler.web import make_app

log = logging.getLogger("discreet.service.shuffler")


def make_shuffler(
    config: ShufflerConfig, *, rehearsal: bool = False, at: At = nothing_happens
) -> Shuffler:
    """The shuffler of a file, with the tickets of the file admitted."""
    charter = Charter.read(config.path(config.charter))
    noise.prepare(charter)
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
        app = make_app(shuffler, world=_world(config))
        where = f"{config.host}:{listener.getsockname()[1]}"
        log.info("the shuffler of study %s listens on http://%s", shuffler.charter.id.hex(), where)
        make_server(app, config.host, config.port).run([listener])


def _world(config: ShufflerConfig) -> bytes:
    """The public model that the page plays, if the file names one."""
    if not config.world:
        return b""
    return read_file(config.path(config.world), "the world")
