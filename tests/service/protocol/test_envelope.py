"""Envelopes against RFC 9180: an independent HPKE, first checked against the RFC's own vectors."""

import hashlib
import hmac
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from discreet.device import ENVELOPE
from discreet.service.analyser.opening import open_cells
from discreet.service.protocol import envelope
from helpers.services import batch_key

KEM_ID = b"KEM" + struct.pack(">H", 0x20)
HPKE_ID = b"HPKE" + struct.pack(">HHH", 0x20, 1, 1)


def extract(suite, salt, label, key):
    return hmac.digest(salt, b"HPKE-v1" + suite + label + key, hashlib.sha256)


def expand(suite, key, label, info, length):
    text = struct.pack(">H", length) + b"HPKE-v1" + suite + label + info
    return hmac.digest(key, text + b"\1", hashlib.sha256)[:length]  # at most 32 bytes


def context(shared, info):
    """Key and nonce of base mode (RFC 9180, section 5.1)."""
    hashes = extract(HPKE_ID, b"", b"psk_id_hash", b"") + extract(HPKE_ID, b"", b"info_hash", info)
    secret = extract(HPKE_ID, shared, b"secret", b"")
    where = b"\0" + hashes
    return (
        expand(HPKE_ID, secret, b"key", where, 16),
        expand(HPKE_ID, secret, b"base_nonce", where, 12),
    )


def shared_secret(own, their, encapsulated, recipient):
    """DHKEM (section 4.1)."""
    prk = extract(KEM_ID, b"", b"eae_prk", own.exchange(their))
    return expand(KEM_ID, prk, b"shared_secret", encapsulated + recipient, 32)


def raw(key):
    return key.public_key().public_bytes_raw()


# RFC 9180, appendix A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode.
INFO = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
EPHEMERAL = X25519PrivateKey.from_private_bytes(
    bytes.fromhex("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736")
)
RECIPIENT = X25519PrivateKey.from_private_bytes(
    bytes.fromhex("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8")
)


def test_the_independent_hpke_gives_the_vectors_of_the_rfc():
    assert raw(EPHEMERAL).hex() == (
        "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431"
    )
    shared = shared_secret(EPHEMERAL, RECIPIENT.public_key(), raw(EPHEMERAL), raw(RECIPIENT))
    assert shared.hex() == "fe0e18c9f024ce43799ae393c7e8fe8fce9d218875e8227b0187c04e7d2ea1fc"
    key, nonce = context(shared, INFO)
    assert key.hex() == "4531685d41d65f03dc48f6b8302c05b0"
    assert nonce.hex() == "56d890e5accaaf011cff4b7d"
    text, aad = b"Beauty is truth, truth beauty", b"Count-0"
    assert AESGCM(key).encrypt(nonce, text, aad).hex() == (
        "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a"
    )


def independently_sealed(cell, manifest, place):
    own, recipient = X25519PrivateKey.generate(), batch_key(0)
    shared = shared_secret(own, recipient.public_key(), raw(own), raw(recipient))
    key, nonce = context(shared, envelope.info(manifest, place))
    return raw(own) + AESGCM(key).encrypt(nonce, struct.pack(">I", cell), b"")


def test_our_envelopes_are_those_of_the_rfc_in_both_directions():
    manifest = bytes(range(32))
    theirs = independently_sealed(5, manifest, 2)
    assert open_cells(theirs, batch_key(0), manifest, 2, 9).tolist() == [5]
    ours = envelope.seal(6, batch_key(0).public_key(), manifest, 2)
    assert len(ours) == len(theirs) == ENVELOPE == 52
    encapsulated, recipient = ours[:32], batch_key(0)
    shared = shared_secret(
        recipient, X25519PublicKey.from_public_bytes(encapsulated), encapsulated, raw(recipient)
    )
    key, nonce = context(shared, envelope.info(manifest, 2))
    assert AESGCM(key).decrypt(nonce, ours[32:], b"") == struct.pack(">I", 6)


@pytest.mark.parametrize("at", [0, 31, 32, 51])
def test_a_changed_bit_is_a_dummy(at):
    data = bytearray(envelope.seal(1, batch_key(0).public_key(), bytes(32), 0))
    data[at] ^= 0x80
    assert open_cells(bytes(data), batch_key(0), bytes(32), 0, 9).tolist() == [9]


def test_cells_out_of_range_zero_keys_and_rubbish_are_dummies():
    good = envelope.seal(4, batch_key(0).public_key(), bytes(32), 0)
    far = envelope.seal(2**32 - 1, batch_key(0).public_key(), bytes(32), 0)
    found = open_cells(good + far + bytes(52) + b"x" * 52, batch_key(0), bytes(32), 0, 9)
    assert found.tolist() == [4, 9, 9, 9]


def test_two_envelopes_of_one_cell_have_nothing_in_common():
    one, two = (envelope.seal(1, batch_key(0).public_key(), bytes(32), 0) for _ in range(2))
    assert one[:32] != two[:32] and one[32:] != two[32:]
