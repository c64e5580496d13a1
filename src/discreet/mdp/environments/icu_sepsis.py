"""ICU-Sepsis: the realistic stress test, built by its authors from intensive-care records."""

import contextlib
import io
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from discreet._types import BoolArray
from discreet.errors import MissingExtraError, UnsupportedError
from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import ExposedModel, TabularMDP

if TYPE_CHECKING:
    import gymnasium

_DEATH = 713
"""Where inadmissible actions lead if the environment's strategy is ``terminate``."""


def ICUSepsis(*, horizon: int = 20, relabel: int | None = None) -> TabularMDP:
    """Treat sepsis in intensive care: 716 states, 25 actions (extra `health`).

    Choudhary, Gupta and Thomas (2024), "ICU-Sepsis: A Benchmark MDP Built from Real Medical Data".
    An episode pays 1 if the patient survives within ``horizon`` steps of four hours. Actions that
    the records do not support in a state do what the authors' environment does with them: a random
    admissible action is taken (`discreet.mdp.admissible_actions` tells which are).

    Args:
        horizon: steps per episode; the original has no fixed length.
        relabel: a seed to rename the actions at random in each state.
    """
    _import_quietly()
    from discreet.mdp.gymnasium import from_gymnasium

    mdp = from_gymnasium("Sepsis/ICU-Sepsis-v2", horizon, name="ICU-Sepsis")
    return relabel_actions(mdp, relabel)


def _import_quietly() -> None:
    """Importing the package registers its ids, and prints a notice about its old dependency."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            import icu_sepsis  # noqa: F401
        except ImportError:
            raise MissingExtraError("icu-sepsis", "health") from None


def is_sepsis(inner: "gymnasium.Env") -> bool:
    """True if an (unwrapped) environment exposes the arrays of ICU-Sepsis."""
    dynamics = getattr(inner, "dynamics", None)
    return isinstance(dynamics, Mapping) and {"tx_mat", "r_mat", "d_0"} <= set(dynamics)


def read_sepsis(inner: "gymnasium.Env") -> ExposedModel:
    """The model of ICU-Sepsis; the strategy for inadmissible actions is the environment's own."""
    dynamics = inner.dynamics
    transitions = np.array(dynamics["tx_mat"], np.float64)
    rewards = np.asarray(dynamics["r_mat"], np.float64)
    inadmissible = ~admissible_actions(inner)
    if getattr(inner, "_inadmissible_action_strategy", "mean") == "terminate":
        transitions[inadmissible] = np.eye(1, len(transitions), _DEATH)[0]
    else:
        for state in np.flatnonzero(inadmissible.any(axis=1)):
            allowed = transitions[state, ~inadmissible[state]]
            transitions[state, inadmissible[state]] = allowed.mean(axis=0)
    means = np.einsum("sat,sat->sa", transitions, rewards)
    possible = rewards[transitions > 0]
    low, high = min(float(possible.min()), 0.0), max(float(possible.max()), 0.0)
    return ExposedModel(transitions, means, dynamics["d_0"], low, high, fixed_rewards=False)


def admissible_actions(env: "gymnasium.Env") -> BoolArray:
    """``bool[S, A]``: the actions that ICU-Sepsis admits in each state."""
    dynamics = getattr(env.unwrapped, "dynamics", None)
    if not isinstance(dynamics, Mapping) or "admissible_actions" not in dynamics:
        raise UnsupportedError(
            f"{type(env.unwrapped).__name__} does not list admissible actions; all are admissible."
        )
    mask = np.zeros(dynamics["tx_mat"].shape[:2], np.bool_)
    for state, actions in enumerate(dynamics["admissible_actions"]):
        mask[state, list(actions)] = True
    return mask
