"""A manifest: everything public about one batch, signed by the analyser and chained.

On the wire: the Ed25519 signature in hexadecimal digits, a line feed, the canonical JSON. What is
signed is ``discreet-manifest/1``, a line feed and that JSON; the manifest's hash is the SHA-256 of
the JSON alone. Manifest 0 quotes the study's name as its predecessor, every other one the hash of
the one before it.

A manifest states the layout of its groups. Whoever reads it computes the layout from the charter's
lambda, the number of users and the policy, and refuses a manifest that states another.
"""

from dataclasses import dataclass

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
_SIGNATURE = 128


@dataclass(frozen=True, kw_only=True)
class Manifest(canonical.Document):
    """One batch.

    Attributes:
        study: the charter's hash.
        number: of this manifest; one that expired has a number, too.
        batch: of the study; the same again after a manifest that expired.
        token: names the pending batch inside the analyser's study.
        previous: the hash of the manifest before.
        users: n.
        policy: H lists of S actions.
        layout: cells, noise messages and weight of every group.
        key: the X25519 public key of this batch.
        deadline: in seconds since 1970; a batch that is not full by then is deleted.
    """

    study: bytes
    number: int
    batch: int
    token: str
    previous: bytes
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
            "token": self.token,
            "previous": self.previous.hex(),
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


def read(signed: bytes, charter: Charter) -> Announced:
    """A manifest of this charter, from its bytes.

    Raises:
        Refusal: ``badSignature``, ``unknownVersion``, or ``badManifest`` with the rule it breaks.
    """
    if len(signed) > LARGEST:
        raise Refusal("tooLarge")
    data = _opened(signed, charter.signing_key)
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
    return Announced(signed, manifest, check(manifest, charter))


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
    allowed = (0,) if before is None else (before.batch, before.batch + 1)
    if manifest.batch not in allowed:
        raise Refusal("badManifest", "Its batch does not follow the batch before it.")


def _opened(signed: bytes, key: bytes) -> bytes:
    """The JSON, if the signature is the analyser's."""
    try:
        signature = bytes.fromhex(signed[:_SIGNATURE].decode("ascii"))
        if signed[_SIGNATURE : _SIGNATURE + 1] != b"\n":
            raise ValueError
        data = signed[_SIGNATURE + 1 :]
        Ed25519PublicKey.from_public_bytes(key).verify(signature, _DOMAIN + data)
    except (ValueError, InvalidSignature):
        raise Refusal("badSignature") from None
    return data


def _manifest(fields: JsonObject) -> Manifest:
    numbers = {name: fields[name] for name in ("number", "batch", "users", "deadline")}
    if any(type(n) is not int or not 0 <= n < 1 << 53 for n in numbers.values()):
        raise TypeError("number, batch, users or deadline")
    if not isinstance(fields["token"], str):
        raise TypeError("token")
    for name in ("policy", "layout"):
        if not isinstance(fields[name], list) or not all(type(r) is list for r in fields[name]):
            raise TypeError(name)
    hashes = {name: bytes.fromhex(fields[name]) for name in ("study", "previous", "key")}
    if any(len(value) != 32 for value in hashes.values()):
        raise ValueError("study, previous or key")
    return Manifest(
        number=numbers["number"],
        batch=numbers["batch"],
        users=numbers["users"],
        deadline=numbers["deadline"],
        study=hashes["study"],
        previous=hashes["previous"],
        key=hashes["key"],
        token=fields["token"],
        policy=fields["policy"],
        layout=fields["layout"],
    )
