"""Splits of Gaussian noise over transitions, centred rewards and visits, by the regret they leave.

    python -m research.splits run rows.csv --trusts central shuffle central:cells-4 central:halves-1

As `research.regret`, with more mechanisms of `Central`: ``cells-k`` measures visits with four times
the variance v_r of centred rewards, ``halves-k`` does not; transitions have k times v_r. What one
user can move is calibrated as if the noise were continuous, which is nearly true.

*Costs*, 1/sigma² of a unit move being one. With visits every step costs 1/v_r, in the same cell or
not: H/v_r + 2m/v_t, m the steps with transitions. Without visits a step costs 1/v_r in the same
cell (s, a) and 1/(2·v_r) in different ones, and 2/v_t unless two steps in the same cell follow each
other: with d steps in different cells at most (H - d/2)/v_r + 2·min(m, m - H + 2d + 1)/v_t.
``cells-2`` is what central batches release, ``halves-1`` what they did.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.privacy.accounting.closed_forms import gaussian_sigma
from discreet.privacy.mechanisms.base import BatchMechanism, batch_release, guaranteed
from discreet.privacy.mechanisms.registry import MechanismSpec, register
from discreet.privacy.statistics import Debias, check_support, supported_counts
from research.regret import main

RATIOS = (0.5, 1, 2, 4, 8)
FINE = 64
"""Noise is drawn on a grid of 1/64."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Split(BatchMechanism):
    """Transitions, centred rewards and, if at all, visits, each with its own variance."""

    variances: dict[str, float]

    def noise_variance(self, users):
        return self.variances

    def release(self, counts, *, sampler, support=None):
        mask, horizon = check_support(support, self.shape), self.shape.horizon
        kept, steps = supported_counts(counts, self.shape, mask), np.nonzero(mask)[0]
        moving = horizon - (not self.last_transitions)
        here = counts.users - np.bincount(steps, kept.row_visits, horizon).astype(np.int64)

        def noisy(values, variance):
            return FINE * values + sampler.discrete_gaussian(
                FINE * math.sqrt(variance), values.shape
            )

        moves = np.zeros_like(kept.row_transitions)
        rows, noise = steps < moving, self.variances
        moves[rows] = noisy(kept.row_transitions[rows], noise["transitions"])
        released = {
            "transitions": moves,
            "rewards": noisy(2 * kept.row_rewards - kept.row_visits, 4 * noise["rewards"]),
        }
        left = {"transitions": noisy(here[:moving], noise["transitions"]) / FINE}
        if "visits" in noise:
            released["visits"] = noisy(kept.row_visits, noise["visits"])
            left["rewards"] = noisy(here, 2 * noise["rewards"]) / FINE
        estimate = Debias(1 / FINE, scales={"rewards": 0.5 / FINE})
        return batch_release(
            self, released, counts.users, mask, secure=False, estimate=estimate, dropped_out=left
        )


@dataclass(frozen=True)
class Calibrator:
    """For one ratio of variances."""

    ratio: float
    visits: bool

    def calibrate(self, spec, trust, request):
        horizon = request.shape.horizon
        moving = horizon - (not request.last_transitions)
        if self.visits:
            cost = horizon + 2 * moving / self.ratio
        else:
            unmoved = [max(0, horizon - 2 * d - 1) for d in range(horizon + 1)]
            cost = max(
                horizon - d / 2 + 2 * max(0, moving - unmoved[d]) / self.ratio
                for d in range(horizon + 1)
            )
        rewards = cost * gaussian_sigma(1.0, trust.epsilon, trust.delta) ** 2
        noise = {"transitions": self.ratio * rewards, "rewards": rewards}
        return Split(
            spec=spec,
            shape=request.shape,
            statistics=request.statistics,
            guarantee=replace(guaranteed(trust, trust.epsilon, trust.delta), simulated=True),
            centred=True,
            last_transitions=request.last_transitions,
            variances=noise | ({"visits": 4 * rewards} if self.visits else {}),
        )


if __name__ == "__main__":
    for kind in ("cells", "halves"):
        for ratio in RATIOS:
            made = Calibrator(ratio, kind == "cells")
            register(MechanismSpec("central", "batch", f"{kind}-{ratio:g}", made))
    main()
