"""Simulation, planning and import time."""

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks._measure import row


def run(quick: bool) -> list[dict]:
    """Count-level simulation, value iteration, import."""
    repeats = 3 if quick else 9
    return [
        _more_users(repeats),
        _counts_against_trajectories(repeats),
        _value_iteration(repeats),
        _import(repeats),
    ]


def _times(repeats: int, *functions: Callable[[], object]) -> list[float]:
    """Best seconds of each, measured in turns so that all meet the same load of the machine."""
    best = [np.inf] * len(functions)
    for function in functions:
        function()  # compilation and caches
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def _more_users(repeats: int) -> dict:
    from discreet.mdp import RiverSwim, sample_counts, uniform_policy

    mdp = RiverSwim(states=4, horizon=6)
    policy, rng = uniform_policy(mdp.shape), np.random.default_rng(0)

    def draw(users: int) -> Callable[[], object]:
        return lambda: [sample_counts(mdp, policy, users, rng) for _ in range(100)]

    many, few = _times(repeats, draw(10**12), draw(10**6))
    return row(
        "sample_counts, 10^12 users",
        many * 1e4,
        few * 1e4,
        "itself with 10^6 users",
        "us per batch",
    )


def _counts_against_trajectories(repeats: int) -> dict:
    from discreet.mdp import RiverSwim, sample_counts, sample_trajectories, uniform_policy

    mdp = RiverSwim(states=4, horizon=6)
    policy, rng, users = uniform_policy(mdp.shape), np.random.default_rng(0), 10**5
    ours, peer = _times(
        repeats,
        lambda: sample_counts(mdp, policy, users, rng),
        lambda: sample_trajectories(mdp, policy, users, rng).counts(mdp.shape, rng),
    )
    name = "every user simulated (compiled)"
    return row("sample_counts, 10^5 users", ours * 1e3, peer * 1e3, name, "ms per batch")


def _value_iteration(repeats: int) -> dict:
    from discreet.errors import MissingExtraError
    from discreet.mdp import make, plan

    try:
        mdp, what = make("ICU-Sepsis", horizon=20), "ICU-Sepsis"
    except MissingExtraError:
        mdp, what = _sepsis_like(), "random, 12% dense"
    moves, rewards = np.array(mdp.transitions[0]), np.array(mdp.rewards[0])

    def numpy_loop() -> float:
        values = np.zeros(mdp.shape.states)
        for _ in range(mdp.horizon):
            values = (rewards + moves @ values).max(axis=1)
        return float(mdp.initial @ values)

    if abs(plan(mdp).value - numpy_loop()) > 1e-9:
        raise RuntimeError("both must find the same value")
    ours, peer = _times(repeats, lambda: plan(mdp), numpy_loop)
    task = f"value iteration, S=716 A=25 H=20 ({what})"
    return row(task, ours * 1e3, peer * 1e3, "NumPy loop (BLAS)", "ms")


def _sepsis_like():
    from discreet.mdp import TabularMDP

    rng = np.random.default_rng(0)
    rows = rng.random((716, 25, 716)) * (rng.random((716, 25, 716)) < 0.12)
    rows[..., 0] += 1e-3
    rows /= rows.sum(axis=-1, keepdims=True)
    return TabularMDP(transitions=rows, rewards=rng.random((716, 25)), horizon=20)


def _import(repeats: int) -> dict:
    def fresh(module: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    ours, peer, nothing = _times(repeats, fresh("discreet"), fresh("numpy"), fresh("sys"))
    ours, peer = max(ours - nothing, 1e-4), max(peer - nothing, 1e-4)
    return row("import discreet", ours * 1e3, peer * 1e3, "import numpy", "ms, without Python")


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
