"""Check all that is public about a service: charter, certificate, manifests, ledger."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet._types import Plain
from discreet.errors import InvalidInputError
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.manifest import Announced, Manifest
from discreet.service.protocol.problems import Refusal
from discreet.study.study import Study


def read_manifests(folder: Path) -> list[bytes]:
    """All manifests of an analyser's folder; a folder without any proves nothing."""
    found = [path.read_bytes() for path in sorted(folder.glob("*.manifest"))]
    if not found:
        raise InvalidInputError(
            f"There are no manifests in {str(folder)!r}: give the folder 'manifests' of the "
            f"analyser, which is made when it announces its first batch."
        )
    return found


def check_witness(own: Sequence[bytes], theirs: Sequence[bytes]) -> None:
    """Refuse manifests of an analyser that are not those its shuffler keeps.

    The analyser may hold one more, which it has written and not announced yet.
    """
    if list(own[: len(theirs)]) != list(theirs) or len(own) > len(theirs) + 1:
        raise InvalidInputError(
            f"The analyser's {len(own)} manifests are not the {len(theirs)} that the shuffler "
            f"keeps: some were taken away or signed anew. Believe the shuffler's."
        )


def check_chain(charter: Charter, signed: Sequence[bytes]) -> list[Announced]:
    """Every manifest: signature, charter, noise, and that it follows the one before it."""
    before: Manifest | None = None
    found: list[Announced] = []
    for data in signed:
        announced = manifests.read(data, charter, before)
        manifests.check_follows(announced.manifest, before)
        charter.check_noise(announced.manifest.users, announced.device.groups)
        before = announced.manifest
        if before.abandons is not None and before.batch != found[before.abandons].manifest.batch:
            raise Refusal("badManifest", "It begins another batch than the one it abandons.")
        found.append(announced)
    return found


def check_ledger(study: Study, chain: Sequence[Announced]) -> int:
    """Ledger and manifests tell one story; how many batches are counted.

    Every manifest holds the head that the ledger had when it was signed, so the entries up to there
    cannot be written anew. The entry after that head is what became of the manifest: counted under
    its hash, or issued again. Manifests that were abandoned are the exception: a later one says so,
    and an entry of the ledger. Entries after the last manifest have no witness yet.
    """
    study.verify()
    entries = study.ledger
    heads = [str(entry["previous"]) for entry in entries[1:]] + [study.head]
    lost = manifests.abandoned([one.manifest for one in chain])
    last, counted = -1, dict[int, Announced]()
    for announced in chain:
        manifest = announced.manifest
        if manifest.number in lost:
            continue
        at = heads.index(manifest.ledger.hex()) if manifest.ledger.hex() in heads else -1
        if at <= last:
            raise InvalidInputError(
                f"The ledger has never had the head that manifest {manifest.number} was signed "
                f"with, or not in this order: it is an older copy, or was written anew. Ask the "
                f"analyser for the latest one."
            )
        last = at
        said = f"{manifest.abandons} to {manifest.number - 1}"
        if (_note(entries[at]).get("abandoned") or None) != (
            None if manifest.abandons is None else said
        ):
            raise _unfit(entries[at], f"does not say what manifest {manifest.number} abandons")
        counted[at + 1] = announced
    batches = [i for i, entry in enumerate(entries) if entry["kind"] == "batch"]
    for i in batches:
        entry, name = entries[i], _note(entries[i]).get("manifest")
        if i not in counted or counted[i].hash.hex() != name:
            raise _unfit(entry, f"names the manifest {name!r}, which is not the one it follows")
        manifest = counted[i].manifest
        if manifest.batch != entry["batch"] or manifest.users != entry["users"]:
            said = f"{manifest.users} users in batch {manifest.batch}"
            raise _unfit(entry, f"has {entry['users']} users, and its manifest announced {said}")
    return len(batches)


def _note(entry: Mapping[str, Plain]) -> Mapping[str, Plain]:
    note = entry.get("note")
    return note if isinstance(note, dict) else {}


def _unfit(entry: Mapping[str, Plain], what: str) -> InvalidInputError:
    return InvalidInputError(
        f"Entry {entry['number']} of the ledger {what}: ledger and manifests are not of one "
        f"and the same study, or were changed. Ask the analyser for both."
    )
