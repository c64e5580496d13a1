"""The learning: the framework, and a folder for each family of learners.

`base` says what a learner is, `settings` what may be set, `registry` who is on the roster; `learn`
runs one and `check` tests it against the rules; `regret` and `result` are what a run leaves.
"""

from discreet._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__)
