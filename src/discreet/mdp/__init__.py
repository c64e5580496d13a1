"""The world: finite MDPs, planning, simulation, environments, the Gymnasium bridge."""

from discreet._lazy import attach as _attach

_WHERE = {
    "BlendedLosses": "discreet.mdp.losses",
    "Counts": "discreet.mdp.counts",
    "DeterministicPolicy": "discreet.mdp.policies",
    "EffectiveSupport": "discreet.mdp.layered",
    "LayeredMDP": "discreet.mdp.layered",
    "LossSequence": "discreet.mdp.losses",
    "MixturePolicy": "discreet.mdp.policies",
    "Policy": "discreet.mdp.policies",
    "RandomMDP": "discreet.mdp.environments",
    "RecordedLosses": "discreet.mdp.losses",
    "RegretMeter": "discreet.mdp.planning",
    "RiverSwim": "discreet.mdp.environments",
    "Shape": "discreet.mdp.shape",
    "Solution": "discreet.mdp.planning",
    "StochasticPolicy": "discreet.mdp.policies",
    "TabularMDP": "discreet.mdp.tabular",
    "Trajectories": "discreet.mdp.trajectories",
    "as_policy": "discreet.mdp.policies",
    "best_response": "discreet.mdp.planning",
    "drifting_losses": "discreet.mdp.losses",
    "effective_support": "discreet.mdp.layered",
    "environments": "discreet.mdp.environments",
    "evaluate": "discreet.mdp.planning",
    "make": "discreet.mdp.environments.registry",
    "occupancy": "discreet.mdp.planning",
    "plan": "discreet.mdp.planning",
    "sample_counts": "discreet.mdp.simulation",
    "sample_trajectories": "discreet.mdp.simulation",
    "state_values": "discreet.mdp.planning",
    "stochastic_losses": "discreet.mdp.losses",
    "switching_losses": "discreet.mdp.losses",
    "tabular_losses": "discreet.mdp.layered",
    "uniform_policy": "discreet.mdp.policies",
}

__getattr__, __dir__ = _attach(__name__, _WHERE)
