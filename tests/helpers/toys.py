"""Mechanisms of a few lines for the tests of the audit, sound ones and broken ones."""

import numpy as np

from discreet.auditing.paths import Path


def toy(release, base=(0, 0), kind="batch", path=None, **others):
    """The path of ``release(data, sampler)`` on a data set, with neighbours by name."""

    def world(data):
        return lambda sampler: np.asarray(release(np.array(data), sampler), np.float64)

    neighbours = {name: world(data) for name, data in (others or {"other": (1, -1)}).items()}
    return Path("toy", kind, world(base), neighbours, **(path or {}))


def laplace(data, sampler):
    """Discrete Laplace noise of scale two on every number."""
    return data + sampler.discrete_laplace(2.0, data.size)


def gaussian(data, sampler):
    """Discrete Gaussian noise of sigma three on every number."""
    return data + sampler.discrete_gaussian(3.0, data.size)


def shared(data, sampler):
    """One draw for all numbers."""
    return data + sampler.discrete_laplace(2.0, 1)


def flipped(data, sampler):
    """Bits, each reported wrongly with probability one quarter."""
    return np.abs(data) % 2 ^ sampler.binomial(1, 0.25, data.size)
