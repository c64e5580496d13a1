"""Manifests: only the analyser signs them, they keep to the charter, and each follows another."""

import json
from fractions import Fraction

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from discreet.service.protocol import canonical
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol.problems import Refusal
from helpers.services import SIGNER, charter, manifest

OF = charter()


def refused(signed, of=OF):
    with pytest.raises(Refusal) as caught:
        manifests.read(signed, of)
    return caught.value.code


def signed(**fields):
    """A signed manifest with other fields than it should have."""
    plain = {**json.loads(manifest(OF).data), **fields}
    data = canonical.to_bytes({name: value for name, value in plain.items() if value != "gone"})
    return SIGNER.sign(b"discreet-manifest/1\n" + data).hex().encode() + b"\n" + data


def test_a_signed_manifest_is_read_back():
    one = manifest(OF)
    found = manifests.read(one.signed(SIGNER), OF)
    assert found.manifest == one
    assert found.hash == canonical.sha256(one.data)
    assert found.body == 52 * sum(found.sizes)
    assert [row[:1] + row[1:] for row in one.layout] == one.layout == found.manifest.layout


def test_every_other_signature_is_refused():
    one = manifest(OF)
    other = Ed25519PrivateKey.from_private_bytes(b"x" * 32)
    right = one.signed(SIGNER)
    assert refused(one.signed(other)) == "badSignature"
    assert refused(right.replace(b'"users":3', b'"users":4')) == "badSignature"
    assert refused(right[:128] + b" " + right[129:]) == "badSignature"
    assert refused(b"") == refused(b"\xff" * 200) == "badSignature"
    without_domain = SIGNER.sign(one.data).hex().encode() + b"\n" + one.data
    assert refused(without_domain) == "badSignature"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"version": 2}, "unknownVersion"),
        ({"version": True}, "unknownVersion"),
        ({"kind": "charter"}, "badManifest"),
        ({"more": 1}, "badManifest"),
        ({"ledger": "gone"}, "badManifest"),
        ({"abandons": True}, "badManifest"),
        ({"signer": "00"}, "badManifest"),
        ({"number": -1}, "badManifest"),
        ({"users": True}, "badManifest"),
        ({"deadline": 1 << 53}, "badManifest"),
        ({"key": "00"}, "badManifest"),
        ({"previous": "zz" * 32}, "badManifest"),
        ({"policy": [0, 1]}, "badManifest"),
        ({"policy": [[0, 2], [1, 0]]}, "badManifest"),
        ({"study": "00" * 32}, "badManifest"),
        ({"users": 2}, "badManifest"),
    ],
)
def test_what_does_not_keep_to_the_charter_is_refused(fields, code):
    assert refused(signed(**fields)) == code


def test_less_noise_than_the_charter_asks_for_is_refused():
    one = manifest(OF)
    for place in range(len(one.layout)):
        for column in range(len(one.layout[place])):
            layout = [list(row) for row in one.layout]
            layout[place][column] -= 1
            assert refused(signed(layout=layout)) == "badManifest", (place, column)


def test_a_manifest_of_many_bytes_is_not_even_opened():
    assert refused(b"0" * (manifests.LARGEST + 1)) == "tooLarge"


def follows(after, before):
    try:
        manifests.check_follows(after, before)
    except Refusal as refusal:
        assert refusal.code == "badManifest"
        return False
    return True


def test_a_chain_has_no_gap_no_fork_and_no_batch_left_out():
    first = manifest(OF)
    again = manifest(OF, 1, before=first, batch=0)
    second = manifest(OF, 1, before=first)
    assert follows(first, None)
    assert follows(second, first)
    assert follows(again, first)  # the batch expired
    assert not follows(second, None)
    assert not follows(manifest(OF, 2, before=first, batch=1), first)
    assert not follows(manifest(OF, 1, before=first, batch=2), first)
    assert not follows(second, manifest(OF, users=4))
    assert not follows(manifest(OF, batch=1), None)
    assert not follows(manifest(OF, previous=bytes(32)), None)


def test_reports_that_no_device_makes_are_not_asked_for():
    of = charter(mean=Fraction(10**9))
    with pytest.raises(Refusal, match="more than 16777216 bytes"):
        manifests.check(manifest(of), of)
