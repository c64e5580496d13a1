"""What one run of a lockstep simulation draws per episode, for every local randomiser.

Lockstep runs keep many runs side by side (see `lane_kernels`); this module says, for a calibrated
stream, which draws a user's report takes. The law is that of the plan's own release:

* ``LAPLACE``: discrete Laplace noise on every counter, inverted from one uniform;
* ``TABLE``: any other additive law, summed over the ``copies`` of a pooled counter, by an alias
  table (Walker, 1977; Vose, 1991): column i holds i with probability cut[i] and other[i] otherwise;
* ``FLIPS``: randomised response. A pooled counter has H bits per user. The number of flipped ones
  among them is binomial; each visit asks one of the bits, without replacement, whether it flipped;
* ``ONE_STEP``: one false bit per category, the reported step, and whether its true bit is kept.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from discreet._types import FloatArray
from discreet.errors import UnsupportedError
from discreet.privacy.mechanisms._laws import BoundedLaw, GaussianLaw, LaplaceLaw, NoiseLaw
from discreet.privacy.plans import StreamPlan

SILENT, LAPLACE, TABLE, FLIPS, ONE_STEP = range(5)

_SIGMAS = 10  # beyond them a Gaussian has a mass of 1e-23


@dataclass(frozen=True, eq=False)
class LaneNoise:
    """The draws of one run in one episode.

    Attributes:
        kind: one of the constants of this module.
        scale: of the Laplace noise; the probability q of a false bit for ``FLIPS``, ``ONE_STEP``.
        draws: generators for what is drawn in every episode whatever happens in it.
        answers: generators for what the steps of the episode ask.
        low: value of the table's first column.
        cut: of the alias table.
        other: of the alias table.
    """

    kind: int
    scale: float = 0.0
    draws: int = 0
    answers: int = 0
    low: float = 0.0
    cut: FloatArray = field(default_factory=lambda: np.ones(1))
    other: FloatArray = field(default_factory=lambda: np.zeros(1))


def lane_noise(plan: StreamPlan) -> LaneNoise:
    """The draws of a calibrated local stream with pooled counters, or of none."""
    cells, horizon = plan.cells, plan.shape.horizon
    if plan.guarantee.notion == "none":
        return LaneNoise(SILENT)
    noise = getattr(plan, "noise", None)
    law, copies = getattr(noise, "law", None), getattr(noise, "copies", 1)
    if plan.guarantee.notion != "LDP" or not plan.stationary:
        raise UnsupportedError(
            f"Lockstep runs use a local randomiser on pooled counters or no privacy, got "
            f"{plan.mechanism!r} under {plan.guarantee.notion}; run others one by one with "
            f"discreet.learn."
        )
    flip = float(getattr(plan, "flip", 0.0))
    if plan.response == "cell":
        flipped = [math.comb(horizon, n) * (flip / (1 - flip)) ** n for n in range(horizon + 1)]
        cut, other = alias_table(np.array(flipped))
        return LaneNoise(FLIPS, flip, cells, 3 * horizon, cut=cut, other=other)
    if plan.response == "category":
        categories = 2 * plan.shape.states**2 * plan.shape.actions
        return LaneNoise(ONE_STEP, flip, categories, 2)
    if isinstance(law, LaplaceLaw) and copies == 1:
        return LaneNoise(LAPLACE, law.scale, cells)
    if not isinstance(law, GaussianLaw | BoundedLaw):
        raise UnsupportedError(f"Lockstep runs do not know the noise of {plan.mechanism!r}.")
    weights = one = _weights(law)
    for _ in range(copies - 1):
        weights = np.asarray(np.convolve(weights, one), np.float64)
    cut, other = alias_table(weights)
    return LaneNoise(TABLE, 0.0, cells, low=-(len(weights) // 2), cut=cut, other=other)


def _weights(law: NoiseLaw) -> FloatArray:
    """Of the values -m .. m."""
    if isinstance(law, BoundedLaw):
        return np.asarray(law.weights / law.weights.sum(), np.float64)
    sigma: float = law.sigma  # type: ignore[attr-defined]
    values = np.arange(-np.ceil(_SIGMAS * sigma), np.ceil(_SIGMAS * sigma) + 1)
    return np.asarray(np.exp(-(values**2) / (2 * sigma**2)), np.float64)


def alias_table(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns of equal probability that hold at most two values each.

    >>> cut, other = alias_table(np.array([3.0, 1.0]))
    >>> cut.tolist(), other.tolist()
    ([1.0, 0.5], [0.0, 0.0])
    """
    share = weights * (len(weights) / weights.sum())
    cut, other = np.ones(len(share)), np.arange(len(share), dtype=np.float64)
    small = [i for i, value in enumerate(share) if value < 1]
    large = [i for i, value in enumerate(share) if value >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        cut[low], other[low] = share[low], high
        share[high] -= 1 - share[low]
        (small if share[high] < 1 else large).append(high)
    return cut, np.where(cut == 1.0, 0.0, other)
