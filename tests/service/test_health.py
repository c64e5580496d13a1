"""P26: an operator sees what fails: checks in colours, metrics, and lines of a log."""

import contextlib
import json
import logging
import shutil
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from discreet.service import health
from discreet.service.client import Client
from discreet.service.health import Check, check_clock, check_disk
from discreet.service.protocol import ticket
from discreet.service.protocol.problems import Refusal
from discreet.service.shuffler import shuffler as shufflers
from discreet.service.shuffler.store import StoreBusyError
from helpers.clocks import ManualClock
from helpers.services import (
    NOW,
    TOKEN,
    announced,
    asked,
    becomes,
    charter,
    fake_report,
    filled,
    kept_port,
    make_test_shuffler,
    new_store,
    serving,
)

OF = charter()
HTTP = httpx.Client(verify=False, timeout=120)


def test_p26_readiness_is_answered_while_the_store_is_at_work(place, monkeypatch):
    """A sealing that does not end: the server is alive, the store takes what a probe writes."""
    passes, at_work, go_on = ticket.make(3), threading.Event(), threading.Event()
    shuffler = make_test_shuffler(place, OF, passes)
    step = shuffler.store.shuffle_step

    def slow_step():
        at_work.set()
        go_on.wait(60)
        return step()

    monkeypatch.setattr(shuffler.store, "shuffle_step", slow_step)
    with serving(shuffler) as url, Client(url, TOKEN) as client:
        try:
            one = announced(OF)
            client.announce(0, one.signed)
            for pass_ in passes:
                client.send(fake_report(one, pass_))
            assert at_work.wait(60)
            assert becomes(url, 200)["store"]["colour"] == "green"
            assert HTTP.get(f"{url}/livez").json() == {"ok": True}
        finally:
            go_on.set()
        while client.metrics()["batches_sealed"] == 0:
            time.sleep(0.02)


