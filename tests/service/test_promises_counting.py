"""P1 to P6 and P17: who is counted, how often, and under which manifest."""

import contextlib
import threading
from collections import Counter

import httpx
import pytest

import discreet
from discreet.service.client import Client, UnreachableError
from discreet.service.opening import AttackError, open_cells
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import ticket
from discreet.service.protocol.problems import Refusal
from discreet.service.protocol.report import read, seal, seal_cell
from helpers import services
from helpers.clocks import ManualClock
from helpers.service_analysers import counted_cells, running_study
from helpers.service_kills import attacked, forked, killer

OF = services.charter()


def test_p01_nothing_leaves_before_n_distinct_users(place):
    one, passes = services.announced(OF, users=4), ticket.make(4)
    with (
        services.serving(services.make_test_shuffler(place, OF, passes)) as url,
        Client(url, services.TOKEN) as client,
    ):
        few = services.manifest(OF, users=2).signed(services.SIGNER)
        assert services.code(client.announce, 0, few) == "badManifest"  # below the charter's least
        client.announce(0, one.signed)
        for pass_ in passes[:3]:
            client.send(services.fake_report(one, pass_))
            assert services.code(client.send, services.fake_report(one, pass_)) == "ticketSpent"
        for _ in range(3):
            assert services.code(client.messages, 0, 0, [].append) == "notFull"
        fewer = services.announced(OF, users=3)  # n is fixed from the first announcement
        assert services.code(client.announce, 0, fewer.signed) == "forbiddenMutation"
        assert services.code(client.messages, 0, 0, [].append) == "notFull"
        assert client.metrics()["received"] == 3
        client.send(services.fake_report(one, passes[3]))
        sizes = [len(until_full(client, 0, k)) for k in range(len(one.sizes))]
    assert sizes == [52 * 4 * size for size in one.sizes]


def until_full(client, number, place):
    for _ in range(12_000):  # minutes: on however busy a machine
        try:
            return services.envelopes(client, number, place)
        except Refusal as refusal:
            assert refusal.code == "notFull"
            threading.Event().wait(0.01)
    raise AssertionError("never full")


