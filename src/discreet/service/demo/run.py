"""A demonstration: what it consists of, its processes, and what was found.

Real processes on loopback; some may be killed while they work. What is checked at the end is
checked from files and from the shuffler's public totals: who took part is in the users' outboxes,
what was counted is in the analyser's study, what is left in the shuffler's store.
"""

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet import _validate
from discreet._files import write_atomically
from discreet._types import FloatArray, Plain
from discreet.errors import DiscreetError, InvalidInputError
from discreet.learners.learn import learn
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.trust import Shuffle
from discreet.service import verification
from discreet.service.client import Client, UnreachableError
from discreet.service.demo.users import World, answered, get_world
from discreet.service.protocol import ticket
from discreet.service.protocol.manifest import Manifest
from discreet.service.protocol.problems import Refusal
from discreet.service.setup import Service, Terms, make_tickets, setup_service
from discreet.study.design import Design
from discreet.study.study import Study

LEARNER = "flow-ucb"
NOT_PROTECTED = (
    "The users are simulated; this is a rehearsal and protects nobody.",
    "One machine holds every key: it could open every envelope and link it to its ticket. The "
    "guarantee needs a shuffler and an analyser that are two organisations and do not collude.",
    "Epsilon and delta are chosen to learn something from few users in a minute, not to be modest.",
    "There is no TLS on loopback; between machines a reverse proxy must add it.",
    "The one who starts this mints the tickets, too: nothing stops a crowd of invented users.",
    "All devices send from one address without a delay: timing and addresses hide nothing here.",
)
"""What this arrangement does not protect, said to whoever runs it."""


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """One demonstration.

    Attributes:
        world: the name of its environment.
        users: how often somebody takes part, and how many tickets there are for it.
        participations: batches that a ticket is worth; if several, users come back.
        spare: tickets beyond theirs, for people at the page.
        seed: of the users' lives and of the study; noise is the operating system's all the same.
        epsilon: guaranteed (in a rehearsal: to nobody).
        delta: likewise.
        patience: seconds for which a batch may stay open.
    """

    world: str = "treatment"
    users: int = 1000
    participations: int = 1
    spare: int = 0
    seed: int = 0
    epsilon: float = 4.0
    delta: float = 1e-4
    patience: int = 600

    def __post_init__(self) -> None:
        get_world(self.world)
        _validate.count(users=self.users, patience=self.patience)
        if self.users < 100:
            raise InvalidInputError(
                f"Expected at least 100 users, got users={self.users}: fewer fill no batches."
            )
        if self.seed < 0:
            raise InvalidInputError(f"Expected a seed of 0 or more, got seed={self.seed}.")

    @property
    def home(self) -> World:
        return get_world(self.world)

    @property
    def trust(self) -> Shuffle:
        return Shuffle(
            self.epsilon,
            self.delta,
            honest=0.95,
            min_users=2,
            participations=self.participations,
        )


def set_up(
    folder: Path,
    arrangement: Arrangement,
    url: str,
    port: int,
    *,
    page: str = "",
    ca_file: str = "",
) -> Service:
    """Set up the service: charter, keys, a file per role, tickets, and the world for the page.

    Args:
        folder: must not exist yet.
        arrangement: what to show.
        url: where analyser and devices find the shuffler.
        port: where it listens.
        page: the address of the analyser's page.
        ca_file: who vouches for the shuffler, if ``url`` is one of TLS.
    """
    world = arrangement.home
    service = setup_service(
        folder,
        Terms(purpose=world.purpose, patience=arrangement.patience, rehearsal=True),
        Design(
            learner=LEARNER,
            trust=arrangement.trust,
            states=list(world.states),
            actions=list(world.actions),
            steps=list(world.steps),
            start_states=[world.states[s] for s in world.start],
            episodes=arrangement.users,
            seed=arrangement.seed,
        ),
        url=url,
    )
    make_tickets(folder, arrangement.users + arrangement.spare)
    text = json.dumps(world.description(), allow_nan=False)
    write_atomically(folder / "shuffler" / "world.json", text.encode())
    file = service.config("shuffler")
    text = re.sub(r"(?m)^port = .*$", f"port = {port}", file.read_text("utf-8"))
    text += "# The model of the study, so that people can play it at the page.\n"
    write_atomically(file, (text + 'world = "world.json"\n').encode())
    for role in ("analyser", "device"):
        file = service.config(role)
        text = re.sub(r"(?m)^page = .*$", f'page = "{page}"', file.read_text("utf-8"))
        text = re.sub(r"(?m)^ca_file = .*$", f'ca_file = "{ca_file}"', text)
        write_atomically(file, text.encode())
    return service


