"""Epsilons by other roads: dp-accounting and Rényi divergences, to compare ours with.

Of dp-accounting 0.6 we know that its PLD accountant ignores ``count`` for randomised response, that
it refuses Laplace noise under replace-one, and that its constructor from two probability tables
rounds every loss up. So only its discrete Gaussian, its discrete Laplace and, on a fine grid, its
tables are used, and compositions are made by ``self_compose``.
"""

import math

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld


def library_gaussian(sigma, cells, delta, *, pile=1):
    """Epsilon of ``cells`` counters with discrete Gaussian noise that move by ``pile`` each."""
    one = pld.from_discrete_gaussian_mechanism(
        sigma,
        sensitivity=pile,
        value_discretization_interval=min(1e-4, 0.02 * pile / sigma),
        use_connect_dots=True,
    )
    return one.self_compose(cells).get_epsilon_for_delta(delta)


def library_laplace(scale, moves, delta):
    """Epsilon of ``moves`` counters with discrete Laplace noise that move by one each."""
    one = pld.from_discrete_laplace_mechanism(
        1 / scale, sensitivity=1, value_discretization_interval=1 / scale
    )
    return one.self_compose(moves).get_epsilon_for_delta(delta)


def library_table(noise, ups, downs, delta, *, step):
    """Epsilon of any noise table; every loss is rounded up to a multiple of ``step``."""
    there = dict(zip(noise.values.tolist(), noise.log_probabilities.tolist(), strict=True))
    moved = {value + 1: log for value, log in there.items()}
    make = pld.from_two_probability_mass_functions
    parts = [
        make(q, p, value_discretization_interval=step, symmetric=False).self_compose(times)
        for p, q, times in ((there, moved, ups), (moved, there, downs))
        if times
    ]
    total = parts[0] if len(parts) == 1 else parts[0].compose(parts[1])
    return total.get_epsilon_for_delta(delta)


def renyi(noise, ups, downs, delta):
    """An upper bound on epsilon: Canonne, Kamath and Steinke (2020), Proposition 12."""
    log = noise.log_probabilities
    left = delta - (ups + downs) * (np.exp(log[0]) + np.exp(log[-1]) + 2 * noise.outside)
    if left <= 0:
        return math.inf
    guess = math.sqrt(2 * math.log(1 / left) * noise.variance / (ups + downs))
    best = math.inf
    for order in 1 + guess * np.geomspace(0.25, 4, 13):
        rise = _log_sum(order * log[1:] + (1 - order) * log[:-1]) / (order - 1)
        fall = _log_sum(order * log[:-1] + (1 - order) * log[1:]) / (order - 1)
        divergence = max(ups * rise + downs * fall, downs * rise + ups * fall)
        slack = math.log1p(-1 / order) - (math.log(left) + math.log(order)) / (order - 1)
        best = min(best, divergence + slack)
    return best


def _log_sum(values):
    top = values.max()
    return top + math.log(np.exp(values - top).sum())
