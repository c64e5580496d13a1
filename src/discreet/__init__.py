"""Reinforcement learning from people's data, under a differential-privacy guarantee that is true.

Names load when they are first used, so ``import discreet`` is light.
"""

from discreet._lazy import attach as _attach

__version__ = "0.2.0"
_RENAMED = {"start": "start_study", "resume": "open_study", "load": "load_results"}

__getattr__, __dir__, __all__ = _attach(__name__, renamed=_RENAMED)