def free_port() -> int:
    """A loopback port that nobody uses at the moment."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


# The roles as processes of the operating system, which may be killed and come back.


_GRACE = 10.0
_START = 600.0
"""Seconds for a shuffler to answer, which proves its charter first, on however busy a machine."""


class Role:
    """One process that is started again with the same words.

    Args:
        name: for messages.
        arguments: of the Python interpreter.
        log: takes what it writes.
    """

    def __init__(self, name: str, arguments: Sequence[str], log: Path) -> None:
        self.name, self._arguments, self._log = name, list(arguments), log
        self._process: subprocess.Popen[bytes] | None = None
        self.kills = 0

    def start(self) -> None:
        # five processes on one machine: numerical libraries must not take all of its cores
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    @property
    def number(self) -> int:
        return 0 if self._process is None else self._process.pid

    @property
    def ended(self) -> int | None:
        """Its exit code, if it has ended by itself."""
        return None if self._process is None else self._process.poll()

    @property
    def words(self) -> str:
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def check(self) -> None:
        """Refuse to go on with a role that has failed."""
        if self.ended:
            raise DiscreetError(f"The {self.name} ended with code {self.ended}: {self.words}")

    def kill(self) -> bool:
        """SIGKILL in the middle of whatever it does, and a new start; False if it had ended."""
        process = self._process
        if process is None or process.poll() is not None:
            return False
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.kills += 1
        self.start()
        return True

    def wait(self, seconds: float) -> bool:
        """Whether it ends by itself within so many seconds."""
        try:
            if self._process is not None:
                self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ask_to_end(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()

    def stop(self) -> None:
        """SIGTERM; SIGKILL if that is not enough."""
        process = self._process
        self.ask_to_end()
        if process is not None and not self.wait(_GRACE):
            process.kill()
            process.wait()


@contextlib.contextmanager
def ending(roles: Sequence[Role]) -> Iterator[None]:
    """Whatever happens, SIGTERM too, none of these processes is left behind."""
    before = _on_sigterm(_interrupted)
    try:
        yield
    finally:
        _on_sigterm(signal.SIG_IGN)
        for role in roles:
            role.ask_to_end()
        for role in roles:
            role.stop()
        _on_sigterm(before)


def _interrupted(*_: object) -> None:
    _on_sigterm(signal.SIG_IGN)  # once is enough
    raise SystemExit(128 + signal.SIGTERM)


def _on_sigterm(do: Any) -> Any:
    """What SIGTERM does from now on, and did before; another thread than the first has no say."""
    if threading.current_thread() is threading.main_thread():
        return signal.signal(signal.SIGTERM, do)
    return None


def wait_until_there(client: Client, shuffler: Role) -> None:
    last = time.monotonic() + _START
    while time.monotonic() < last:
        shuffler.check()
        with contextlib.suppress(UnreachableError, Refusal):
            client.metrics()
            return
        time.sleep(0.1)
    raise DiscreetError(f"The shuffler does not answer: {shuffler.words}")


PARTS = 2
"""Processes of users."""
_LOOK = 0.2
_LAST_ANSWERS = 60.0
"""Seconds for users to hear that they were counted, on however busy a machine."""


@dataclass(frozen=True)
class Sight:
    """What somebody who looks on sees."""

    users: int
    batches: int
    kills: int


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a demonstration has found.

    Attributes:
        users: counted by the study.
        participations: batches that a ticket was worth.
        returned: tickets that were used more than once.
        batches: counted by the study.
        kills_of: SIGKILLs of every role.
        counted_once: every report that was taken was counted once, and nobody else; no ticket has
            given more than the charter says.
        ledger_verified: the certificate, the chain of manifests and the ledger hold.
        forgotten: no batch key is left, and no body at the shuffler.
        regret: exact and expected: what the policies of the manifests lose in the true model.
        seconds: from the first process to the last report.
    """

    users: int
    participations: int
    returned: int
    batches: int
    kills_of: Mapping[str, int]
    counted_once: bool
    ledger_verified: bool
    forgotten: bool
    regret: float
    seconds: float

    @property
    def kills(self) -> int:
        return sum(self.kills_of.values())

    def to_dict(self, simulated: FloatArray) -> dict[str, Plain]:
        """With the interval in which nineteen of twenty simulated runs lie."""
        low, high = np.percentile(simulated, [2.5, 97.5]).tolist()
        told = {"rehearsal": True, "kills": self.kills, **asdict(self)}
        return told | {"simulated_regret": {"low": low, "high": high}}


