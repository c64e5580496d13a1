"""Epsilon by several independent routes that must agree; ``dp-accounting`` is one of them.

It is a second opinion (extra ``accounting``), never the only one. Of version 0.6
we know, and test, that its PLD accountant ignores ``count`` for randomised response, that it
refuses Laplace noise under replace-one, and that its constructor from two probability tables rounds
every loss up (no connect-the-dots), which is far too pessimistic on a coarse grid. So only its
discrete Gaussian, its discrete Laplace and, on a fine grid, its tables are used, and compositions
are made by ``self_compose``.
"""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

import numpy as np

from discreet._types import FloatArray
from discreet.errors import CalibrationError, MissingExtraError
from discreet.privacy.accounting.closed_forms import gaussian_epsilon, need_delta
from discreet.privacy.accounting.distributions import (
    NoisePmf,
    binomial_pmf,
    discrete_gaussian_pmf,
    discrete_laplace_pmf,
)
from discreet.privacy.accounting.lattice import discrete_gaussian_epsilon, discrete_laplace_epsilon
from discreet.privacy.accounting.losses import (
    Shift,
    delta_of_moves,
    epsilon_of_moves,
    epsilon_of_shifts,
)
from discreet.privacy.guarantee import rounded_down, rounded_up


def library_gaussian_epsilon(sigma: float, cells: int, delta: float, *, pile: int = 1) -> float:
    """Epsilon of ``cells`` counters with discrete Gaussian noise that move by ``pile`` each."""
    one = _module().from_discrete_gaussian_mechanism(
        sigma,
        sensitivity=pile,
        value_discretization_interval=min(1e-4, 0.02 * pile / sigma),
        use_connect_dots=True,
    )
    return float(one.self_compose(cells).get_epsilon_for_delta(delta))


def laplace_epsilon(scale: float, moves: int, delta: float) -> float:
    """Epsilon of ``moves`` counters with discrete Laplace noise that move by one each."""
    one = _module().from_discrete_laplace_mechanism(
        1 / scale, sensitivity=1, value_discretization_interval=1 / scale
    )
    return float(one.self_compose(moves).get_epsilon_for_delta(delta))


def moves_epsilon(noise: NoisePmf, ups: int, downs: int, delta: float, *, step: float) -> float:
    """Epsilon of any noise table; every loss is rounded up to a multiple of ``step``."""
    there = dict(zip(noise.values.tolist(), noise.log_probabilities.tolist(), strict=True))
    moved = {value + 1: log for value, log in there.items()}
    make = _module().from_two_probability_mass_functions
    parts = [
        make(q, p, value_discretization_interval=step, symmetric=False).self_compose(times)
        for p, q, times in ((there, moved, ups), (moved, there, downs))
        if times
    ]
    total = parts[0] if len(parts) == 1 else parts[0].compose(parts[1])
    return float(total.get_epsilon_for_delta(delta))


def _module() -> ModuleType:
    try:
        return importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    except ImportError:
        raise MissingExtraError("dp-accounting", "accounting") from None


# Independent accountings of the same release: they must agree, or nothing is reported.
#
# Routes differ in what they say about the true epsilon, and each carries a label for it:
#
# * *exact*: equal to it, up to the rounding of doubles. The guarantee is tested against the
#   **largest** of these.
# * *pessimistic*: never below it and close to it (losses moved up to a grid). Where no route is
#   exact, the guarantee is tested against the least of these: every one of them is above the truth.
# * *approximate*: within a known error of it on either side (a limit theorem). It can contradict,
#   never vouch.
# * *bound*: above it, perhaps far (Rényi divergences, concentrated and pure differential privacy).
#
# All but the bounds must agree within a tolerance; pessimistic routes and bounds must not fall
# below the exact ones. A route whose error is known in delta carries what that is in epsilon: where
# epsilon is small and delta large, an error of 1e-4 in delta can be as large as epsilon itself.


Kind = Literal["exact", "pessimistic", "approximate"]

