"""`private-uc-o-reps`: adversarial losses with full information (paper 004, Algorithm 1).

After every episode the learner sees private cumulative losses of all pairs and private counts. It
plays the policy of the occupancy measure that minimises eta·<L, q> + sum q ln q (3.2) over all
transitions in a confidence box around the estimate (3.1).

Deviations from the paper, all stated in docs/understand/learners/private-uc-o-reps.md:

* the noise is calibrated to the true sensitivity of a dense loss vector (`adversarial.mechanism`);
  ``Central(..., calibration="paper")`` gives the printed constants and says what they deliver;
* the error E is four times the exact noise quantile *at that episode*, not a worst case over K;
* the update is solved by a reduced dual Newton method (`entropy`) with a certificate on
  every solve, not through the printed dual (C.3).

Settings. ``constants="theory"``: every multiplier one, as in Theorem 3.3, whose printed bound
drops 2H·sqrt(K·ln(XA/H)) of its own Lemma D.2 (see the page of the paper). ``"practical"``: the
multipliers below, no bound claimed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from discreet._jit import kernel
from discreet.adversarial.entropy import EntropyState, entropy_state, scale_losses, solve_entropy
from discreet.adversarial.learner import (
    AdversarialLearner,
    adversarial_spec,
    run_adversarial,
    update_boxes,
)
from discreet.adversarial.mechanism import Feedback
from discreet.adversarial.occupancy import Boxes
from discreet.adversarial.world import (
    AdversarialSettings,
    Episodes,
    World,
    add_layered_user,
    expected_loss,
)
from discreet.learners.registry import by_name


@dataclass(frozen=True, kw_only=True)
class UcORepsSettings(AdversarialSettings):
    """The multipliers. Practical ones are the same for all trust models.

    A comparison on problems not reported (research/adversarial.py) finds larger rates slightly
    better on most adversaries, and up to twice as bad on one that alternates between opposites.

    Attributes:
        padded_losses: the central release as printed (Section 5.1): a plain Laplace tree on the
            counts, the padded tree of Algorithm 4 on the losses.
    """

    PRACTICAL: ClassVar[Mapping[str, object]] = {"confidence": 0.01, "rate": 2.0}

    padded_losses: bool = False

    def release_options(self) -> dict[str, Any]:
        return super().release_options() | {"padded_losses": self.padded_losses}


class UcOReps(AdversarialLearner):
    """Entropy FTRL over confidence boxes."""

    name = "private-uc-o-reps"
    summary = "adversarial losses, full information: entropy FTRL over confidence boxes"
    feedback: ClassVar[Feedback] = "full"
    settings_type = UcORepsSettings

    def __init__(self, world: World, settings: AdversarialSettings) -> None:
        super().__init__(world, settings)
        actions = world.mdp.shape.actions
        self.state = entropy_state(world.mdp.widths, actions)
        self.policy = self.state.policy
        self.policy[:] = 1.0 / actions  # q_1 is uniform
        self.rate = settings.rate * learning_rate(world)

    def play_block(self, episodes: Episodes, first: int) -> int:
        """The solver starts warm, except for the first episode of all."""
        return run_block(episodes, self.boxes, self.state, first > 0)


def learning_rate(world: World) -> float:
    """Eta = sqrt(ln(XA/H)/K) of Theorem 3.3."""
    ratio = world.pairs / world.mechanism.size.horizon
    return math.sqrt(max(math.log(ratio), 1e-3) / world.episodes)


run = partial(run_adversarial, UcOReps)
SPECS = by_name(adversarial_spec(UcOReps, paper="Bai et al., Algorithm 1 (004)"))


@kernel
def run_block(episodes: Episodes, boxes: Boxes, state: EntropyState, warm: bool) -> int:
    """Episodes of one block; fills expected losses and certificates, returns Newton steps.

    ``state.policy`` is the policy of the next episode, before and after.
    """
    losses, users = episodes.losses, episodes.users
    costs = np.empty(losses.shape[1:])
    steps = 0
    for k in range(losses.shape[0]):
        episodes.paid[k] = expected_loss(users.transitions, state.policy, losses[k])
        add_layered_user(users, k, state.policy)
        error, log_iota, confidence = episodes.errors[k], episodes.log_iota, episodes.confidence
        update_boxes(users.public, error, log_iota, confidence, boxes, episodes.literal)
        scale_losses(users.public.losses, episodes.rate, costs)
        episodes.gaps[k], more = solve_entropy(costs, boxes, state, warm or k > 0)
        steps += more
    return steps
