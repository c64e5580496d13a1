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
from typing import Any, ClassVar, Literal

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet._types import FloatArray
from discreet.errors import InvalidInputError
from discreet.learners.adversarial.world import (
    AdversarialSettings,
    Block,
    World,
    make_world,
    run_blocks,
)
from discreet.learners.registry import LearnerSpec
from discreet.learners.result import Result
from discreet.mdp.layered import LayeredMDP
from discreet.mdp.losses import LossSequence
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.trust import TrustModel

NAME = "private-uob-lbps"


@dataclass(frozen=True, kw_only=True)
class UobLbpsSettings(AdversarialSettings):
    """The multipliers, and how losses are estimated.

    Practical values are the same for all trust models. A study on problems that are not reported
    (tools/choose_adversarial_constants.py) finds ``rate=10`` as good under privacy and better
    without: see docs/learners/adversarial.md.

    Attributes:
        loss_estimator: "centred" or "paper".
        loss_share: of the privacy budget, for the losses (the rest is for the counts).
        limit: multiplier on E', where losses are clipped.
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
        """A share is a part of the budget."""
        super().check()
        _validate.positive(limit=self.limit, loss_share=self.loss_share)
        if self.loss_share >= 1:
            raise InvalidInputError(f"Expected loss_share < 1, got {self.loss_share}.")


def learning_rate(world: World, settings: UobLbpsSettings, limit: float) -> float:
    """Eta = sqrt(X/K) (Theorem 4.2), or the centred rate of the module's docstring."""
    size = world.plan.size
    base = settings.rate * math.sqrt(sum(size.widths[:-1]) / world.episodes)
    if settings.loss_estimator == "paper":
        return base
    safe = 1 / (2 * limit + 1)
    return min(safe, base / max(world.plan.loss_std, 1.0))


def run(
    mdp: LayeredMDP | TabularMDP,
    trust: TrustModel,
    episodes: int,
    seeds: RunSeeds,
    *,
    losses: LossSequence | str = "stochastic",
    **settings: Any,
) -> Result:
    """One run.

    Args:
        mdp: a layered MDP, or a tabular one (expanded by stages).
        trust: `Central`, `Local` or `NoPrivacy`.
        episodes: K, more than X·A.
        seeds: of this run.
        losses: what the adversary chose, or "stochastic", "switching", "drifting" around one minus
            the rewards of a tabular MDP.
        settings: see `UobLbpsSettings`.
    """
    from discreet.learners.adversarial.barrier_kernels import barrier_state
    from discreet.learners.adversarial.occupancy_kernels import open_boxes
    from discreet.learners.adversarial.uob_lbps_kernels import run_block

    chosen = UobLbpsSettings.choose(settings, learner=NAME)
    centred = chosen.loss_estimator == "centred"
    world = make_world(
        mdp,
        trust,
        episodes,
        seeds,
        chosen,
        feedback="bandit",
        losses=losses,
        loss_share=chosen.loss_share,
        centred_losses=centred,
    )
    shape, widths = world.mdp.shape, world.mdp.widths
    boxes = open_boxes(widths, shape.transitions)
    state = barrier_state(widths, shape.actions)
    failure = world.failure / (world.plan.size.pairs * episodes)
    limit = chosen.limit * world.plan.loss_bound(failure)
    rate = learning_rate(world, chosen, limit)

    def play_block(block: Block, paid: FloatArray, gaps: FloatArray) -> int:
        return run_block(
            block.losses,
            block.users,
            block.errors,
            world.log_iota,
            chosen.confidence,
            rate,
            limit,
            centred,
            boxes,
            state,
            paid,
            gaps,
        )

    shown = chosen.to_dict() | {"learning_rate": rate, "loss_limit": limit}
    return run_blocks(NAME, world, state.policy, shown, play_block)


SPECS = {
    NAME: LearnerSpec(
        name=NAME,
        summary="adversarial losses, bandit feedback: log-barrier mirror descent over boxes",
        paper="Bai et al., Algorithm 3 (004); centred loss estimator: ours",
        rhythm="adversarial",
        trusts=("central", "local", "none"),
        bound="printed: H·C_M·sqrt(K) + AH·sqrt(X³K)/eps; its proof has a gap, none proven",
        run=run,
        settings=UobLbpsSettings,
    )
}
