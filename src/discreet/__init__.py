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
    "check_learner": "discreet.learners.check",
    "check_mdp": "discreet.mdp.check",
    "check_mechanism": "discreet.privacy.auditing.conformance",
    "check_study": "discreet.study.check",
    "device": "discreet.device",
    "errors": "discreet.errors",
    "fit": "discreet.offline.fit",
    "from_gymnasium": "discreet.mdp.gymnasium",
    "learn": "discreet.learners.learn",
    "lab": "discreet.lab",
    "learners": "discreet.learners",
    "load": "discreet.lab.results",
    "make": "discreet.mdp.environments.registry",
    "mdp": "discreet.mdp",
    "privacy": "discreet.privacy",
    "resume": "discreet.study.study",
    "start": "discreet.study.study",
    "study": "discreet.study",
    "to_gymnasium": "discreet.mdp.gymnasium",
}

__getattr__, __dir__, __all__ = _attach(__name__, _WHERE)
