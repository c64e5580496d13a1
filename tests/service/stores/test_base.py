"""The state machine on both stores: what is refused changes nothing."""

import pytest

from discreet.errors import InvalidInputError
from discreet.service import ticket
from discreet.service.report import read
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
    assert store.seal()
    assert not store.seal()
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
    store.seal()
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
        store.seal()
    if state == "done":
        store.done(0)
    if state == "expired":
        assert store.expire(0)
    pending = state in ("open", "full", "sealed")
    after = announced(OF, 1, before=one.manifest, batch=0 if state == "expired" else 1)
    reading = {"open": "notFull", "full": "notFull", "done": "batchDone", "expired": "batchExpired"}
    if state in reading:
        assert code(store.parts, 0, 0) == reading[state]
        assert code(store.part, 0, 0, 0) == reading[state]
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
    assert code(store.parts, 7, 0) == "unknownBatch"


def test_a_chain_has_no_gap_and_no_fork(store):
    one, _ = filled(store, OF)
    store.seal()
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
    fewer = announced(OF, 1, before=one.manifest, batch=0, users=5)
    assert code(store.announce, fewer) == "badManifest"
    assert store.announce(announced(OF, 1, before=one.manifest, batch=0))


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
    store.seal()
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


def test_a_store_of_another_version_is_refused(place):
    one = new_store(place, OF)
    with one._transaction("test"):
        one._execute("UPDATE about SET version = 2")
    with pytest.raises(InvalidInputError, match="unknownVersion"):
        one.adopt(on_new=lambda: None)
    one.close()


def test_real_reports_have_the_length_of_fake_ones(store):
    one = announced(OF)
    assert len(real_report(one, bytes(32))) == len(fake_report(one, bytes(32)))
