"""Check all that is public about a service: charter, certificate, manifests, ledger."""

from collections.abc import Sequence
from pathlib import Path

from discreet.errors import InvalidInputError
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import noise
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.manifest import Announced, Manifest
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


def check_chain(charter: Charter, signed: Sequence[bytes]) -> list[Announced]:
    """Every manifest: signature, charter, noise, and that it follows the one before it."""
    before: Manifest | None = None
    found = []
    for data in signed:
        announced = manifests.read(data, charter)
        manifests.check_follows(announced.manifest, before)
        noise.check(charter, announced.manifest.users, announced.device.classes)
        before = announced.manifest
        found.append(announced)
    return found


def check_ledger(study: Study, chain: Sequence[Announced]) -> int:
    """Every counted batch names a manifest of the chain, each another, in order; how many."""
    study.verify()
    counted = [entry for entry in study.ledger if entry["kind"] == "batch"]
    by_hash = {announced.hash.hex(): announced.manifest for announced in chain}
    last = -1
    for entry in counted:
        note = entry.get("note")
        name = str(note.get("manifest", "")) if isinstance(note, dict) else ""
        manifest = by_hash.get(name)
        if manifest is None:
            raise InvalidInputError(f"Batch {entry['batch']} was counted without a manifest.")
        if manifest.batch != entry["batch"] or manifest.users != entry["users"]:
            raise InvalidInputError(f"Batch {entry['batch']} is not what its manifest announced.")
        if manifest.number <= last:
            raise InvalidInputError(f"Batch {entry['batch']} was counted out of order.")
        last = manifest.number
    return len(counted)
