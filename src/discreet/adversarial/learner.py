"""What both adversarial learners share: confidence boxes, and a run block by block."""

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import ClassVar

import numpy as np

from discreet._jit import kernel
from discreet._seeds import RunSeeds
from discreet._types import FloatArray, Plain
from discreet.adversarial.losses import LossSequence
from discreet.adversarial.mechanism import Feedback
from discreet.adversarial.occupancy import Boxes, check_gap, open_boxes
from discreet.adversarial.world import (
    AdversarialSettings,
    Episodes,
    HindsightRegret,
    LayeredCounters,
    World,
    make_world,
)
from discreet.learners.registry import LearnerSpec
from discreet.learners.result import Result, noise_deviations
from discreet.mdp.layered import LayeredMDP
from discreet.mdp.policies import StochasticPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.projection.valid_counts import valid_row
from discreet.privacy.trust import TrustModel


@kernel
def update_boxes(
    public: LayeredCounters,
    error: float,
    log_iota: float,
    confidence: float,
    boxes: Boxes,
    literal: bool = False,
) -> None:
    """Confidence boxes (3.1) from the released counts of all pairs.

    Released counts are made consistent as in (5.1) and (5.2): a valid distribution with a total
    within E/4 of the noisy visits, then E/2 in all on top; E = ``error`` (zero without privacy).
    The width is confidence·(sqrt(2·P(1-P)·ln iota/N) + (4E + 7·ln iota)/N): the root covers the
    first term only, as after (D.1); ``literal``: both, as (3.1) and Lemma E.14 print it.
    """
    horizon, width, actions, _ = public.transitions.shape
    valid = np.empty(width)
    for h in range(horizon):
        n = boxes.widths[h + 1]
        for x in range(boxes.widths[h]):
            for a in range(actions):
                visits, row = public.visits[h, x, a], public.transitions[h, x, a, :n]
                if error > 0.0:
                    valid_row(row, visits - error / 4, visits + error / 4, valid[:n])
                    visits = 0.0
                    for y in range(n):
                        valid[y] += error / (2 * n)
                        visits += valid[y]
                else:
                    for y in range(n):
                        valid[y] = row[y]
                for y in range(n):
                    centre, radius = 1.0 / n, 1.0
                    if visits > 0.0:
                        centre = valid[y] / visits
                        spread = 2.0 * centre * (1.0 - min(centre, 1.0)) * log_iota / visits
                        rest = (4.0 * error + 7.0 * log_iota) / visits
                        if literal:
                            radius = confidence * math.sqrt(spread + rest)
                        else:
                            radius = confidence * (math.sqrt(spread) + rest)
                    boxes.lower[h, x, a, y] = max(centre - radius, 0.0)
                    boxes.upper[h, x, a, y] = min(centre + radius, 1.0)


class AdversarialLearner(ABC):
    """A learner that plays blocks of episodes against an adversary."""

    name: ClassVar[str]
    summary: ClassVar[str]
    feedback: ClassVar[Feedback]
    settings_type: ClassVar[type[AdversarialSettings]]
    rate: float  # the learning rate eta
    policy: FloatArray  # [H, W, A], of the next episode; `play_block` updates it in place

    def __init__(self, world: World, settings: AdversarialSettings) -> None:
        self.world, self.settings = world, settings
        self.boxes = open_boxes(world.mdp.widths, world.mdp.shape.transitions)

    @abstractmethod
    def play_block(self, episodes: Episodes, first: int) -> int:
        """Play episodes ``first`` and on, fill what each paid and its gap; returns Newton steps."""

    def shown_settings(self) -> dict[str, Plain]:
        """For the result: what was chosen and what follows from it."""
        return self.settings.to_dict() | {"learning_rate": self.rate}

    def run(self) -> Result:
        """Play all blocks and make the result."""
        world, mdp = self.world, self.world.mdp
        meter, worst, steps = HindsightRegret(world), 0.0, 0
        for first, episodes in world.blocks(self.settings, self.rate):
            steps += self.play_block(episodes, first)
            gap = float(episodes.gaps.max())
            check_gap(gap, first + int(episodes.gaps.argmax()) + 1)
            worst = max(worst, gap)
            meter.add(episodes.losses, episodes.paid)
        uniform = meter.uniform_regret()
        # Padding of the last policy becomes uniform, so that it is valid everywhere.
        policy = np.where(mdp.present[..., None], self.policy, 1 / mdp.shape.actions)
        return Result(
            learner=self.name,
            regret=meter.curve(),
            guarantee=world.mechanism.guarantee,
            policy=StochasticPolicy(policy),
            episodes=world.episodes,
            seed=world.seeds.seed,
            settings=self.shown_settings(),
            extras={
                "uniform_regret": uniform,
                "uniform_regret_per_episode": uniform / world.episodes,
                "largest_gap": worst,
                "newton_steps_per_episode": steps / world.episodes,
            },
            mechanism=world.mechanism.name,
            noise=noise_deviations(world.mechanism.noise_variance()),
        )


def adversarial_spec(kind: type[AdversarialLearner], *, paper: str) -> LearnerSpec:
    """The line of an adversarial learner in the registry, whose class knows the rest."""
    return LearnerSpec(
        name=kind.name,
        summary=kind.summary,
        paper=paper,
        schedule="adversarial",
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
    """One run of more than X·A episodes, in a layered MDP or a tabular one (expanded by stages).

    ``losses`` are what the adversary chose, or "stochastic", "switching", "drifting" around one
    minus the rewards of a tabular MDP.
    """
    chosen = kind.settings_type.choose(settings, learner=kind.name)
    world = make_world(mdp, trust, episodes, seeds, chosen, feedback=kind.feedback, losses=losses)
    return kind(world, chosen).run()
