"""What simulated users do: one episode of a known world."""

import numpy as np

from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.simulation import sample_trajectories
from discreet.mdp.tabular import TabularMDP
from discreet.service.participant.participant import Episode
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
