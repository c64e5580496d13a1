"""The registry of environments.

A new environment of ours is one file and one line in ``MODULES``; one of yours is registered with
`register`, or is an entry point ``discreet.environments`` of a package. `make` also takes the path
of an .npz file and a Gymnasium id.
"""

import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import _registry
from discreet.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from discreet._types import Plain
    from discreet.mdp.simulation import Simulator
    from discreet.mdp.tabular import TabularMDP

MODULES: dict[str, str] = {
    "DemandResponse": "discreet.mdp.environments.applied",
    "DoubleChain": "discreet.mdp.environments.synthetic",
    "GridWorld": "discreet.mdp.environments.synthetic",
    "LowerBound": "discreet.mdp.environments.synthetic",
    "RandomMDP": "discreet.mdp.environments.synthetic",
    "Recommender": "discreet.mdp.environments.applied",
    "RiverSwim": "discreet.mdp.environments.synthetic",
    "SixArms": "discreet.mdp.environments.synthetic",
    "Treatment": "discreet.mdp.environments.applied",
}
"""Environment name -> module that defines a function of that name."""

OPTIONAL: dict[str, str] = {
    "ICU-Sepsis": "discreet.mdp.environments.applied",
}
"""Environments that need an extra; hyphens in a name are left out in its function's."""


@dataclass(frozen=True)
class EnvironmentSpec:
    """One line of the registry; the keyword arguments of ``build`` are the parameters."""

    name: str
    summary: str
    build: "Callable[..., TabularMDP | Simulator]"

    @property
    def parameters(self) -> "dict[str, Plain]":
        """Parameter names and their defaults; actions can be renamed (``relabel``) in all."""
        found = self._signature.items()
        own = {name: p.default for name, p in found if p.kind is not p.VAR_KEYWORD}
        return own | ({} if "relabel" in own else {"relabel": None})

    @property
    def open(self) -> bool:
        """True if it takes parameters that it does not name."""
        return any(p.kind is p.VAR_KEYWORD for p in self._signature.values())

    @property
    def relabelled_by_us(self) -> bool:
        """True if its actions are renamed by our own permutation, which can be undone."""
        return self.name in {**MODULES, **OPTIONAL} or "relabel" not in self._signature

    @property
    def _signature(self) -> "dict[str, inspect.Parameter]":
        return dict(inspect.signature(self.build).parameters)


_ARRAYS = ("transitions", "rewards", "initial", "horizon", "reward_kind")
"""What an .npz file may hold."""
_REGISTERED: dict[str, EnvironmentSpec] = {}
"""Environments that a user registered in this process."""


def register(name: str, build: "Callable[..., TabularMDP]") -> None:
    """Add an environment of your own to the registry of this process.

    Args:
        name: what `make` will take.
        build: returns a `TabularMDP`; its keyword arguments are the environment's parameters, the
            first line of its docstring is its summary.

    Raises:
        InvalidInputError: discreet ships an environment of this name.
    """
    if name.lower() in {known.lower() for known in (*MODULES, *OPTIONAL)}:
        raise InvalidInputError(
            f"Expected a new environment name, got {name!r}, which discreet ships; choose another."
        )
    _REGISTERED[name] = _described(name, build)


def environment_names(*, optional: bool = False) -> list[str]:
    """All registered names; those that need an extra only if asked for."""
    others = {*_REGISTERED, *_registry.entry_points("environments")}
    return sorted([*MODULES, *others, *(OPTIONAL if optional else ())])


def listing(name: str) -> EnvironmentSpec:
    """What `discreet list` says of one; one broken plug-in does not hide all others."""
    try:
        return get_environment(name)
    except InvalidInputError:
        return EnvironmentSpec(name, "(not available)", lambda *, relabel=None: relabel)


def get_environment(name: str) -> EnvironmentSpec:
    """The specification of one environment, or an error with a suggestion.

    Args:
        name: of the registry (in any case), the path of an .npz file, or a Gymnasium id.
    """
    known = {known.lower(): known for known in environment_names(optional=True)}
    proper = known.get(str(name).lower().removeprefix("discreet/").removesuffix("-v0"))
    if proper is None and is_file(str(name)):
        return EnvironmentSpec(str(name), "a file", functools.partial(from_file, name))
    if proper is None and is_gymnasium_id(str(name)):
        return EnvironmentSpec(str(name), "Gymnasium", functools.partial(from_id, name))
    if proper is None:
        raise UnknownNameError("environment", str(name), environment_names(optional=True))
    if proper in _REGISTERED:
        return _REGISTERED[proper]
    module = {**MODULES, **OPTIONAL}.get(proper)
    if module is None:
        return _described(proper, _registry.load("environments", proper))
    return _described(proper, getattr(importlib.import_module(module), proper.replace("-", "")))


def _described(name: str, build: "Callable[..., TabularMDP]") -> EnvironmentSpec:
    return EnvironmentSpec(name, (inspect.getdoc(build) or "").split("\n")[0], build)