def regret_of(mdp: TabularMDP, counted: Sequence[Manifest]) -> float:
    meter = RegretMeter(mdp)
    losses = (meter.regret(DeterministicPolicy(np.array(one.policy))) for one in counted)
    return sum(one.users * loss for one, loss in zip(counted, losses, strict=True))


def simulate(
    arrangement: Arrangement, runs: int, tell: Callable[[int], object] = lambda _: None
) -> FloatArray:
    """The regret of runs of the same learner under the same mechanism, at count level."""
    found = []
    for run in range(runs):
        result = learn(
            arrangement.home.mdp,
            learner=LEARNER,
            trust=arrangement.trust,
            episodes=arrangement.users,
            seed=arrangement.seed + 1,
            run=run,
            mixing=False,
        )
        found.append(float(result.regret.values[-1]))
        tell(run + 1)
    return np.array(found)


class Demo:
    """All roles of one arrangement.

    Args:
        folder: must not exist yet.
        arrangement: what to show.
        leave: places of every batch for people at the page.
        port: of the shuffler; 0 takes a free one.
        through: where the others find it, if something stands between them.
    """

    def __init__(
        self,
        folder: Path,
        arrangement: Arrangement,
        *,
        leave: int = 0,
        port: int = 0,
        through: str = "",
    ) -> None:
        self.arrangement = arrangement
        port = port or free_port()
        self.url = f"http://127.0.0.1:{port}"
        page = f"127.0.0.1:{free_port()}"
        self.page = f"http://{page}/"
        url = through or self.url
        self.service = set_up(folder, arrangement, url, port, page=page)
        (folder / "logs").mkdir()
        self.shuffler, self.analyser = (self._role(name) for name in ("shuffler", "analyser"))
        parts = 1 if leave else PARTS  # two would both see the last free place
        self.users = [self._users(part, parts, leave) for part in range(parts)]
        self._kills = 0
        # who leaves places to people, or to those who come back, may wait in vain for one
        waits = leave or arrangement.participations > 1
        self._patience = 10 * _LOOK if waits else _LAST_ANSWERS

    @property
    def roles(self) -> list[Role]:
        return [self.shuffler, self.analyser, *self.users]

    def links(self) -> list[str]:
        tickets = ticket.read(self.service.folder / "enroller" / "tickets.txt")
        study = self.service.charter.id.hex()
        spare = tickets[self.arrangement.users :]
        return [f"{self.url}/#study={study}&ticket={one.hex()}" for one in spare]

    def run(
        self,
        kills: int = 0,
        look: Callable[[Sight], object] = lambda _: None,
        spare: Sequence[Role] = (),
    ) -> Findings:
        """Until the study is finished.

        Args:
            kills: SIGKILLs on the way, spread over all roles.
            look: called several times a second.
            spare: roles that are not killed.
        """
        victims = [role for role in self.roles if role not in spare]
        began = time.monotonic()
        with ending(self.roles), Client(self.url) as client:
            self.shuffler.start()
            wait_until_there(client, self.shuffler)
            for role in self.roles[1:]:
                role.start()
            self._watch(client, kills, look, victims)
            for role in self.users:
                role.wait(self._patience)
            seconds = time.monotonic() - began
            totals = _insist(client.metrics)
        # who was killed between a report and its answer cannot know that it was taken; of somebody
        # who comes back only to a later batch nobody hears that at all
        unsure = min(sum(role.kills for role in self.users), len(self.users))
        if self.arrangement.participations > 1:
            unsure = len(self.users) * sum(role.kills for role in self.roles)
        return examine(
            self.service,
            self.arrangement.home.mdp,
            totals,
            kills={role.name: role.kills for role in self.roles},
            seconds=seconds,
            silent=unsure + len(self.links()),
        )

    def _watch(
        self,
        client: Client,
        kills: int,
        look: Callable[[Sight], object],
        victims: Sequence[Role],
    ) -> None:
        aim = self.arrangement.users
        while self.analyser.ended is None:
            for role in self.roles:
                role.check()
            with contextlib.suppress(UnreachableError, Refusal):
                totals = client.metrics()
                spent = totals["tickets_spent"]
                look(Sight(spent, totals["batches_done"], self._kills))
                if self._kills < kills and spent >= aim * (self._kills + 0.5) / (kills + 1):
                    self._kills += self._next(victims).kill()
            self.analyser.wait(_LOOK)
        self.analyser.check()
        if self._kills < kills:
            raise DiscreetError(
                f"The study ended after {self._kills} of {kills} kills; ask for fewer, or for "
                f"more users."
            )

    @staticmethod
    def _next(victims: Sequence[Role]) -> Role:
        least = min(role.kills for role in victims)
        return secrets.choice([role for role in victims if role.kills == least])

    def _role(self, name: str) -> Role:
        config = str(self.service.config(name))
        words = ["-m", "discreet", "service", name, "--config", config, "--rehearsal"]
        return Role(name, words, self.service.folder / "logs" / f"{name}.log")

    def _users(self, part: int, parts: int, leave: int) -> Role:
        arrangement, folder = self.arrangement, self.service.folder
        numbers = [arrangement.seed, part, parts, arrangement.users, leave]
        words = ["-m", "discreet.service.demo.users", str(folder), arrangement.world]
        log = folder / "logs" / f"users-{part}.log"
        return Role(f"users {part}", [*words, *map(str, numbers)], log)


