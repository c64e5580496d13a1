"""What the analyser writes, prints, logs, shows and announces follows from the release alone."""

import logging
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import discreet
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.service import opening
from discreet.service.analyser import Analyser
from discreet.service.configs import AnalyserConfig
from discreet.service.monitor import Monitor
from discreet.service.opening import in_processes
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import report
from discreet.service.protocol.problems import Refusal
from helpers.clocks import ManualClock
from helpers.fixed_release import differences
from helpers.service_analysers import start_study
from helpers.services import NOW, fake_report, real_report


class GivenShuffler:
    """Hands over what it was given; remembers all that the analyser said."""

    def __init__(self, chain=(), reports=()):
        self.chain, self.reports, self.said = list(chain), list(reports), []
        self.date = NOW

    def manifests(self):
        return self.chain

    def announce(self, number, signed):
        if [signed] != self.chain[number:]:
            self.chain.append(signed)
        self.said.append(("announce", number, signed))

    def state(self, number):
        return "handed"

    def messages(self, number, place, take):
        self.said.append(("messages", number, place))
        if not self.reports:
            raise Refusal("notFull")
        for one in self.reports:
            take(one[place])

    def done(self, number):
        self.said.append(("done", number))
        self.reports = []

    def metrics(self):
        return {"received": 0, "tickets_spent": 999, "tickets_void": 0}

    def close(self):
        pass


def parts(one, data):
    """The envelopes of a report, group by group."""
    envelopes, found = data[report.HEADER :], []
    for size in one.sizes:
        found.append(envelopes[: 52 * size])
        envelopes = envelopes[52 * size :]
    return found


def analyser_of(of, folder, key, client, kind=Analyser, **options):
    study = discreet.open_study(folder / "study.db")
    return kind(of, study, client, key, folder, clock=ManualClock(NOW), **options)


def anybody(one, rng):
    """The report of a person who does as they like."""
    states, actions = rng.integers(2, size=3).tolist(), rng.integers(2, size=2).tolist()
    life = {"states": states, "actions": actions, "rewards": rng.random(2).tolist()}
    return parts(one, real_report(one, bytes(32), life))


def crowd(one, rng, lost=0):
    """Reports of a whole batch; those of so many cannot be read."""
    rubbish = [parts(one, fake_report(one, bytes(32))) for _ in range(lost)]
    return rubbish + [anybody(one, rng) for _ in range(one.manifest.users - lost)]


LOST = {"first": 0, "later": 0, "some": 1, "many": 9, "accepted": 9}
"""Reports that cannot be read, of 30 people or more where the charter counts on nine of ten."""


def door(tmp_path, stage, kind=Analyser, **options):
    """A place with an analyser whose batch is full, what it does then, and neighbours."""
    of, folder, key = start_study(tmp_path, min_users=30, honest=0.9, episodes=300)
    rng, client = np.random.default_rng(0), GivenShuffler()
    if stage == "later":
        before = analyser_of(of, folder, key, client)
        assert before.step() == "waiting"
        client.reports = crowd(before.latest(), rng)
        assert before.step() == "counted"
    assert analyser_of(of, folder, key, client).step() == "waiting"
    chain, client.said = client.chain, []
    one = manifests.reread(chain[-1], of)
    if stage == "accepted":
        options["accepted"] = one.manifest.number
    names = {"charter": "c", "study": "study.db", "signing_key": "k", "token_file": "t"}

    def act(place, reports):
        given, made = GivenShuffler(chain, reports), iter(range(1, 9))
        keys = SimpleNamespace(  # the next batch's own is no part of what is compared
            generate=lambda: X25519PrivateKey.from_private_bytes(bytes([next(made)]) * 32),
            from_private_bytes=X25519PrivateKey.from_private_bytes,
        )
        config = AnalyserConfig(folder=place, url="http://127.0.0.1:9", **names)
        shown = []
        disk = SimpleNamespace(free=1 << 40)
        with (
            mock.patch.object(opening, "X25519PrivateKey", keys),
            mock.patch.object(shutil, "disk_usage", lambda _: disk),
        ):
            analyser = analyser_of(of, place, key, given, kind, **options)
            monitor = Monitor(analyser, config, ManualClock(NOW))
            try:
                for _ in range(2):
                    state = analyser.step()
                    monitor.look(state)
            finally:
                monitor.look("ended")
                shown += [monitor.page(), monitor.metrics(), monitor.checks(), given.said]
                (place / "shown").write_text(repr([*shown, analyser.progress()]))
        return state

    def pairs(count):
        for _ in range(count):
            data = crowd(one, rng, LOST[stage])
            other = [*data[:-1], anybody(one, rng)]
            yield data, other

    return lambda place: shutil.copytree(folder, place, dirs_exist_ok=True), act, pairs


