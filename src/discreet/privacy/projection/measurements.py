"""What a release of a batch holds besides transitions: visits counted once more, and who left.

How they enter the flow projection is in `network`.
"""

from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.privacy.statistics import PrivateCounts

_SURE = 3.0
"""Standard deviations of `Measurements.dropped_out` that noise is not taken to explain."""


class Measurements(NamedTuple):
    """What a release holds besides transitions; the default is nothing.

    Attributes:
        visits: ``[R]``, the second measurement at the visits of every row, or None.
        visit_variance: noise variance of one of them.
        dropped_out: ``[steps]``, users who have left the policy by that step, or None.
        dropped_out_variance: ``[steps]``, the noise variance of each.
        last_transitions: False if the rows of the last step hold no transitions.
    """

    visits: FloatArray | None = None
    visit_variance: float = 1.0
    dropped_out: FloatArray | None = None
    dropped_out_variance: FloatArray | None = None
    last_transitions: bool = True

    @classmethod
    def of(cls, counts: PrivateCounts) -> "Measurements":
        variance = counts.noise_variance
        dropped_out, spread = _dropped_out(counts)
        return cls(
            counts.row_visits,
            variance.get("visits", 1.0),
            dropped_out,
            spread,
            counts.last_transitions,
        )

    @property
    def somebody_dropped_out(self) -> bool:
        """Whether more users have left than noise explains."""
        if self.dropped_out is None or self.dropped_out_variance is None:
            return False
        if not self.dropped_out_variance.all():
            return bool((self.dropped_out > 0).any())
        standard = self.dropped_out / np.sqrt(self.dropped_out_variance)
        together = float(standard.sum()) / np.sqrt(max(standard.size, 1))
        return bool(max(together, float(standard.max(initial=0.0))) > _SURE)


def _dropped_out(counts: PrivateCounts) -> tuple[FloatArray | None, FloatArray | None]:
    """The mean, by step, of all counts of those who have left, and its variance."""
    if not counts.dropped_out:
        return None, None
    steps = max(len(numbers) for numbers in counts.dropped_out.values())
    total, measurements, spread = np.zeros(steps), np.zeros(steps), np.zeros(steps)
    for name, numbers in counts.dropped_out.items():
        total[: len(numbers)] += numbers
        measurements[: len(numbers)] += 1
        # A centred reward is half the difference of two counters.
        halves = 2 if name == "rewards" and counts.centred else 1
        spread[: len(numbers)] += halves * counts.noise_variance[name]
    return total / measurements, spread / measurements**2


def inflow_visits(transitions: FloatArray, rows: tuple[IntArray, ...], horizon: int) -> FloatArray:
    """Visits ``[R]``: sums of the rows, and at the last step the inflow of their states."""
    visits: FloatArray = transitions.sum(axis=1)
    steps, states, _ = rows
    last = steps == horizon - 1
    arrived = transitions[steps == horizon - 2].sum(axis=0)
    sharing = np.bincount(states[last], minlength=transitions.shape[1])
    visits[last] = (arrived / np.maximum(sharing, 1))[states[last]]
    return visits


def known(measurements: Measurements, inside: BoolArray) -> Measurements:
    """The measurements of the rows that can carry flow; users who left only where there are any."""
    visits = (
        None if measurements.visits is None else np.asarray(measurements.visits, np.float64)[inside]
    )
    kept = measurements._replace(visits=visits)
    return (
        kept
        if measurements.somebody_dropped_out
        else kept._replace(dropped_out=None, dropped_out_variance=None)
    )
