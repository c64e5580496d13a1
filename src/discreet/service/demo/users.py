"""The process in which a part of the simulated users lives, one after the other.

    python -m discreet.service.demo.users FOLDER WORLD SEED PART PARTS USERS LEAVE

It may be killed at any moment: who has finished is written down, and the one who was under way
sends the same sealed bytes again. Tickets from number USERS on, and LEAVE places of every batch,
are left for people at the page.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from discreet.service.client import Client, UnreachableError
from discreet.service.configs import DeviceConfig
from discreet.service.demo.episodes import episode_of
from discreet.service.demo.worlds import World, get_world
from discreet.service.participant.participant import Chain, FileOutbox, Participant, fetch_charter
from discreet.service.protocol import ticket
from discreet.service.protocol.problems import Refusal

_PAUSE = 0.05


class Diary:
    """Who of a part has finished, and how; it survives SIGKILL.

    Args:
        path: of its file.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path

    def entries(self) -> dict[int, str]:
        """User -> what became of it; a line that a kill cut short counts for nothing."""
        text = self._path.read_text("ascii") if self._path.exists() else ""
        whole = text[: text.rfind("\n") + 1].splitlines()
        pairs = (line.split() for line in whole)
        return {int(pair[0]): pair[1] for pair in pairs if len(pair) == 2}

    def write(self, user: int, state: str) -> None:
        """This user has finished."""
        with self._path.open("a", encoding="ascii") as file:
            if file.tell() and not self._path.read_bytes().endswith(b"\n"):
                file.write("\n")
            file.write(f"{user} {state}\n")


def diaries(folder: Path) -> dict[int, str]:
    """What became of the users of all parts."""
    found: dict[int, str] = {}
    for path in (folder / "users").glob("*.diary"):
        found |= Diary(path).entries()
    return found


class Part:
    """Some of the users.

    Args:
        folder: of the demonstration.
        world: where they live.
        seed: of their lives.
        part: number of this part.
        parts: how many there are.
        leave: places of every batch that are left for others.
    """

    def __init__(
        self, folder: Path, world: World, seed: int, part: int, parts: int, leave: int = 0
    ) -> None:
        config = DeviceConfig.read(folder / "device" / "device.toml")
        self._client = Client(config.url)
        charter = fetch_charter(self._client, bytes.fromhex(config.study), rehearsal=True)
        self._chain = Chain(charter, self._client)
        self._tickets = ticket.read(folder / "enroller" / "tickets.txt")
        self._outbox = FileOutbox(folder / "users" / f"outbox-{part}")
        self._diary = Diary(folder / "users" / f"{part}.diary")
        self._world, self._seed, self._leave = world, seed, leave
        self._mine = range(part, len(self._tickets), parts)

    def live(self, most: int) -> Iterator[str]:
        """One user after the other, those with a number below ``most``; what became of each."""
        finished = self._diary.entries()
        for user in self._mine:
            if user < most and user not in finished:
                yield self._one(user)

    def _one(self, user: int) -> str:
        participant = Participant(self._chain, self._client, self._tickets[user], self._outbox)
        rng = np.random.default_rng([self._seed, user])
        while True:
            state = self._attempt(participant, rng)
            if state in ("accepted", "ticketSpent"):
                self._diary.write(user, state)
                return state
            time.sleep(_PAUSE)

    def _attempt(self, participant: Participant, rng: np.random.Generator) -> str:
        try:
            if self._leave and self._reserved():
                return "reserved"
            return participant.attempt(lambda a: episode_of(self._world.mdp, a, rng))
        except UnreachableError:
            return "unreachable"

    def _reserved(self) -> bool:
        totals = self._client.metrics()
        return totals.get("wanted", 0) - totals["received"] <= self._leave


def main(arguments: list[str]) -> None:
    """Live until all users of the part have taken part."""
    folder, world, *numbers = arguments
    seed, part, parts, most, leave = (int(number) for number in numbers)
    for _ in start(Path(folder), get_world(world), (seed, part, parts, leave)).live(most):
        pass


def start(folder: Path, world: World, numbers: tuple[int, int, int, int]) -> Part:
    """The part, as soon as the shuffler answers."""
    seed, part, parts, leave = numbers
    while True:
        try:
            return Part(folder, world, seed, part, parts, leave)
        except (UnreachableError, Refusal):
            time.sleep(_PAUSE)


if __name__ == "__main__":
    main(sys.argv[1:])
