"""The world: finite MDPs, planning, simulation, environments, the Gymnasium bridge."""

from discreet._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, renamed={"plan": "solve"})
