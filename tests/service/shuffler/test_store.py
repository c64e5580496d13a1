"""The state machine on both databases, the permutation, and Hypothesis against a model."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from discreet.device import ENVELOPE
from discreet.errors import InvalidInputError
from discreet.service.protocol import ticket
from discreet.service.protocol.report import read
from discreet.service.shuffler import store as stores
from discreet.service.shuffler.store import StoreBusyError
from helpers.service_machine import StoreMachine
from helpers.services import (
    announced,
    charter,
    code,
    fake_report,
    filled,
    messages,
    new_store,
    real_report,
    submissions,
)

OF = charter()


@pytest.fixture
def store(place):
    one = new_store(place, OF)
    yield one
    one.close()


def test_the_whole_life_of_a_batch(store):
    one, _ = filled(store, OF)
    assert store.live().state == "full"
    assert store.shuffle()
    assert not store.shuffle()
    found = messages(store, 0, one.sizes)
    assert [len(part) for part in found] == [52 * 3 * size for size in one.sizes]
    assert found == messages(store, 0, one.sizes)
    assert store.done(0)
    assert not store.done(0)
    assert store.live() is None
    assert store.totals()["batches_done"] == 1 and store.totals()["tickets_spent"] == 3


def test_every_envelope_is_handed_over_once(store):
    one, passes = announced(OF), ticket.make(3)
    store.admit([ticket.digest(x) for x in passes])
    store.announce(one)
    sent = [read(fake_report(one, x, b"%d" % i)) for i, x in enumerate(passes)]
    store.submit(sent)
    store.shuffle()
    first = 0
    for size, part in zip(one.sizes, messages(store, 0, one.sizes), strict=True):
        wanted = [s.body[52 * i : 52 * (i + 1)] for s in sent for i in range(first, first + size)]
        got = [part[i : i + 52] for i in range(0, len(part), 52)]
        assert sorted(got) == sorted(wanted)
        first += size


@pytest.mark.parametrize("state", ["open", "full", "sealed", "done", "expired"])
def test_what_each_state_allows(store, state):
    one = announced(OF)
    if state in ("open", "expired"):
        store.announce(one)
    else:
        filled(store, OF)
    if state in ("sealed", "done"):
        store.shuffle()
    if state == "done":
        store.done(0)
    if state == "expired":
        assert store.expire(0)
    pending = state in ("open", "full", "sealed")
    after = announced(OF, 1, before=one.manifest, batch=0 if state == "expired" else 1)
    reading = {"open": "notFull", "full": "notFull", "done": "batchDone", "expired": "batchExpired"}
    if state in reading:
        assert code(store.buckets, 0, 0) == reading[state]
        assert code(store.bucket, 0, 0, 0) == reading[state]
    if state not in ("sealed", "done"):
        assert code(store.done, 0) == reading[state]
    assert store.expire(0) == (state == "open")
    if pending and state != "open":
        assert code(store.announce, after) == "batchPending"
    if state in ("done", "expired"):
        assert store.announce(after)


def test_a_manifest_is_announced_once_and_never_changed(store):
    assert store.announce(announced(OF))
    assert not store.announce(announced(OF))
    assert code(store.announce, announced(OF, users=4)) == "forbiddenMutation"
    assert code(store.announce, announced(OF, 1)) == "batchPending"
    assert store.manifest(0) == announced(OF).signed
    assert code(store.manifest, 7) == "unknownBatch"
    assert code(store.buckets, 7, 0) == "unknownBatch"


def test_a_chain_has_no_gap_and_no_fork(store):
    one, _ = filled(store, OF)
    store.shuffle()
    store.done(0)
    assert code(store.announce, announced(OF, 2, before=one.manifest)) == "batchPending"
    assert code(store.announce, announced(OF, 1)) == "badManifest"
    again = announced(OF, 1, before=one.manifest, batch=0)
    assert code(store.announce, again) == "badManifest"
    assert store.announce(announced(OF, 1, before=one.manifest))


def test_after_an_expiry_the_same_batch_is_due_for_as_many_users(store):
    one = announced(OF)
    store.announce(one)
    store.expire(0)
    assert code(store.announce, announced(OF, 1, before=one.manifest)) == "badManifest"
    more = announced(OF, 1, before=one.manifest, batch=0, users=5)
    assert code(store.announce, more) == "badManifest"
    assert store.announce(announced(OF, 1, before=one.manifest, batch=0))


def test_a_batch_that_expired_does_not_come_back_smaller(store):
    one = announced(OF, users=5)
    store.announce(one)
    store.expire(0)
    fewer = announced(OF, 1, before=one.manifest, batch=0, users=4)
    assert code(store.announce, fewer) == "badManifest"
    assert store.announce(announced(OF, 1, before=one.manifest, batch=0, users=5))


def test_an_expired_batch_frees_no_ticket_of_an_earlier_one(store):
    one, passes = filled(store, OF)
    store.shuffle()
    store.done(0)
    two = announced(OF, 1, before=one.manifest)
    store.announce(two)
    store.expire(1)
    three = announced(OF, 2, before=two.manifest, batch=1)
    store.announce(three)
    assert store.submit(submissions(three, passes)) == ["ticketSpent"] * 3


@pytest.mark.parametrize(("times", "number"), [(1, 1), (2, 0)])
def test_a_ticket_that_somebody_else_has_spent_meanwhile_is_not_claimed(place, times, number):
    """It was found good in the same transaction, so this cannot happen; checked all the same."""
    of = charter(participations=times)
    store = new_store(place, of)
    _, passes = filled(store, of)
    digests = [ticket.digest(x) for x in passes]
    try:
        assert store._claim(digests, number) == set()
    except StoreBusyError:
        store._roll_back()
    assert store._execute("SELECT DISTINCT number, uses FROM ticket") == [(0, 1)]
    store.close()


def test_a_batch_that_lost_a_body_is_never_released(store):
    filled(store, OF)
    with store._transaction("test"):
        store._execute("DELETE FROM report WHERE id = (SELECT min(id) FROM report)")
    with pytest.raises(InvalidInputError, match="nothing is released"):
        store.shuffle()
    assert store.live().state == "full"
    assert code(store.buckets, 0, 0) == "notFull"


def test_a_transaction_that_cannot_begin_is_over(store, monkeypatch):
    """The connection would stay inside it, and everybody after it be told to come again."""
    begin = store._begin

    def begin_and_fail(*, writing):
        begin(writing=writing)
        raise StoreBusyError("cancelled while it waited for the lock")

    for transaction in (lambda: store._transaction("test"), store._reading):
        monkeypatch.setattr(store, "_begin", begin_and_fail)
        with pytest.raises(StoreBusyError), transaction():
            pass
        monkeypatch.setattr(store, "_begin", begin)
        filled_before = store.totals()["tickets"]
        store.admit([ticket.digest(bytes([filled_before]) * 32)])
        assert store.totals()["tickets"] == filled_before + 1


def test_every_reason_has_its_code(store):
    passes = ticket.make(5)
    store.admit([ticket.digest(x) for x in passes[:4]])
    one = announced(OF)
    assert store.submit(submissions(one, passes[:1])) == ["noOpenBatch"]
    store.announce(one)
    other = announced(OF, users=4)
    good = submissions(one, passes)
    short = good[1]._replace(body=good[1].body[:-52])
    reports = [good[0], good[4], good[0], *submissions(other, passes[1:2]), short]
    assert store.submit(reports) == [
        "accepted",
        "unknownTicket",
        "ticketSpent",
        "policyOutdated",
        "wrongLength",
    ]
    assert store.submit(good[1:4]) == ["accepted", "accepted", "policyOutdated"]
    assert store.submit(good) == ["ticketSpent"] * 3 + ["noOpenBatch", "unknownTicket"]


def test_an_expired_batch_frees_its_tickets_and_keeps_no_body(store):
    one, passes = announced(OF), ticket.make(3)
    store.admit([ticket.digest(x) for x in passes])
    store.announce(one)
    assert store.submit(submissions(one, passes[:2])) == ["accepted"] * 2
    assert store.expire(0)
    assert store.totals()["tickets_spent"] == 0
    two = announced(OF, 1, before=one.manifest, batch=0)
    store.announce(two)
    assert store.submit(submissions(one, passes[:1])) == ["policyOutdated"]
    assert store.submit(submissions(two, passes)) == ["accepted"] * 3
    store.shuffle()
    assert len(messages(store, 1, two.sizes)[0]) == 52 * 3 * two.sizes[0]


def test_tickets_admitted_again_stay_spent(store):
    _, passes = filled(store, OF)
    store.admit([ticket.digest(x) for x in passes])
    assert store.totals()["tickets"] == 3 == store.totals()["tickets_spent"]


def test_a_store_belongs_to_its_charter(place):
    asked = []
    one = new_store(place, OF)
    one.adopt(on_new=lambda: asked.append(1))
    one.close()
    assert not asked
    with pytest.raises(InvalidInputError, match="another charter"):
        new_store(place, charter(purpose="another")).close()


def test_of_two_charters_at_once_one_is_adopted_and_the_other_refused(store):
    """Another process adopts its own while the verifier of this one is at work."""
    with store._transaction("test"):
        store._execute("DELETE FROM about")

    def meanwhile():
        with store._transaction("test"):
            store._execute("INSERT INTO about VALUES (1, 1, ?)", charter(purpose="another").data)

    with pytest.raises(InvalidInputError, match="another charter"):
        store.adopt(on_new=meanwhile)


def test_a_store_of_another_version_is_refused(place):
    one = new_store(place, OF)
    with one._transaction("test"):
        one._execute("UPDATE about SET version = 4")
    with pytest.raises(InvalidInputError, match="unknownVersion"):
        one.adopt(on_new=lambda: None)
    one.close()


def test_real_reports_have_the_length_of_fake_ones(store):
    one = announced(OF)
    assert len(real_report(one, bytes(32))) == len(fake_report(one, bytes(32)))


def envelopes(count):
    """So many different ones."""
    found = np.zeros((count, ENVELOPE), np.uint8)
    found[:, :4] = np.arange(count, dtype=">u4").view(np.uint8).reshape(-1, 4)
    return found


def numbers(data):
    """Which envelopes these are, in their order."""
    rows = np.frombuffer(data, np.uint8).reshape(-1, ENVELOPE)
    return np.ascontiguousarray(rows[:, :4]).view(">u4").ravel().tolist()


@pytest.mark.parametrize("count", [0, 1, 80_659, 80_660, 1_000_000])
def test_buckets_are_a_power_of_two_that_keeps_each_small(count):
    buckets = stores.buckets_for(count)
    assert buckets & (buckets - 1) == 0
    assert count * ENVELOPE / buckets <= stores.BUCKET
    assert buckets == 1 or 2 * count * ENVELOPE / buckets > stores.BUCKET


@pytest.mark.parametrize("buckets", [1, 2, 64])
def test_every_envelope_is_in_exactly_one_bucket(buckets):
    parts = dict(stores.scatter(envelopes(500), buckets))
    assert set(parts) <= set(range(buckets))
    assert sorted(n for data in parts.values() for n in numbers(data)) == list(range(500))
    assert len(parts) > buckets / 2


def test_a_bucket_is_permuted_whole():
    data = envelopes(200).tobytes()
    once, twice = stores.permuted(data), stores.permuted(data)
    assert sorted(numbers(once)) == sorted(numbers(twice)) == list(range(200))
    assert once != twice != data


def test_equal_keys_are_drawn_again(monkeypatch):
    """A stable sort of equal keys would keep the order in which reports came."""
    draws = [np.array([5, 5, 1], np.uint64), np.array([9, 7, 8], np.uint64)]
    monkeypatch.setattr(stores.os, "urandom", lambda _: draws.pop(0).tobytes())
    assert numbers(stores.permuted(envelopes(3).tobytes())) == [1, 2, 0]
    assert not draws


_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]


def run(machine, examples, steps=30):
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, suppress_health_check=_CHECKS
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("times", [1, 2])
def test_sqlite_does_what_the_model_does(tmp_path, long_run, times):
    numbers = itertools.count()

    class Machine(StoreMachine):
        most = times

        def new_place(self):
            return tmp_path / f"{next(numbers)}.db"

    run(Machine, 400 if long_run else 8)


def test_postgres_does_what_the_model_does_with_two_processes(postgres_server, long_run):
    class Machine(StoreMachine):
        processes, most = 2, 2

        def new_place(self):
            return postgres_server.database()

    run(Machine, 200 if long_run else 4)


def test_every_ticket_is_known_beforehand_and_few_strangers_are(store):
    for count in (1, 1000):
        passes = [ticket.digest(one) for one in ticket.make(count)]
        store.admit(passes)
        assert all(map(store.may_know, passes))
        strangers = [ticket.digest(one) for one in ticket.make(2000)]
        assert sum(map(store.may_know, strangers)) < 100
