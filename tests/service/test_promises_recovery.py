"""P21 to P23 and P27 to P30: what was lost, clocks, rubbish, witnesses, new keys, many studies."""

import asyncio
import contextlib
import dataclasses
import hashlib
import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import threading
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import httpx
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scipy.optimize import brentq
from scipy.stats import binom
from typer.testing import CliRunner

import discreet
from discreet.cli.app import make_app
from discreet.device import ENVELOPE
from discreet.errors import DiscreetError, InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.costs import usual_batch
from discreet.service import analyser as analysers
from discreet.service import setup, verification, worker
from discreet.service.client import Client
from discreet.service.configs import AnalyserConfig, ShufflerConfig
from discreet.service.demo.users import episode_of
from discreet.service.monitor import Monitor
from discreet.service.opening import make_signing_key
from discreet.service.participant import Chain, Participant
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import report, ticket
from discreet.service.protocol.problems import Refusal
from discreet.service.shuffler import server
from discreet.service.shuffler.shuffler import Shuffler
from discreet.service.shuffler.store import StoreBusyError
from discreet.service.shuffler.web import Studies
from discreet.study.ledger import canonical
from helpers.clocks import ManualClock
from helpers.service_analysers import counted_cells, running_study, send_users
from helpers.services import (
    NOW,
    TOKEN,
    WORLD,
    MemoryOutbox,
    announced,
    charter,
    code,
    fake_report,
    make_test_shuffler,
    new_store,
    real_report,
    rng,
    serving,
    serving_app,
    study_design,
    submissions,
)

OF = charter()
GUIDES = Path(__file__).parents[2] / "docs" / "how-to" / "operator"
RUNBOOK, ROUTINE = GUIDES / "recover.md", GUIDES / "operate.md"


def verified(running, analyser):
    """The ledger against the analyser's manifests and the shuffler's."""
    own = verification.read_manifests(running.folder / "manifests")
    verification.check_witness(own, running.client.manifests())
    return verification.check_ledger(analyser.study, verification.check_chain(running.of, own))


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("state", ["open", "full", "sealed", "handed"])
def test_p21_tickets_are_free_iff_nothing_was_handed_over(place, state, times):
    """Who may be in a release has used a batch, who cannot be may come again."""
    passes, OF = ticket.make(3), charter(participations=times)
    store = new_store(place, OF, passes)
    one = announced(OF)
    store.announce(one)
    few = passes[:2] if state == "open" else passes
    assert store.submit(submissions(one, few, b"<mark>")) == ["accepted"] * len(few)
    if state in ("sealed", "handed"):
        store.shuffle()
        assert code(store.bucket, 0, 0, 0) == "notFull"  # nothing leaves unnoticed
    if state == "handed":
        store.buckets(0, 0)
    assert store.state(0) == state
    two = announced(OF, 1, before=one.manifest, batch=0, abandons=0)
    for wrong in ({"abandons": None}, {"batch": 1, "abandons": None}, {"users": 4}):
        other = announced(OF, 1, before=one.manifest, **({"batch": 0, "abandons": 0} | wrong))
        assert code(store.announce, other) in ("batchPending", "badManifest")
    assert store.announce(two)
    assert store.state(0) == "abandoned" and code(store.buckets, 0, 0) == "batchAbandoned"
    if times == 2:  # one use is left, and another one if nobody can have seen the first
        assert store.submit(submissions(two, passes)) == ["accepted"] * 3
        store.shuffle()
        store.done(1)
        two = announced(OF, 2, before=two.manifest, batch=1)
        assert store.announce(two)
    expected = "ticketSpent" if state == "handed" else "accepted"
    assert store.submit(submissions(two, passes)) == [expected] * 3
    assert store.totals()["tickets_void"] == (3 if state == "handed" else 0)
    store.close()
    if not place.startswith("postgresql"):
        assert b"<mark>" not in Path(place).read_bytes()


def test_p21_an_abandoned_batch_is_said_by_manifest_and_ledger(tmp_path):
    """Its key is lost: nothing goes on without a person's word, and then nobody is lost."""
    with running_study(tmp_path) as running:
        analyser = running.analyser()
        analyser.step()
        send_users(running.of, running.client, iter(running.passes[:3]))
        shutil.rmtree(running.folder / "keys")
        again = running.analyser()
        with pytest.raises(InvalidInputError, match="`discreet service abandon --config FILE`"):
            again.step()
        assert again.abandon() == (
            "Manifests 0 to 0 are abandoned; tickets: those of manifest 0 are free again."
        )
        entry = again.study.ledger[-1]
        assert (entry["kind"], entry["returning"]) == ("reissue", "unseen")
        assert entry["note"]["tickets"] == "those of manifest 0 are free again"
        current = again.latest().manifest
        assert (current.abandons, current.batch, current.number) == (0, 0, 1)
        running.to_the_end(again, iter(running.passes))
        assert counted_cells(again.study) == 40 and verified(running, again) > 1
        again.close()
        analyser.close()


