"""The learning: the framework, and a folder for each family of learners.

`base` says what a learner is, `settings` what may be set, `registry` who is on the roster; `learn`
runs one and `check` tests it against the rules; `regret` and `result` are what a run leaves.
"""

from discreet._lazy import attach as _attach

_WHERE = {
    "Batch": "discreet.learners.base",
    "BatchLearner": "discreet.learners.base",
    "LearnerReport": "discreet.learners.check",
    "LearnerSpec": "discreet.learners.registry",
    "Problem": "discreet.learners.base",
    "RegretCurve": "discreet.learners.result",
    "Result": "discreet.learners.result",
    "Settings": "discreet.learners.settings",
    "StreamLearner": "discreet.learners.base",
    "StreamSettings": "discreet.learners.settings",
    "check_learner": "discreet.learners.check",
    "get_learner": "discreet.learners.registry",
    "learner_names": "discreet.learners.registry",
    "register": "discreet.learners.registry",
}

__getattr__, __dir__, __all__ = _attach(__name__, _WHERE)
