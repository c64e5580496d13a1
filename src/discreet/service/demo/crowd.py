"""A crowd of simulated users: each plays one episode of a known world and sends one report."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.simulation import sample_trajectories
from discreet.mdp.tabular import TabularMDP
from discreet.service.client import Client, UnreachableError
from discreet.service.participant.participant import Chain, Episode, MemoryOutbox, Participant
from discreet.service.protocol.manifest import Announced


def episode_of(world: TabularMDP, announced: Announced, rng: np.random.Generator) -> Episode:
    """What one user does in a world under a manifest's policy."""
    policy = DeterministicPolicy(np.array(announced.manifest.policy))
    life = sample_trajectories(world, policy, 1, rng)
    return {
        "states": life.states[0].tolist(),
        "actions": life.actions[0].tolist(),
        "rewards": life.rewards[0].tolist(),
    }


class Crowd:
    """Users of a world.

    Args:
        world: where they live.
        chain: of the study's manifests; they share it.
        client: to the shuffler.
        rng: of their lives; noise is drawn from the operating system all the same.
        pause: waits for so many seconds.
    """

    def __init__(
        self,
        world: TabularMDP,
        chain: Chain,
        client: Client,
        rng: np.random.Generator,
        pause: Callable[[float], object],
    ) -> None:
        self._world, self._chain, self._client = world, chain, client
        self._rng, self._pause = rng, pause

    def send(self, tickets: Iterable[bytes], until: Callable[[], bool]) -> Iterator[str]:
        """One user after the other takes part; what became of each.

        Args:
            tickets: one per user.
            until: asked while a user waits; true ends it.
        """
        for ticket in tickets:
            user = Participant(self._chain, self._client, ticket, MemoryOutbox())
            state = self._insist(user, until)
            if state == "given up":
                return
            yield state

    def _insist(self, user: Participant, until: Callable[[], bool]) -> str:
        while not until():
            try:
                state = user.attempt(lambda a: episode_of(self._world, a, self._rng))
            except UnreachableError:
                state = "unreachable"
            if state in ("accepted", "ticketSpent"):
                return state
            self._pause(0.05)
        return "given up"
