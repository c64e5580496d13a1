"""The shuffler from its file: what is missing or wrong is one sentence, before anything runs."""

import pytest

from discreet.errors import InvalidInputError
from discreet.service.configs import ShufflerConfig
from discreet.service.protocol import ticket
from discreet.service.shuffler import process
from helpers.services import charter, new_store

OF = charter()


@pytest.fixture
def folder(tmp_path):
    """The charters of a study and of its rehearsal, and two tickets."""
    (tmp_path / "charter.json").write_bytes(OF.data)
    (tmp_path / "rehearsal.json").write_bytes(charter(rehearsal=True).data)
    digests = [ticket.digest(bytes([i]) * 32) for i in range(2)]
    ticket.write(tmp_path / "tickets.txt", digests, private=True)
    return tmp_path


def shuffler_of(folder, **changes):
    fields = {"charter": "charter.json", "tickets": "tickets.txt"} | changes
    return ShufflerConfig(folder=folder, analyser_token_sha256="00" * 32, **fields)


def test_the_shuffler_admits_the_tickets_of_its_file(folder):
    shuffler = process.make_shuffler(shuffler_of(folder))
    try:
        assert shuffler._thread.submit(shuffler._store.totals).result()["tickets"] == 2
    finally:
        shuffler._thread.submit(shuffler._store.close).result()
        shuffler._thread.shutdown()


def test_a_rehearsal_is_served_only_by_who_says_so(folder):
    with pytest.raises(InvalidInputError, match="--rehearsal"):
        process.make_shuffler(shuffler_of(folder, charter="rehearsal.json"))


def test_a_world_that_cannot_be_read_is_one_sentence(folder):
    assert process._world(shuffler_of(folder)) == b""
    (folder / "world.json").write_bytes(b"{}")
    assert process._world(shuffler_of(folder, world="world.json")) == b"{}"
    with pytest.raises(InvalidInputError, match=r"Cannot read the world '.*no\.json'"):
        process._world(shuffler_of(folder, world="no.json"))


def test_a_store_of_another_study_learns_no_tickets_of_this_one(folder):
    """Who holds tickets of both would take part in one of them twice."""
    new_store(folder / "shuffler.db", charter(purpose="another")).close()
    with pytest.raises(InvalidInputError, match="another charter"):
        process.make_shuffler(shuffler_of(folder))
    store = new_store(folder / "shuffler.db", charter(purpose="another"))
    assert store.totals()["tickets"] == 0
    store.close()
