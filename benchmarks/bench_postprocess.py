"""The closed-form valid distribution against `scipy.optimize.linprog`, per (h, s, a)."""

import time

import numpy as np

from benchmarks._measure import best, row


def run(quick: bool) -> list[dict]:
    """One row per S: microseconds per projection, ours and the linear program's."""
    return [_projection(states, quick) for states in (4, 20)]


def _projection(states: int, quick: bool) -> dict:
    rng = np.random.default_rng(states)
    rows = 20_000 if quick else 200_000
    counts = rng.normal(5.0, 25.0, size=(rows, states))
    totals = counts.sum(axis=1) + rng.normal(scale=25.0, size=rows)
    totals = np.maximum(totals, 0.0)
    ours = _ours(counts, totals)
    peer = _linprog(counts, totals, 20 if quick else 200)
    task, name = f"valid distribution, S={states}", "scipy.optimize.linprog (HiGHS)"
    return row(task, ours, peer, name, "us per projection")


def _ours(counts: np.ndarray, totals: np.ndarray) -> float:
    from discreet.privacy.postprocess.valid_counts_kernels import valid_rows

    errors, out = np.full(len(totals), 5.0), np.empty_like(counts)
    return best(lambda: valid_rows(counts, totals, errors, out), 5) / len(totals) * 1e6


def _linprog(counts: np.ndarray, totals: np.ndarray, solves: int) -> float:
    from scipy.optimize import linprog

    states = counts.shape[1]
    eye, ones, sums = np.eye(states), np.ones((states, 1)), np.ones((1, states))
    matrix = np.block([[eye, -ones], [-eye, -ones], [sums, 0], [-sums, 0]])
    cost = np.append(np.zeros(states), 1.0)
    times = []
    for n, total in zip(counts[:solves], totals[:solves], strict=True):
        bounds = np.concatenate([n, -n, [total + 5.0, 5.0 - total]])
        start = time.perf_counter()
        linprog(cost, A_ub=matrix, b_ub=bounds, bounds=(0, None), method="highs")
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e6


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
