"""The two parts of a Newton step that all large flow projections share."""

from collections.abc import Callable

import numpy as np

from discreet._types import FloatArray
from discreet.privacy.postprocess.flow_kernels import next_length

Apply = Callable[[FloatArray, FloatArray], None]
"""``apply(v, out)`` writes the product of a Laplacian and v."""


def conjugate_gradients(
    apply: Apply, g: FloatArray, scale: FloatArray, ridge: FloatArray
) -> FloatArray:
    """Solve (Laplacian + ridge) step = g to a percent; ``scale`` is the diagonal."""
    step, residual, product = np.zeros_like(g), g.copy(), np.empty_like(g)
    direction = residual / scale
    rho = float((residual * direction).sum())
    goal = 1e-4 * rho
    for _ in range(500):
        if rho <= goal:
            break
        apply(direction, product)
        product += ridge * direction
        alpha = rho / float((direction * product).sum())
        step += alpha * direction
        residual -= alpha * product
        scaled = residual / scale
        fresh = float((residual * scaled).sum())
        direction = scaled + (fresh / rho) * direction
        rho = fresh
    return step


def search(
    gradient: Callable[[FloatArray], FloatArray],
    u: FloatArray,
    step: FloatArray,
    slope: float,
    most: float,
) -> tuple[float, FloatArray]:
    """A length up to ``most`` where the slope has almost fallen to zero, and the gradient."""
    low, high, length = 0.0, most, most
    slope_low, slope_high = slope, -1.0
    for _ in range(40):
        g = gradient(u + length * step)
        here = float((g * step).sum())
        if abs(here) <= 0.1 * slope or (length == most and here >= 0.0):
            return length, g
        if here > 0.0:
            low, slope_low = length, here
        else:
            high, slope_high = length, here
        length = next_length(low, high, slope_low, slope_high)
    return low, gradient(u + low * step)  # still uphill: the dual has grown
