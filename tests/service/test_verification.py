"""Verification: a chain of manifests, and a ledger that counts nothing else."""

from types import SimpleNamespace

import pytest

from discreet.errors import InvalidInputError
from discreet.service import verification
from discreet.service.protocol.problems import Refusal
from helpers.services import SIGNER, charter, head, manifest

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
    """A study whose ledger says this, entry i under the head of manifest i + 1."""
    kinds = [{"kind": "start"}, *({"kind": "batch", **entry} for entry in entries)]
    heads = ["", *(head(number).hex() for number in range(len(kinds)))]
    found = [
        {"number": number, "previous": heads[number], **entry} for number, entry in enumerate(kinds)
    ]
    return SimpleNamespace(verify=lambda: None, ledger=found, head=heads[-1])


def counted(one, **changes):
    note = {"manifest": one.hash.hex()}
    return {"batch": one.batch, "users": one.users, "note": note} | changes


AGAIN = {"kind": "reissue"}
"""The second manifest expired."""


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
    study = ledger(counted(chain[0]), AGAIN, counted(chain[2]))
    assert verification.check_ledger(study, found) == 2


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        (lambda c: [counted(c[0], note=None), AGAIN], "not the one it follows"),
        (lambda c: [counted(c[0], note={"manifest": "00" * 32}), AGAIN], "not the one it follows"),
        (lambda c: [counted(c[0], users=4), AGAIN], "has 4 users, and its manifest announced"),
        (lambda c: [counted(c[0], batch=1), AGAIN], "its manifest announced"),
        (lambda c: [counted(c[0]), counted(c[0])], "not the one it follows"),
        (lambda c: [counted(c[2]), counted(c[0])], "not the one it follows"),
        (lambda c: [counted(c[0]), AGAIN | {"note": {"abandoned": "1 to 1"}}], "manifest 2 aband"),
        (lambda c: [counted(c[0])], "never had the head that manifest 2 was signed with"),
        (lambda c: [], "never had the head that manifest 1 was signed with"),
    ],
)
def test_a_ledger_that_counts_something_else_is_found(chain, entries, sentence):
    found = verification.check_chain(OF, written(chain))
    with pytest.raises(InvalidInputError, match=sentence):
        verification.check_ledger(ledger(*entries(chain)), found)


def test_what_was_abandoned_is_said_on_both_sides(chain):
    """The study was put back to where manifest 1 was signed."""
    third = manifest(OF, 2, before=chain[1], batch=1, abandons=1)
    found = verification.check_chain(OF, written([*chain[:2], third]))
    given_up = AGAIN | {"note": {"abandoned": "1 to 1"}}
    assert verification.check_ledger(ledger(counted(chain[0]), given_up), found) == 1
    with pytest.raises(InvalidInputError, match="does not say what manifest 2 abandons"):
        verification.check_ledger(ledger(counted(chain[0]), AGAIN), found)
    other = manifest(OF, 2, before=chain[1], batch=0, abandons=1)
    with pytest.raises(Refusal, match="another batch than the one it abandons"):
        verification.check_chain(OF, written([*chain[:2], other]))


def test_the_shuffler_is_a_second_witness(chain):
    own = written(chain)
    verification.check_witness(own, own)
    verification.check_witness(own, own[:2])  # the last one was not announced yet
    for theirs in (own[:1], [own[0], own[2]], [*own, own[0]]):
        with pytest.raises(InvalidInputError, match="Believe the shuffler's"):
            verification.check_witness(own, theirs)


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