def test_p26_a_store_that_takes_nothing_and_a_full_disk_are_red(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(shufflers, "_PROBE", 0.02)
    shuffler = make_test_shuffler(tmp_path / "s.db", OF)
    with serving(shuffler) as url:
        assert becomes(url, 200)["disk"]["colour"] == "green"

        def full():
            raise StoreBusyError("SQLite: database or disk is full")

        monkeypatch.setattr(shuffler.store, "probe", full)
        assert "full" in becomes(url, 503)["store"]["words"]
        monkeypatch.undo()
        monkeypatch.setattr(shufflers, "_PROBE", 0.02)
        becomes(url, 200)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
        assert becomes(url, 503)["disk"]["colour"] == "red"
    assert "database or disk is full" in caplog.text


def test_p26_one_error_in_passing_is_red_and_then_over(tmp_path, monkeypatch):
    monkeypatch.setattr(shufflers, "_PROBE", 0.02)
    broken = threading.Event()
    broken.set()

    def unsteady(folder):
        if broken.is_set():
            raise OSError("stale file handle")
        return check_disk(folder)

    monkeypatch.setattr(shufflers, "check_disk", unsteady)
    with serving(make_test_shuffler(tmp_path / "s.db", OF)) as url:
        assert becomes(url, 503)["store"]["colour"] == "red"
        while "OSError" not in asked(url)[1]["store"]["words"]:
            time.sleep(0.02)
        broken.clear()
        becomes(url, 200)


def test_p26_readiness_that_is_old_is_red(tmp_path, monkeypatch):
    hang = threading.Event()
    shuffler = make_test_shuffler(tmp_path / "s.db", OF)
    monkeypatch.setattr(shufflers, "_PROBE", 0.05)
    monkeypatch.setattr(shuffler.store, "probe", lambda: hang.wait(60))
    with serving(shuffler) as url:
        try:
            assert becomes(url, 503)["store"]["colour"] == "red"
        finally:
            hang.set()


def test_p26_sqlite_says_that_the_disk_is_full(tmp_path):
    store = new_store(tmp_path / "s.db", OF)
    store._execute("PRAGMA max_page_count = 20")
    with pytest.raises(StoreBusyError, match="disk is full"), store._transaction("test"):
        store._insert("report", [(bytes(100_000),)])
    store.close()


def test_p26_metrics_count_by_code_and_know_nobody(place, caplog):
    caplog.set_level("INFO")
    passes, strangers = ticket.make(3), ticket.make(2)
    with serving(make_test_shuffler(place, OF, passes)) as url, Client(url, TOKEN) as client:
        one = announced(OF, users=4)
        client.announce(0, one.signed)
        with contextlib.suppress(Refusal):
            client.announce(1, announced(OF, 7).signed)
        for pass_ in (*passes, passes[0], *strangers):
            with contextlib.suppress(Refusal):
                client.send(fake_report(one, pass_))
        with Client(url, "wrong") as stranger, contextlib.suppress(Refusal):
            stranger.state(0)
        text, totals = HTTP.get(f"{url}/metrics").text, client.metrics()
    name = f"study {OF.id.hex()[:16]}"
    assert f"{name}: manifest 0 opens a batch of 4" in caplog.text
    assert f"{name}: a request without the analyser's token was refused" in caplog.text
    assert totals["unauthorised_total"] == 1
    samples = [s for m in text_string_to_metric_families(text) for s in m.samples]
    codes = {s.labels["code"]: s.value for s in samples if s.name == "discreet_reports_total"}
    told = {code: int(count) for code, count in codes.items() if count}
    assert "ticketSpent" in codes and "badManifest" not in codes  # which no report can be
    assert told == {"accepted": 3, "ticketSpent": 1, "unknownTicket": 2}
    assert {name for s in samples for name in s.labels} == {"code"}
    assert totals["manifests_refused_total"] == 1 and totals["received"] == 3
    assert totals["batch_seconds_left"] == 500 and totals["batch_age_seconds"] == OF.deadline - 500
    assert {"seal_seconds_count", "seal_seconds_sum"} <= set(totals)


def test_p26_lines_of_a_log_are_json_with_time_level_code_and_reason(tmp_path):
    (tmp_path / "charter.json").write_bytes(charter(rehearsal=True).data)
    ticket.write_digests(tmp_path / "digests.txt", [])
    with kept_port() as port:
        (tmp_path / "shuffler.toml").write_text(
            f'charter = "charter.json"\ndigests = "digests.txt"\nport = {port}\n'
            f'analyser_token_sha256 = "{"00" * 32}"\n'
        )
        words = ["service", "shuffler", "--rehearsal", "--log-format", "json", "--config"]
        role = subprocess.Popen(
            [sys.executable, "-m", "discreet", *words, str(tmp_path / "shuffler.toml")],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            line = json.loads(role.stderr.readline())
        finally:
            role.terminate()
            role.communicate()
    assert set(line) == {"time", "level", "code", "reason"}
    assert line["level"] == "info" and f":{port}" in line["reason"]


def test_our_lines_are_shown_and_the_server_s_requests_are_not():
    names = ("discreet", "uvicorn")
    before = {name: logging.getLogger(name).level for name in names}
    try:
        health.set_up_logging()
        assert logging.getLogger("discreet.service.shuffler.web").isEnabledFor(logging.INFO)
        assert not logging.getLogger("uvicorn.access").isEnabledFor(logging.INFO)
        assert logging.getLogger("uvicorn.error").isEnabledFor(logging.WARNING)
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def test_what_says_the_same_again_and_again_is_cut_short():
    calm = health._Calm()

    def line(at):
        record = logging.LogRecord("discreet", logging.ERROR, "", 0, "it failed: %s", ("x",), None)
        record.created = at
        return calm.filter(record), record.getMessage()

    shown = [line(1000.0)[0] for _ in range(50)]
    assert shown == [True] * 20 + [False] * 30
    assert line(1061.0) == (True, "it failed: x (30 more were left out)")


@pytest.mark.parametrize(
    ("check", "colour"),
    [
        (check_clock(None, 60), "yellow"),
        (check_clock(-59, 60), "green"),
        (check_clock(61, 60), "red"),
    ],
)
def test_clocks_that_disagree_are_red(check, colour):
    assert check.colour == colour


def test_a_disk_with_no_room_is_red(tmp_path, monkeypatch):
    for free, colour in ((10**12, "green"), (10**6, "red")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        assert check_disk(tmp_path).colour == colour
    assert health.ready([Check("a", "green", ""), Check("b", "yellow", "")])


def test_a_clock_that_jumps_deletes_nothing_and_is_not_ready(tmp_path, monkeypatch):
    """Eight days ahead, with a report in the open batch: it is there when the clock is right."""
    monkeypatch.setattr(shufflers, "_PROBE", 0.02)
    clock, passes, one = ManualClock(NOW), ticket.make(3), announced(OF)
    shuffler = make_test_shuffler(tmp_path / "s.db", OF, passes, clock=clock)
    with serving(shuffler) as url, Client(url, TOKEN) as client:
        client.announce(0, one.signed)
        client.send(fake_report(one, passes[0]))
        clock.set(8 * 86_400)
        assert "was set by +691,200 s" in becomes(url, 503)["clock"]["words"]
        time.sleep(1.5)  # some looks at the clock
        assert client.state(0) == "open" and client.metrics()["received"] == 1
        clock.set(-8 * 86_400)
        becomes(url, 200)
        clock.move(501)
        while client.state(0) != "expired":
            time.sleep(0.02)


def test_a_probe_leaves_the_store_as_it_was(place):
    store = new_store(place, OF)
    filled(store, OF)
    before = store.totals()
    store.probe()
    assert store.totals() == before and store.size() > 0
    store.close()
