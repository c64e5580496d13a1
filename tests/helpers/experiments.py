"""Small experiments and made-up series for the tests of the lab and the command line."""

import numpy as np

from discreet._settings import to_toml as dumps
from discreet.lab.results import Series
from discreet.lab.spec import parse_experiment

ENVIRONMENT = {"name": "RandomMDP", "parameters": {"states": 2, "actions": 2, "horizon": 2}}
NONE = {"model": "none"}


def experiment_text(*learners, trusts=(NONE,), environment=None, **keys):
    """TOML of an experiment on two states: learners and trust models by name or as tables."""

    def table(row):
        return {"name": row} if isinstance(row, str) else row

    head = {"name": "tiny", "title": "Tiny", "runs": 1, "episodes": [20], **keys}
    return dumps(
        {
            **head,
            "environments": [{**ENVIRONMENT, **(environment or {})}],
            "learners": [table(row) for row in learners or ("psrl",)],
            "trusts": list(trusts),
        }
    )


def experiment(*learners, **keys):
    """The same, read."""
    return parse_experiment(experiment_text(*learners, **keys))


EPISODES = np.array([1, 10, 100, 1000])


def series(trust="none", epsilon=float("inf"), episodes=1000, scale=1.0, **changes):
    """Two runs with regret sqrt(k), of which the second has twice the first."""
    points = EPISODES[episodes >= EPISODES]
    curve = scale * np.sqrt(points)
    notion = {"none": "none", "central": "JDP", "local": "LDP"}[trust]
    facts = {
        "environment": "E",
        "learner": "l",
        "label": "L",
        "constants": "",
        "trust": trust,
        "mechanism": "none" if trust == "none" else "laplace",
        "requested": "auto",
        "calibration": "exact",
        "epsilon": epsilon,
        "delta": 0.0,
        "episodes": episodes,
        "noise": {} if trust == "none" else {"transitions": 10 / epsilon, "rewards": 99.0},
        "guarantee": {"notion": notion, "epsilon": epsilon, "delta": 0.0},
        "signal": [50.0, 20.0, 1.0],
        "settings": {},
        "version": "9.9",
    }
    return Series(
        facts=facts | changes,
        episodes=points,
        regret=np.stack([curve, 2 * curve]),
        uniform=2.0 * points,
        seconds=0.1,
    )


FILES = ("results.parquet", "guarantees.json", "policies.json", "spec.toml", "environment.json")


def same_files(first, second):
    """True if two result folders are the same but for their timings."""
    return all((first / name).read_bytes() == (second / name).read_bytes() for name in FILES)


def without(package):
    """An ``__import__`` for which ``package`` is not installed."""
    import builtins

    real = builtins.__import__

    def importing(name, *rest, **more):
        if name == package:
            raise ImportError(name)
        return real(name, *rest, **more)

    return importing
