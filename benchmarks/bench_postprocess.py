"""The closed-form valid distribution against `scipy.optimize.linprog`, per (h, s, a)."""

import numpy as np

from benchmarks._measure import compare, package

ROWS, SOLVES = 20_000, 20


def run(quick: bool) -> list[dict]:
    """One row per S: microseconds per projection, ours and the linear program's."""
    return [_projection(states, 5 if quick else 15) for states in (4, 20)]


def _projection(states: int, repeats: int) -> dict:
    from discreet.privacy.projection.valid_counts import valid_rows

    rng = np.random.default_rng(states)
    counts = rng.normal(5.0, 25.0, size=(ROWS, states))
    totals = np.maximum(counts.sum(axis=1) + rng.normal(scale=25.0, size=ROWS), 0.0)
    errors, out = np.full(ROWS, 5.0), np.empty_like(counts)
    return compare(
        f"valid distribution, S={states}",
        lambda: valid_rows(counts, totals, errors, out),
        lambda: _linprog(counts[:SOLVES], totals[:SOLVES]),
        package("scipy", "scipy.optimize.linprog (HiGHS)"),
        "us per projection",
        repeats=repeats,
        per=(1e6 / ROWS, 1e6 / SOLVES),
    )


def _linprog(counts: np.ndarray, totals: np.ndarray) -> None:
    from scipy.optimize import linprog

    states = counts.shape[1]
    eye, ones, sums = np.eye(states), np.ones((states, 1)), np.ones((1, states))
    matrix = np.block([[eye, -ones], [-eye, -ones], [sums, 0], [-sums, 0]])
    cost = np.append(np.zeros(states), 1.0)
    for n, total in zip(counts, totals, strict=True):
        bounds = np.concatenate([n, -n, [total + 5.0, 5.0 - total]])
        linprog(cost, A_ub=matrix, b_ub=bounds, bounds=(0, None), method="highs")


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
