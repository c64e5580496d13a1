"""The rhythm of adversarial learners: blocks of episodes, one result; shared by both of them."""

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet._plain import Plain
from discreet._seeds import RunSeeds
from discreet._types import FloatArray
from discreet.learners.adversarial.world import (
    AdversarialSettings,
    Block,
    HindsightRegret,
    World,
    make_world,
)
from discreet.learners.registry import LearnerSpec
from discreet.learners.result import Result, noise_deviations
from discreet.mdp.layered import LayeredMDP
from discreet.mdp.losses import LossSequence
from discreet.mdp.policies import StochasticPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.adversarial import Feedback
from discreet.privacy.trust import TrustModel

if TYPE_CHECKING:  # compiled modules load when used
    from discreet.learners.adversarial.episode_kernels import Episodes


class AdversarialLearner(ABC):
    """A learner that plays blocks of episodes against an adversary.

    Attributes:
        world: where it runs.
        settings: of the caller.
        boxes: around the transitions, none excluded at first.
        rate: its learning rate eta.
        policy: ``[H, W, A]``, of the next episode; `play_block` updates it in place.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    feedback: ClassVar[Feedback]
    settings_type: ClassVar[type[AdversarialSettings]]
    rate: float
    policy: FloatArray

    def __init__(self, world: World, settings: AdversarialSettings) -> None:
        from discreet.learners.adversarial.occupancy_kernels import open_boxes

        self.world = world
        self.settings = settings
        self.boxes = open_boxes(world.mdp.widths, world.mdp.shape.transitions)

    @abstractmethod
    def play_block(self, episodes: "Episodes", first: int) -> int:
        """Play episodes ``first`` and on, fill what each paid and its gap; returns Newton steps."""

    def shown_settings(self) -> dict[str, Plain]:
        """For the result: what was chosen and what follows from it."""
        return self.settings.to_dict() | {"learning_rate": self.rate}

    def episodes(self, block: Block) -> "Episodes":
        """A block as the compiled loops take it."""
        from discreet.learners.adversarial.episode_kernels import Episodes

        paid, gaps = np.empty(len(block.losses)), np.empty(len(block.losses))
        confidence = self.settings.confidence, self.world.log_iota
        return Episodes(block.losses, block.users, block.errors, *confidence, self.rate, paid, gaps)


def adversarial_spec(kind: type[AdversarialLearner], *, paper: str) -> LearnerSpec:
    """The line of an adversarial learner in the roster, whose class knows the rest."""
    return LearnerSpec(
        name=kind.name,
        summary=kind.summary,
        paper=paper,
        rhythm="adversarial",
        trusts=("central", "local", "none"),
        run=partial(run_adversarial, kind),
        settings=kind.settings_type,
    )


def run_adversarial(
    kind: type[AdversarialLearner],
    mdp: LayeredMDP | TabularMDP,
    trust: TrustModel,
    episodes: int,
    seeds: RunSeeds,
    *,
    losses: LossSequence | str = "stochastic",
    **settings: object,
) -> Result:
    """One run.

    Args:
        kind: the learner's class.
        mdp: a layered MDP, or a tabular one (expanded by stages).
        trust: `Central`, `Local` or `NoPrivacy`.
        episodes: K, more than X·A.
        seeds: of this run.
        losses: what the adversary chose, or "stochastic", "switching", "drifting" around one minus
            the rewards of a tabular MDP.
        settings: see the learner's ``settings_type``.
    """
    chosen = kind.settings_type.choose(settings, learner=kind.name)
    world = make_world(
        mdp,
        trust,
        episodes,
        seeds,
        chosen,
        feedback=kind.feedback,
        losses=losses,
    )
    return run_blocks(kind(world, chosen))


def run_blocks(learner: AdversarialLearner) -> Result:
    """Play all blocks and make the result of the run."""
    from discreet.learners.adversarial.occupancy_solver import check_gap

    world = learner.world
    meter, worst, steps = HindsightRegret(world), 0.0, 0
    for block in world.blocks():
        episodes = learner.episodes(block)
        steps += learner.play_block(episodes, block.first)
        gap = float(episodes.gaps.max())
        check_gap(gap, block.first + int(episodes.gaps.argmax()) + 1)
        worst = max(worst, gap)
        meter.add(block.losses, episodes.paid)
    uniform = meter.uniform_regret()
    return Result(
        learner=learner.name,
        regret=meter.curve(),
        guarantee=world.plan.guarantee,
        policy=_valid_policy(learner),
        episodes=world.episodes,
        seed=world.seeds.seed,
        settings=learner.shown_settings(),
        extras={
            "uniform_regret": uniform,
            "uniform_regret_per_episode": uniform / world.episodes,
            "largest_gap": worst,
            "newton_steps_per_episode": steps / world.episodes,
        },
        mechanism=world.plan.mechanism,
        noise=noise_deviations(world.plan.noise_variance()),
    )


def _valid_policy(learner: AdversarialLearner) -> StochasticPolicy:
    """The policy of the next episode; padding becomes uniform, so that it is valid everywhere."""
    mdp = learner.world.mdp
    return StochasticPolicy(np.where(mdp.present[..., None], learner.policy, 1 / mdp.shape.actions))
