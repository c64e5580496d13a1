"""The operator's page: every role and promise in its colour, for this machine alone."""

import contextlib
import shutil
import threading
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from discreet.service import monitor as monitors
from discreet.service.configs import AnalyserConfig
from discreet.service.monitor import Monitor, watched
from discreet.service.worker import back_up
from helpers.chromium import Browser
from helpers.clocks import ManualClock
from helpers.service_analysers import running_study
from helpers.services import NOW, kept_port

HTTP = httpx.Client(verify=False, timeout=120)


def config_of(running, **changes):
    names = {"charter": "c", "study": "study.db", "signing_key": "k", "token_file": "t"}
    return AnalyserConfig(folder=running.folder, url=running.url, **names, **changes)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A study with one batch counted: its analyser, and what a monitor saw."""
    with running_study(tmp_path_factory.mktemp("study")) as running:
        analyser = running.analyser()
        analyser.step()
        running.send()
        running.until(analyser, "counted")
        clock = ManualClock(NOW)
        back_up(config_of(running, backup="true"), 1, clock)
        monitor = Monitor(analyser, config_of(running, backup="true"), clock)
        monitor.look("counted")
        assert analyser.step() == "waiting"
        monitor.look("waiting")
        yield running, analyser, monitor, clock
        analyser.close()


def colours(monitor):
    return {one.name: one.colour for some in monitor.checks().values() for one in some}


def words(monitor):
    return {one.name: one.words for some in monitor.checks().values() for one in some}


def test_a_study_that_runs_well_is_green(seen):
    _, analyser, monitor, _ = seen
    found = colours(monitor)
    assert found.pop("clock") == "red"  # the test's clock is not the server's
    assert set(found.values()) == {"green"}
    assert words(monitor)["open batch"].startswith("0 s old")
    assert words(monitor)["backup"] == "0 s ago, with 1 of 1 batches"
    names, asked = analyser.charter.names, analyser.latest().manifest.policy
    assert not monitor.sight.paused and monitor.sight.policy == {
        step: [names["actions"][action] for action in row]
        for step, row in zip(names["steps"], asked, strict=True)
    }
    assert f"{analyser.study.users:,} of 40" in monitor.sight.facts["reports counted"]
    assert "epsilon 4, delta 0.0001, unless" in monitor.sight.facts["privacy spent"]


def test_what_goes_wrong_is_yellow_or_red(seen, monkeypatch):
    running, analyser, monitor, clock = seen
    (running.folder / "keys" / "000000.key").write_text("left behind")
    (running.folder / "manifests" / "000000.manifest").rename(running.folder / "away")
    monkeypatch.setattr(analyser.client, "_url", "http://127.0.0.1:9")
    monitor.look("counted")
    assert monitor.sight.paused and "fallback policy in force" in monitor.page()
    first = analyser.charter.names["actions"][0]
    assert {action for row in monitor.sight.policy.values() for action in row} == {first}
    found = colours(monitor)
    assert found["keys of counted batches"] == found["ledger"] == found["answers"] == "red"
    (running.folder / "away").rename(running.folder / "manifests" / "000000.manifest")
    (running.folder / "keys" / "000000.key").unlink()
    monkeypatch.undo()
    monitor.look("counted")
    clock.move(900)
    found = colours(monitor)
    clock.move(-900)
    assert found["last step"] == found["open batch"] == "yellow"
    assert found["ledger"] == "green"


def test_more_people_than_tickets_are_red_unless_a_lost_store_made_tickets_void(seen, monkeypatch):
    _, analyser, monitor, _ = seen
    public = analyser.client.metrics() | {"tickets_spent": 0}
    for void, colour in ((0, "red"), (500, "green")):
        monkeypatch.setattr(analyser.client, "metrics", lambda v=void: public | {"tickets_void": v})
        monitor.look("counted")
        assert colours(monitor)["each ticket counted once"] == colour
    monkeypatch.undo()
    monitor.look("counted")


def test_without_a_backup_it_is_yellow(seen):
    running, analyser, monitor, _ = seen
    assert colours(monitor)["backup"] == "green"
    assert colours(Monitor(analyser, config_of(running)))["backup"] == "yellow"


def test_a_backup_that_hangs_is_red(seen):
    running, analyser, monitor, clock = seen
    (running.folder / "backup.json").unlink()
    assert colours(monitor)["backup"] == "yellow" and words(monitor)["backup"] == "none yet"
    clock.move(90)
    assert colours(monitor)["backup"] == "red"
    clock.move(-90)
    back_up(config_of(running, backup="true"), analyser.study.batches, clock)


def test_a_loop_that_does_not_go_round_is_red_and_not_alive(seen):
    _, _, monitor, clock = seen
    assert monitor.alive()
    clock.move(3600)
    assert colours(monitor)["last step"] == "red" and not monitor.alive()
    clock.move(-3600)


def test_a_clock_that_is_set_back_freezes_nothing(seen, monkeypatch):
    _, _, monitor, clock = seen
    usage = SimpleNamespace(total=10**9, used=10**9, free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    clock.set(-3_456_000)
    clock.move(10)
    assert words(monitor)["last step"].endswith("10 s ago")
    monitor.look("waiting")
    assert colours(monitor)["disk"] == "red" and words(monitor)["last step"].endswith("0 s ago")
    clock.move(3600)
    assert not monitor.alive() and b"step_age_seconds 3600.0" in monitor.metrics()
    clock.move(-3600)
    clock.set(3_456_000)
    monkeypatch.undo()
    monitor.look("counted")
    assert colours(monitor)["disk"] == "green"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"batches": "x"}'])
def test_a_backup_that_nobody_can_read_about_is_red(seen, text):
    running, analyser, monitor, clock = seen
    (running.folder / "backup.json").write_text(text)
    monitor.look("counted")
    assert colours(monitor)["backup"] == "red"
    back_up(config_of(running, backup="true"), analyser.study.batches, clock)
    assert colours(monitor)["backup"] == "green"


@pytest.mark.parametrize("error", [KeyError("tickets_void"), OverflowError("inf"), OSError("gone")])
def test_nothing_that_is_seen_ends_the_analyser(seen, monkeypatch, caplog, error):
    _, _, monitor, _ = seen

    def fails(*_):
        raise error

    for name in ("_counted_once", "checks"):
        monkeypatch.setattr(monitor, name, fails)
        monitor.look("counted")
        monkeypatch.undo()
    assert caplog.text.count("the page is out of date") == 2
    monitor.look("counted")


def test_before_the_first_manifest_the_ledger_is_yellow_and_then_green(tmp_path):
    """Looked at again, whatever it was, without waiting for a batch."""
    with running_study(tmp_path) as running:
        analyser, clock = running.analyser(), ManualClock(NOW)
        monitor = Monitor(analyser, config_of(running), clock)
        monitor.look("unreachable")
        assert colours(monitor)["ledger"] == "yellow"
        analyser.step()
        monitor._fits = monitors.Check("ledger", "red", "for whatever reason")
        clock.move(10)
        monitor.look("waiting")
        assert colours(monitor)["ledger"] == "green"
        analyser.close()


def test_a_line_is_logged_when_a_light_changes_and_not_again(seen, monkeypatch, caplog):
    _, analyser, monitor, _ = seen
    caplog.set_level("INFO")
    monkeypatch.setattr(analyser.client, "_url", "http://127.0.0.1:9")
    for _ in range(3):
        monitor.look("counted")
    monkeypatch.undo()
    monitor.look("counted")
    said = [r.msg for r in caplog.records if r.msg.startswith("answers is")]
    assert said == ["answers is red: %s", "answers is green: %s"]


def test_the_share_of_rubbish_is_that_of_its_own_batch(seen, monkeypatch):
    """Yellow at most: more than the charter allows ends the analyser, or a person said yes."""
    _, analyser, monitor, _ = seen
    entries = [dict(entry) for entry in analyser.study.ledger]
    entries[-1]["note"] = {"unreadable": "5", "envelopes": "300", "unreadable_share": "0.1667"}
    assert entries[-1]["kind"] == "batch"
    monkeypatch.setattr(type(analyser.study), "ledger", property(lambda _: entries))
    monkeypatch.setattr(monitors.verification, "check_ledger", lambda *_: 1)
    monitor.look("counted")
    assert colours(monitor)["envelopes that cannot be read"] == "yellow"
    said = words(monitor)["envelopes that cannot be read"]
    assert said == "16.7% of the worst group of the last batch"
    assert b"discreet_analyser_unreadable_share 0.1667" in monitor.metrics()
    monkeypatch.undo()
    monitor.look("counted")


def test_metrics_are_public_totals_without_a_label(seen):
    _, analyser, monitor, _ = seen
    text = monitor.metrics().decode()
    samples = [s for m in text_string_to_metric_families(text) for s in m.samples]
    found = {s.name.removeprefix("discreet_analyser_"): s.value for s in samples}
    assert found["users"] == analyser.study.users and found["batches"] == 1
    assert found["batch_seconds_left"] > 0 and "open_seconds" in found
    assert not any(s.labels for s in samples)


@contextlib.contextmanager
def served(seen):
    """The page at an address of its own."""
    running, analyser, _, _ = seen
    with (
        kept_port() as port,
        watched(analyser, config_of(running, page=f"127.0.0.1:{port}")) as look,
    ):
        look("waiting")
        yield f"http://127.0.0.1:{port}"


def test_an_analyser_is_not_ready_before_its_first_step(seen):
    running, analyser, _, _ = seen
    with (
        kept_port() as port,
        watched(analyser, config_of(running, page=f"127.0.0.1:{port}")) as look,
    ):
        while True:
            with contextlib.suppress(httpx.ConnectError):
                answer = HTTP.get(f"http://127.0.0.1:{port}/readyz")
                break
        assert answer.status_code == 503
        assert "starting" in answer.text
        look("waiting")
        assert HTTP.get(f"http://127.0.0.1:{port}/readyz").status_code == 200


def test_it_is_served_to_this_machine_alone(seen):
    with served(seen) as url:
        answer = HTTP.get(url)
        assert answer.status_code == 200 and "default-src 'none'" in str(answer.headers)
        assert HTTP.get(url, headers={"host": "elsewhere.example"}).status_code == 400
        assert HTTP.get(f"{url}/livez").json() == {"ok": True}
        assert HTTP.get(f"{url}/readyz").status_code in (200, 503)
        assert "discreet_analyser_users" in HTTP.get(f"{url}/metrics").text
    assert "src=" not in answer.text and "href=" not in answer.text
    for secret in seen[0].passes:
        assert secret.hex() not in answer.text
    assert threading.active_count() < 50


def test_a_browser_shows_it_and_loads_nothing_else(seen, tmp_path):
    with served(seen) as url, Browser(tmp_path) as page:
        page.go(url)
        page.wait("document.querySelector('.light')")
        text = page.text("body")
        for word in ("analyser", "shuffler", "participants", "policy in force", "privacy spent"):
            assert word in text
        lights = page.run(
            "[...document.querySelectorAll('.light')].map(x => [x.textContent, "
            "getComputedStyle(x, '::before').backgroundColor])"
        )
        assert len(lights) >= 8
        wanted = {
            "green": "rgb(26, 127, 55)",
            "yellow": "rgb(212, 167, 44)",
            "red": "rgb(207, 34, 46)",
        }
        assert all(wanted[word] == colour for word, colour in lights)
        assert all(address.startswith(url) for _, address, *_ in page.requests)
        assert page.complaints == []
