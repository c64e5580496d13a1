"""What one device sends: version (1 byte), ticket (32), manifest's hash (32), envelopes (52 each).

Envelopes stand in the public order of the groups. All reports of a manifest have one length.

An envelope is one sealed cell: HPKE (RFC 9180) in base mode, X25519, HKDF-SHA256, AES-128-GCM; the
encapsulated key (32 bytes) and the ciphertext of the 4 bytes of a cell (20 bytes). ``info`` binds
it to the version of the wire, to its manifest and to its group: an envelope that was moved to
another group or another batch does not open, and stands for a dummy.
"""

import struct
from typing import NamedTuple

from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from discreet.device import ENVELOPE, Report, cell_to_bytes
from discreet.service.protocol import ticket as tickets
from discreet.service.protocol.manifest import Announced
from discreet.service.protocol.problems import Refusal

VERSION = 1
TICKET = 33
"""Bytes up to the end of the ticket."""
HEADER = 65
ENVELOPE_VERSION = 1
KEY = 32
"""Bytes of the encapsulated key, with which an envelope begins."""
SUITE = hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)
_DOMAIN = b"discreet-envelope"
_KEYS = struct.Struct(f"{KEY}s{ENVELOPE - KEY}x")
"""The encapsulated keys of envelopes."""


class Submission(NamedTuple):
    """A report as the shuffler takes it: it keeps the digest of the ticket, never the ticket."""

    digest: bytes
    manifest: bytes
    body: bytes

    @property
    def copied(self) -> bool:
        """Whether two of its envelopes are the same; who has no ticket is not looked at so far."""
        return len(set(_KEYS.iter_unpack(self.body))) != len(self.body) // ENVELOPE


def info(manifest: bytes, place: int) -> bytes:
    r"""What an envelope of a group is bound to.

    >>> info(bytes(32), 3)[-4:]
    b'\x00\x00\x00\x03'
    """
    return _DOMAIN + bytes([ENVELOPE_VERSION]) + manifest + place.to_bytes(4)


def seal_cell(cell: int, key: X25519PublicKey, manifest: bytes, place: int) -> bytes:
    """An envelope; two of the same cell have nothing in common."""
    return SUITE.encrypt(cell_to_bytes(cell), key, info=info(manifest, place))


def seal(cells: Report, announced: Announced, ticket: bytes) -> bytes:
    """The report of one user, sealed for the analyser of this manifest.

    Args:
        cells: what the device's encoder made.
        announced: the manifest it was made for.
        ticket: of the user.
    """
    key = X25519PublicKey.from_public_bytes(announced.manifest.key)
    envelopes = [
        seal_cell(cell, key, announced.hash, place)
        for place, one in enumerate(cells)
        for cell in one
    ]
    return bytes([VERSION]) + ticket + announced.hash + b"".join(envelopes)


def read(data: bytes) -> Submission:
    """The parts of a report, if it has the form of one."""
    if not data:
        raise Refusal("wrongLength")
    if data[0] != VERSION:
        raise Refusal("unknownVersion")
    if len(data) <= HEADER or (len(data) - HEADER) % ENVELOPE:
        raise Refusal("wrongLength")
    return Submission(tickets.digest(data[1:TICKET]), data[TICKET:HEADER], data[HEADER:])