def test_p21_a_batch_that_was_handed_over_is_void(tmp_path):
    with running_study(tmp_path) as running:
        analyser, _ = running.announced()
        running.send()
        wanted = analyser.latest().manifest.users
        while running.client.state(0) != "sealed":
            threading.Event().wait(0.02)
        running.client.messages(0, 0, lambda _: None)
        analyser.abandon()
        entry = analyser.study.ledger[-1]
        assert (entry["returning"], entry["note"]["tickets"]) == ("nobody", "used")
        assert running.client.metrics()["tickets_void"] == wanted
        running.send(iter(running.passes[wanted:]))  # others take their places
        running.until(analyser, "counted")
        assert verified(running, analyser) == 1
        analyser.close()


def test_p22_no_batch_is_forgotten_before_a_backup_exists(tmp_path):
    with running_study(tmp_path) as running:

        def fails():
            raise DiscreetError("the disk is full")

        analyser = running.analyser(backup=fails)
        analyser.step()
        running.send()
        with pytest.raises(DiscreetError, match="the disk is full"):
            running.until(analyser, "counted")
        assert analyser.study.batches == 1 and running.client.state(0) == "handed"
        assert (running.folder / "keys" / "000000.key").exists()
        analyser.close()
        kept = []
        again = running.analyser(backup=lambda: kept.append(running.client.state(0)))
        again.step()
        assert kept == ["handed"] and running.client.state(0) == "done"
        again.close()


def test_p22_a_failed_command_is_named(tmp_path):
    config = AnalyserConfig(
        folder=tmp_path, charter="", study="", signing_key="", token_file="", url="", backup="false"
    )
    with pytest.raises(DiscreetError, match=r"The backup failed: .*stays at the shuffler"):
        worker.back_up(config, 1)
    assert worker.last_backup(config) == (0, 0.0)


def test_p22_a_backup_that_hangs_is_given_up_and_one_that_ends_is_written_down(
    tmp_path, monkeypatch
):
    names = dict.fromkeys(("charter", "study", "signing_key", "token_file", "url"), "")
    monkeypatch.setattr(worker, "BACKUP_SECONDS", 0.1)
    with pytest.raises(DiscreetError, match=r"The backup failed: .*timed out after .*stays at"):
        worker.back_up(AnalyserConfig(folder=tmp_path, backup="sleep 60", **names), 1)
    monkeypatch.undo()
    names["study"] = "study.db"
    with pytest.raises(DiscreetError, match="The backup failed"):  # who reads the study waits
        worker.back_up(AnalyserConfig(folder=tmp_path, backup="flock -n . true", **names), 1)
    config = AnalyserConfig(folder=tmp_path, backup="true", **names)
    worker.back_up(config, 3, ManualClock(NOW))
    assert worker.last_backup(config) == (3, NOW)


def test_p22_a_kill_while_a_backup_is_made_leaves_the_last_one(tmp_path, monkeypatch):
    """The command of the page, and a tar that is killed when it has written half."""
    names = dict.fromkeys(("charter", "signing_key", "token_file", "url"), "")
    command = re.search(r'backup = "(sh .*?)"', ROUTINE.read_text())[1]
    for name in ("analyser", "backup", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "charter.json").write_text("{}")
    config = AnalyserConfig(folder=tmp_path / "analyser", backup=command, study="study.db", **names)
    worker.back_up(config, 1)
    kept = (tmp_path / "backup" / "analyser.tar").read_bytes()
    killed = tmp_path / "bin" / "tar"
    killed.write_text('#!/bin/sh\nprintf half > "$3"\nkill -9 $$\n')
    killed.chmod(0o755)
    monkeypatch.setenv("PATH", f"{killed.parent}:{os.environ['PATH']}")
    with pytest.raises(DiscreetError, match="The backup failed"):
        worker.back_up(config, 2)
    assert (tmp_path / "backup" / "analyser.tar").read_bytes() == kept
    assert worker.last_backup(config)[0] == 1


