"""The roster of environments. A new environment is one file and one line in ``MODULES``."""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp.tabular import TabularMDP

MODULES: dict[str, str] = {
    "DemandResponse": "discreet.mdp.environments.demand_response",
    "DoubleChain": "discreet.mdp.environments.double_chain",
    "GridWorld": "discreet.mdp.environments.grid_world",
    "LowerBound": "discreet.mdp.environments.lower_bound",
    "RandomMDP": "discreet.mdp.environments.random_mdp",
    "Recommender": "discreet.mdp.environments.recommender",
    "RiverSwim": "discreet.mdp.environments.river_swim",
    "SixArms": "discreet.mdp.environments.six_arms",
    "Treatment": "discreet.mdp.environments.treatment",
}
"""Environment name -> module that defines a function of that name."""

OPTIONAL: dict[str, str] = {
    "ICU-Sepsis": "discreet.mdp.environments.icu_sepsis",
}
"""Environments that need an extra; hyphens in a name are left out in its function's."""


@dataclass(frozen=True)
class EnvironmentSpec:
    """One line of the roster.

    Attributes:
        name: what `make` takes (in any case).
        summary: one line for `discreet list`.
        build: the function; its keyword arguments are the environment's parameters.
    """

    name: str
    summary: str
    build: Callable[..., TabularMDP]

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameter names and their defaults."""
        signature = inspect.signature(self.build)
        return {name: parameter.default for name, parameter in signature.parameters.items()}


def environment_names(*, optional: bool = False) -> list[str]:
    """All registered names; those that need an extra only if asked for."""
    return sorted([*MODULES, *(OPTIONAL if optional else ())])


def get_environment(name: str) -> EnvironmentSpec:
    """The specification of one environment, or an error with a suggestion."""
    modules = {**MODULES, **OPTIONAL}
    known = {known.lower(): known for known in modules}
    plain = str(name).lower().removeprefix("discreet/").removesuffix("-v0")
    if plain not in known:
        raise UnknownNameError("environment", str(name), modules)
    proper = known[plain]
    build = getattr(importlib.import_module(modules[proper]), proper.replace("-", ""))
    return EnvironmentSpec(proper, (inspect.getdoc(build) or "").split("\n")[0], build)


def make(name: str, **parameters: Any) -> TabularMDP:
    """Build an environment by name.

    >>> make("riverswim", states=5, horizon=8)
    TabularMDP('RiverSwim', states=5, actions=2, horizon=8, stationary)
    """
    spec = get_environment(name)
    for parameter in parameters:
        if parameter not in spec.parameters:
            raise UnknownNameError(f"parameter of {spec.name}", parameter, spec.parameters)
    try:
        return spec.build(**parameters)
    except TypeError as error:
        raise InvalidInputError(f"{spec.name} cannot be built: {error}.") from error
