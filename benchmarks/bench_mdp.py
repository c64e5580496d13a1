"""Simulation, planning and import time."""

import subprocess
import sys
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Peer, compare, package, row, spent
from discreet.errors import MissingExtraError
from discreet.mdp import (
    RiverSwim,
    TabularMDP,
    make,
    occupancy,
    sample_counts,
    sample_trajectories,
    solve,
    state_values,
    uniform_policy,
)

DENSE = ((50, 5), (200, 8), (400, 8))
HORIZON = 20


def run(quick: bool) -> list[dict]:
    """Count-level simulation, value iteration, import."""
    repeats = 5 if quick else 15
    return [
        _more_users(repeats),
        _counts_against_trajectories(repeats),
        *(_dense_values(states, actions, repeats) for states, actions in DENSE),
        *_dense_policy(repeats),
        _sepsis(repeats),
        _import(repeats),
    ]


def _more_users(repeats: int) -> dict:
    mdp = RiverSwim(states=4, horizon=6)
    policy, rng = uniform_policy(mdp.shape), np.random.default_rng(0)
    return compare(
        "sample_counts, 10^12 users",
        lambda: sample_counts(mdp, policy, 10**12, rng),
        lambda: sample_counts(mdp, policy, 10**6, rng),
        Peer("itself with 10^6 users", kind="ours"),
        "us per batch",
        repeats=repeats,
        per=(1e6, 1e6),
    )


def _counts_against_trajectories(repeats: int) -> dict:
    mdp = RiverSwim(states=4, horizon=6)
    policy, rng, users = uniform_policy(mdp.shape), np.random.default_rng(0), 10**5
    return compare(
        "sample_counts, 10^5 users",
        lambda: sample_counts(mdp, policy, users, rng),
        lambda: sample_trajectories(mdp, policy, users, rng).counts(mdp.shape, rng),
        Peer("every user simulated (compiled)", kind="ours"),
        "ms per batch",
        repeats=repeats,
        per=(1e3, 1e3),
    )


def _dense_values(states: int, actions: int, repeats: int) -> dict:
    """One stationary problem in double precision, as many backups, one thread, both all values."""
    moves, rewards = _random_problem(states, actions)
    mdp = TabularMDP(transitions=moves, rewards=rewards, horizon=HORIZON)
    peer, against = _backwards(moves, rewards)
    _same(solve(mdp).values[0], peer()[0])
    return compare(
        f"value iteration, dense, S={states} A={actions} H={HORIZON}",
        lambda: solve(mdp),
        peer,
        against,
        "ms",
        repeats=repeats,
        per=(1e3, 1e3),
    )


def _random_problem(states: int, actions: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.ones(states), (states, actions))
    return moves, rng.random((states, actions))


def _numpy_loop() -> Peer:
    """What stands in where there is no package: a few lines over NumPy's products."""
    version = package("numpy").version
    return Peer("NumPy loop (BLAS)", version, "rewritten", "a loop written here: no package's code")


def _dense_policy(repeats: int) -> list[dict]:
    """Evaluation and occupancy of a stochastic policy; no package offers these."""
    states, actions = DENSE[-1]
    moves, rewards = _random_problem(states, actions)
    mdp = TabularMDP(transitions=moves, rewards=rewards, horizon=HORIZON)
    policy = uniform_policy(mdp.shape)
    chosen, loop = policy.probabilities, _numpy_loop()

    def values() -> np.ndarray:
        found = np.zeros((HORIZON + 1, states))
        for h in reversed(range(HORIZON)):
            found[h] = (chosen[h] * (rewards + moves @ found[h + 1])).sum(axis=1)
        return found

    def visits() -> np.ndarray:
        found, here = np.zeros((HORIZON, states, actions)), mdp.initial
        for h in range(HORIZON):
            found[h] = here[:, None] * chosen[h]
            here = found[h].ravel() @ moves.reshape(-1, states)
        return found

    _same(state_values(mdp, policy), values())
    _same(occupancy(mdp, policy), visits())
    size, options = f"S={states} A={actions} H={HORIZON}", {"repeats": repeats, "per": (1e3, 1e3)}
    calls = {
        "evaluation": (lambda: state_values(mdp, policy), values),
        "occupancy": (lambda: occupancy(mdp, policy), visits),
    }
    return [
        compare(f"{what}, dense, {size}", ours, peer, loop, "ms", **options)
        for what, (ours, peer) in calls.items()
    ]


def _backwards(
    moves: np.ndarray, rewards: np.ndarray, *, sparse: bool = False
) -> tuple[Callable[[], object], Peer]:
    """Quantecon's backward induction; where it is not installed, a NumPy loop."""
    try:
        from quantecon.markov import DiscreteDP, backward_induction
    except ImportError:
        return lambda: _numpy_values(moves, rewards), _numpy_loop()
    import warnings

    given = (rewards, moves, 1.0)
    if sparse:
        from scipy.sparse import csr_matrix

        states, actions = np.divmod(np.arange(rewards.size), rewards.shape[1])
        rows = csr_matrix(moves.reshape(rewards.size, -1))
        given = (rewards.ravel(), rows, 1.0, states, actions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no discount: finite horizons only, as here
        problem = DiscreteDP(*given)
    what = "quantecon, sparse" if sparse else "quantecon"
    return lambda: backward_induction(problem, HORIZON)[0], package("quantecon", what)


def _numpy_values(moves: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    values = np.zeros((HORIZON + 1, len(rewards)))
    for h in reversed(range(HORIZON)):
        values[h] = (rewards + moves @ values[h + 1]).max(axis=1)
    return values


def _same(ours: np.ndarray, peer: np.ndarray) -> None:
    if np.abs(ours - peer).max() > 1e-9:
        raise RuntimeError("both must find the same values")


def _sepsis(repeats: int) -> dict:
    try:
        mdp, what = make("ICU-Sepsis", horizon=HORIZON), "ICU-Sepsis"
    except MissingExtraError:
        mdp, what = _sepsis_like(), "random, 12% dense"
    moves, rewards = np.array(mdp.transitions[0]), np.array(mdp.rewards[0])
    peer, against = _backwards(moves, rewards, sparse=True)
    _same(solve(mdp).values[0], peer()[0])
    return compare(
        f"value iteration, S=716 A=25 H={HORIZON} ({what})",
        lambda: solve(mdp),
        peer,
        against,
        "ms",
        repeats=min(repeats, 5),
        per=(1e3, 1e3),
    )


def _sepsis_like():
    rng = np.random.default_rng(0)
    rows = rng.random((716, 25, 716)) * (rng.random((716, 25, 716)) < 0.12)
    rows[..., 0] += 1e-3
    rows /= rows.sum(axis=-1, keepdims=True)
    return TabularMDP(transitions=rows, rewards=rng.random((716, 25)), horizon=HORIZON)


def _import(repeats: int) -> dict:
    def fresh(module: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    def measured() -> tuple[float, float]:
        nothing = spent(fresh("sys"))
        both = spent(fresh("discreet")), spent(fresh("numpy"))
        return tuple(1e3 * max(seconds - nothing, 1e-3) for seconds in both)

    measured()
    pairs = [measured() for _ in range(repeats)]
    return row("import discreet", pairs, package("numpy", "import numpy"), "ms, without Python")