@pytest.mark.parametrize("times", [1, 3])
def test_p22_a_restored_shuffler_lets_nobody_in_twice(place, times):
    """A copy has forgotten who came since: all tickets are void, however many uses they had left.

    Nobody can be counted more than the guaranteed number of times: from here on, not at all.
    """
    passes, OF = ticket.make(9), charter(participations=times)
    store = new_store(place, OF, passes[:6])
    one = announced(OF)
    store.announce(one)
    assert store.submit(submissions(one, passes[:2])) == ["accepted"] * 2
    two = announced(OF, 1, before=one.manifest)
    digests = [ticket.digest(each) for each in passes]
    with pytest.raises(InvalidInputError, match="ask the analyser for all"):
        store.recover([], digests)
    assert store.state(0) == "open"
    other = announced(OF, 0, users=4)
    assert code(store.recover, [other.signed], digests) == "forbiddenMutation"
    with store._transaction("half sealed"):
        store._insert("piece", [(0, 0, b"an envelope")])
        store._insert("sealed", [(0, 0, b"an envelope")])
    assert store.recover([one.signed, two.signed], digests) == (7 if times == 1 else 9)
    with store._reading():
        for table in ("report", "piece", "sealed"):
            assert [tuple(row) for row in store._execute(f"SELECT count(*) FROM {table}")] == [(0,)]
    assert (store.state(0), store.state(1)) == ("abandoned", "abandoned")
    three = announced(OF, 2, before=two.manifest)  # batch 1 was counted, says the analyser
    assert store.announce(three)
    assert store.submit(submissions(three, passes)) == ["ticketSpent"] * 9
    new = ticket.make(3)
    store.admit([ticket.digest(each, store.mark) for each in new])
    assert store.submit(submissions(three, new)) == ["accepted"] * 3
    store.close()


@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize("given", [0, 2, 9])
def test_p22_no_ticket_that_was_made_before_a_recovery_is_good_after_it(place, given, times):
    """Whatever file is given to it: nine people were counted, and it was told of some of them."""
    passes, OF = ticket.make(9), charter(participations=times)
    chain = [announced(OF)]
    for number in range(1, 4):
        chain.append(announced(OF, number, before=chain[-1].manifest))
    store = new_store(place, OF, [])
    digests = [ticket.digest(each) for each in passes]
    assert store.recover([one.signed for one in chain], digests[:given]) == given
    assert [store.state(i) for i in range(4)] == ["done"] * 3 + ["abandoned"]
    totals = store.totals()
    assert [totals[f"tickets{name}"] for name in ("", "_spent", "_void")] == [given, 0, given]
    live = announced(OF, 4, before=chain[-1].manifest)
    store.announce(live)
    elsewhere, new = bytes(32), ticket.make(3)
    store.admit([*digests, *(each + elsewhere for each in digests)])
    said = ["ticketSpent"] * given + ["unknownTicket"] * (9 - given)
    assert store.submit(submissions(live, passes)) == said
    first = store.mark
    store.admit([ticket.digest(each, first) for each in new])
    assert store.submit(submissions(live, new)) == ["accepted"] * 3
    assert store.recover([*(one.signed for one in chain), live.signed], []) == given + (
        0 if times == 1 else 3
    )
    store.admit([ticket.digest(each, first) for each in ticket.make(3)])
    assert store.mark != first
    assert store.totals()["tickets"] == given + 3
    store.close()


