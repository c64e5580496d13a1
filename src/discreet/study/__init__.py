"""A study's life: a learner on real people's episodes, for weeks, in one file."""

from discreet._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__)
