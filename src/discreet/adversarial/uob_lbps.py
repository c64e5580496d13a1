"""`private-uob-lbps`: adversarial losses with bandit feedback (paper 004, Algorithm 3).

After every episode the learner sees private losses of the visited pairs and private counts. It
divides losses by upper occupancy bounds (optimistic importance weights) and takes a step of mirror
descent with a log-barrier over all transitions in a confidence box (4.3).

Two loss estimators:

* ``loss_estimator="paper"``: (4.1) and (4.2), (l + E')/(2E' + 1)/u. It divides the signal by
  2E' + 1 and adds about 1/(2u) to *every* pair in every episode: pairs that are rarely reached are
  pushed away further, and with all losses zero the policy still collapses. The proof of Theorem 4.2
  hides this in BIAS_2, where sum of q/u is replaced by sum of 1/u in a *negative* term although
  q <= 1.
* ``"centred"`` (default, ours): users report l - 1/2 on the visited pairs (half the sensitivity; a
  constant per layer changes no regret), estimated by clip(l - 1/2, -1/2 - E', 1/2 + E')/u with
  eta = min(1/(2E' + 1), sqrt(X/K)/sd), sd the noise on one loss (at least 1). The first bound keeps
  eta·loss + 1/q positive, since u >= q. No regret bound is proven.

Settings. ``constants="theory"``: every multiplier one. ``"practical"``: the multipliers below.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from discreet import _validate
from discreet._jit import kernel
from discreet._types import Floats, Ints, Plain
from discreet.adversarial.barrier import BarrierState, barrier_state, barrier_step
from discreet.adversarial.learner import (
    AdversarialLearner,
    adversarial_spec,
    run_adversarial,
    update_boxes,
)
from discreet.adversarial.mechanism import Feedback
from discreet.adversarial.occupancy import Boxes, upper_occupancy
from discreet.adversarial.world import (
    AdversarialSettings,
    Episodes,
    World,
    add_layered_user,
    expected_loss,
)
from discreet.errors import InvalidInputError
from discreet.learners.registry import by_name


@dataclass(frozen=True, kw_only=True)
class UobLbpsSettings(AdversarialSettings):
    """The multipliers, and how losses are estimated.

    Practical values are the same for all trust models. A comparison on problems not reported
    (research/adversarial.py) finds ``rate=30`` as good under privacy and better without.

    Attributes:
        loss_estimator: ``"centred"`` (ours) or ``"paper"`` (the printed one).
        loss_share: the share of the privacy budget for the losses; the rest is for the counts.
        limit: multiplies E', the size at which private losses are clipped.
    """

    PRACTICAL: ClassVar[Mapping[str, object]] = {
        "confidence": 0.01,
        "rate": 3.0,
        "limit": 0.5,
        "loss_share": 0.8,
    }

    loss_estimator: Literal["centred", "paper"] = "centred"
    loss_share: float = 1 / 3
    limit: float = 1.0

    def check(self) -> None:
        super().check()
        _validate.positive(limit=self.limit, loss_share=self.loss_share)
        if self.loss_share >= 1:
            raise InvalidInputError(f"Expected loss_share < 1, got {self.loss_share}.")

    def release_options(self) -> dict[str, Any]:
        centred = self.loss_estimator == "centred"
        return super().release_options() | {
            "loss_share": self.loss_share,
            "centred_losses": centred,
        }


def learning_rate(world: World, settings: UobLbpsSettings, limit: float) -> float:
    """Eta = sqrt(X/K) (Theorem 4.2), or the centred rate of the module's docstring."""
    base = settings.rate * math.sqrt(world.states / world.episodes)
    if settings.loss_estimator == "paper":
        return base
    safe = 1 / (2 * limit + 1)
    return min(safe, base / max(world.mechanism.loss_std, 1.0))


class UobLbps(AdversarialLearner):
    """Log-barrier mirror descent over confidence boxes."""

    name = "private-uob-lbps"
    summary = "adversarial losses, bandit feedback: log-barrier mirror descent over boxes"
    feedback: ClassVar[Feedback] = "bandit"
    settings_type = UobLbpsSettings

    def __init__(self, world: World, settings: UobLbpsSettings) -> None:
        super().__init__(world, settings)
        self.state = barrier_state(world.mdp.widths, world.mdp.shape.actions)
        self.policy = self.state.policy
        # E' of Lemma 5.1: no noise on a loss exceeds it, all pairs and episodes, up to delta.
        failure = world.failure / (world.pairs * world.episodes)
        printed = settings.loss_estimator == "paper"
        self.limit = settings.limit * world.mechanism.loss_bound(failure, printed=printed)
        self.rate = learning_rate(world, settings, self.limit)

    def play_block(self, episodes: Episodes, first: int) -> int:
        """Mirror descent has no cold start: the iterate is the state."""
        centred = self.world.mechanism.centred_losses
        return run_block(episodes, self.limit, centred, self.boxes, self.state)

    def shown_settings(self) -> dict[str, Plain]:
        return super().shown_settings() | {"loss_limit": self.limit}


run = partial(run_adversarial, UobLbps)
SPECS = by_name(
    adversarial_spec(UobLbps, paper="Bai et al., Algorithm 3 (004); centred loss estimator: ours")
)


LEAST_BOUND = 1e-12
"""Upper occupancy bounds below this count as this."""


@kernel
def estimate_losses(
    released: Floats, bounds: Floats, widths: Ints, limit: float, centred: bool, out: Floats
) -> None:
    """Importance-weighted losses of one episode, from its released losses l (of visited pairs).

    ``centred``: clip(l - 1/2, -1/2 - E', 1/2 + E')/u; users subtracted the 1/2. Otherwise (4.1) and
    (4.2), (l + E')/(2E' + 1)/u, clipped to [0, 1] before the division (the printed scaling reaches
    beyond with probability delta).
    """
    horizon, _, actions = released.shape
    for h in range(horizon):
        for x in range(widths[h]):
            for a in range(actions):
                if centred:
                    value = min(max(released[h, x, a], -0.5 - limit), 0.5 + limit)
                else:
                    value = min(max((released[h, x, a] + limit) / (2.0 * limit + 1.0), 0.0), 1.0)
                out[h, x, a] = value / max(bounds[h, x, a], LEAST_BOUND)


@kernel
def run_block(
    episodes: Episodes, limit: float, centred: bool, boxes: Boxes, state: BarrierState
) -> int:
    """Episodes of one block; fills expected losses and certificates, returns Newton steps."""
    losses, users = episodes.losses, episodes.users
    bounds, estimate = np.zeros(losses.shape[1:]), np.zeros(losses.shape[1:])
    costs = np.zeros(boxes.lower.shape)
    steps = 0
    for k in range(losses.shape[0]):
        episodes.paid[k] = expected_loss(users.transitions, state.policy, losses[k])
        add_layered_user(users, k, state.policy)
        upper_occupancy(boxes, state.policy, bounds)
        estimate_losses(users.public.losses, bounds, users.widths, limit, centred, estimate)
        error, log_iota, confidence = episodes.errors[k], episodes.log_iota, episodes.confidence
        update_boxes(users.public, error, log_iota, confidence, boxes, episodes.literal)
        episodes.gaps[k], more = barrier_step(estimate, episodes.rate, boxes, state, costs)
        steps += more
    return steps
