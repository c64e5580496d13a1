"""An analyser of the small charter, and users of its batches."""

import contextlib
import threading
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import discreet
from discreet.service.analyser import Analyser
from discreet.service.client import Client
from discreet.service.demo.users import episode_of
from discreet.service.opening import make_signing_key
from discreet.service.participant import Chain, Participant
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.problems import Refusal
from discreet.service.setup import Terms, charter_of
from helpers.clocks import ManualClock
from helpers.service_kills import Apart, killer
from helpers.services import (
    CERTIFICATE,
    NOW,
    TOKEN,
    WORLD,
    MemoryOutbox,
    make_test_shuffler,
    rng,
    serving,
    study_arguments,
)


def start_study(tmp_path, min_users=2, participations=1, honest=1.0, **changes):
    """A secure study with its charter: (charter, the analyser's folder, signing key)."""
    folder = tmp_path / "analyser"
    folder.mkdir()
    trust = discreet.Shuffle(
        4, 1e-4, min_users=min_users, participations=participations, honest=honest
    )
    study = discreet.start_study(folder / "study.db", trust=trust, **study_arguments(**changes))
    key = make_signing_key(folder / "signing.key")
    of = charter_of(study, trust, Terms(patience=1000), key.public_key().public_bytes_raw())
    assert (participations, honest) != (1, 1.0) or dict(of.certificate) == CERTIFICATE
    return of, folder, key


def make_analyser(of, folder, url, key, at=lambda _: None, clock=None, **options):
    study = discreet.open_study(folder / "study.db")
    clock = clock or ManualClock(NOW)
    return Analyser(of, study, Client(url, TOKEN), key, folder, clock=clock, at=at, **options)


class Running(NamedTuple):
    """A study whose shuffler is serving: its charter, the analyser's side, a client, tickets."""

    of: Charter
    folder: Path
    key: Ed25519PrivateKey
    url: str
    client: Client
    passes: list[bytes]
    apart: Apart

    def survives(self, point):
        """One step of the analyser in a process that is killed at this point, if it gets there."""
        return self.apart(self.url, point)

    def analyser(self, at=lambda _: None, clock=None, **options):
        """The analyser of this study."""
        return make_analyser(self.of, self.folder, self.url, self.key, at, clock, **options)

    def announced(self):
        """An analyser that has announced the first batch, and the private key of it."""
        analyser = self.analyser()
        analyser.step()
        return analyser, analyser._keys.read(0)

    def send(self, passes=None):
        """Users take part until the open batch is full, or nobody is left."""
        send_users(self.of, self.client, iter(self.passes) if passes is None else passes)

    def until(self, analyser, wanted):
        """Step until that is the answer; nobody waits for ever."""
        for _ in range(500):
            if (state := analyser.step()) == wanted:
                return
            threading.Event().wait(0.02)
        raise AssertionError(f"expected {wanted}, the analyser is {state}")

    def to_the_end(self, analyser, passes):
        """Users take part and are counted until the study is finished."""
        for _ in range(2000):
            if analyser.step() == "finished":
                return
            self.send(passes)
        raise AssertionError("the study does not end")


@contextlib.contextmanager
def running_study(tmp_path, *, clock=None, episodes=40, **changes):
    """A study on loopback; the shuffler's files are in a folder of their own."""
    of, folder, key = start_study(tmp_path, episodes=episodes, **changes)
    place, passes = tmp_path / "shuffler", ticket.make(episodes)
    place.mkdir()
    apart = Apart(lambda url, point: make_analyser(of, folder, url, key, killer(point)).step())
    with (
        contextlib.closing(apart),
        serving(make_test_shuffler(place / "s.db", of, passes, clock=clock)) as url,
        Client(url, TOKEN) as client,
    ):
        yield Running(of, folder, key, url, client, passes, apart)


def send_users(of, client, passes):
    """Users take part until the open batch is full, or nobody is left."""
    chain = Chain(of, client)
    try:
        wanted = manifests.parse(client.manifest()).users
    except Refusal:
        return
    missing = wanted - client.metrics()["received"]
    for _ in range(missing):
        pass_ = next(passes, None)
        if pass_ is None:
            return
        user = Participant(chain, client, pass_, MemoryOutbox())
        assert user.attempt(lambda one: episode_of(WORLD, one, rng())) == "accepted"


def counted_cells(study):
    """Users that the study's ledger counts."""
    return sum(entry["users"] for entry in study.ledger if entry["kind"] == "batch")