_TOLERANCE = 0.01
_ROUNDING = 1e-9
"""Relative error of the sums behind an exact route: 1e6 terms of doubles, each within 2e-16."""
_ROOT = 3e-10
"""`least_epsilon` answers with the upper end of a bracket of this width."""


@dataclass(frozen=True)
class Route:
    """One accounting: its name, its epsilon, and how it relates to the true epsilon."""

    name: str
    epsilon: float
    bound: bool = False
    kind: Kind = "exact"
    """Of a route that is no bound."""
    error: float = 0.0
    """How far from the true epsilon it can be, by what it leaves out, beyond the tolerance."""

    def __str__(self) -> str:
        """Name, epsilon and label, for messages."""
        label = "bound" if self.bound else self.kind
        return f"{self.name} {rounded_up(self.epsilon, 10)}" + (
            f" ({label})" if label != "exact" else ""
        )


def cross_check(
    routes: Sequence[Route], *, tolerance: float = _TOLERANCE, at_most: float = math.inf
) -> float:
    """The epsilon that the routes agree on: the largest exact one, or the least pessimistic one.

    Routes that are no bounds may differ by ``tolerance``, relatively; ``at_most`` is the epsilon
    that was asked for.

    Raises:
        CalibrationError: if routes disagree or the guarantee is broken; it lists all of them.

    >>> cross_check([Route("a", 1.0), Route("b", 1.009)], at_most=1.0)
    Traceback (most recent call last):
    ...
    discreet.errors.CalibrationError: The epsilon 1 asked for is not delivered: a 1, b 1.009.
    """
    listing = ", ".join(map(str, routes))
    least = [r.epsilon - r.error for r in routes if not r.bound]
    most = [r.epsilon + r.error for r in routes if not r.bound]
    exact = [r.epsilon for r in routes if not r.bound and r.kind == "exact"]
    above = [r.epsilon for r in routes if not r.bound and r.kind == "pessimistic"]
    if not exact and not above:
        raise CalibrationError(
            "Expected at least one exact accounting, got none that can vouch for a guarantee."
        )
    if any(map(math.isnan, most)) or not max(least) <= min(most) * (1 + tolerance) + 1e-6:
        raise CalibrationError(f"Independent accountings disagree, so none is reported: {listing}.")
    if any(r.bound and r.epsilon < min(exact + above) * (1 - tolerance) - 1e-6 for r in routes):
        raise CalibrationError(f"An upper bound lies below the exact epsilon: {listing}.")
    if exact and any(e < max(exact) * (1 - 1e-6) - 1e-9 for e in above):
        raise CalibrationError(f"A pessimistic route lies below the exact epsilon: {listing}.")
    found = max(exact) if exact else min(above)
    if not found <= at_most * (1 + _ROUNDING) + _ROOT:
        asked = rounded_down(at_most, 10)
        raise CalibrationError(f"The epsilon {asked} asked for is not delivered: {listing}.")
    return found


def gaussian_routes(
    sigma: float,
    cells: int,
    delta: float,
    *,
    pile: int = 1,
    with_library: bool = False,
) -> list[Route]:
    """Accountings of discrete Gaussian noise when ``cells`` counters move by ``pile`` each."""
    l2 = pile * math.sqrt(cells)
    moved = Shift(discrete_gaussian_pmf(sigma), pile, cells)
    routes = [
        Route("exact lattice", discrete_gaussian_epsilon(sigma, cells, delta, pile=pile)),
        _composed(epsilon_of_shifts([moved], delta)),
        Route("concentrated DP", zcdp_epsilon(l2**2 / (2 * sigma**2), delta), bound=True),
    ]
    if sigma >= 4 * pile:
        routes.append(_analytic(sigma, l2, delta, unit=pile))
    if with_library:
        routes.append(_library(library_gaussian_epsilon(sigma, cells, delta, pile=pile)))
    return routes


