"""The service under strain: roles as processes that are killed, and what must hold afterwards."""

import contextlib
import os
import pathlib
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import discreet
from discreet.service import verification
from discreet.service.founding import Terms, found, make_tickets

ROLE = """
import sys
from discreet.cli.app import main
sys.argv = ["discreet", "service", *sys.argv[1:]]
main()
"""
CROWD = """
import pathlib, sys, time
import numpy as np
import discreet
from discreet.errors import DiscreetError
from discreet.service.protocol import ticket
from discreet.service.client import Client
from discreet.service.demo.crowd import Crowd
from discreet.service.participant.participant import Chain, fetch_charter

folder, url, study, states, horizon = sys.argv[1:]
passes = ticket.read(pathlib.Path(folder) / "enroller" / "tickets.txt")
world = discreet.make("RiverSwim", states=int(states), horizon=int(horizon), relabel=0)
while True:
    client = Client(url)
    try:
        chain = Chain(fetch_charter(client, bytes.fromhex(study), rehearsal=True), client)
        break
    except DiscreetError:
        time.sleep(0.1)
crowd = Crowd(world, chain, client, np.random.default_rng(), time.sleep)
for _ in crowd.send(passes, lambda: False):
    pass
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Role:
    """A process that is started again after every kill."""

    def __init__(self, command):
        self._command = command
        self.kills = 0
        self.start()

    def start(self):
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=sys.stderr)

    def kill(self):
        """SIGKILL, and start again; False if it had ended by itself."""
        if self.process.poll() is not None:
            return False
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1
        self.start()
        return True

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        self.process.wait()


def killed_study(folder, *, users, kills, states=3, horizon=3, store="shuffler.db", seed=0):
    """A whole study through the service while its roles are killed; what was found."""
    url = f"http://127.0.0.1:{free_port()}"
    founded = found(
        folder,
        Terms(least_users=2, rehearsal=True),
        trust=discreet.Shuffle(2, 1e-6),
        url=url,
        store=store,
        learner="flow-ucb",
        states=states,
        actions=2,
        horizon=horizon,
        start_states=[0],
        episodes=users,
    )
    make_tickets(folder, users)
    python = [sys.executable, "-c"]
    roles = {
        name: Role([*python, ROLE, name, "--config", str(founded.config(name)), "--rehearsal"])
        for name in ("shuffler", "analyser")
    }
    study = founded.charter.id.hex()
    roles["crowd"] = Role([*python, CROWD, folder, url, study, str(states), str(horizon)])
    chance = random.Random(seed)
    started = time.monotonic()
    try:
        while roles["analyser"].process.poll() is None:
            time.sleep(chance.uniform(2.0, 8.0))
            assert roles["crowd"].process.poll() in (None, 0), "the crowd failed"
            if sum(role.kills for role in roles.values()) < kills:
                chance.choice(list(roles.values())).kill()
    finally:
        for role in reversed(roles.values()):
            role.end()
    seconds = time.monotonic() - started
    found_ = {f"kills of the {name}": role.kills for name, role in roles.items()}
    return found_ | {"seconds": round(seconds)} | check(folder, founded, users, store)


def check(folder, founded, users, store):
    """Everybody was counted once; nothing is left."""
    study = discreet.resume(folder / "analyser" / "study.db")
    signed = verification.read_manifests(folder / "analyser" / "manifests")
    chain = verification.check_chain(founded.charter, signed)
    batches = verification.check_ledger(study, chain)
    keys = list((folder / "analyser" / "keys").iterdir())
    assert study.finished and study.users == users, study.users
    assert not keys, keys
    found_ = {"users": study.users, "batches": batches, "keys left": len(keys)}
    if "://" not in store:
        database = sqlite3.connect(folder / "shuffler" / store)
        counts = {
            name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in ("report", "piece", "sealed")
        }
        query = "SELECT count(*) FROM ticket WHERE number IS NOT NULL"
        (spent,) = database.execute(query).fetchone()
        states = dict(database.execute("SELECT state, count(*) FROM batch GROUP BY state"))
        database.close()
        assert counts == {"report": 0, "piece": 0, "sealed": 0}, counts
        assert spent == users and states == {"done": batches}, (spent, states)
        found_ |= {"tickets spent": spent, "bodies left": 0}
    return found_


def resident(pid="self"):
    """Megabytes of memory that a process held at most."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(fields["VmHWM"].split()[0]) / 1024


def processor_seconds(pid):
    """Of a process, so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
