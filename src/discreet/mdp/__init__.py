"""The world: finite MDPs, planning, simulation, environments, the Gymnasium bridge."""

from discreet._lazy import attach as _attach

_WHERE = {
    "Counts": "discreet.mdp.counts",
    "DeterministicPolicy": "discreet.mdp.policies",
    "MixturePolicy": "discreet.mdp.policies",
    "Policy": "discreet.mdp.policies",
    "RandomMDP": "discreet.mdp.environments",
    "RegretMeter": "discreet.mdp.planning",
    "RiverSwim": "discreet.mdp.environments",
    "Shape": "discreet.mdp.shape",
    "Solution": "discreet.mdp.planning",
    "StochasticPolicy": "discreet.mdp.policies",
    "TabularMDP": "discreet.mdp.tabular",
    "Trajectories": "discreet.mdp.trajectories",
    "as_policy": "discreet.mdp.policies",
    "best_response": "discreet.mdp.planning",
    "environments": "discreet.mdp.environments",
    "evaluate": "discreet.mdp.planning",
    "make": "discreet.mdp.environments.registry",
    "occupancy": "discreet.mdp.planning",
    "plan": "discreet.mdp.planning",
    "sample_counts": "discreet.mdp.simulation",
    "sample_trajectories": "discreet.mdp.simulation",
    "state_values": "discreet.mdp.planning",
    "uniform_policy": "discreet.mdp.policies",
}

__getattr__, __dir__ = _attach(__name__, _WHERE)
