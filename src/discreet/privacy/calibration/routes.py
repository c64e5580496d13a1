"""Independent accountings of the same release: they must agree, or nothing is reported.

Routes that compute the true epsilon must agree within a tolerance; routes that only bound it from
above (Rényi divergences, concentrated and pure differential privacy) must not fall below it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.errors import CalibrationError
from discreet.privacy.calibration import library
from discreet.privacy.calibration.closed_forms import gaussian_epsilon, need_delta
from discreet.privacy.calibration.distributions import (
    NoisePmf,
    binomial_pmf,
    discrete_gaussian_pmf,
    discrete_laplace_pmf,
)
from discreet.privacy.calibration.lattice import discrete_gaussian_epsilon, discrete_laplace_epsilon
from discreet.privacy.calibration.losses import epsilon_of_moves
from discreet.privacy.noise import FloatArray

_TOLERANCE = 0.01


@dataclass(frozen=True)
class Route:
    """One accounting: its name, its epsilon, and whether it is exact or an upper bound."""

    name: str
    epsilon: float
    bound: bool = False


def cross_check(
    routes: Sequence[Route], *, tolerance: float = _TOLERANCE, at_most: float = math.inf
) -> float:
    """The largest exact epsilon, if all routes are consistent.

    Args:
        routes: accountings of the same release at the same delta.
        tolerance: how far exact routes may differ, relatively.
        at_most: the epsilon that was promised.

    Raises:
        CalibrationError: if routes disagree or the promise is broken; it lists all of them.
    """
    exact = [r.epsilon for r in routes if not r.bound]
    if not exact:
        raise CalibrationError("Expected at least one exact accounting, got bounds only.")
    low, high = min(exact), max(exact)
    listing = ", ".join(f"{r.name} {r.epsilon:.6g}{' (bound)' if r.bound else ''}" for r in routes)
    if any(map(math.isnan, exact)) or not high <= low * (1 + tolerance) + 1e-6:
        raise CalibrationError(f"Independent accountings disagree, so none is reported: {listing}.")
    if any(r.bound and r.epsilon < low * (1 - tolerance) - 1e-6 for r in routes):
        raise CalibrationError(f"An upper bound lies below the exact epsilon: {listing}.")
    if not low <= at_most * (1 + 1e-6):
        raise CalibrationError(f"The promised epsilon {at_most:.6g} is not delivered: {listing}.")
    return high


def gaussian_routes(
    sigma: float, cells: int, delta: float, *, pile: int = 1, with_library: bool = False
) -> list[Route]:
    """Accountings of discrete Gaussian noise when ``cells`` counters move by ``pile`` each."""
    l2 = pile * math.sqrt(cells)
    noise = discrete_gaussian_pmf(sigma)
    routes = [
        Route("exact lattice", discrete_gaussian_epsilon(sigma, cells, delta, pile=pile)),
        Route("privacy-loss distribution", epsilon_of_moves(noise, cells, 0, delta, pile=pile)),
        Route("concentrated DP", zcdp_epsilon(l2**2 / (2 * sigma**2), delta), bound=True),
    ]
    if sigma >= 4 * pile:  # coarser lattices leave the continuous curve by more than 1%
        routes.append(Route("analytic Gaussian", gaussian_epsilon(sigma, l2, delta)))
    if with_library:
        routes.append(
            Route("dp-accounting", library.gaussian_epsilon(sigma, cells, delta, pile=pile))
        )
    return routes


def laplace_routes(
    scale: float, moves: int, delta: float, *, with_library: bool = False
) -> list[Route]:
    """Accountings of discrete Laplace noise when ``moves`` counters move by one each."""
    half = moves // 2
    noise = discrete_laplace_pmf(scale)
    routes = [
        Route("exact lattice", discrete_laplace_epsilon(scale, moves, delta)),
        Route("privacy-loss distribution", epsilon_of_moves(noise, half, moves - half, delta)),
        Route("pure DP", moves / scale, bound=True),
    ]
    if with_library:
        routes.append(Route("dp-accounting", library.laplace_epsilon(scale, moves, delta)))
    return routes


def binomial_routes(
    trials: int,
    probability: float,
    ups: int,
    downs: int,
    delta: float,
    *,
    with_library: bool = False,
) -> list[Route]:
    """Accountings of binomial noise when ``ups`` counters rise and ``downs`` fall by one."""
    noise = binomial_pmf(trials, probability)
    routes = [
        Route("privacy-loss distribution", epsilon_of_moves(noise, ups, downs, delta)),
        Route("Rényi DP", rdp_epsilon(noise, ups, downs, delta), bound=True),
    ]
    variance = trials * probability * (1 - probability)
    if variance >= 400:  # close to a Gaussian: the analytic curve is a route of its own
        l2 = math.sqrt(ups + downs)
        routes.append(Route("analytic Gaussian", gaussian_epsilon(math.sqrt(variance), l2, delta)))
    if with_library:
        routes.append(
            Route(
                "dp-accounting",
                library.moves_epsilon(noise, ups, downs, delta, guess=routes[0].epsilon),
            )
        )
    return routes


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon of rho-zero-concentrated DP: rho + 2·sqrt(rho·log(1/delta)) (Bun, Steinke 2016)."""
    need_delta(delta, "Concentrated DP")
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def rdp_epsilon(noise: NoisePmf, ups: int, downs: int, delta: float) -> float:
    """An upper bound on epsilon through Rényi divergences of the unit shifts.

    Values that only one of the two neighbours can produce are put into delta; the conversion is
    Proposition 12 of Canonne, Kamath and Steinke (2020).
    """
    need_delta(delta, "Rényi DP")
    log = noise.log_probabilities
    edge = float(np.exp(log[0]) + np.exp(log[-1])) + 2 * noise.outside
    left = delta - (ups + downs) * edge
    if left <= 0:
        return math.inf
    # The best order for Gaussian noise, and others around it.
    guess = math.sqrt(2 * math.log(1 / left) * noise.variance / (ups + downs))
    best = math.inf
    for order in (1 + guess * np.geomspace(0.25, 4, 13)).tolist():
        rise = _log_sum(order * log[1:] + (1 - order) * log[:-1]) / (order - 1)
        fall = _log_sum(order * log[:-1] + (1 - order) * log[1:]) / (order - 1)
        divergence = max(ups * rise + downs * fall, downs * rise + ups * fall)
        slack = math.log1p(-1 / order) - (math.log(left) + math.log(order)) / (order - 1)
        best = min(best, divergence + slack)
    return max(0.0, best)


def _log_sum(values: FloatArray) -> float:
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))