class Site:
    """All organisations in one folder, their roles started and stopped by the runbook."""

    def __init__(self, folder):
        design = study_design(discreet.Shuffle(4, 1e-4, honest=0.95), episodes=400)
        made = setup.setup_service(folder, setup.Terms(), design)
        self.of = made.charter
        self.folder = folder
        self.url, self.shuffler, self.analyser = "http://127.0.0.1:8700", None, None
        self.run("discreet service tickets . --count 500")  # as in deploy.md, at one table
        (folder / "enroller-site").mkdir()
        (folder / "enroller").rename(folder / "enroller-site" / "enroller")
        (folder / "backup").mkdir()
        text = made.config("analyser").read_text()
        command = re.search(r'backup = "(sh .*?)"', ROUTINE.read_text())[1]
        made.config("analyser").write_text(text.replace('backup = ""', f'backup = "{command}"'))
        self._stack = contextlib.ExitStack()
        self.accepted, self.counted, self.backups, self.spent = [], [], [], set()

    def config(self, kind, role):
        return kind.read(self.folder / role / f"{role}.toml")

    def run(self, line):
        """One line of the runbook."""
        if line.startswith("systemctl "):
            _, what, role = line.split()
            getattr(self, f"{what}_{role.removeprefix('discreet-')}")()
        elif line.startswith("discreet "):
            line = line.replace("http://127.0.0.1:8700", self.url)
            with contextlib.chdir(self.folder):
                done = CliRunner().invoke(make_app(), line.split()[1:])
            assert done.exit_code == 0, f"{line}: {done.output} {done.exception}"
        else:
            subprocess.run(line, shell=True, cwd=self.folder, check=True)

    def start_shuffler(self):
        self.shuffler = server.make_shuffler(self.config(ShufflerConfig, "shuffler"))
        url = self._stack.enter_context(serving(self.shuffler))
        for path in (self.folder / "analyser" / "analyser.toml",):
            if path.exists():
                path.write_text(path.read_text().replace(self.url, url))
        self.url = url

    def stop_shuffler(self):
        self._stack.close()

    def reload_shuffler(self):
        asyncio.run(server.reload(self.shuffler, self.config(ShufflerConfig, "shuffler")))

    def start_analyser(self):
        path = self.folder / "analyser" / "analyser.toml"
        path.write_text(re.sub(r"(?m)^url = .*$", f'url = "{self.url}"', path.read_text()))
        self.analyser = worker.make_analyser(self.config(AnalyserConfig, "analyser"))

    def stop_analyser(self):
        if self.analyser is not None:
            self.analyser.close()
            self.analyser = None

    def tickets(self):
        return ticket.read(self.folder / "enroller-site" / "enroller" / "tickets.txt")

    def batch(self):
        """A batch is filled by whoever the shuffler lets in, and counted."""
        for _ in range(500):
            state = self.analyser.step()
            if state == "counted":
                self.counted.append(self.analyser.latest().manifest.number)
                self.backups.append((self.folder / "backup" / "analyser.tar").read_bytes())
                return
            self.send()
        raise AssertionError(f"no batch was counted: {state}")

    def send(self, most=1000):
        """People try their tickets until the open batch is full."""
        with Client(self.url) as client:
            chain = Chain(self.of, client)
            for pass_ in self.tickets():
                if most == 0:
                    return
                if pass_ in self.spent:
                    continue
                user = Participant(chain, client, pass_, MemoryOutbox())
                state = user.attempt(lambda one: episode_of(WORLD, one, rng()))
                if state == "accepted":
                    self.accepted.append((pass_, chain.seen.number))
                    most -= 1
                elif state == "ticketSpent":
                    self.spent.add(pass_)
                else:
                    return

    def check(self):
        """Nobody was counted twice, in whatever copy of the study; ledger and manifests agree."""
        people = [pass_ for pass_, number in self.accepted if number in self.counted]
        assert len(people) == len(set(people)) > 0
        assert sorted(self.counted) == sorted(set(self.counted))


@contextlib.contextmanager
def site_in(folder):
    site = Site(folder / "site")
    site.start_shuffler()
    try:
        yield site
    finally:
        site.stop_analyser()
        site.stop_shuffler()


def section(name):
    """The lines of a section of the runbook."""
    text = RUNBOOK.read_text("utf-8")
    return re.search(rf"## {name}.*?```sh\n(.*?)```", text, re.DOTALL)[1].strip().splitlines()


def test_p22_every_line_of_the_runbook(tmp_path):
    """Each role restored from each age of backup; the study goes on every time."""
    with site_in(tmp_path) as site:
        follow_the_runbook(site)


def follow_the_runbook(site):
    site.start_analyser()
    for _ in range(3):
        site.batch()
    for age in (1, 2, 3):  # counted batches that the backup knows: all of them, one less, two less
        backups = list(site.backups)
        site.analyser.step()
        site.send(2)
        shutil.rmtree(site.folder / "analyser")
        (site.folder / "charter.json").unlink()  # the analyser's copy
        (site.folder / "backup" / "analyser.tar").write_bytes(backups[-age])
        for line in section("The analyser's disk is lost"):
            site.run(line)
        assert site.analyser.study.ledger[-1]["note"]["abandoned"]
        site.batch()
        site.check()
    (site.folder / "enroller-site" / "enroller" / "tickets.txt").unlink()
    for line in section("The enroller's list is lost"):
        site.run(line)
    site.batch()
    site.check()
    for age in ("this batch", "the batch before", "none"):
        store = site.folder / "shuffler" / "shuffler.db"
        if age != "none":
            site.analyser.step()
        copied = sqlite3.connect(site.folder / "copy.db")
        with contextlib.closing(sqlite3.connect(store)) as source, contextlib.closing(copied):
            source.backup(copied)
        if age == "the batch before":
            site.batch()
            site.analyser.step()
        site.send(2)
        site.run("systemctl stop discreet-shuffler")
        store.unlink()
        if age != "none":
            shutil.copy(site.folder / "copy.db", store)
        if age != "this batch":  # it has forgotten a batch: nobody goes on by mistake
            site.start_shuffler()
            site.stop_analyser()
            site.start_analyser()
            with pytest.raises(InvalidInputError, match="`discreet service recover`"):
                site.batch()
            site.run("systemctl stop discreet-shuffler")
        for line in section("The shuffler's store is lost"):
            site.run(line)
        site.batch()
        site.check()
    site.run(section("The analyser's disk is lost")[-1])


