"""What one device sends: version (1 byte), ticket (32), manifest's hash (32), envelopes (52 each).

Envelopes stand in the public order of the groups. All reports of a manifest have one length.
"""

import struct
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from discreet.device import ENVELOPE, Report
from discreet.service.protocol import envelope
from discreet.service.protocol import ticket as tickets
from discreet.service.protocol.manifest import Announced
from discreet.service.protocol.problems import Refusal

VERSION = 1
HEADER = 65
_KEYS = struct.Struct(f"{envelope.KEY}s{ENVELOPE - envelope.KEY}x")
"""The encapsulated keys of envelopes."""


class Submission(NamedTuple):
    """A report as the shuffler takes it: it keeps the digest of the ticket, never the ticket."""

    digest: bytes
    manifest: bytes
    body: bytes


def seal(cells: Report, announced: Announced, ticket: bytes) -> bytes:
    """The report of one user, sealed for the analyser of this manifest.

    Args:
        cells: what the device's encoder made.
        announced: the manifest it was made for.
        ticket: of the user.
    """
    key = X25519PublicKey.from_public_bytes(announced.manifest.key)
    envelopes = [
        envelope.seal(cell, key, announced.hash, place)
        for place, one in enumerate(cells)
        for cell in one
    ]
    return bytes([VERSION]) + ticket + announced.hash + b"".join(envelopes)


def read(data: bytes) -> Submission:
    """The parts of a report; what is wrong with any report is refused here."""
    if not data:
        raise Refusal("wrongLength")
    if data[0] != VERSION:
        raise Refusal("unknownVersion")
    if len(data) <= HEADER or (len(data) - HEADER) % ENVELOPE:
        raise Refusal("wrongLength")
    body = data[HEADER:]
    if len(set(_KEYS.iter_unpack(body))) != len(body) // ENVELOPE:
        raise Refusal("copiedEnvelope")
    return Submission(tickets.digest(data[1:33]), data[33:HEADER], body)
