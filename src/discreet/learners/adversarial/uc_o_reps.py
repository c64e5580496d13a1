"""`private-uc-o-reps`: adversarial losses with full information (paper 004, Algorithm 1).

After every episode the learner sees private cumulative losses of all pairs and private counts. It
plays the policy of the occupancy measure that minimises eta·<L, q> + sum q ln q (3.2) over all
transitions in a confidence box around the estimate (3.1).

Deviations from the paper, all stated in docs/learners/adversarial.md:

* the noise is calibrated to the true sensitivity of a dense loss vector (`privacy.adversarial`);
  ``Central(..., calibration="paper")`` gives the printed constants and says what they deliver;
* the error E is four times the exact noise quantile *at that episode*, not a worst case over K;
* the update is solved by a reduced dual Newton method (`entropy_kernels`) with a certificate on
  every solve, not through the printed dual (C.3).

Settings. ``constants="theory"``: every multiplier one, the bound of Theorem 3.3 applies up to the
calibration. ``"practical"``: the multipliers below, no bound claimed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet._seeds import RunSeeds
from discreet._types import FloatArray
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

NAME = "private-uc-o-reps"


@dataclass(frozen=True, kw_only=True)
class UcORepsSettings(AdversarialSettings):
    """The multipliers. Practical ones are the same for all trust models.

    ``rate=2`` was first chosen on a single tuning seed; a study on problems that are not reported
    (tools/choose_adversarial_constants.py) finds larger rates slightly better on most adversaries
    and up to twice as bad on one that fools them: 2 stays, see docs/learners/adversarial.md.
    """

    PRACTICAL: ClassVar[Mapping[str, object]] = {"confidence": 0.01, "rate": 2.0}


def learning_rate(world: World) -> float:
    """Eta = sqrt(ln(XA/H)/K) of Theorem 3.3."""
    per_layer = world.plan.size.pairs / world.plan.size.horizon
    return math.sqrt(max(math.log(per_layer), 1e-3) / world.episodes)


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
        settings: see `UcORepsSettings`.
    """
    from discreet.learners.adversarial.entropy_kernels import entropy_state
    from discreet.learners.adversarial.occupancy_kernels import open_boxes
    from discreet.learners.adversarial.uc_o_reps_kernels import run_block

    chosen = UcORepsSettings.choose(settings, learner=NAME)
    world = make_world(mdp, trust, episodes, seeds, chosen, feedback="full", losses=losses)
    shape, widths = world.mdp.shape, world.mdp.widths
    boxes, state = open_boxes(widths, shape.transitions), entropy_state(widths, shape.actions)
    state.policy[:] = 1.0 / shape.actions  # q_1 is uniform
    rate = chosen.rate * learning_rate(world)

    def play_block(block: Block, paid: FloatArray, gaps: FloatArray) -> int:
        return run_block(
            block.losses,
            block.users,
            block.errors,
            world.log_iota,
            chosen.confidence,
            rate,
            boxes,
            state,
            block.first > 0,
            paid,
            gaps,
        )

    shown = chosen.to_dict() | {"learning_rate": rate}
    return run_blocks(NAME, world, state.policy, shown, play_block)


SPECS = {
    NAME: LearnerSpec(
        name=NAME,
        summary="adversarial losses, full information: entropy FTRL over confidence boxes",
        paper="Bai et al., Algorithm 1 (004)",
        rhythm="adversarial",
        trusts=("central", "local", "none"),
        bound="H·C_M·sqrt(K) + X²AH²/eps (central) or X²AH²·sqrt(K)/eps (local)",
        bound_shape=lambda states, actions, horizon, episodes, epsilon: (
            horizon * states * math.sqrt(actions * episodes)
            + states**2 * actions * horizon**2 / epsilon
        ),
        run=run,
        settings=UcORepsSettings,
    )
}
