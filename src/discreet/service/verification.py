"""Check all that is public about a service: charter, certificate, manifests, ledger."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet._types import Plain
from discreet.errors import InvalidInputError
from discreet.service.protocol import manifest as manifests
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
        charter.check_noise(announced.manifest.users, announced.device.groups)
        before = announced.manifest
        found.append(announced)
    return found


def check_ledger(study: Study, chain: Sequence[Announced]) -> int:
    """Every counted batch names a manifest of the chain, each another, in order; how many.

    A manifest of batch k is signed after batch k - 1 was counted: the ledger must know all of them.
    """
    study.verify()
    counted = [entry for entry in study.ledger if entry["kind"] == "batch"]
    by_hash = {announced.hash.hex(): announced.manifest for announced in chain}
    last = -1
    for entry in counted:
        note = entry.get("note")
        name = str(note.get("manifest", "")) if isinstance(note, dict) else ""
        manifest = by_hash.get(name)
        if manifest is None:
            raise _unfit(entry, f"names the manifest {name!r}, which is not in the chain")
        if manifest.batch != entry["batch"] or manifest.users != entry["users"]:
            said = f"{manifest.users} users in batch {manifest.batch}"
            raise _unfit(entry, f"has {entry['users']} users, and its manifest announced {said}")
        if manifest.number <= last:
            raise _unfit(entry, f"has manifest {manifest.number}, after manifest {last}")
        last = manifest.number
    due = chain[-1].manifest.batch if chain else 0
    if len(counted) < due:
        raise InvalidInputError(
            f"The ledger counts {len(counted)} batches, and manifest {chain[-1].manifest.number} "
            f"was signed after {due}: it is an older copy, or entries were taken away. Ask the "
            f"analyser for the latest one."
        )
    return len(counted)


def _unfit(entry: Mapping[str, Plain], what: str) -> InvalidInputError:
    return InvalidInputError(
        f"Batch {entry['batch']} of the ledger {what}: ledger and manifests are not of one and the "
        f"same study, or were changed. Ask the analyser for both."
    )
