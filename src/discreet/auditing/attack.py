"""Attacks on the real code path: lower bounds on epsilon that hold with overwhelming confidence.

An attacker watches many releases of two neighbouring data sets. Half of what was seen is used to
choose a test (a linear combination of the outputs, Fisher's discriminant, and a threshold), the
other half to count how often the test is right; Clopper-Pearson bounds turn counts into
probabilities. If a test fires with probability at least p on one data set and at most q on the
other, then epsilon >= log((p - delta) / q), whatever the mechanism says about itself.

Such a bound can convict, never acquit: rare events are not seen in a few thousand runs.
"""

import math

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray
from discreet.auditing.paths import Path
from discreet.errors import InvalidInputError
from discreet.privacy.sampling.samplers import Sampler

CONFIDENCE = 1 - 1e-6


def epsilon_low(
    first: FloatArray, second: FloatArray, delta: float, *, confidence: float = CONFIDENCE
) -> float:
    """A lower bound on epsilon from samples ``[runs, outputs]`` under two neighbours.

    >>> rng = np.random.default_rng(0)
    >>> epsilon_low(rng.normal(0, 1, (4000, 1)), rng.normal(4, 1, (4000, 1)), 1e-6) > 3
    True
    """
    _validate.delta(delta=delta)
    if first.ndim != 2 or first.shape != second.shape or len(first) < 8:
        raise InvalidInputError(
            f"Expected two equal [runs >= 8, outputs] arrays, got {first.shape}."
        )
    half = len(first) // 2
    weights = discriminant(first[:half], second[:half])
    scores, rivals = first @ weights, second @ weights
    # Two tests, "high score: first" and "low score: second", share the allowed failure.
    level = 1 - (1 - confidence) / 2
    tests = ((scores, rivals), (-rivals, -scores))
    return max(0.0, *(_attack(hit, miss, half, delta, level) for hit, miss in tests))


def _attack(hit: FloatArray, miss: FloatArray, half: int, delta: float, level: float) -> float:
    """Choose the threshold with the best bound on the first half, count on the second."""
    cuts = np.unique(np.quantile(hit[:half], np.r_[0.02:0.98:33j, 0.99, 0.995, 0.998]))
    cut = max(
        cuts, key=lambda cut: epsilon_bound(hit[:half] >= cut, miss[:half] >= cut, delta, level)
    )
    return epsilon_bound(hit[half:] >= cut, miss[half:] >= cut, delta, level)


def epsilon_bound(hits: BoolArray, misses: BoolArray, delta: float, level: float) -> float:
    """log((p - delta)/q) from Clopper-Pearson bounds, each at half of 1 - level."""
    from scipy.stats import beta

    tail = (1 - level) / 2
    fired, total = int(hits.sum()), hits.size
    low = float(beta.ppf(tail, fired, total - fired + 1)) if fired else 0.0
    false = int(misses.sum())
    high = float(beta.isf(tail, false + 1, misses.size - false)) if false < misses.size else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf


def discriminant(first: FloatArray, second: FloatArray) -> FloatArray:
    """Fisher's direction; a combination of outputs without noise gets all the weight."""
    gap = first.mean(axis=0) - second.mean(axis=0)
    centred = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    covariance = centred.T @ centred / len(centred)
    ridge = 1e-10 * float(np.trace(covariance)) / gap.size + 1e-300
    weights: FloatArray = np.linalg.solve(covariance + ridge * np.eye(gap.size), gap)
    size = float(np.abs(weights).max())
    return weights / size if size else weights


def watched(path: Path, sampler: Sampler, runs: int) -> tuple[FloatArray, FloatArray]:
    """What is seen of a data set and of its first neighbour, ``[runs, outputs]`` each.

    Of continual releases: the first release, the last one and their average, in which noise that is
    drawn again for every release vanishes.
    """
    other = next(iter(path.neighbours.values()))

    def features(published: FloatArray) -> FloatArray:
        if not path.cells:
            return published
        rows = published[: path.releases * path.cells].reshape(path.releases, path.cells)
        return np.concatenate([rows[0], rows[-1], rows.mean(axis=0)])

    first, second = (
        np.array([features(run(sampler)) for _ in range(runs)]) for run in (path.base, other)
    )
    varying = (np.ptp(first, axis=0) + np.ptp(second, axis=0) + abs(first[0] - second[0])) > 0
    return first[:, varying], second[:, varying]