@pytest.mark.parametrize("stage", LOST)
def test_a_service_tells_neighbours_apart_by_its_release_alone(tmp_path, fixed_release, stage):
    """Of a first and a later batch, and of some where something, or too much, cannot be read."""
    prepare, act, pairs = door(tmp_path, stage)
    count = 60 if stage == "first" else 10
    fixed_release(prepare, act, pairs(count), least=count, releases=stage != "many")


def leaking(leak):
    """An opener that tells somebody what it found."""

    def opener(tasks):
        for place, tally in in_processes(1)(tasks):
            leak(place, tally)
            yield place, tally

    return opener


def keep(_, tally):
    with Path("manifests", "seen").open("ab") as file:
        file.write(tally.tobytes())


class Accepts(Analyser):
    """Whether the ledger says that a person has decided is a fact about people."""

    def _check_readable(self, *_):
        return bool(self.tally % 2)


def remember(_, tally):
    Accepts.tally = int(tally[0])


LEAKS = {
    "logged": (lambda _, tally: logging.getLogger("x").info("%s", tally), Analyser),
    "printed": (lambda _, tally: sys.stdout.write(str(tally)), Analyser),
    "file manifests/seen": (keep, Analyser),
    "file study.db": (remember, Accepts),
}


@pytest.mark.parametrize("where", LEAKS)
def test_whatever_else_a_service_tells_is_found(tmp_path, where):
    leak, kind = LEAKS[where]
    prepare, act, pairs = door(tmp_path, "first", kind, opener=leaking(leak))
    found, _ = differences(prepare, act, pairs(20), tmp_path / "place")
    assert where in found


def test_a_release_is_of_one_batch_of_messages_and_its_noise_is_drawn_once(tmp_path, monkeypatch):
    """Devices draw it: the analyser never has other messages for a release than those it had."""
    of, folder, key = start_study(tmp_path, min_users=30, honest=0.9, episodes=300)
    rng, client, released = np.random.default_rng(0), GivenShuffler(), []
    release = BatchMechanism.release_reports

    def recorded(mechanism, reports, *arguments, **options):
        released.append(np.array(reports).tolist())
        return release(mechanism, reports, *arguments, **options)

    def analyser(killed_at=None):
        def at(point):
            if point == killed_at:
                raise KeyboardInterrupt

        return analyser_of(of, folder, key, client, at=at)

    def fill():
        assert analyser().step() == "waiting"
        client.reports = crowd(manifests.reread(client.chain[-1], of), rng)

    monkeypatch.setattr(BatchMechanism, "release_reports", recorded)
    fill()
    assert analyser().step() == "counted" and len(released) == 1
    fill()
    with pytest.raises(KeyboardInterrupt):
        analyser("tell.before").step()
    with pytest.raises(KeyboardInterrupt):
        analyser("tell.after").step()
    assert len(released) == 2  # the first of them never began to tell
    fill()  # the second is not told again
    kept = client.reports
    analyser().abandon()
    assert client.reports is kept and len(released) == 2
    client.reports = []
    fill()
    assert analyser().step() == "counted" and len(released) == 3
    study = discreet.open_study(folder / "study.db")
    assert study.batches == 3 and len({str(one) for one in released}) == 3
