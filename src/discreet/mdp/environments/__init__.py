"""Environments: each a function that returns a `TabularMDP`."""

from discreet._lazy import attach as _attach
from discreet.mdp.environments.registry import MODULES as _MODULES

__getattr__, __dir__, __all__ = _attach(
    __name__, {**_MODULES, "register": "discreet.mdp.environments.registry"}
)
