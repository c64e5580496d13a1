"""Environments that are not on the roster: a file of arrays, or a Gymnasium id of another package.

`make` takes their names like any other: ``make("model.npz")``, ``make("FrozenLake-v1",
horizon=20)``.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp.tabular import TabularMDP

_ARRAYS = ("transitions", "rewards", "initial", "horizon", "reward_kind")


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


def from_file(name: str, **parameters: Any) -> TabularMDP:
    """A model from the arrays of an .npz file; parameters add what it does not hold.

    Args:
        name: the file, with the arrays ``transitions`` and ``rewards`` (``initial``, ``horizon``).
        parameters: ``horizon`` and the other arrays, instead of the file's.
    """
    path = Path(name)
    if not path.is_file():
        raise InvalidInputError(f"Expected a file of arrays, but {path} does not exist.")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise InvalidInputError(f"Cannot read {path} as .npz: {error}") from None
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


def from_id(name: str, *, horizon: int | None = None, **parameters: Any) -> TabularMDP:
    """The model behind a Gymnasium environment that exposes it.

    Args:
        name: its id.
        horizon: steps per episode, which Gymnasium does not say.
        parameters: keyword arguments of the environment.
    """
    import gymnasium

    from discreet.mdp.gymnasium import from_gymnasium

    if horizon is None:
        raise InvalidInputError(
            f"Expected a horizon for {name}, whose episodes have no set length: --horizon 20, "
            f"--set env.horizon=20, or parameters = {{horizon = 20}} in a file."
        )
    try:
        env = gymnasium.make(name, **parameters)
    except (gymnasium.error.Error, TypeError) as error:
        raise InvalidInputError(f"Gymnasium cannot make {name!r}: {error}") from None
    return from_gymnasium(env, horizon)