def examine(
    service: Service,
    mdp: TabularMDP,
    totals: dict[str, int],
    *,
    kills: Mapping[str, int] | None = None,
    seconds: float = 0.0,
    silent: int = 0,
) -> Findings:
    """Check what a study has left behind.

    Args:
        service: that was run.
        mdp: the true model.
        totals: the shuffler's, at the end.
        kills: SIGKILLs of every role on the way.
        seconds: that it took.
        silent: users who may have been counted and not have heard of it.
    """
    folder, charter = service.folder, service.charter
    study = Study.read(folder / "analyser" / "study.db")
    signed = verification.read_manifests(folder / "analyser" / "manifests")
    chain = verification.check_chain(charter, signed)
    verified = verification.check_ledger(study, chain) == study.batches
    charter.verify()
    keys = list((folder / "analyser" / "keys").iterdir())
    kept = _kept(folder / "shuffler" / "shuffler.db")
    unheard = study.users - answered(folder / "users", charter.participations)
    return Findings(
        users=study.users,
        participations=charter.participations,
        returned=kept["returned"],
        batches=study.batches,
        kills_of=kills or {},
        counted_once=totals["tickets_spent"] == kept["spent"] == study.users
        and kept["most"] <= charter.participations
        and 0 <= unheard <= silent,
        ledger_verified=verified,
        forgotten=not keys
        and not kept["bodies"]
        and not any(totals[name] for name in ("received", "batches_sealed", "batches_full")),
        regret=regret_of(mdp, _counted(study, [one.manifest for one in chain])),
        seconds=seconds,
    )


def _kept(store: Path) -> dict[str, int]:
    """What the shuffler's file says itself: how tickets were used, bodies in whatever form."""
    bodies = " + ".join(f"(SELECT count(*) FROM {name})" for name in ("report", "piece", "sealed"))
    with contextlib.closing(sqlite3.connect(store)) as database:
        query = "SELECT sum(uses), max(uses), count(*) FILTER (WHERE uses > 1) FROM ticket"
        ((spent, most, returned),) = database.execute(query).fetchall()
        ((left,),) = database.execute(f"SELECT {bodies}").fetchall()
    return {"spent": spent, "most": most, "returned": returned, "bodies": left}


def _counted(study: Study, chain: list[Manifest]) -> list[Manifest]:
    """The manifests whose batches the ledger has, in order."""
    names = []
    for entry in study.ledger:
        note = entry.get("note")
        if entry["kind"] == "batch" and isinstance(note, dict):
            names.append(note.get("manifest"))
    by_name = {manifest.hash.hex(): manifest for manifest in chain}
    return [by_name[str(name)] for name in names]


def _insist(ask: Callable[[], dict[str, int]]) -> dict[str, int]:
    """The shuffler may have been killed a moment ago."""
    for _ in range(600):
        with contextlib.suppress(UnreachableError, Refusal):
            return ask()
        time.sleep(0.1)
    return ask()
