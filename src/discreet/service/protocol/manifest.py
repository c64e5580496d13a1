"""A manifest: everything public about one batch, signed by the analyser and chained.

On the wire: the Ed25519 signature in hexadecimal digits, a line feed, the canonical JSON. What is
signed is ``discreet-manifest/1``, a line feed and that JSON; the manifest's hash is the SHA-256 of
the JSON alone. Manifest 0 quotes the study's name as its predecessor and is signed with the
charter's key; every other one quotes the hash of the one before it and is signed with the key that
the one before it names. Each holds the head of the study's ledger when it was signed: whoever keeps
manifests is a witness of the ledger.

A manifest states the layout of its groups. Whoever reads it computes the layout from the charter's
lambda, the number of users and the policy, and refuses a manifest that states another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from discreet._types import JsonObject
from discreet.device import ENVELOPE
from discreet.device.histogram import HistogramDevice
from discreet.device.wire import LARGEST_BODY
from discreet.errors import InvalidInputError
from discreet.service.protocol import canonical
from discreet.service.protocol.charter import Charter, layout_of
from discreet.service.protocol.problems import Refusal

VERSION = 1
LARGEST = 1 << 24
"""Bytes of a manifest: a policy of a few million entries."""
_DOMAIN = b"discreet-manifest/1\n"
_DIGITS = 128
SIGNATURE = _DIGITS + 1
"""Bytes before the JSON."""


@dataclass(frozen=True, kw_only=True)
class Manifest(canonical.Document):
    """One batch.

    Attributes:
        study: the charter's hash.
        number: of this manifest; one that expired has a number, too.
        batch: of the study; the same again after a manifest that expired.
        previous: the hash of the manifest before.
        ledger: the head of the study's ledger; it names the pending batch inside the study.
        abandons: the first of the manifests up to the one before this that are given up: whatever
            was counted from them is not in the ledger. None: none is.
        signer: the Ed25519 public key with which the next manifest will be signed.
        users: n.
        policy: H lists of S actions.
        layout: cells, noise messages and weight of every group.
        key: the X25519 public key of this batch.
        deadline: in seconds since 1970; a batch that is not full by then is deleted.
    """

    study: bytes
    number: int
    batch: int
    previous: bytes
    ledger: bytes
    abandons: int | None = None
    signer: bytes
    users: int
    policy: list[list[int]]
    layout: list[list[int]]
    key: bytes
    deadline: int

    def fields(self) -> JsonObject:
        return {
            "version": VERSION,
            "kind": "manifest",
            "study": self.study.hex(),
            "number": self.number,
            "batch": self.batch,
            "previous": self.previous.hex(),
            "ledger": self.ledger.hex(),
            "abandons": self.abandons,
            "signer": self.signer.hex(),
            "users": self.users,
            "policy": self.policy,
            "layout": self.layout,
            "key": self.key.hex(),
            "deadline": self.deadline,
        }

    def signed(self, key: Ed25519PrivateKey) -> bytes:
        return key.sign(_DOMAIN + self.data).hex().encode("ascii") + b"\n" + self.data


@dataclass(frozen=True)
class Announced:
    """A manifest that was checked against its charter.

    Attributes:
        signed: its bytes.
        manifest: what they say.
        device: the encoder of its devices.
    """

    signed: bytes
    manifest: Manifest
    device: HistogramDevice

    @property
    def hash(self) -> bytes:
        return self.manifest.hash

    @property
    def sizes(self) -> list[int]:
        return [one.messages for one in self.device.groups]

    @property
    def body(self) -> int:
        """Bytes of all envelopes of one report."""
        return ENVELOPE * self.device.messages


def read(signed: bytes, charter: Charter, before: Manifest | None = None) -> Announced:
    """A manifest of this charter, from its bytes.

    Args:
        signed: the bytes.
        charter: of the study.
        before: the manifest before it, which names the key; None: it is the charter's.

    Raises:
        Refusal: ``badSignature``, ``unknownVersion``, or ``badManifest`` with the rule it breaks.
    """
    key = charter.signing_key if before is None else before.signer
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(*_signature(signed))
    except InvalidSignature:
        raise Refusal("badSignature") from None
    manifest = parse(signed)
    return Announced(signed, manifest, check(manifest, charter))


def reread(signed: bytes, charter: Charter) -> Announced:
    """A manifest whose signature was checked before it was kept."""
    manifest = parse(signed)
    return Announced(signed, manifest, check(manifest, charter))


def parse(signed: bytes) -> Manifest:
    """What the bytes of a manifest say, whoever has signed them."""
    data = _signature(signed)[1].removeprefix(_DOMAIN)
    try:
        fields = canonical.from_bytes(data, "manifest")
        if type(fields.get("version")) is not int or fields["version"] != VERSION:
            raise Refusal("unknownVersion")
        manifest = _manifest(fields)
        same = manifest.data == data
    except (InvalidInputError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise Refusal("badManifest", f"({error})") from None
    if not same:
        raise Refusal("badManifest", "It has fields that a manifest does not have.")
    return manifest


def check(manifest: Manifest, charter: Charter) -> HistogramDevice:
    """The encoder that charter and manifest ask for, if the manifest keeps to the charter."""
    if manifest.study != charter.id:
        raise Refusal("badManifest", "It belongs to another study.")
    if manifest.users < charter.min_users:
        raise Refusal("badManifest", f"{manifest.users} users are fewer than {charter.min_users}.")
    try:
        device = charter.device(manifest.policy, manifest.users)
    except InvalidInputError as error:
        raise Refusal("badManifest", str(error)) from None
    if layout_of(device.groups) != manifest.layout:
        raise Refusal("badManifest", "Its noise is not what the charter's lambda asks for.")
    if ENVELOPE * device.messages > LARGEST_BODY:
        raise Refusal("badManifest", f"Its reports have more than {LARGEST_BODY} bytes.")
    return device


def check_follows(manifest: Manifest, before: Manifest | None) -> None:
    """Refuse a manifest that does not follow the one before it (None: it is the first)."""
    number, previous = (0, manifest.study) if before is None else (before.number + 1, before.hash)
    if manifest.number != number or manifest.previous != previous:
        raise Refusal("badManifest", "It does not follow the manifest before it.")
    allowed = (0, 0) if before is None else (before.batch, before.batch + 1)
    if manifest.abandons is not None:
        if manifest.abandons >= number:
            raise Refusal("badManifest", "It abandons what was not announced.")
        allowed = (0, allowed[0])
    if not allowed[0] <= manifest.batch <= allowed[1]:
        raise Refusal("badManifest", "Its batch does not follow the batch before it.")


def abandoned(chain: Sequence[Manifest]) -> set[int]:
    """Numbers of the manifests that a later one gives up."""
    return {
        number
        for one in chain
        if one.abandons is not None
        for number in range(one.abandons, one.number)
    }


def _signature(signed: bytes) -> tuple[bytes, bytes]:
    """The signature, and what it signs."""
    if len(signed) > LARGEST:
        raise Refusal("tooLarge")
    try:
        signature = bytes.fromhex(signed[:_DIGITS].decode("ascii"))
    except ValueError:
        raise Refusal("badSignature") from None
    if signed[_DIGITS:SIGNATURE] != b"\n":
        raise Refusal("badSignature")
    return signature, _DOMAIN + signed[SIGNATURE:]


def _manifest(fields: JsonObject) -> Manifest:
    numbers = {name: fields[name] for name in ("number", "batch", "users", "deadline")}
    if fields["abandons"] is not None:
        numbers["abandons"] = fields["abandons"]
    if any(type(n) is not int or not 0 <= n < 1 << 53 for n in numbers.values()):
        raise TypeError("number, batch, users, deadline or abandons")
    for name in ("policy", "layout"):
        if not isinstance(fields[name], list) or not all(type(r) is list for r in fields[name]):
            raise TypeError(name)
    names = ("study", "previous", "ledger", "signer", "key")
    hashes = {name: bytes.fromhex(fields[name]) for name in names}
    if any(len(value) != 32 for value in hashes.values()):
        raise ValueError(", ".join(names))
    given: dict[str, Any] = {**numbers, **hashes}
    return Manifest(**given, policy=fields["policy"], layout=fields["layout"])