def test_a_sealed_batch_that_lost_an_envelope_is_red_and_given_up_by_the_runbook(tmp_path):
    with site_in(tmp_path) as site:
        site.start_analyser()
        site.batch()
        site.analyser.step()
        site.send()
        with Client(site.url, site.config(AnalyserConfig, "analyser").token) as client:
            while client.state(1) != "sealed":
                threading.Event().wait(0.02)
        query = "UPDATE sealed SET body = substr(body, 1, length(body) - ?) WHERE place = 1"
        with contextlib.closing(sqlite3.connect(site.folder / "shuffler" / "shuffler.db")) as db:
            assert db.execute(query, (ENVELOPE,)).rowcount == 1
            db.commit()
        monitor, seen = Monitor(site.analyser, site.config(AnalyserConfig, "analyser")), []

        def look(state):
            monitor.sight = dataclasses.replace(monitor.sight, state="another")  # no pause
            monitor.look(state)
            seen.append({one.name: one for one in monitor.checks()["shuffler"]}["answers"])

        site.analyser.run(lambda _: None, lambda: len(seen) == 3, look)
        assert [one.colour for one in seen] == ["green", "red", "red"]
        said = "Group 1 of manifest 1 ended early"
        assert said in seen[1].words and "'A sealed batch is damaged' in docs" in seen[1].words
        for line in section("A sealed batch is damaged"):
            site.run(line)
        assert site.analyser.study.ledger[-1]["note"]["tickets"] == "used"
        site.batch()
        assert len(site.counted) == 2
        site.check()


@pytest.mark.parametrize("ahead", [3_456_000, -3_456_000])
def test_p23_a_clock_that_was_wrong_wedges_nobody(tmp_path, ahead, caplog):
    """The analyser's, by 40 days: both sides name it, and when it is set the study goes on."""
    caplog.set_level("INFO")
    with running_study(tmp_path, clock=ManualClock(NOW)) as running:
        wrong = running.analyser(clock=ManualClock(NOW + ahead))
        sentence = r"this machine's clock says \d{4}-.* and is [\d,]+ seconds (ahead of|behind)"
        with pytest.raises(InvalidInputError, match=sentence):
            wrong.step()
        assert "3,456,000 seconds" in caplog.text and "clock" in caplog.text
        assert code(running.client.state, 0) == "unknownBatch"
        wrong.close()
        right = running.analyser()
        assert right.step() == "waiting" and running.client.state(0) == "open"
        running.to_the_end(right, iter(running.passes))
        assert counted_cells(right.study) == 40
        right.close()


def test_p23_the_shufflers_clock_is_known_from_its_answers(tmp_path):
    with serving(make_test_shuffler(tmp_path / "s.db", OF)) as url, Client(url, TOKEN) as client:
        assert client.date is None
        client.charter()
        assert abs(client.date - time.time()) < 60


def test_p27_a_batch_of_rubbish_needs_a_persons_word(tmp_path, caplog):
    with running_study(tmp_path) as running:
        analyser = running.analyser()
        analyser.step()
        one = analyser.latest()
        for pass_ in running.passes[: one.manifest.users]:
            running.client.send(fake_report(one, pass_))
        while running.client.state(0) != "sealed":
            threading.Event().wait(0.02)
        with pytest.raises(analysers.RubbishError, match="--config FILE --accept 0"):
            analyser.step()
        assert analyser.study.batches == 0 and running.client.state(0) == "handed"
        assert "cannot be read" in caplog.text
        analyser.close()
        told = running.analyser(accepted=0)
        assert told.step() == "counted"
        total = one.manifest.users * sum(one.sizes)
        note = told.study.ledger[-1]["note"]
        assert note["unreadable"] == note["envelopes"] == str(total) and note["accepted"]
        assert "batch 0 was counted with less noise" in told.study.guarantee.assumptions[-1]
        told.step()
        two = told.latest()
        for pass_ in running.passes[one.manifest.users :][: two.manifest.users]:
            running.client.send(fake_report(two, pass_))
        with pytest.raises(
            analysers.RubbishError, match="--accept 1"
        ):  # the word was for manifest 0
            running.until(told, "counted")
        told.close()


