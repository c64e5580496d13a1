"""The store in PostgreSQL: several processes at once, lost connections, no secrets in errors."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("psycopg")

import psycopg

from discreet.errors import InvalidInputError
from discreet.service.client import Client
from discreet.service.protocol import ticket
from discreet.service.protocol.problems import Refusal
from discreet.service.shuffler import postgres
from discreet.service.shuffler import shuffler as shufflers
from discreet.service.shuffler.postgres import PostgresStore
from discreet.service.shuffler.store import StoreBusyError
from helpers.postgres import Server
from helpers.services import (
    TOKEN,
    announced,
    becomes,
    charter,
    fake_report,
    filled,
    make_test_shuffler,
    messages,
    new_store,
    serving,
    submissions,
)

OF = charter()


@pytest.fixture
def address(postgres_server):
    return postgres_server.database()


def test_an_address_that_nobody_answers_is_one_sentence_without_the_password():
    with pytest.raises(InvalidInputError, match="Cannot open the store in PostgreSQL") as caught:
        PostgresStore("postgresql://me:secret@127.0.0.1:9/x?connect_timeout=1", OF)
    said = str(caught.value)
    assert "secret" not in said and "127.0.0.1" in said and "Check store" in said


def test_two_processes_share_one_batch(address):
    one, other = new_store(address, OF), new_store(address, OF)
    batch, passes = announced(OF), ticket.make(3)
    one.admit([ticket.digest(x) for x in passes])
    one.announce(batch)
    assert one.submit(submissions(batch, passes[:2])) == ["accepted"] * 2
    assert other.submit(submissions(batch, passes[1:])) == ["ticketSpent", "accepted"]
    assert other.shuffle() and not one.shuffle()
    assert messages(one, 0, batch.sizes) == messages(other, 0, batch.sizes)
    one.close()
    other.close()


def test_a_lost_connection_is_busy_inside_a_transaction_and_made_anew_between_them(address):
    store = new_store(address, OF)
    store._begin(writing=True)
    store._db.close()
    with pytest.raises(StoreBusyError, match="connection was lost"):
        store._execute("SELECT 1")
    filled(store, OF)
    assert store.totals()["tickets_spent"] == 3
    store.close()


def test_a_full_database_is_not_ready(monkeypatch):
    """No file of the server may grow beyond 1 MB: it takes updates, and no report."""
    monkeypatch.setattr(shufflers, "_PROBE", 0.1)
    server, passes, one = Server(largest=1 << 20), ticket.make(3), announced(OF)
    try:
        address = server.database()
        with (
            serving(make_test_shuffler(address, OF, passes)) as url,
            Client(url, TOKEN) as client,
            psycopg.connect(address, autocommit=True) as other,
        ):
            assert becomes(url, 200)["disk"]["colour"] == "yellow"
            client.announce(0, one.signed)
            for size in (10_000, OF.largest_body):  # the rows' own pages, too
                with contextlib.suppress(psycopg.Error):
                    while True:
                        other.execute("INSERT INTO report (body) VALUES (%s)", (bytes(size),))
            other.execute("UPDATE about SET id = id")
            with pytest.raises(Refusal, match="busy"):
                client.send(fake_report(one, passes[0]))
            assert becomes(url, 503)["store"]["words"].startswith("PostgreSQL: ")
            other.execute("TRUNCATE report")
            becomes(url, 200)
            client.send(fake_report(one, passes[0]))
            assert other.execute("SELECT count(*) FROM report").fetchone() == (1,)
    finally:
        server.stop()


def test_an_error_names_its_kind_and_not_its_values(address):
    store = new_store(address, OF)
    with pytest.raises(StoreBusyError) as caught:
        store._execute("SELECT ?::int / 0", 12345)
    assert str(caught.value) == "PostgreSQL: DivisionByZero"
    store.close()


def test_tables_of_bodies_are_emptied_and_tickets_stay(address):
    store = new_store(address, OF)
    filled(store, OF)
    store.shuffle()
    store.done(0)
    for table in ("report", "piece", "sealed"):
        assert store._execute(f"SELECT count(*) FROM {table}") == [(0,)]
    assert store._execute("SELECT count(*) FROM ticket WHERE number = ?", 0) == [(3,)]
    store.close()


def test_what_was_answered_outlives_a_crash_whatever_the_server_s_default(address):
    store = new_store(address.replace("options=", "options=-csynchronous_commit%3Doff%20"), OF)
    assert store._execute("SHOW synchronous_commit") == [("on",)]
    store.close()


def test_nobody_waits_for_a_lock_without_an_end(address, monkeypatch):
    monkeypatch.setattr(postgres, "_PATIENCE", 1)
    store, batch = new_store(address, OF), announced(OF)
    with psycopg.connect(address) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (postgres._LOCK,))
        with pytest.raises(StoreBusyError, match="LockNotAvailable"):
            store.announce(batch)
        other.rollback()
    assert store.announce(batch)
    store.close()


def test_p20_a_store_that_is_told_to_end_waits_for_nobody(address):
    store = new_store(address, OF)
    with psycopg.connect(address) as other, ThreadPoolExecutor(1) as thread:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (postgres._LOCK,))
        waiting = thread.submit(store.announce, announced(OF))
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        with psycopg.connect(address) as third:
            while third.execute(query).fetchone() == (0,):
                third.rollback()
        store.end()
        with pytest.raises(StoreBusyError, match="QueryCanceled"):
            waiting.result()
        other.rollback()
    store.close()
