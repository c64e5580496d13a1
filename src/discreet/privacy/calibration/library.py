"""The ``dp-accounting`` route (extra ``accounting``): a second opinion, never the only one.

Of version 0.6 we know, and test, that its PLD accountant ignores ``count`` for randomised response,
that it refuses Laplace noise under replace-one, and that its constructor from two probability
tables rounds every loss up (no connect-the-dots), which is far too pessimistic on a coarse grid. So
only its discrete Gaussian, its discrete Laplace and, on a fine grid, its tables are used, and
compositions are made by ``self_compose``.
"""

import importlib
from types import ModuleType
from typing import Any

from discreet.errors import MissingExtraError
from discreet.privacy.calibration.distributions import NoisePmf


def gaussian_epsilon(
    sigma: float, cells: int, delta: float, *, pile: int = 1, singles: int = 0
) -> float:
    """Epsilon of ``cells`` counters with discrete Gaussian noise that move by ``pile`` each.

    ``singles`` more move by one.
    """
    step = min(1e-4, 0.02 * pile / sigma)

    def moved(by: int, times: int) -> Any:
        one = _module().from_discrete_gaussian_mechanism(
            sigma, sensitivity=by, value_discretization_interval=step, use_connect_dots=True
        )
        return one.self_compose(times)

    total = moved(pile, cells)
    total = total.compose(moved(1, singles)) if singles else total
    return float(total.get_epsilon_for_delta(delta))


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