def test_p27_rubbish_is_measured_in_each_group(tmp_path):
    """Each has noise of its own: one group without any is not made up for by the others."""
    with running_study(tmp_path, episodes=400, min_users=40, honest=0.9) as running:
        analyser = running.analyser()
        analyser.step()
        one = analyser.latest()
        users, sizes, place = one.manifest.users, one.sizes, one.sizes.index(min(one.sizes))
        most = running.of.tolerated(users, one.device.groups[place])
        first = report.HEADER + ENVELOPE * sum(sizes[:place])
        left = most + 1  # of this group alone, as many as all groups together may have
        for pass_ in running.passes[:users]:
            data = real_report(one, pass_)
            some = min(left, sizes[place])
            left -= some
            last = first + ENVELOPE * some
            running.client.send(data[:first] + os.urandom(last - first) + data[last:])
        with pytest.raises(analysers.RubbishError, match=f"group {place} of manifest 0 cannot be"):
            running.until(analyser, "counted")
        analyser.close()
        told = running.analyser(accepted=0)
        assert told.step() == "counted"
        note = told.study.ledger[-1]["note"]
        assert note["unreadable"] == str(most + 1) and "too little noise" in note["accepted"]
        share = (most + 1) / (users * sizes[place])
        assert float(note["unreadable_share"]) == pytest.approx(share, abs=1e-4)
        told.close()


@pytest.mark.parametrize("honest", ["1", "19/20", "9/10", "1/2"])
def test_p27_what_the_charter_says_is_delivered_without_all_that_may_be_unreadable(honest):
    """The epsilon of what is left of the noise, in batches as large as those of a real study."""
    of = real_charter(honest)
    for users in (50, 999, 20_000):
        groups = of.device([[0] * of.states] * of.horizon, users).groups
        left = [users * one.noise - of.tolerated(users, one) for one in groups]
        assert 0.95 < epsilon_of(groups, left, 1e-6) < 1 + 2e-4


def test_p27_one_participant_stops_no_service():
    of = real_charter(str(setup.HONEST))
    for users in range(21, 400):
        groups = of.device([[0] * of.states] * of.horizon, users).groups
        assert all(of.tolerated(users, one) >= one.messages for one in groups)


def real_charter(honest):
    """Of four states and six steps at (1, 1e-6)."""
    mechanism = usual_batch(discreet.Shuffle(1, 1e-6), Shape(4, 2, 6), None)
    names = {kind: list(map(str, range(n))) for kind, n in zip(OF.names, (4, 2, 6), strict=True)}
    mean = mechanism.certified()[1]["mean"]
    return dataclasses.replace(OF, names=names, honest=Fraction(honest), mean=mean)


def epsilon_of(groups, trials, delta, step=1e-5, reach=1 << 18):
    """The epsilon of so many noise messages of every group, rounded up by a step for each group.

    One person moves one message from a cell of each group to another. x and y count the messages of
    both: of all noise a binomial number falls on them, half of it on each, and the two
    probabilities have the ratio x/y.
    """
    spectrum, infinite, size = np.ones(8 * reach + 1), 0.0, 16 * reach
    for (cells, weight, count), times in Counter(
        (one.cells, one.weight, count) for one, count in zip(groups, trials, strict=True)
    ).items():
        noise = binom(count, 2 * weight / (2**32 * cells))
        losses = np.zeros(2 * reach)
        for total in np.arange(noise.ppf(1e-16), noise.isf(1e-16) + 1).astype(int).tolist():
            x = np.arange(total) + 1
            mass = noise.pmf(total) * binom.pmf(x - 1, total, 0.5)
            places = np.ceil(np.log(x / (total + 1 - x)) / step).astype(int)
            np.add.at(losses, np.clip(places, -reach, reach - 1) + reach, mass)
        spectrum = spectrum * np.fft.rfft(losses, size) ** times
        infinite += times * (1 - losses.sum())  # y = 0, and what was left out
    masses = np.fft.irfft(spectrum, size)
    values = step * (np.arange(size) - len(groups) * reach)

    def beyond(epsilon):
        above = values > epsilon
        return infinite - delta + (masses[above] * -np.expm1(epsilon - values[above])).sum()

    return brentq(beyond, 0, 10)


