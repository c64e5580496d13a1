"""One sealed cell: HPKE (RFC 9180) in base mode, X25519, HKDF-SHA256, AES-128-GCM.

An envelope is the encapsulated key (32 bytes) and the ciphertext of the 4 bytes of a cell (20
bytes). ``info`` binds it to the version of the wire, to its manifest and to its group: an envelope
that was moved to another group or another batch does not open, and stands for a dummy.
"""

from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from discreet.device import cell_to_bytes

VERSION = 1
KEY = 32
"""Bytes of the encapsulated key, with which an envelope begins."""
SUITE = hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)
_DOMAIN = b"discreet-envelope"


def info(manifest: bytes, place: int) -> bytes:
    r"""What an envelope of a group is bound to.

    >>> info(bytes(32), 3)[-4:]
    b'\x00\x00\x00\x03'
    """
    return _DOMAIN + bytes([VERSION]) + manifest + place.to_bytes(4)


def seal(cell: int, key: X25519PublicKey, manifest: bytes, place: int) -> bytes:
    """An envelope; two of the same cell have nothing in common."""
    return SUITE.encrypt(cell_to_bytes(cell), key, info=info(manifest, place))
