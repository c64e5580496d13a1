"""The flow projection against Clarabel, and a billion users against a million."""

import clarabel
import numpy as np
from scipy import sparse

import discreet
from benchmarks.measure import Peer, compare, package
from discreet.privacy.projection.flow import consistent_flow


def run(quick: bool) -> list[dict]:
    """Rows: one projection at two sizes; one run of flow-ucb at two numbers of users."""
    return [_projection(4, 6, quick), _projection(10, 10, quick), _users(quick)]


def _projection(states: int, horizon: int, quick: bool) -> dict:
    rng = np.random.default_rng(0)
    noisy = rng.normal(5.0, 20.0, size=(horizon, states, 1, states))
    start = np.arange(states) == 0
    return compare(
        f"flow projection, S={states}, H={horizon}",
        lambda: consistent_flow(noisy, users=200, start=start),
        _clarabel(noisy, 200.0, start),
        package("clarabel", "Clarabel (matrices built once)"),
        "us per batch",
        repeats=5 if quick else 15,
        per=(1e6, 1e6),
    )


def flow_constraints(support: np.ndarray, users: float):
    """Who starts, and who comes into a state leaves it; ``support[h, s, a]`` can be played.

    As a general-purpose solver takes them: the (h, s, a) that can be played, one array per axis;
    flow equations, then minus the identity; their right side; zero and nonnegative cones.
    """
    rows = np.nonzero(support)
    horizon, states = support.shape[:2]
    equations = np.zeros((1 + (horizon - 1) * states, len(rows[0]), states))
    for i, (h, s) in enumerate(zip(*rows[:2], strict=True)):
        equations[0 if h == 0 else 1 + (h - 1) * states + s, i] += 1
        for j in range(states if h + 1 < horizon else 0):
            equations[1 + h * states + j, i, j] -= 1
    size = equations[0].size
    matrix = sparse.vstack([equations.reshape(-1, size), -sparse.identity(size)]).tocsc()
    right = np.zeros(matrix.shape[0])
    right[0] = users
    cones = [clarabel.ZeroConeT(len(equations)), clarabel.NonnegativeConeT(size)]
    return rows, matrix, right, cones


def _clarabel(noisy: np.ndarray, users: float, start: np.ndarray):
    support = np.ones(noisy.shape[:3], bool)
    support[0] = start[:, None]
    rows, matrix, right, cones = flow_constraints(support, users)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    quadratic, linear = sparse.identity(matrix.shape[1]).tocsc(), -noisy[rows].ravel()
    return lambda: clarabel.DefaultSolver(quadratic, linear, matrix, right, cones, settings).solve()


def _users(quick: bool) -> dict:
    mdp = discreet.make("RiverSwim", states=4, horizon=6)
    trust = discreet.Central(epsilon=1, delta=1e-6)

    def learned(episodes: int):
        arguments = {"learner": "flow-ucb", "trust": trust, "episodes": episodes}
        return lambda: discreet.learn(mdp, **arguments)

    return compare(
        "flow-ucb, K=1e9 users (RiverSwim S=4, H=6)",
        learned(10**9),
        learned(10**6),
        Peer("the same run with K=1e6 users", kind="ours"),
        "s per run",
        repeats=3 if quick else 9,
    )
