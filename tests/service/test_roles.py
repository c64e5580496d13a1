"""Roles from their files: what is missing or wrong is one sentence, before anything runs."""

import signal

import pytest

from discreet.errors import InvalidInputError
from discreet.service import roles
from discreet.service.client import Client
from discreet.service.configs import AnalyserConfig, DeviceConfig, ShufflerConfig
from discreet.service.protocol import ticket
from helpers.services import TOKEN, announced, charter, make_test_shuffler, new_store, serving

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


def analyser_of(folder, **changes):
    fields = {"charter": "charter.json", "study": "s.db", "signing_key": "k", "token_file": "t"}
    return AnalyserConfig(folder=folder, url="http://127.0.0.1:9", **(fields | changes))


def test_a_charter_that_cannot_be_read_names_its_file(folder):
    assert roles.read_charter(folder / "charter.json") == OF
    with pytest.raises(InvalidInputError, match=r"Cannot read .*nothing\.json"):
        roles.read_charter(folder / "nothing.json")


def test_the_shuffler_admits_the_tickets_of_its_file(folder):
    shuffler = roles.make_shuffler(shuffler_of(folder))
    try:
        assert shuffler._thread.submit(shuffler._store.totals).result()["tickets"] == 2
    finally:
        shuffler._thread.submit(shuffler._store.close).result()
        shuffler._thread.shutdown()


def test_rehearsals_are_run_only_by_who_says_so(folder):
    with pytest.raises(InvalidInputError, match="--rehearsal"):
        roles.make_shuffler(shuffler_of(folder, charter="rehearsal.json"))
    with pytest.raises(InvalidInputError, match="--rehearsal"):
        roles.make_analyser(analyser_of(folder, charter="rehearsal.json"))


def test_a_world_that_cannot_be_read_is_one_sentence(folder):
    assert roles._world(shuffler_of(folder)) == b""
    (folder / "world.json").write_bytes(b"{}")
    assert roles._world(shuffler_of(folder, world="world.json")) == b"{}"
    with pytest.raises(InvalidInputError, match=r"Cannot read the world 'no\.json'"):
        roles._world(shuffler_of(folder, world="no.json"))


def test_engines_are_known_by_name(folder):
    assert callable(roles._opener(analyser_of(folder)))
    with pytest.raises(InvalidInputError, match="'processes' or 'ray', got 'dask'"):
        roles._opener(analyser_of(folder, engine="dask"))


@pytest.mark.parametrize(
    ("own", "study", "sentence"),
    [
        ("", "00" * 32, "64 hexadecimal digits; give --ticket"),
        ("11" * 31, "00" * 32, "64 hexadecimal digits; give --ticket"),
        ("zz" * 32, "00" * 32, "hexadecimal digits"),
        ("11" * 32, "no name", "hexadecimal digits"),
    ],
)
def test_a_device_asks_nobody_before_ticket_and_study_are_right(folder, own, study, sentence):
    config = DeviceConfig(folder=folder, study=study, url="http://127.0.0.1:9")
    with pytest.raises(InvalidInputError, match=sentence):
        roles.make_participant(config, None, lambda _: None, own=own)


def test_a_device_remembers_the_last_manifest_it_has_checked(folder):
    one = announced(OF)
    config = DeviceConfig(folder=folder, study=OF.id.hex(), url="")
    with (
        serving(make_test_shuffler(folder / "s.db", OF)) as url,
        Client(url, TOKEN) as client,
    ):
        client.announce(0, one.signed)
        chain, _ = roles.make_participant(config, client, lambda _: None, own="11" * 32)
        assert chain.current().manifest == one.manifest
    seen = folder / "outbox" / "seen.manifest"
    assert seen.read_bytes() == one.signed
    assert roles._remembered(seen, OF)[0] == one.manifest


def test_both_signals_end_things_in_order():
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    ended = []
    try:
        roles.on_signals(lambda: ended.append(1))
        for name in before:
            signal.raise_signal(name)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    assert ended == [1, 1]


def test_a_store_of_another_study_learns_no_tickets_of_this_one(folder):
    """Who holds tickets of both would take part in one of them twice."""
    new_store(folder / "shuffler.db", charter(purpose="another")).close()
    with pytest.raises(InvalidInputError, match="another charter"):
        roles.make_shuffler(shuffler_of(folder))
    store = new_store(folder / "shuffler.db", charter(purpose="another"))
    assert store.totals()["tickets"] == 0
    store.close()


def test_a_second_analyser_on_one_study_is_refused(folder):
    config = analyser_of(folder)
    refused = pytest.raises(InvalidInputError, match="Another analyser")
    with roles._alone(config), refused, roles._alone(config):
        pass
    with roles._alone(config):
        pass