def test_p27_a_little_rubbish_is_counted_and_said(tmp_path):
    """One participant cannot stop the others."""
    with running_study(tmp_path, episodes=400, min_users=40, honest=0.95) as running:
        analyser = running.analyser()
        analyser.step()
        one = analyser.latest()
        running.client.send(fake_report(one, running.passes[0]))
        running.send(iter(running.passes[1:]))
        running.until(analyser, "counted")
        note = analyser.study.ledger[-1]["note"]
        assert note["unreadable"] == str(sum(one.sizes)) and "accepted" not in note
        analyser.close()


def test_p28_a_ledger_that_was_written_anew_is_found(tmp_path):
    """Every entry follows from the one before it, and yet a manifest knows another head."""
    with running_study(tmp_path) as running:
        analyser = running.analyser()
        passes = iter(running.passes)
        for _ in range(3):
            analyser.step()
            running.send(passes)
            running.until(analyser, "counted")
        analyser.step()
        assert verified(running, analyser) == 3
        entries = analyser.study.ledger
        entries[2]["guarantee"] = entries[2]["guarantee"].replace("4", "1")  # a smaller epsilon
        rewrite(analyser.study.path, entries)
        forged = discreet.open_study(analyser.study.path)
        own = verification.read_manifests(running.folder / "manifests")
        chain = verification.check_chain(running.of, own)
        with pytest.raises(InvalidInputError, match="never had the head that manifest 2"):
            verification.check_ledger(forged, chain)
        analyser.close()


def rewrite(path, entries):
    """A new chain of hashes over other entries: nothing in the file says that it is not real."""
    previous = ""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for number, entry in enumerate(entries):
            text = canonical(entry | {"previous": previous})
            previous = hashlib.sha256(text.encode()).hexdigest()
            row = (text, previous, number)
            database.execute("UPDATE ledger SET entry = ?, hash = ? WHERE number = ?", row)


def test_p29_a_new_signing_key_is_handed_over_in_a_manifest(tmp_path):
    """Shuffler, devices and whoever verifies follow the chain; the old key signs nothing more."""
    with running_study(tmp_path) as running:
        new = Ed25519PrivateKey.generate()
        passes = iter(running.passes)

        def counted(analyser):
            analyser.step()
            running.send(passes)
            running.until(analyser, "counted")
            analyser.close()

        counted(running.analyser())
        rotated = running._replace(key=new)
        ahead = rotated.analyser(old_key=running.key, clock=ManualClock(NOW + 3_456_000))
        with pytest.raises(InvalidInputError, match="clock"):  # written, and nobody has it
            ahead.step()
        assert ahead.latest().manifest.number == 1 and not ahead.handed_over
        ahead.close()
        counted(rotated.analyser(old_key=running.key))
        with pytest.raises(InvalidInputError, match=r"stands in manifest 1.*put 'signing.key.old'"):
            running.analyser()
        last = manifests.parse(running.client.manifest_at(1))
        forged = dataclasses.replace(
            last, number=2, batch=2, previous=last.hash, deadline=int(NOW) + 500
        )
        assert code(running.client.announce, 2, forged.signed(running.key)) == "badSignature"
        analyser = rotated.analyser()
        running.to_the_end(analyser, passes)
        assert analyser.handed_over
        assert counted_cells(analyser.study) == 40 and verified(running, analyser) > 2
        analyser.close()


