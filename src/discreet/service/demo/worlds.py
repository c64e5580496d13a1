"""The environments of demonstrations: shipped ones, small, with names that people can read."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet._plain import Plain
from discreet.errors import UnknownNameError
from discreet.mdp.environments.registry import make
from discreet.mdp.tabular import TabularMDP

HORIZON = 4


@dataclass(frozen=True)
class World:
    """Where simulated users live.

    Attributes:
        environment: its name in the roster.
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
        """The true model."""
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
