"""A batch that flow-ucb asked for and has not been told of yet."""

from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray, JsonObject, Plain
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy


class Request(NamedTuple):
    """A policy for some users, with how likely the model is in each state ``[H, S]``."""

    policy: DeterministicPolicy | StochasticPolicy
    users: int
    occupancy: FloatArray

    def to_dict(self) -> dict[str, Plain]:
        policy = self.policy
        kind, values = (
            ("actions", policy.actions)
            if isinstance(policy, DeterministicPolicy)
            else ("probabilities", policy.probabilities)
        )
        return {
            kind: values.tolist(),
            "users": self.users,
            "occupancy": self.occupancy.tolist(),
        }

    @classmethod
    def from_dict(cls, data: JsonObject) -> "Request":
        policy: DeterministicPolicy | StochasticPolicy
        if "actions" in data:
            policy = DeterministicPolicy(np.array(data["actions"], np.int64))
        else:
            policy = StochasticPolicy(np.array(data["probabilities"]))
        return cls(policy, int(data["users"]), np.array(data["occupancy"]))
