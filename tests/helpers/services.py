"""A small service: its charter, its manifests, reports with and without real envelopes."""

import contextlib
import hashlib
import json
import secrets
import socket
import sqlite3
import threading
import time
from fractions import Fraction
from pathlib import Path

import httpx
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from discreet.mdp import make
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import report, ticket
from discreet.service.protocol.charter import Charter, layout_of
from discreet.service.protocol.manifest import Manifest
from discreet.service.protocol.problems import Refusal
from discreet.service.shuffler.server import make_server
from discreet.service.shuffler.shuffler import Shuffler
from discreet.service.shuffler.store import open_store
from discreet.service.shuffler.web import make_app
from discreet.study.design import Design
from helpers.clocks import ManualClock

GOLDEN = Path(__file__).parents[1] / "service" / "golden"
SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
TOKEN = "the analyser's"
WORLD = make("RiverSwim", states=2, horizon=2, relabel=1)
CERTIFICATE = json.loads((GOLDEN / "certificate.json").read_text())
"""For S=2, A=2, H=2 at (4, 1e-4): three groups."""
NOW = 1_000_000_000.0


def charter(**changes):
    """The small charter, its certificate whole unless something else is asked for."""
    fields = {
        "purpose": "a test",
        "names": {"states": ("0", "1"), "actions": ("0", "1"), "steps": ("0", "1")},
        "start": (0,),
        "statistics": ("transitions", "rewards"),
        "last_transitions": False,
        "epsilon": Fraction(4),
        "delta": Fraction(1, 10_000),
        "honest": Fraction(1),
        "mean": Fraction(CERTIFICATE["noise"]["mean"]),
        "certificate": CERTIFICATE,
        "min_users": 3,
        "patience": 1000,
        "signing_key": SIGNER.public_key().public_bytes_raw(),
        "rehearsal": False,
    }
    return Charter(**(fields | changes))


def head(number):
    """Of the ledger when a manifest was signed."""
    return bytes([number]) * 32


def batch_key(number):
    """The analyser's key of a manifest."""
    return X25519PrivateKey.from_private_bytes(bytes([number + 1]) * 32)


def manifest(of, number=0, *, before=None, batch=None, users=3, **changes):
    """A manifest that follows ``before``."""
    policy = changes.pop("policy", [[0, 1], [1, 0]])
    layout = layout_of(of.device(policy, users).groups)
    fields = {
        "study": of.id,
        "number": number,
        "batch": number if batch is None else batch,
        "previous": of.id if before is None else before.hash,
        "ledger": head(number),
        "signer": of.signing_key,
        "users": users,
        "policy": policy,
        "layout": layout,
        "key": batch_key(number).public_key().public_bytes_raw(),
        "deadline": int(NOW) + 500,
    }
    return Manifest(**(fields | changes))


def announced(of, number=0, **changes):
    """The same, signed and read."""
    return manifests.read(manifest(of, number, **changes).signed(SIGNER), of)


def fake_report(of, pass_, mark=b""):
    """A report of the right length whose envelopes nobody can open; each holds the mark."""
    envelopes = [
        (secrets.token_bytes(12) + bytes([place]) + mark).ljust(52, b".")[:52]
        for place, size in enumerate(of.sizes)
        for _ in range(size)
    ]
    return bytes([report.VERSION]) + pass_ + of.hash + b"".join(envelopes)


def real_report(of, pass_, episode=None):
    """What a device sends."""
    episode = episode or {"states": [0, 0, 1], "actions": [0, 1], "rewards": [0.0, 1.0]}
    return report.seal(of.device.encode(episode), of, pass_)


def submissions(of, passes, mark=b""):
    return [report.read(fake_report(of, one, mark)) for one in passes]


def new_store(where, of, tickets=(), at=lambda _: None):
    """A store with some tickets, bound to its charter without checking the certificate again."""
    store = open_store(str(where), of, at)
    try:
        store.adopt(on_new=lambda: None)
        store.admit([ticket.digest(one) for one in tickets])
    except BaseException:
        store.close()
        raise
    return store