def make(name: str, **parameters: Any) -> "TabularMDP":
    """Build a model by name, from an .npz file, or from a Gymnasium id.

    >>> make("riverswim", states=5, horizon=8)
    TabularMDP('RiverSwim', states=5, actions=2, horizon=8, stationary)
    >>> make("FrozenLake-v1", horizon=20)
    TabularMDP('FrozenLake-v1', states=16, actions=4, horizon=20, stationary)

    Args:
        name: of the registry (`discreet list`), the path of an .npz file, or a Gymnasium id.
        parameters: of the environment; ``relabel`` is a seed to rename the actions at random.
    """
    from discreet.mdp.tabular import TabularMDP

    made = make_world(name, **parameters)
    if not isinstance(made, TabularMDP):
        raise InvalidInputError(
            f"Expected environment {name!r} to be a TabularMDP, got {made!r}; what has no model is "
            f"played: learn(discreet.mdp.simulator({name!r}, ...), ...)."
        )
    return made


def make_world(name: str, **parameters: Any) -> "TabularMDP | Simulator":
    """The same, or what can only be played: a Gymnasium id with ``reward_range``."""
    from discreet.mdp.simulation import Simulator
    from discreet.mdp.tabular import TabularMDP, relabel_actions

    spec = get_environment(name)
    for parameter in parameters:
        if parameter not in spec.parameters and not spec.open:
            raise UnknownNameError(f"parameter of {spec.name}", parameter, spec.parameters)
    try:
        if "relabel" in spec._signature or "relabel" not in parameters:
            made = spec.build(**parameters)
        else:  # it knows nothing of relabelling: its actions are renamed afterwards
            rest = {key: value for key, value in parameters.items() if key != "relabel"}
            plain, seed = spec.build(**rest), parameters["relabel"]
            if isinstance(plain, Simulator):
                return plain.relabelled(seed)
            made = relabel_actions(plain, seed)
    except TypeError as error:
        raise InvalidInputError(f"{spec.name} cannot be built: {error}.") from error
    if not isinstance(made, TabularMDP | Simulator):
        raise InvalidInputError(
            f"Expected environment {spec.name!r} to be a TabularMDP, got {made!r}."
        )
    return made


def is_file(name: str) -> bool:
    """True for the path of an .npz file."""
    return name.endswith(".npz")


def is_gymnasium_id(name: str) -> bool:
    """True for a Gymnasium id of another package, such as FrozenLake-v1.

    >>> [is_gymnasium_id(name) for name in ("FrozenLake-v1", "discreet/RiverSwim-v0", "RiverSwim")]
    [True, False, False]
    """
    stem, _, version = name.rpartition("-v")
    return bool(stem) and version.isdigit() and not name.lower().startswith("discreet/")


def from_file(name: str, **parameters: Any) -> "TabularMDP":
    """A model from the arrays of an .npz file; parameters add what it does not hold."""
    import numpy as np

    from discreet.mdp.tabular import TabularMDP

    path = Path(name)
    if not path.is_file():
        raise InvalidInputError(f"Expected a file of arrays, but {path} does not exist.")
    wrong = InvalidInputError(
        f"Expected {path} to be an .npz file of real numbers, got one that is damaged or of "
        f"another kind; write it with numpy.savez(path, transitions=..., rewards=...)."
    )
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (MemoryError, PermissionError):
        raise
    except Exception:  # a damaged archive may break the reader anywhere
        raise wrong from None
    if any(getattr(array, "dtype", np.dtype(object)).kind in "cO" for array in arrays.values()):
        raise wrong
    given = {key: array.item() if array.ndim == 0 else array for key, array in arrays.items()}
    given.update(parameters)
    for key in given:
        if key not in _ARRAYS:
            raise UnknownNameError(f"array in {path.name}", key, _ARRAYS)
    for key in ("transitions", "rewards"):
        if key not in given:
            raise InvalidInputError(f"Expected {path} to hold an array {key!r}.")
    return TabularMDP(name=path.stem, **given)


def creator(name: str) -> object | None:
    """The class or function behind a Gymnasium id; None if it cannot be had (building says why)."""
    try:
        import gymnasium
        from gymnasium.envs.registration import load_env_creator
    except ImportError:
        return None
    try:
        entry: object = gymnasium.spec(name).entry_point
        made: object = load_env_creator(entry) if isinstance(entry, str) else entry
    except (gymnasium.error.Error, ImportError, AttributeError):
        return None
    return made


def from_id(
    name: str, *, horizon: int | None = None, reward_range: Any = None, **parameters: Any
) -> "TabularMDP | Simulator":
    """The model behind a Gymnasium id, or, with a range of rewards, the environment to be played.

    Other parameters are those of the environment.
    """
    import gymnasium

    from discreet.mdp.gymnasium import from_gymnasium, simulator

    if horizon is None:
        raise InvalidInputError(
            f"Expected a horizon for {name}, whose episodes have no set length: --horizon 20, "
            f"--set env.horizon=20, or parameters = {{horizon = 20}} in a file."
        )
    try:
        if reward_range is not None:
            return simulator(name, horizon, reward_range=reward_range, **parameters)
        env = gymnasium.make(name, **parameters)
    except (gymnasium.error.Error, TypeError) as error:
        raise InvalidInputError(f"Gymnasium cannot make {name!r}: {error}") from None
    return from_gymnasium(env, horizon)
