"""Memory and files of one role, searched for what only another may know."""

import signal
import subprocess
import sys
import threading

import pytest

import discreet
from discreet.service.client import Client, UnreachableError
from discreet.service.opening import BatchKeys
from discreet.service.protocol import ticket
from discreet.service.protocol.problems import Refusal
from discreet.service.setup import Terms, make_tickets, setup_service
from helpers.memory import held_by
from helpers.service_analysers import send_users
from helpers.services import kept_port, study_design

PYTHON = [sys.executable, "-X", "importtime"]  # writes down every module that is ever loaded
NOT_LOADED = {
    "shuffler": ("analyser", "participant", "client", "setup", "verification", "demo"),
    "analyser": ("shuffler", "participant", "setup", "demo"),
    "device": ("shuffler", "analyser", "setup", "verification", "demo"),
}


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A service whose first batch was sent, sealed, counted and forgotten, in real processes."""
    with kept_port() as port:
        yield from _counted(tmp_path_factory.mktemp("memory") / "service", port)


def _counted(folder, port):
    url = f"http://127.0.0.1:{port}"
    terms, trust = Terms(rehearsal=True), discreet.Shuffle(4, 1e-4, honest=0.95)
    one = setup_service(folder, terms, study_design(trust), url=url)
    passes = ticket.read(make_tickets(folder, 40)[0])
    processes = {}
    for role in ("shuffler", "analyser"):
        words = ["-m", "discreet", "service", role, "--config", str(one.config(role))]
        with (folder / f"{role}.imports").open("wb") as log:
            processes[role] = subprocess.Popen([*PYTHON, *words, "--rehearsal"], stderr=log)
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


def loaded(text):
    """The modules of a process that was started with `PYTHON`."""
    return {line.rpartition("|")[2].strip() for line in text.splitlines() if "import time:" in line}


def foreign(modules, role):
    """Those that belong to another role; the study is the analyser's alone."""
    rooms = [f"discreet.service.{room}" for room in NOT_LOADED[role]]
    if role != "analyser":
        rooms += ["discreet.study", "discreet.learners"]
    return {m for m in modules if any(m == room or m.startswith(f"{room}.") for room in rooms)}


@pytest.mark.parametrize("role", ["shuffler", "analyser"])
def test_p07_a_running_role_has_loaded_nothing_of_another(counted, role):
    folder, *_ = counted
    modules = loaded((folder / f"{role}.imports").read_text())
    served = {"shuffler": "shuffler.server", "analyser": "analyser"}[role]
    assert f"discreet.service.{served}" in modules  # the list is of the process that served
    assert not foreign(modules, role)


def test_p07_a_device_has_loaded_nothing_of_another_role(counted):
    folder, *_ = counted
    words = ["-m", "discreet", "service", "device", "--config", str(folder / "device/device.toml")]
    words += ["--rehearsal", "--ticket", "00" * 32]
    done = subprocess.run([*PYTHON, *words], capture_output=True, text=True)
    assert done.returncode == 0 and '"policy"' in done.stdout
    modules = loaded(done.stderr)
    assert "discreet.service.participant" in modules and not foreign(modules, "device")


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