def filled(store, of, number=0, **changes):
    """Announce a batch and fill it with tickets of its own; the manifest and the tickets."""
    one = announced(of, number, **changes)
    passes = ticket.make(one.manifest.users)
    store.admit([ticket.digest(x) for x in passes])
    store.announce(one)
    codes = store.submit(submissions(one, passes))
    assert codes == ["accepted"] * len(passes)
    return one, passes


def code(job, *arguments):
    """What the refusal of a call says."""
    with pytest.raises(Refusal) as caught:
        job(*arguments)
    return caught.value.code


def content(path):
    """The digest of all that a store's tables hold."""
    database = sqlite3.connect(path)
    total = hashlib.sha256("\n".join(database.iterdump()).encode()).hexdigest()
    database.close()
    return total


def messages(store, number, sizes):
    """All groups of a sealed batch."""
    return [
        b"".join(store.bucket(number, place, one) for one in store.buckets(number, place))
        for place in range(len(sizes))
    ]


def envelopes(client, number, place):
    """All envelopes of a class, as the analyser gets them."""
    parts = []
    client.messages(number, place, parts.append)
    return b"".join(parts)


def make_test_shuffler(where, of, tickets=(), *, clock=None, **options):
    """A shuffler on a store."""
    from discreet.service.protocol.canonical import sha256

    return Shuffler(
        of,
        lambda: new_store(where, of, tickets),
        token_digests=[sha256(TOKEN.encode())],
        clock=clock or ManualClock(NOW),
        **options,
    )


@contextlib.contextmanager
def serving(shuffler, *, keep_alive=30, sockets=None, **options):
    """The shuffler on a loopback port, idle connections kept for some seconds; its address."""
    app = make_app(shuffler, **options)
    with serving_app(app, keep_alive=keep_alive, sockets=sockets) as url:
        yield url


@contextlib.contextmanager
def serving_app(app, *, keep_alive=30, sockets=None):
    """An application on a loopback port."""
    server = make_server(app, "127.0.0.1", 0)
    server.config.timeout_keep_alive = keep_alive
    thread = threading.Thread(target=server.run, args=(sockets,))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@contextlib.contextmanager
def kept_port():
    """A loopback port for a server of another process.

    Until it listens there, and between two lives of it, nobody else is given the port: a socket
    that does not listen holds it, which servers (who may use an address again) do not mind.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def study_arguments(**changes):
    """Of a study that fits `charter` and `WORLD`."""
    fields = {
        "learner": "flow-ucb",
        "states": 2,
        "actions": 2,
        "horizon": 2,
        "start_states": [0],
        "episodes": 40,
        "mixing": False,
    }
    return fields | changes


def study_design(trust, seed=None, **changes):
    """The same as a design."""
    given = study_arguments(**changes)
    given |= {"steps": given.pop("horizon"), "settings": {"mixing": given.pop("mixing")}}
    return Design(trust=trust, seed=seed, **given)


def rng(seed=0):
    return np.random.default_rng(seed)


def asked(url):
    """Status and document of the readiness."""
    answer = httpx.get(f"{url}/readyz")
    return answer.status_code, {one["name"]: one for one in answer.json()["checks"]}


def becomes(url, status):
    """Wait until the readiness is so; its checks."""
    last = time.monotonic() + 60
    while time.monotonic() < last:
        found, checks = asked(url)
        if found == status:
            return checks
        time.sleep(0.02)
    pytest.fail(f"never {status}: {checks}")


class MemoryOutbox:
    """An outbox without a disk."""

    def __init__(self):
        self._kept, self._times = {}, {}

    def alone(self):
        return contextlib.nullcontext()

    def read(self, owner, name):
        kept, data = self._kept.get(owner, ("", None))
        return data if kept == name else None

    def write(self, owner, name, data):
        self._kept[owner] = (name, data)
        if not data:
            self._times.setdefault(owner, set()).add(name.split("-")[0])

    def times(self, owner):
        return len(self._times.get(owner, ()))