def test_p02_one_contribution_per_ticket_under_races(place):
    """Every ticket is sent by four threads at once, to two servers where the store allows it."""
    passes = ticket.make(30)
    one = services.announced(OF, users=24)
    shared = place.startswith("postgresql")
    answers = Counter()
    lock = threading.Lock()

    def race(client, order):
        for pass_ in order:
            try:
                client.send(services.fake_report(one, pass_))
                answer = "accepted"
            except Refusal as refusal:
                answer = refusal.code
            with lock:
                answers[answer, pass_] += 1

    first = services.make_test_shuffler(place, OF, passes)
    with (
        services.serving(first) as url,
        Client(url, services.TOKEN) as client,
        contextlib.ExitStack() as others,
    ):
        urls = [url]
        if shared:
            second = services.make_test_shuffler(place, OF)
            urls.append(others.enter_context(services.serving(second)))
        client.announce(0, one.signed)
        clients = [Client(urls[i % len(urls)]) for i in range(4)]
        threads = [threading.Thread(target=race, args=(c, passes)) for c in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for each in clients:
            each.close()
        until_full(client, 0, 0)
    taken = {pass_ for answer, pass_ in answers if answer == "accepted"}
    assert len(taken) == 24
    assert all(answers["accepted", pass_] == 1 for pass_ in taken)
    refused = {answer for answer, _ in answers} - {"accepted"}
    assert refused <= {"ticketSpent", "noOpenBatch", "policyOutdated"}
    again = services.new_store(place, OF)  # after a restart, for the next batch
    again.done(0)
    two = services.announced(OF, 1, before=one.manifest, users=6)
    again.announce(two)
    codes = again.submit(services.submissions(two, passes))
    again.close()
    assert {p for p, c in zip(passes, codes, strict=True) if c == "accepted"} == set(passes) - taken


def test_p03_replays_are_refused_after_bodies_are_scrubbed(place):
    store = services.new_store(place, OF)
    one, passes = services.filled(store, OF)
    replay = services.submissions(one, passes)
    for step in (store.shuffle, lambda: store.done(0)):
        step()
        assert store.submit(replay) == ["ticketSpent"] * 3
    store.close()
    store = services.new_store(
        place, OF, passes
    )  # the enroller's list is read again at every start
    two = services.announced(OF, 1, before=one.manifest)
    store.announce(two)
    assert store.submit(replay + services.submissions(two, passes)) == ["ticketSpent"] * 6
    store.close()


POINTS = [
    f"{name}.{when}"
    for name in (
        "adopt",
        "admit",
        "announce",
        "submit",
        "scatter",
        "gather",
        "seal",
        "hand",
        "done",
    )
    for when in ("before", "after")
]


@pytest.mark.parametrize("point", POINTS)
def test_p04_a_kill_at_every_commit_loses_and_doubles_nothing(place, point):
    """Unique bodies: each is handed over exactly once, whenever the process was killed."""
    one, passes = services.announced(OF), [bytes([i]) * 32 for i in range(3)]
    reports = [read(services.fake_report(one, x, b"<%d>" % i)) for i, x in enumerate(passes)]

    def job(at):
        store = services.new_store(place, OF, passes, at)
        totals = store.totals()
        if totals["batches_done"]:
            return
        store.announce(one)
        for report in reports:
            assert store.submit([report])[0] in ("accepted", "ticketSpent", "noOpenBatch")
        store.shuffle()
        check_once(services.messages(store, 0, one.sizes), one.sizes)
        store.done(0)
        store.close()

    assert not forked(lambda: job(killer(point)))
    assert forked(lambda: job(lambda _: None))
    store = services.new_store(place, OF)
    totals = store.totals()
    store.close()
    assert totals["batches_done"] == 1 and totals["tickets_spent"] == 3


def check_once(found, sizes):
    for part, size in zip(found, sizes, strict=True):
        marks = Counter(part[i + 13 : i + 16] for i in range(0, len(part), 52))
        assert marks == {b"<0>": size, b"<1>": size, b"<2>": size}


def test_p04_a_kill_while_a_batch_expires_frees_all_or_nothing(place):
    one, passes = services.announced(OF), [bytes([i]) * 32 for i in range(3)]
    store = services.new_store(place, OF, passes)
    store.announce(one)
    store.submit(services.submissions(one, passes[:2]))
    store.close()
    for when, state, spent in (("before", "open", 2), ("after", None, 0)):
        at = killer(f"expire.{when}")
        assert not forked(lambda at=at: services.new_store(place, OF, at=at).expire(0))
        store = services.new_store(place, OF)
        row = store.live()
        assert (row and row.state, store.totals()["tickets_spent"]) == (state, spent)
        assert len(store._execute("SELECT * FROM report")) == spent
        store.close()


STEPS = [
    f"{name}.{when}" for name in ("manifest", "tell", "destroy") for when in ("before", "after")
]


def test_p05_the_next_policy_appears_iff_the_batch_is_counted(tmp_path):
    """The analyser is killed at every step of a batch; manifests never run ahead of the ledger."""
    with running_study(tmp_path) as running:
        folder, client = running.folder, running.client
        rest = iter(running.passes)
        for point in STEPS * 2:
            batches = discreet.open_study(folder / "study.db").batches
            while running.survives(point):
                running.send(rest)
            study = discreet.open_study(folder / "study.db")
            written = len(list((folder / "manifests").iterdir()))
            assert written in (study.batches, study.batches + 1)
            assert study.batches == batches + (point == "tell.after"), point
            totals = client.metrics()
            public = sum(n for name, n in totals.items() if name.startswith("batches_"))
            assert public <= study.batches + 1
        assert client.metrics()["tickets_spent"] <= 40
        study.verify()
    notes = [entry["note"]["manifest"] for entry in study.ledger if entry["kind"] == "batch"]
    assert len(set(notes)) == len(notes) == study.batches == 2


def test_p05_messages_are_the_same_at_every_reading_and_after_a_restart(place):
    store = services.new_store(place, OF)
    one, _ = services.filled(store, OF)
    store.shuffle()
    first = services.messages(store, 0, one.sizes)
    assert first == services.messages(store, 0, one.sizes)
    store.close()
    store = services.new_store(place, OF)
    assert not store.shuffle()
    assert services.messages(store, 0, one.sizes) == first
    store.close()


def test_p06_a_report_for_another_manifest_is_not_counted(place):
    store = services.new_store(place, OF)
    one, _ = services.filled(store, OF)
    store.shuffle()
    store.done(0)
    passes = ticket.make(3)
    store.admit([ticket.digest(x) for x in passes])
    two = services.announced(OF, 1, before=one.manifest)
    store.announce(two)
    assert store.submit([read(services.real_report(one, passes[0]))]) == ["policyOutdated"]
    assert store.live().received == 0
    store.close()


def test_p06_an_envelope_moved_to_another_batch_or_group_is_a_dummy():
    """Were the shuffler to move it, it would not open."""
    one = services.announced(OF)
    two = services.announced(OF, 1, before=one.manifest, key=one.manifest.key)
    cell = seal_cell(2, services.batch_key(0).public_key(), one.hash, 1)
    dummy = 7
    opened = [
        open_cells(cell, services.batch_key(number), of.hash, place, dummy)[0]
        for number, of, place in ((0, one, 1), (0, one, 0), (0, two, 1), (1, one, 1))
    ]
    assert opened == [2, dummy + 1, dummy + 1, dummy + 1]


def test_p06_a_class_of_another_size_is_an_attack_and_nothing_is_counted(tmp_path):
    with running_study(tmp_path) as running:
        client, analyser = running.client, running.analyser()
        assert analyser.step() == "waiting"
        running.send()
        honest = until_full(client, 0, 0)
        ask = client.messages
        analyser._client.messages = lambda n, c, take: take(honest[52:])
        with pytest.raises(AttackError, match="expected"):
            analyser.step()
        assert analyser.study.batches == 0
        analyser._client.messages = ask
        assert analyser.step() == "counted"
        analyser.close()


def test_p06_a_copied_envelope_counts_once_and_stops_nobody(tmp_path, caplog):
    """Two tickets with one envelope between them: the batch is counted, the copy is a dummy."""
    told = []
    with running_study(tmp_path, honest=0.9) as running:
        client, analyser = running.client, running.analyser()
        assert analyser.step() == "waiting"
        one = manifests.read(client.manifest(), running.of)
        passes = iter(running.passes)
        cells = [(0,) * c.messages for c in one.device.groups]  # every envelope holds cell 0
        first, second, *others = (seal(cells, one, next(passes)) for _ in range(one.manifest.users))
        for whole in (first, second[:-52] + first[-52:], *others):
            client.send(whole)
        until_full(client, 0, 0)
        tell = analyser.study.tell
        analyser.study.tell = lambda data, **k: told.append(data) or tell(data, **k)
        assert analyser.step() == "counted"
        analyser.close()
    assert "1 envelopes were copies" in caplog.text
    last = len(one.sizes) - 1
    dummy = one.device.groups[last].cells
    tally = {cell: times for place, cell, times in told[0].tolist() if place == last and times}
    assert tally == {0: one.manifest.users * one.sizes[last] - 1, dummy: 1}


def test_p06_the_shuffler_refuses_copies_inside_a_report(place):
    one, passes = services.announced(OF), ticket.make(2)
    store = services.new_store(place, OF, passes[:1])
    store.announce(one)
    copied = [services.fake_report(one, x)[:-52] for x in passes]
    reports = [read(data + data[-52:]) for data in copied]
    assert store.submit(reports) == ["copiedEnvelope", "unknownTicket"]
    assert store.totals()["tickets_spent"] == 0
    store.close()


def test_p17_a_deadline_discards_and_never_shrinks(place):
    clock, passes = ManualClock(services.NOW), ticket.make(3)
    one = services.announced(OF)
    with (
        services.serving(services.make_test_shuffler(place, OF, passes, clock=clock)) as url,
        Client(url, services.TOKEN) as client,
    ):
        client.announce(0, one.signed)
        for pass_ in passes[:2]:
            client.send(services.fake_report(one, pass_))
        clock.move(501)
        while client.metrics()["batches_expired"] == 0:
            threading.Event().wait(0.02)
        assert client.metrics()["tickets_spent"] == 0
        assert services.code(client.messages, 0, 0, [].append) == "batchExpired"
        assert services.code(client.send, services.fake_report(one, passes[2])) == "noOpenBatch"
        smaller = services.announced(
            OF, 1, before=one.manifest, batch=0, users=4, deadline=int(services.NOW) + 900
        )
        assert services.code(client.announce, 1, smaller.signed) == "badManifest"
        again = services.announced(
            OF, 1, before=one.manifest, batch=0, deadline=int(services.NOW) + 900
        )
        client.announce(1, again.signed)
        for pass_ in passes:
            client.send(services.fake_report(again, pass_))
        assert len(until_full(client, 1, 0)) == 52 * 3 * again.sizes[0]


def test_p17_a_full_batch_does_not_expire(place):
    store = services.new_store(place, OF)
    one, _ = services.filled(store, OF)
    assert not store.expire(0)
    store.shuffle()
    assert not store.expire(0)
    assert len(services.messages(store, 0, one.sizes)[0]) == 52 * 3 * one.sizes[0]
    store.close()


def test_p17_the_analyser_announces_an_expired_batch_anew(tmp_path):
    """The same batch of the study, a new manifest and key; every user is counted once."""
    clock = ManualClock(services.NOW)
    with running_study(tmp_path, clock=clock) as running:
        of, client, analyser = running.of, running.client, running.analyser(clock=clock)
        assert analyser.step() == "waiting"
        first = analyser.latest()
        running.send(iter(running.passes[:2]))
        clock.move(of.patience + 1)
        while client.metrics()["batches_expired"] == 0:
            threading.Event().wait(0.02)
        assert analyser.step() == "expired"
        assert analyser.step() == "waiting"
        second = analyser.latest()
        assert second.manifest.batch == first.manifest.batch
        assert second.manifest.key != first.manifest.key
        assert second.manifest.users == first.manifest.users
        running.send()
        until_full(client, 1, 0)
        assert analyser.step() == "counted"
        assert analyser.study.guarantee.epsilon == float(of.epsilon)
        assert counted_cells(analyser.study) == second.manifest.users
        analyser.close()


@pytest.mark.parametrize("times", [1, 2, 3])
def test_p31_a_ticket_is_worth_so_many_batches_and_one_report_in_each(place, times):
    """Across transactions, starts, lists that are read again, and a batch that expires."""
    of, passes = services.charter(participations=times), ticket.make(3)
    before, batch = None, 0
    for number in range(times + 3):
        store = services.new_store(place, of, passes)  # its list is read again
        one = services.announced(of, number, before=before, batch=batch)
        store.announce(one)
        if number == 1:  # who was in it gets the use back
            codes = store.submit(services.submissions(one, passes[:2]))
            assert codes == (["accepted"] if times > 1 else ["ticketSpent"]) * 2
            store.expire(1)
        elif number <= times:
            last = number in (times, 0) and times in (1, number)
            again = "ticketSpent" if last else "alreadyInBatch"
            twice = services.submissions(one, [passes[0]] * 2)
            assert store.submit(twice) == ["accepted", again]
            assert store.submit(twice) == [again] * 2
            assert store.submit(services.submissions(one, passes[1:])) == ["accepted"] * 2
            store.shuffle()
            store.buckets(number, 0)
            assert store.submit(twice[:1]) == [again]
            store.done(number)
            batch += 1
        else:
            assert store.submit(services.submissions(one, passes)) == ["ticketSpent"] * 3
            store.expire(number)
        before = one.manifest
        store.close()


def test_p31_people_come_back_and_are_counted_so_often_at_most(tmp_path):
    """A whole study of the real roles: half as many tickets as reports, and each is used twice."""
    with running_study(tmp_path, participations=2, episodes=24) as running:
        analyser, people = running.analyser(), running.passes[:14]
        assert analyser.study.guarantee.unit == "one person, up to 2 episodes"
        running.to_the_end(analyser, iter(people + people))
        analyser.study.verify()
        assert counted_cells(analyser.study) == 24 == running.client.metrics()["tickets_spent"]
        analyser.close()
        known = [ticket.digest(one) for one in people] + people
        for path in running.folder.rglob("*"):  # the analyser: no ticket, and nothing that links
            held = path.read_bytes() if path.is_file() else b""
            assert not any(one in held or one.hex().encode() in held for one in known)
    store = services.new_store(tmp_path / "shuffler" / "s.db", running.of)
    uses = [count for (count,) in store._execute("SELECT uses FROM ticket WHERE uses > 0")]
    store.close()
    assert sum(uses) == 24 and set(uses) == {1, 2}


def test_p31_two_reports_of_one_ticket_have_nothing_in_common():
    """But the ticket, which the shuffler keeps to itself: the analyser cannot link two batches."""
    of, pass_ = services.charter(participations=2), ticket.make(1)[0]
    one = services.announced(of)
    two = services.announced(of, 1, before=one.manifest)
    bodies = [read(services.real_report(each, pass_)).body for each in (one, two)]
    parts = [{body[i : i + 8] for i in range(0, len(body), 4)} for body in bodies]
    assert not parts[0] & parts[1]


def test_p31_an_attacker_is_counted_so_often_at_most_whoever_is_killed_when(tmp_path, long_run):
    found = attacked(tmp_path, 200 if long_run else 6)
    assert found["most"] == found["participations"]  # what is guaranteed for is not refused


def test_what_nobody_answers_can_be_asked_again():
    with (
        Client("http://127.0.0.1:9", http=httpx.Client(timeout=1)) as client,
        pytest.raises(UnreachableError),
    ):
        client.manifest()
