"""A demonstration from founding to what was found.

Real processes on loopback; some may be killed while they work. What is checked at the end is
checked from files and from the shuffler's public totals: who took part is in the users' diaries,
what was counted is in the analyser's study, what is left in the shuffler's store.
"""

import contextlib
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from discreet._plain import Plain
from discreet.errors import DiscreetError
from discreet.learners.regret import RegretCurve
from discreet.mdp.tabular import TabularMDP
from discreet.service import verification
from discreet.service.client import Client, UnreachableError
from discreet.service.demo.arrangement import Arrangement, free_port, set_up
from discreet.service.demo.curves import Spread, final, real_curve
from discreet.service.demo.processes import Role, ending, wait_until_there
from discreet.service.demo.users import diaries
from discreet.service.founding import Founded
from discreet.service.protocol import ticket
from discreet.service.protocol.manifest import Manifest
from discreet.service.protocol.problems import Refusal
from discreet.study.study import Study

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


@dataclass(frozen=True, eq=False)
class Findings:
    """What a demonstration has found.

    Attributes:
        users: counted by the study.
        batches: likewise.
        kills: SIGKILLs of every role.
        counted_once: every user who took part was counted once, and nobody else.
        ledger_verified: the certificate, the chain of manifests and the ledger hold.
        forgotten: no batch key is left, and no body at the shuffler.
        curve: of the real thing.
        seconds: from the first process to the last report.
    """

    users: int
    batches: int
    kills: Mapping[str, int]
    counted_once: bool
    ledger_verified: bool
    forgotten: bool
    curve: RegretCurve
    seconds: float

    def summary(self, band: Spread) -> dict[str, Plain]:
        """For scripts."""
        low, high = band.interval
        return {
            "rehearsal": True,
            "users": self.users,
            "batches": self.batches,
            "kills": sum(self.kills.values()),
            "kills_of": dict(self.kills),
            "counted_once": self.counted_once,
            "ledger_verified": self.ledger_verified,
            "forgotten": self.forgotten,
            "regret": final(self.curve),
            "simulated_regret": {"low": low, "high": high},
            "seconds": self.seconds,
        }


@dataclass(frozen=True, kw_only=True)
class Journey:
    """What happened on the way.

    Attributes:
        kills: SIGKILLs of every role.
        seconds: that it took.
        silent: users who may have been counted without a word in the diaries.
    """

    kills: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    silent: int = 0


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
        self.founded = set_up(folder, arrangement, through or self.url, port)
        (folder / "logs").mkdir()
        self.shuffler, self.analyser = (self._role(name) for name in ("shuffler", "analyser"))
        parts = 1 if leave else PARTS  # two would both see the last free place
        self.users = [self._users(part, parts, leave) for part in range(parts)]
        self._kills = 0
        # who leaves places to people may wait in vain for one
        self._patience = 10 * _LOOK if leave else _LAST_ANSWERS

    @property
    def roles(self) -> list[Role]:
        """All processes."""
        return [self.shuffler, self.analyser, *self.users]

    def links(self) -> list[str]:
        """The page for every spare ticket."""
        tickets = ticket.read(self.founded.folder / "enroller" / "tickets.txt")
        study = self.founded.charter.id.hex()
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
        return self._examined(totals, seconds)

    def _examined(self, totals: dict[str, int], seconds: float) -> Findings:
        """Who was killed between a report and its answer cannot know that it was taken."""
        unsure = min(sum(role.kills for role in self.users), len(self.users))
        others = len(self.links())
        return examine(
            self.founded,
            self.arrangement.home.mdp,
            totals,
            Journey(
                kills={role.name: role.kills for role in self.roles},
                seconds=seconds,
                silent=unsure + others,
            ),
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
        """One of those that were killed least often."""
        least = min(role.kills for role in victims)
        return secrets.choice([role for role in victims if role.kills == least])

    def _role(self, name: str) -> Role:
        config = str(self.founded.config(name))
        words = ["-m", "discreet", "service", name, "--config", config, "--rehearsal"]
        return Role(name, words, self.founded.folder / "logs" / f"{name}.log")

    def _users(self, part: int, parts: int, leave: int) -> Role:
        arrangement, folder = self.arrangement, self.founded.folder
        numbers = [arrangement.seed, part, parts, arrangement.users, leave]
        words = ["-m", "discreet.service.demo.users", str(folder), arrangement.world]
        log = folder / "logs" / f"users-{part}.log"
        return Role(f"users {part}", [*words, *map(str, numbers)], log)


def examine(
    founded: Founded, mdp: TabularMDP, totals: dict[str, int], outcome: Journey
) -> Findings:
    """Check what a study has left behind.

    Args:
        founded: the service.
        mdp: the true model.
        totals: the shuffler's, at the end.
        outcome: what happened on the way.
    """
    folder, charter = founded.folder, founded.charter
    study = Study.read(folder / "analyser" / "study.db")
    signed = verification.read_manifests(folder / "analyser" / "manifests")
    chain = verification.check_chain(charter, signed)
    verified = verification.check_ledger(study, chain) == study.batches
    charter.verify()
    kept = _kept(folder / "shuffler" / "shuffler.db")
    unheard = study.users - len(diaries(folder))
    return Findings(
        users=study.users,
        batches=study.batches,
        kills=outcome.kills,
        counted_once=totals["tickets_spent"] == kept["spent"] == study.users
        and 0 <= unheard <= outcome.silent,
        ledger_verified=verified,
        forgotten=_forgotten(folder, totals, kept["bodies"]),
        curve=real_curve(mdp, _counted(study, [one.manifest for one in chain])),
        seconds=outcome.seconds,
    )


def _kept(store: Path) -> dict[str, int]:
    """What the shuffler's file says itself: tickets that were spent, bodies in whatever form."""
    bodies = " + ".join(f"(SELECT count(*) FROM {name})" for name in ("report", "piece", "sealed"))
    with contextlib.closing(sqlite3.connect(store)) as database:
        query = "SELECT count(*) FROM ticket WHERE number IS NOT NULL"
        ((spent,),) = database.execute(query).fetchall()
        ((left,),) = database.execute(f"SELECT {bodies}").fetchall()
    return {"spent": spent, "bodies": left}


def _forgotten(folder: Path, totals: dict[str, int], bodies: int) -> bool:
    keys = list((folder / "analyser" / "keys").iterdir())
    left = totals["received"] or totals["batches_sealed"] or totals["batches_full"] or bodies
    return not keys and not left


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
