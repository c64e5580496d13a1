"""Noise on losses beside the noise on counts: one guarantee for both (proof in `mechanism`).

Noise over time says itself how it is scaled and whether it lies on a grid; here is what it delivers
together with losses. A kind that nothing is known about is refused.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from discreet import _validate
from discreet.errors import CalibrationError, UnsupportedError
from discreet.privacy.accounting.closed_forms import (
    gaussian_delta,
    gaussian_sigma,
    grid_delta,
    zcdp_epsilon,
)
from discreet.privacy.accounting.lattice import Moved, two_lattice_delta
from discreet.privacy.mechanisms.noise import (
    CumulativeNoise,
    Gaussian,
    GridDraws,
    Laplace,
    NoiseDistribution,
)
from discreet.privacy.trust import PrivateTrust

LOSS_UNITS = 1024
"""A loss of one in released units."""
_TRUE = 1 - 1e-9
"""Of delta: covers the rounding errors of sums of doubles."""
_Both = tuple[CumulativeNoise, NoiseDistribution | None]
_TOLERANCE, _LARGEST_FACTOR = 1e-6, 16.0


@dataclass(frozen=True)
class Shares:
    """What one user moves and what the noise was calibrated for."""

    counts: int  # units of the counters (4H), each moved by one
    losses: int  # how many losses move by up to one
    units: int  # the sensitivity that the continual release was calibrated for
    once: float  # the sensitivity for one-shot losses; zero if they are released continually

    @property
    def continual(self) -> bool:
        """Cumulative losses are released after every user, like the counts."""
        return self.once == 0


def in_loss_units(noise: CumulativeNoise) -> CumulativeNoise:
    """The same noise on losses counted in units of 1/1024."""
    return noise.scaled(LOSS_UNITS, pile=LOSS_UNITS)


def together(noise: CumulativeNoise, trust: PrivateTrust, shares: Shares) -> _Both:
    """The noise of the counts, and that of one-shot losses (in loss units; None without them).

    Gaussian noise on both is raised until the guarantee holds for both together.
    """
    return (_on_lattices if noise.on_grid() is None else _on_a_grid)(noise, trust, shares)


def _on_lattices(noise: CumulativeNoise, trust: PrivateTrust, shares: Shares) -> _Both:
    """Integer noise on counts, integer noise on losses in finer units."""
    copies, distribution = noise.draws_moved, getattr(noise, "distribution", None)
    if distribution is None:
        raise UnsupportedError(f"No loss release exists for {type(noise).__name__}.")
    if isinstance(distribution, Laplace):
        spent = Fraction(shares.counts * copies) / Fraction(distribution.scale)
        if shares.continual:
            return noise, None
        # What the counts leave of a pure epsilon, in exact rationals.
        whole = min(_validate.exact(trust.epsilon), Fraction(float(trust.epsilon)))  # type: ignore[arg-type]
        left = whole - spent
        if left <= 0:
            raise CalibrationError("No epsilon is left for the losses; use a larger loss_share.")
        scale = float(shares.losses / left)
        while Fraction(scale) * left < shares.losses:
            scale = math.nextafter(scale, math.inf)
        return noise, Laplace(scale).scaled(LOSS_UNITS)
    if not isinstance(distribution, Gaussian):
        raise UnsupportedError(f"No loss release exists for {distribution.kind} noise.")
    sigma = distribution.sigma
    fine, cells = sigma * LOSS_UNITS, shares.losses * copies
    if not shares.continual:
        fine = LOSS_UNITS * gaussian_sigma(math.sqrt(shares.once), trust.epsilon, trust.delta)
        cells = shares.losses

    def holds(factor: float) -> bool:
        counts = Moved(sigma * factor, shares.counts * copies)
        losses = Moved(fine * factor, cells, LOSS_UNITS)
        return two_lattice_delta(counts, losses, float(trust.epsilon)) <= trust.delta * _TRUE

    factor = least_factor(holds)
    return noise.scaled(factor), None if shares.continual else Gaussian(fine * factor)


def _grid_of(noise: CumulativeNoise) -> GridDraws:
    grid = noise.on_grid()
    if grid is None:
        raise UnsupportedError(f"No loss release exists for {type(noise).__name__}.")
    return grid


def _on_a_grid(noise: CumulativeNoise, trust: PrivateTrust, shares: Shares) -> _Both:
    """Noise on a grid so fine that it is continuous, and integer noise on one-shot losses."""
    # The one-shot sigma behind it, reserves included.
    fine = LOSS_UNITS / _grid_of(noise).ratio * math.sqrt(shares.once / shares.units)

    def holds(factor: float) -> bool:
        if shares.continual:
            return _grid_holds(noise.scaled(factor), None, trust, shares)
        losses = Moved(fine * factor, shares.losses, LOSS_UNITS)
        return _grid_holds(noise.scaled(factor), losses, trust, shares)

    factor = least_factor(holds)
    return noise.scaled(factor), None if shares.continual else Gaussian(fine * factor)


def _grid_holds(
    noise: CumulativeNoise, once: Moved | None, trust: PrivateTrust, shares: Shares
) -> bool:
    """Counts on the grid, and losses that are released continually too, or ``once``."""
    epsilon, delta = float(trust.epsilon), float(trust.delta) * _TRUE
    grid, cells, slack = _grid_of(noise), shares.counts, 0.0
    steps = grid.steps
    if once is None:
        cells += shares.losses
        steps = min(steps, _grid_of(in_loss_units(noise)).steps)
    squares = cells * grid.ratio**2
    if once is not None:
        squares, slack = squares + once.ratio**2, once.slack
    lost = grid_delta(steps, cells * grid.draws, epsilon)
    if lost + gaussian_delta(1.0, math.sqrt(squares), epsilon - slack) <= delta:
        return True
    # Discrete Gaussians of any lattice are concentrated, and that adds up.
    return zcdp_epsilon(squares / 2, delta) <= epsilon


def least_factor(holds: Callable[[float], bool]) -> float:
    """The least factor >= 1 (to one part in a million) at which ``holds`` is true."""
    if holds(1.0):
        return 1.0
    low, high = 1.0, 1.0 + _TOLERANCE
    while not holds(high):
        low, high = high, 1 + 2 * (high - 1)
        if high > _LARGEST_FACTOR:
            raise CalibrationError(
                "No noise on counts and losses delivers this guarantee; use a smaller epsilon."
            )
    while high - low > _TOLERANCE:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
