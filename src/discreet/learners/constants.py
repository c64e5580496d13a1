"""The settings that decide everything: printed constants and practical ones, in one table.

``constants="theory"`` is the printed formula. ``constants="practical"`` is one fixed set of
multipliers per learner, chosen by ``tools/choose_constants.py`` on problems that are *not* reported
(random MDPs, chains, grids) and used for all trust models, epsilons and environments alike.

- ``bonus_scale`` multiplies the statistical terms of the bonus;
- ``privacy_scale`` multiplies the terms that pay for noise;
- ``error_scale`` multiplies the noise bound E inside the estimates;
- ``terms`` lists the terms of the bonus that are switched on;
- ``stationary``: counts pooled over the steps (None: if the MDP is stationary);
- ``clip``: Q values never grow over the episodes; ``cap``: values are at most H, or at most the
  number of remaining steps; ``failure``: the probability with which the theory may fail.
"""

from typing import Any

from discreet import _validate
from discreet.errors import InvalidInputError, UnknownNameError

TERMS = ("variance", "reward", "privacy", "correction")

_THEORY = {
    "bonus_scale": 1.0,
    "privacy_scale": 1.0,
    "error_scale": 1.0,
    "failure": 0.1,
    "stationary": False,
}

CONSTANTS: dict[str, dict[str, dict[str, Any]]] = {
    "ucbvi": {
        "theory": {
            "bonus": "bernstein",
            "bonus_scale": 1.0,
            "terms": ("variance", "reward", "linear", "correction"),
            "clip": True,
            "cap": "horizon",
            "failure": 0.1,
            "stationary": False,
        },
        "practical": {
            "bonus_scale": 0.01,
            "terms": ("variance", "reward", "linear"),
            "clip": False,
            "cap": "remaining",
        },
    },
    "dp-ucbvi": {
        "theory": {**_THEORY, "terms": TERMS, "clip": True, "cap": "horizon"},
        "practical": {
            "bonus_scale": 0.1,
            "privacy_scale": 2e-5,
            "error_scale": 0.2,
            "terms": ("variance", "reward", "privacy"),
            "clip": False,
            "cap": "remaining",
        },
    },
    "private-ucb-vi": {
        "theory": {**_THEORY, "clip": False, "cap": "remaining"},
        "practical": {"bonus_scale": 0.05, "privacy_scale": 0.01, "error_scale": 0.2},
    },
    "private-ucb-po": {
        "theory": {**_THEORY, "clip": False, "cap": "remaining", "rate_scale": 1.0},
        "practical": {
            "bonus_scale": 0.02,
            "privacy_scale": 0.003,
            "error_scale": 0.2,
            "rate_scale": 20.0,
        },
    },
    "pucb": {
        "theory": {**_THEORY, "clip": False, "cap": "horizon"},
        "practical": {
            "bonus_scale": 0.05,
            "privacy_scale": 0.01,
            "error_scale": 0.05,
            "cap": "remaining",
        },
    },
    "ldp-obi": {
        "theory": {**_THEORY, "alpha": 2.0, "stationary": None},
        "practical": {"bonus_scale": 0.02, "privacy_scale": 0.1, "error_scale": 0.01},
    },
    "psrl": {"theory": {"prior": 1.0, "stationary": False}, "practical": {}},
    "ldp-psrl": {
        "theory": {"prior": 1.0, "privacy_scale": 0.0, "stationary": None},
        "practical": {"privacy_scale": 0.1},
    },
}
"""Learner -> theory: every setting; practical: what differs from theory."""


def resolve(learner: str, settings: dict[str, Any]) -> dict[str, Any]:
    """All settings of a learner: its constants, overridden by what was asked for.

    >>> resolve("dp-ucbvi", {"constants": "theory", "clip": False})["clip"]
    False
    """
    asked = dict(settings)
    constants = asked.pop("constants", "practical")
    _validate.choice(("theory", "practical"), constants=constants)
    table = CONSTANTS[learner]
    known = table["theory"]
    chosen = known | (table["practical"] if constants == "practical" else {})
    for name, value in asked.items():
        if name not in known:
            raise UnknownNameError(f"setting of {learner!r}", name, ["constants", *known])
        chosen[name] = value
    _check(chosen, known)
    return {"constants": constants, **chosen}


def _check(chosen: dict[str, Any], known: dict[str, Any]) -> None:
    for name in ("bonus_scale", "privacy_scale", "error_scale", "rate_scale"):
        if name in chosen:
            _validate.real(**{name: chosen[name]})
            if chosen[name] < 0:
                raise InvalidInputError(f"Expected {name} >= 0, got {name}={chosen[name]!r}.")
    if "failure" in chosen:
        _validate.positive(failure=chosen["failure"])
        _validate.probability(failure=chosen["failure"])
    for name in ("prior", "alpha"):
        if name in chosen:
            _validate.positive(**{name: chosen[name]})
    if "cap" in chosen:
        _validate.choice(("horizon", "remaining"), cap=chosen["cap"])
    for term in chosen.get("terms", ()):
        _validate.choice(tuple(known["terms"]), term=term)
    for name in ("clip", "stationary"):
        valid = name not in chosen or isinstance(chosen[name], bool)
        if not valid and not (chosen[name] is None and known[name] is None):
            raise InvalidInputError(
                f"Expected {name} to be True or False, got {name}={chosen[name]!r}."
            )
