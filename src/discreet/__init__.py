"""discreet: reinforcement learning from people's data, without collecting it.

Names load when they are first used, so ``import discreet`` is light.
"""

from discreet._lazy import attach as _attach

__version__ = "0.1.0"

_WHERE = {
    "Central": "discreet.privacy.trust",
    "Guarantee": "discreet.privacy.guarantee",
    "Local": "discreet.privacy.trust",
    "NoPrivacy": "discreet.privacy.trust",
    "Shuffle": "discreet.privacy.trust",
    "TabularMDP": "discreet.mdp.tabular",
    "errors": "discreet.errors",
    "learn": "discreet.learners.learn",
    "lab": "discreet.lab",
    "learners": "discreet.learners",
    "load": "discreet.lab.results",
    "make": "discreet.mdp.environments.registry",
    "mdp": "discreet.mdp",
    "privacy": "discreet.privacy",
}

__all__ = [*_WHERE]

__getattr__, __dir__ = _attach(__name__, _WHERE)
