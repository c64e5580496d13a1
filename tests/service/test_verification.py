"""Verification: a chain of manifests, and a ledger that counts nothing else."""

from types import SimpleNamespace

import pytest

from discreet.errors import InvalidInputError
from discreet.service import verification
from discreet.service.protocol.problems import Refusal
from helpers.services import SIGNER, charter, manifest

OF = charter()


@pytest.fixture
def chain():
    """Three manifests; the second one expired."""
    first = manifest(OF)
    second = manifest(OF, 1, before=first)
    third = manifest(OF, 2, before=second, batch=1)
    return [first, second, third]


def written(chain):
    return [one.signed(SIGNER) for one in chain]


def ledger(*entries):
    """A study whose ledger says this, and whose own checks pass."""
    found = [{"kind": "start"}, *({"kind": "batch", **entry} for entry in entries)]
    return SimpleNamespace(verify=lambda: None, ledger=found)


def counted(one, **changes):
    note = {"manifest": one.hash.hex()}
    return {"batch": one.batch, "users": one.users, "note": note} | changes


def test_a_whole_chain_is_accepted_and_a_part_of_it_is_not(chain):
    found = verification.check_chain(OF, written(chain))
    assert [one.manifest for one in found] == chain
    for part in (chain[1:], [chain[0], chain[2]], [chain[0], chain[0]]):
        with pytest.raises(Refusal, match="badManifest"):
            verification.check_chain(OF, written(part))


def test_manifests_are_read_in_their_order(chain, tmp_path):
    for number in (2, 0, 1):
        (tmp_path / f"{number:06d}.manifest").write_bytes(written(chain)[number])
    (tmp_path / "notes.txt").write_text("not one of them")
    assert verification.read_manifests(tmp_path) == written(chain)


def test_every_counted_batch_has_its_manifest(chain):
    found = verification.check_chain(OF, written(chain))
    assert verification.check_ledger(ledger(), found[:1]) == 0
    study = ledger(counted(chain[0]), counted(chain[2]))
    assert verification.check_ledger(study, found) == 2


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        (lambda c: [counted(c[0], note=None)], "not in the chain"),
        (lambda c: [counted(c[0], note={"manifest": "00" * 32})], "not in the chain"),
        (lambda c: [counted(c[0], users=4)], "has 4 users, and its manifest announced"),
        (lambda c: [counted(c[0], batch=1)], "its manifest announced"),
        (lambda c: [counted(c[0]), counted(c[0])], "after manifest"),
        (lambda c: [counted(c[2]), counted(c[0])], "after manifest"),
    ],
)
def test_a_ledger_that_counts_something_else_is_found(chain, entries, sentence):
    found = verification.check_chain(OF, written(chain))
    with pytest.raises(InvalidInputError, match=sentence):
        verification.check_ledger(ledger(*entries(chain)), found)


def test_the_study_s_own_ledger_is_verified_first(chain):
    def broken():
        raise InvalidInputError("edited")

    study = SimpleNamespace(verify=broken, ledger=[])
    with pytest.raises(InvalidInputError, match="edited"):
        verification.check_ledger(study, [])


def test_a_folder_without_manifests_proves_nothing(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InvalidInputError, match="give the folder 'manifests'"):
            verification.read_manifests(folder)


def test_a_ledger_that_forgot_what_a_manifest_knows_is_refused(chain):
    """Manifest 2 is of batch 1: batch 0 was counted before it was signed."""
    found = verification.check_chain(OF, written(chain))
    with pytest.raises(InvalidInputError, match=r"counts 0 batches, and manifest 2 .* after 1"):
        verification.check_ledger(ledger(), found)
    assert verification.check_ledger(ledger(counted(chain[0])), found) == 1
