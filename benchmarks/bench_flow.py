"""The flow projection against Clarabel, and a billion users against a million."""

import numpy as np

from benchmarks._measure import best, row


def run(quick: bool) -> list[dict]:
    """Rows: one projection at two sizes; one run of flow-ucb at two numbers of users."""
    return [_projection(4, 6, quick), _projection(10, 10, quick), _users(quick)]


def _projection(states: int, horizon: int, quick: bool) -> dict:
    from discreet.privacy.postprocess.flow import consistent_flow

    rng = np.random.default_rng(0)
    noisy = rng.normal(5.0, 20.0, size=(horizon, states, 1, states))
    start = np.arange(states) == 0
    ours = best(lambda: consistent_flow(noisy, users=200, start=start), 20 if quick else 200)
    peer = best(_clarabel(noisy, 200.0, start), 5 if quick else 20)
    task, name = f"flow projection, S={states}, H={horizon}", "Clarabel (matrices built once)"
    return row(task, ours * 1e6, peer * 1e6, name, "us per batch")


def _clarabel(noisy: np.ndarray, users: float, start: np.ndarray):
    import clarabel
    from scipy import sparse

    horizon, states = noisy.shape[:2]
    played = np.ones((horizon, states), bool)
    played[0] = start
    rows = np.nonzero(played)
    equations = np.zeros((1 + (horizon - 1) * states, len(rows[0]), states))
    for i, (h, s) in enumerate(zip(*rows, strict=True)):
        equations[0 if h == 0 else 1 + (h - 1) * states + s, i] += 1
        for j in range(states if h + 1 < horizon else 0):
            equations[1 + h * states + j, i, j] -= 1
    size = equations[0].size
    matrix = sparse.vstack([equations.reshape(-1, size), -sparse.identity(size)]).tocsc()
    right = np.zeros(matrix.shape[0])
    right[0] = users
    cones = [clarabel.ZeroConeT(len(equations)), clarabel.NonnegativeConeT(size)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    quadratic = sparse.identity(size).tocsc()
    linear = -noisy[rows[0], rows[1], 0].ravel()
    return lambda: clarabel.DefaultSolver(quadratic, linear, matrix, right, cones, settings).solve()


def _users(quick: bool) -> dict:
    import discreet

    mdp = discreet.make("RiverSwim", states=4, horizon=6)
    trust = discreet.Central(epsilon=1, delta=1e-6)

    def seconds(episodes: int) -> float:
        arguments = {"learner": "flow-ucb", "trust": trust, "episodes": episodes}
        return best(lambda: discreet.learn(mdp, **arguments), 1 if quick else 3)

    billion, million = seconds(10**9), seconds(10**6)
    task = "flow-ucb, K=1e9 users (RiverSwim S=4, H=6)"
    return row(task, billion, million, "the same run with K=1e6 users", "s per run")


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
