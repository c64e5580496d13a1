"""The device as a process: from its file, and what it remembers from one start to the next."""

from collections.abc import Callable
from pathlib import Path

from discreet._files import write_atomically
from discreet.errors import InvalidInputError
from discreet.service.client import Client
from discreet.service.configs import DeviceConfig
from discreet.service.participant.participant import Chain, FileOutbox, Participant, fetch_charter
from discreet.service.protocol import ticket as tickets
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.manifest import Manifest
from discreet.service.protocol.manifest import read as read_manifest


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
        ticket = bytes.fromhex(own or config.ticket)
        study = bytes.fromhex(config.study)
    except ValueError:
        # A ticket is not said again: whoever reads messages over a shoulder could use it.
        raise InvalidInputError(
            f"Expected ticket and study in hexadecimal digits, got study={config.study!r}; take "
            f"both from the invitation."
        ) from None
    if len(ticket) != tickets.SIZE:
        raise InvalidInputError("Expected a ticket of 64 hexadecimal digits; give --ticket.")
    folder = config.path(config.outbox)
    charter, outbox = fetch_charter(client, study, rehearsal=rehearsal), FileOutbox(folder)
    chain = Chain(charter, client, *_remembered(folder / "seen.manifest", charter))
    return chain, Participant(chain, client, ticket, outbox, delay=config.delay, pause=pause)


def _remembered(path: Path, charter: Charter) -> tuple[Manifest | None, Callable[[bytes], object]]:
    """The last manifest that a device has checked, and how it keeps the next one."""
    seen = read_manifest(path.read_bytes(), charter).manifest if path.exists() else None
    return seen, lambda signed: write_atomically(path, signed)
