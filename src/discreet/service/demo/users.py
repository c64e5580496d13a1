"""Where simulated users live, and the process in which a part of them does, one after the other.

    python -m discreet.service.demo.users FOLDER WORLD SEED PART PARTS USERS LEAVE

It may be killed at any moment: the outbox knows who has finished, and the one who was under way
sends the same sealed bytes again. Tickets from number USERS on, and LEAVE places of every batch,
are left for people at the page.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet._types import Plain
from discreet.errors import UnknownNameError
from discreet.mdp.environments.registry import make
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.simulation import sample_trajectories
from discreet.mdp.tabular import TabularMDP
from discreet.service.client import Client, UnreachableError
from discreet.service.configs import DeviceConfig
from discreet.service.participant import TAKEN, Chain, Episode, Outbox, Participant, fetch_charter
from discreet.service.protocol import ticket
from discreet.service.protocol.manifest import Announced
from discreet.service.protocol.problems import Refusal

HORIZON = 4
_PAUSE = 0.05


@dataclass(frozen=True)
class World:
    """Where simulated users live.

    Attributes:
        environment: its name in the registry.
        parameters: of the environment.
        purpose: of a study in it, in words for participants.
        states: their names.
        actions: their names.
        steps: their names.
    """

    environment: str
    parameters: dict[str, Any]
    purpose: str
    states: tuple[str, ...]
    actions: tuple[str, ...]
    steps: tuple[str, ...]

    @cached_property
    def mdp(self) -> TabularMDP:
        return make(self.environment, **self.parameters)

    @property
    def start(self) -> list[int]:
        """States in which an episode can begin."""
        return [s for s, chance in enumerate(self.mdp.initial.tolist()) if chance > 0]

    def description(self) -> dict[str, Plain]:
        """What the page needs so that a person can play: chances and rewards, step by step."""
        mdp = self.mdp
        return {
            "name": self.environment,
            "initial": mdp.initial.tolist(),
            "transitions": mdp.transitions.tolist(),
            "rewards": mdp.rewards.tolist(),
            "reward_kind": mdp.reward_kind,
        }


def _charges(capacity: int) -> tuple[str, ...]:
    needs = ("little needed", "much needed")
    return tuple(f"{kwh} kWh stored, {need}" for kwh in range(capacity + 1) for need in needs)


WORLDS = {
    "treatment": World(
        "Treatment",
        {"horizon": HORIZON},
        "Which care for depression helps most, quarter by quarter (a test problem)",
        (
            "ill, nothing tried",
            "ill, one drug failed",
            "ill, two drugs failed",
            "ill, three drugs failed",
            "well again, just now",
            "well for some time",
            "lost to care",
        ),
        ("no drug", "one drug", "a combination"),
        tuple(f"quarter {h + 1}" for h in range(HORIZON)),
    ),
    "energy": World(
        "DemandResponse",
        {"horizon": HORIZON, "capacity": 2},
        "When to charge a home battery and when to use it (a test problem)",
        _charges(2),
        ("charge", "rest", "use"),
        ("1 to 4 o'clock", "4 to 7 o'clock", "7 to 10 o'clock", "10 to 13 o'clock"),
    ),
}
"""By the name a person types."""


def get_world(name: str) -> World:
    """A world by its name, or an error with a suggestion."""
    if name not in WORLDS:
        raise UnknownNameError("environment of the demonstration", name, WORLDS)
    return WORLDS[name]


def episode_of(world: TabularMDP, announced: Announced, rng: np.random.Generator) -> Episode:
    """What one user does in a world under a manifest's policy."""
    policy = DeterministicPolicy(np.array(announced.manifest.policy))
    life = sample_trajectories(world, policy, 1, rng)
    return {
        "states": life.states[0].tolist(),
        "actions": life.actions[0].tolist(),
        "rewards": life.rewards[0].tolist(),
    }


def answered(folder: Path, most: int) -> int:
    """How often users took part, as far as their outboxes know: each ``most`` times at most."""
    owners: Counter[str] = Counter()
    for box in folder.glob("outbox-*"):
        owners.update(Outbox(box).owners())
    return sum(min(times, most) for times in owners.values())


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
        self._client = Client(config.url, ca_file=config.optional(config.ca_file))
        charter = fetch_charter(self._client, bytes.fromhex(config.study), rehearsal=True)
        self._chain = Chain(charter, self._client)
        self._tickets = ticket.read(folder / "enroller" / "tickets.txt")
        self._outbox = Outbox(folder / "users" / f"outbox-{part}")
        self._world, self._seed, self._leave = world, seed, leave
        self._mine = range(part, len(self._tickets), parts)

    def live(self, most: int) -> Iterator[str]:
        """One user after the other, those with a number below ``most``; what became of each.

        If tickets are worth several batches, somebody who was there before comes after each of
        them, whether the shuffler takes them or not.
        """
        for place, user in enumerate(self._mine):
            participant = self._participant(user)
            if user < most and participant.left == self._chain.charter.participations:
                yield self._one(user, participant)
                if self._chain.charter.participations > 1:
                    again = self._mine[place // 2]
                    rng = np.random.default_rng([self._seed, again, place])
                    self._attempt(self._participant(again), rng)

    def _participant(self, user: int) -> Participant:
        return Participant(self._chain, self._client, self._tickets[user], self._outbox)

    def _one(self, user: int, participant: Participant) -> str:
        rng = np.random.default_rng([self._seed, user])
        while True:
            state = self._attempt(participant, rng)
            if state in TAKEN:
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