def laplace_routes(
    scale: float, moves: int, delta: float, *, with_library: bool = False
) -> list[Route]:
    """Accountings of discrete Laplace noise when ``moves`` counters move by one each."""
    half = moves // 2
    noise = discrete_laplace_pmf(scale)
    routes = [
        Route("exact lattice", discrete_laplace_epsilon(scale, moves, delta)),
        _composed(epsilon_of_moves(noise, half, moves - half, delta)),
        Route("pure DP", moves / scale, bound=True),
    ]
    if with_library:
        routes.append(_library(laplace_epsilon(scale, moves, delta)))
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
    routes = moves_routes(noise, ups, downs, delta, with_library=with_library)
    variance = trials * probability * (1 - probability)
    if variance >= 400:  # close to a Gaussian: the analytic curve is a route of its own
        l2 = math.sqrt(ups + downs)
        routes.append(_analytic(math.sqrt(variance), l2, delta))
    return routes


def moves_routes(
    noise: NoisePmf, ups: int, downs: int, delta: float, *, with_library: bool = False
) -> list[Route]:
    """Accountings of any integer noise when ``ups`` counters rise and ``downs`` fall by one."""
    found = epsilon_of_moves(noise, ups, downs, delta)
    routes = [
        _composed(found, error=_of_the_grid(noise, ups, downs, delta, found)),
        Route("Rényi DP", rdp_epsilon(noise, ups, downs, delta), bound=True),
    ]
    if with_library:
        # The library rounds every loss up, by half a step on average. Steps far below the losses
        # themselves would take minutes: where they are too coarse for epsilon, that is its error.
        moves, wanted = ups + downs, 0.01 * found
        step = max(wanted / moves, 1e-3 / math.sqrt(noise.variance))
        epsilon = moves_epsilon(noise, ups, downs, delta, step=step)
        routes.append(_library(epsilon, error=moves * step - wanted))
    return routes


def _composed(epsilon: float, error: float = 0.0) -> Route:
    """Connect-the-dots only ever raises an epsilon."""
    return Route("privacy-loss distribution", epsilon, kind="pessimistic", error=error)


def _of_the_grid(noise: NoisePmf, ups: int, downs: int, delta: float, epsilon: float) -> float:
    """How far a raise of delta by 1e-4 of it, more than connecting the dots does, lifts epsilon.

    By the slope of the curve, which is convex, at ``epsilon``.
    """
    if not 0 < epsilon < math.inf:
        return 0.0
    below = epsilon * (1 - 1e-3)
    rise = delta_of_moves(noise, ups, downs, below) - delta_of_moves(noise, ups, downs, epsilon)
    return 1e-4 * delta * (epsilon - below) / rise if rise > 0 else math.inf


def _analytic(sigma: float, l2: float, delta: float, unit: int = 1) -> Route:
    """The curve of continuous noise, near which noise on integers lies.

    With R = l2/sigma, x0 = epsilon/R - R/2 and f(x) = phi(x)·max(0, 1 - exp(-R(x - x0))) the curve
    is the integral of f, and the delta of noise on integers is the sum of h·f over a grid of step
    h = unit/(sigma·l2). They differ by what the kink of f at x0 costs, where the slope jumps by
    R·phi(x0): up to h²·R·phi(x0)/12, and smaller terms (Euler and Maclaurin); twice that is taken.
    Where epsilon is small and delta large, a little in delta is much in epsilon.
    """
    ratio = l2 / sigma
    epsilon = gaussian_epsilon(sigma, l2, delta)
    kink = ratio * math.exp(-0.5 * (epsilon / ratio - ratio / 2) ** 2) / math.sqrt(2 * math.pi)
    off = (unit / (sigma * l2)) ** 2 * kink / 6
    error = math.inf
    if off < delta:
        least = gaussian_epsilon(sigma, l2, delta + off)
        error = max(gaussian_epsilon(sigma, l2, delta - off) - epsilon, epsilon - least)
    return Route("analytic Gaussian", epsilon, kind="approximate", error=error)


def _library(epsilon: float, error: float = 0.0) -> Route:
    """Its grids are pessimistic, its truncations are its own."""
    return Route("dp-accounting", epsilon, kind="approximate", error=error)


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
