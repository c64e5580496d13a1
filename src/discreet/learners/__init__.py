"""Learners, one file each, and what they share.

`base` says what a learner is, `settings` what may be set, `registry` which ones there are; `learn`
runs one, `check` tests it against the rules, `result` is what a run leaves; `estimate` and
`pooling` are what released counts say of the model.
"""

from discreet._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, renamed={"Problem": "PublicFacts"})
