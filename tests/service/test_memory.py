"""Memory and files of one role, searched for what only another may know."""

import signal
import socket
import subprocess
import sys
import threading

import pytest

import discreet
from discreet.service.analyser.analyser import BatchKeys
from discreet.service.client import Client, UnreachableError
from discreet.service.founding import Terms, found, make_tickets
from discreet.service.protocol import ticket
from discreet.service.protocol.problems import Refusal
from helpers.memory import held_by
from helpers.service_analysers import send_users
from helpers.services import study_arguments


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A service whose first batch was sent, sealed, counted and forgotten, in real processes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    folder = tmp_path_factory.mktemp("memory") / "service"
    terms, trust = Terms(least_users=2, rehearsal=True), discreet.Shuffle(4, 1e-4)
    one = found(folder, terms, trust=trust, url=url, **study_arguments())
    passes = ticket.read(make_tickets(folder, 40)[0])
    processes = {}
    for role in ("shuffler", "analyser"):
        words = ["-m", "discreet", "service", role, "--config", str(one.config(role))]
        processes[role] = subprocess.Popen([sys.executable, *words, "--rehearsal"])
    try:
        with Client(url) as client:
            insist(client.manifest)
            keys = {"batch": BatchKeys(folder / "analyser" / "keys").read(0)}
            send_users(one.charter, client, iter(passes))
            while insist(client.metrics)["batches_done"] == 0:
                threading.Event().wait(0.05)
        signing = (folder / "analyser" / "signing.key").read_text().strip()
        keys["signing"] = bytes.fromhex(signing)
        yield folder, processes, keys, passes
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGTERM)
        for process in processes.values():
            process.wait()


def insist(ask):
    while True:
        try:
            return ask()
        except (UnreachableError, Refusal):
            threading.Event().wait(0.05)


def forms(secret):
    return [secret, secret.hex().encode()]


def test_p07_the_shuffler_has_never_seen_a_key(counted):
    folder, processes, keys, _ = counted
    shuffler = processes["shuffler"].pid
    known = (folder / "charter.json").read_bytes()[:60]
    assert held_by(shuffler, [known]) == {known}  # the search finds what is there
    assert not held_by(shuffler, [form for key in keys.values() for form in forms(key)])
    files = b"".join(p.read_bytes() for p in (folder / "shuffler").iterdir())
    assert not any(form in files for key in keys.values() for form in forms(key))


def test_p08_the_analyser_has_never_seen_a_ticket(counted):
    folder, processes, keys, passes = counted
    analyser = processes["analyser"].pid
    assert held_by(analyser, forms(keys["signing"]))  # the search finds what is there
    used = [form for one in passes[:4] for form in (*forms(one), *forms(ticket.digest(one)))]
    assert not held_by(analyser, used)
    files = b"".join(p.read_bytes() for p in (folder / "analyser").rglob("*") if p.is_file())
    assert not any(form in files for form in used)