def test_p29_the_token_changes_while_all_goes_on(tmp_path, monkeypatch):
    with site_in(tmp_path) as site:
        path = site.folder / "shuffler" / "shuffler.toml"
        config = site.config(AnalyserConfig, "analyser")
        old = config.token
        both = setup.rotate_token(config)
        path.write_text(
            re.sub(
                r"(?m)^analyser_token_sha256 = .*$",
                f'analyser_token_sha256 = "{both}"',
                path.read_text(),
            )
        )
        site.reload_shuffler()
        for token in (old, config.token):
            with Client(site.url, token) as client:
                assert code(client.state, 0) == "unknownBatch"
        path.write_text(path.read_text().replace(both, both.split(",")[0]))
        site.reload_shuffler()
        with Client(site.url, old) as client:
            assert code(client.state, 0) == "unauthorised"
        path.write_text("rubbish")
        none = ShufflerConfig(charter="", digests="", analyser_token_sha256="", file=path)
        asyncio.run(server.reload(site.shuffler, none))
        with Client(site.url, config.token) as client:  # a file that cannot be read changes nothing
            assert code(client.state, 0) == "unknownBatch"

        def busy(_):
            raise StoreBusyError("locked")

        monkeypatch.setattr(site.shuffler.store, "admit", busy)  # nor does a store that is locked
        with pytest.raises(Refusal, match="busy"):
            asyncio.run(site.shuffler.reload([bytes(32)], []))
        with Client(site.url, config.token) as client:
            assert code(client.state, 0) == "unknownBatch"


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root may give files away.")
def test_what_root_rotates_the_analyser_can_read(tmp_path):
    config = AnalyserConfig(
        folder=tmp_path, charter="", study="", signing_key="k", token_file="token", url=""
    )
    make_signing_key(tmp_path / "k")
    (tmp_path / "token").write_text("old")
    os.chown(tmp_path, 4711, 4712)
    setup.rotate_token(config)
    setup.rotate_signing_key(config)
    for name in ("token", "k", "k.old"):
        found = (tmp_path / name).stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (4711, 4712, 0o600)


def test_p29_a_signing_key_is_rotated_once_at_a_time(tmp_path):
    config = AnalyserConfig(
        folder=tmp_path, charter="", study="", signing_key="signing.key", token_file="", url=""
    )
    make_signing_key(tmp_path / "signing.key")
    before = (tmp_path / "signing.key").read_bytes()
    setup.rotate_signing_key(config)
    assert (tmp_path / "signing.key.old").read_bytes() == before
    assert (tmp_path / "signing.key").read_bytes() != before
    assert stat.S_IMODE((tmp_path / "signing.key.old").stat().st_mode) == 0o600
    with pytest.raises(InvalidInputError, match="the last rotation is under way"):
        setup.rotate_signing_key(config)


def test_p30_several_studies_share_a_server_and_nothing_else(tmp_path):
    """Tickets, tokens, batches and manifests of one are unknown to the other; both are listed."""
    other = charter(purpose="another", participations=2)
    passes, theirs = ticket.make(3), ticket.make(3)
    one = make_test_shuffler(tmp_path / "one.db", OF, passes)
    two = Shuffler(
        other,
        lambda: new_store(tmp_path / "two.db", other, theirs),
        token_digests=[hashlib.sha256(b"theirs").digest()],
        clock=ManualClock(NOW),
    )
    with serving_app(Studies([(one, b""), (two, b"")])) as url:
        paths = [f"/studies/{of.id.hex()}" for of in (OF, other)]
        first, second = Client(url + paths[0], TOKEN), Client(url + paths[1], "theirs")
        with Client(url, TOKEN) as root, first, second:
            assert [entry["path"] for entry in root.studies()] == paths
            assert first.charter() == root.charter() == OF.data and second.charter() == other.data
            mine, yours = announced(OF), announced(other)
            first.announce(0, mine.signed)
            assert code(second.manifest) == "noOpenBatch"
            with Client(url + paths[1], TOKEN) as stranger:
                assert code(stranger.announce, 0, yours.signed) == "unauthorised"
            assert code(second.announce, 0, mine.signed) == "badManifest"
            second.announce(0, yours.signed)
            first.send(fake_report(mine, passes[0]))
            assert code(second.send, fake_report(yours, passes[1])) == "unknownTicket"
            assert code(second.send, fake_report(mine, theirs[0])) == "policyOutdated"
            second.send(fake_report(yours, theirs[0]))
            assert code(first.send, fake_report(mine, passes[0])) == "ticketSpent"
            assert code(second.send, fake_report(yours, theirs[0])) == "alreadyInBatch"
            assert first.metrics()["received"] == second.metrics()["received"] == 1
        for place in (url, url + paths[0]):
            shown = CliRunner().invoke(make_app(), ["service", "status", "--url", place, "--json"])
            found = [entry["purpose"] for entry in json.loads(shown.output)["studies"]]
            assert found == ["a test", "another"]
        with httpx.Client() as http:
            answer = http.get(url + paths[1])
            assert answer.status_code == 308 and answer.headers["location"] == f"{other.id.hex()}/"
            names = [check["name"] for check in http.get(f"{url}/readyz").json()["checks"]]
        assert len(set(names)) == len(names) > 2


def test_p30_a_study_stands_once_in_a_process(tmp_path):
    shufflers = [make_test_shuffler(tmp_path / name, OF) for name in ("a.db", "b.db")]
    with pytest.raises(InvalidInputError, match="stands twice"):
        server.check_studies(shufflers)
