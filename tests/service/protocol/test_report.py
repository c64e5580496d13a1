"""Reports, and envelopes against RFC 9180: an independent HPKE, by the RFC's own vectors."""

import hashlib
import hmac
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from discreet.device import ENVELOPE
from discreet.service.opening import open_cells
from discreet.service.protocol import report, ticket
from discreet.service.protocol.problems import Refusal
from helpers.services import announced, batch_key, charter, fake_report, real_report

ONE = announced(charter())
PASS = bytes(range(32))


def refused(data):
    with pytest.raises(Refusal) as caught:
        report.read(data)
    return caught.value.code


def test_version_ticket_manifest_and_one_envelope_per_message():
    data = real_report(ONE, PASS)
    assert data[0] == report.VERSION == 1
    assert data[1:33] == PASS
    assert data[33:65] == ONE.hash
    assert len(data) == report.HEADER + ONE.body


def test_what_the_shuffler_keeps_holds_no_ticket():
    taken = report.read(real_report(ONE, PASS))
    assert taken.digest == ticket.digest(PASS)
    assert taken.manifest == ONE.hash
    assert PASS not in b"".join(taken)


def test_cells_open_in_the_order_of_their_classes():
    cells = ONE.device.encode({"states": [0, 0, 1], "actions": [0, 1], "rewards": [0.0, 1.0]})
    body = report.read(report.seal(cells, ONE, PASS)).body
    at = 0
    for place, one in enumerate(cells):
        part = body[at : at + 52 * len(one)]
        dummy = ONE.device.groups[place].cells
        assert open_cells(part, batch_key(0), ONE.hash, place, dummy).tolist() == list(one)
        at += len(part)
    assert at == len(body)


@pytest.mark.parametrize("cut", [1, 51, 53])
def test_half_an_envelope_is_refused(cut):
    assert refused(fake_report(ONE, PASS)[:-cut]) == "wrongLength"


def test_nothing_and_a_header_alone_are_refused():
    whole = fake_report(ONE, PASS)
    assert refused(b"") == "wrongLength"
    assert refused(whole[: report.HEADER]) == "wrongLength"


@pytest.mark.parametrize("version", [0, 2, 255])
def test_other_versions_are_refused_before_anything_is_read(version):
    assert refused(bytes([version])) == "unknownVersion"


def test_an_envelope_twice_is_found_wherever_it_stands():
    whole = fake_report(ONE, PASS)
    head, first, rest = whole[:65], whole[65:117], whole[117:]
    assert report.read(head + first + rest[:-52] + first).copied
    assert not report.read(whole).copied


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
    key, nonce = context(shared, report.info(manifest, place))
    return raw(own) + AESGCM(key).encrypt(nonce, struct.pack(">I", cell), b"")


def test_our_envelopes_are_those_of_the_rfc_in_both_directions():
    manifest = bytes(range(32))
    theirs = independently_sealed(5, manifest, 2)
    assert open_cells(theirs, batch_key(0), manifest, 2, 9).tolist() == [5]
    ours = report.seal_cell(6, batch_key(0).public_key(), manifest, 2)
    assert len(ours) == len(theirs) == ENVELOPE == 52
    encapsulated, recipient = ours[:32], batch_key(0)
    shared = shared_secret(
        recipient, X25519PublicKey.from_public_bytes(encapsulated), encapsulated, raw(recipient)
    )
    key, nonce = context(shared, report.info(manifest, 2))
    assert AESGCM(key).decrypt(nonce, ours[32:], b"") == struct.pack(">I", 6)


@pytest.mark.parametrize("at", [0, 31, 32, 51])
def test_a_changed_bit_is_a_dummy(at):
    data = bytearray(report.seal_cell(1, batch_key(0).public_key(), bytes(32), 0))
    data[at] ^= 0x80
    assert open_cells(bytes(data), batch_key(0), bytes(32), 0, 9).tolist() == [10]


def test_cells_out_of_range_zero_keys_and_rubbish_are_dummies():
    good = report.seal_cell(4, batch_key(0).public_key(), bytes(32), 0)
    far = report.seal_cell(2**32 - 1, batch_key(0).public_key(), bytes(32), 0)
    found = open_cells(good + far + bytes(52) + b"x" * 52, batch_key(0), bytes(32), 0, 9)
    assert found.tolist() == [4, 10, 10, 10]


def test_two_envelopes_of_one_cell_have_nothing_in_common():
    one, two = (report.seal_cell(1, batch_key(0).public_key(), bytes(32), 0) for _ in range(2))
    assert one[:32] != two[:32] and one[32:] != two[32:]
