"""The world that adversarial learners run in, and the exact regret.

A run alternates between blocks of loss vectors, noise and uniform numbers (drawn by NumPy, from
named seeds) and a compiled loop over the episodes of the block. The regret after k episodes is
sum over i <= k of V(pi_i, l_i) minus the least total loss of a fixed policy on those same k losses
(equation (2.2)), both computed exactly in the true model.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet._types import FloatArray
from discreet.errors import InvalidInputError
from discreet.learners.regret import RegretCurve, RegretRecorder
from discreet.learners.settings import Settings
from discreet.mdp.layered import LayeredMDP, tabular_losses
from discreet.mdp.losses import (
    LossSequence,
    drifting_losses,
    stochastic_losses,
    switching_losses,
)
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.adversarial import Feedback, LayeredPlan, LayeredSize, calibrate_layered
from discreet.privacy.streams.layered import SimulatedLayers
from discreet.privacy.trust import TrustModel

if TYPE_CHECKING:  # compiled modules load when used
    from discreet.privacy.streams.layered_kernels import LayeredUsers


LOSS_KINDS: dict[str, Callable[..., LossSequence]] = {
    "stochastic": stochastic_losses,
    "switching": switching_losses,
    "drifting": drifting_losses,
}
_BLOCK_VALUES = 1 << 18
"""Noise values per block: a few megabytes."""


@dataclass(frozen=True, kw_only=True)
class AdversarialSettings(Settings):
    """Multipliers on the paper's quantities, all one in theory.

    Attributes:
        constants: "practical" (unless asked otherwise) or "theory".
        confidence: on the width beta of the confidence boxes.
        error: on the error bound E of the counts.
        rate: on the learning rate eta.
        public_losses: the losses are not personal data.
    """

    confidence: float = 1.0
    error: float = 1.0
    rate: float = 1.0
    public_losses: bool = False

    def check(self) -> None:
        _validate.positive(confidence=self.confidence, error=self.error, rate=self.rate)

    @property
    def budget_of_losses(self) -> float:
        """The share of the privacy budget that the losses get; the counts get the rest."""
        return 1 / 3

    @property
    def centred(self) -> bool:
        """Bandit users report l - 1/2."""
        return False

    @property
    def padded(self) -> bool:
        """Streamed losses carry the padded tree of 004."""
        return False


class Block(NamedTuple):
    """Some consecutive episodes, one row each.

    Attributes:
        first: number of episodes before.
        losses: ``[n, H, W, A]``, what the regret is measured on.
        users: who plays them, seen through their release.
        errors: ``[n]``, E of the release after each episode.
    """

    first: int
    losses: FloatArray
    users: "LayeredUsers"
    errors: FloatArray


@dataclass(frozen=True, eq=False)
class World:
    """The true model, the adversary and the release of one run.

    Attributes:
        mdp: the layered model.
        losses: what the adversary chose.
        plan: the calibrated release.
        seeds: of this run.
        error_scale: multiplier on E = 4 x noise quantile.
        centred: bandit users report l - 1/2.
    """

    mdp: LayeredMDP
    losses: LossSequence
    plan: LayeredPlan
    seeds: RunSeeds
    error_scale: float = 1.0
    centred: bool = False

    @property
    def episodes(self) -> int:
        return self.plan.episodes

    @property
    def failure(self) -> float:
        """Delta = XA/K, the failure probability of Theorems 3.3 and 4.2."""
        return self.plan.size.pairs / self.episodes

    @property
    def log_iota(self) -> float:
        """Ln iota, iota = XAK/delta."""
        return float(np.log(self.plan.size.pairs * self.episodes / self.failure))

    def blocks(self) -> Iterator[Block]:
        """All episodes, in blocks of a fixed size (the size does not change the losses)."""
        horizon, width, actions = self.mdp.shape.visits
        size = max(16, _BLOCK_VALUES // (horizon * width * actions * (width + 2)))
        stream = SimulatedLayers(self.mdp, self.plan, self.seeds, centred=self.centred)
        cells = self.plan.size.pairs * (width + 1)
        failure = self.failure / (cells * self.episodes)
        for first in range(0, self.episodes, size):
            last = min(first + size, self.episodes)
            losses = checked_losses(self.losses.block(first, last), first)
            bounds = self.plan.error_bounds(failure, np.arange(first + 1, last + 1))
            yield Block(first, losses, stream.users(losses), 4 * self.error_scale * bounds)


def make_world(
    mdp: LayeredMDP | TabularMDP,
    trust: TrustModel,
    episodes: int,
    seeds: RunSeeds,
    settings: AdversarialSettings,
    *,
    feedback: Feedback,
    losses: LossSequence | str,
) -> World:
    """Check the inputs of a run and calibrate its release."""
    layered = LayeredMDP.from_tabular(mdp) if isinstance(mdp, TabularMDP) else mdp
    _validate.count(episodes=episodes)
    size = LayeredSize.of(layered)
    if episodes <= size.pairs:
        raise InvalidInputError(
            f"Expected more episodes than pairs, X·A={size.pairs} (the failure probability XA/K "
            f"must be below one), got episodes={episodes}; run longer."
        )
    sequence = _sequence(mdp, layered, losses, episodes, seeds)
    plan = calibrate_layered(
        trust,
        size,
        episodes,
        feedback=feedback,
        public_losses=settings.public_losses,
        loss_share=settings.budget_of_losses,
        centred_losses=settings.centred,
        padded_losses=settings.padded,
    )
    return World(layered, sequence, plan, seeds, settings.error, settings.centred)


def _sequence(
    mdp: LayeredMDP | TabularMDP,
    layered: LayeredMDP,
    losses: LossSequence | str,
    episodes: int,
    seeds: RunSeeds,
) -> LossSequence:
    if isinstance(losses, str):
        _validate.choice(LOSS_KINDS, losses=losses)
        means = tabular_losses(mdp) if isinstance(mdp, TabularMDP) else None
        seed = int(seeds.sequence("environment").generate_state(1)[0])
        return LOSS_KINDS[losses](layered, episodes, means=means, seed=seed)
    if losses.episodes < episodes:
        raise InvalidInputError(
            f"Expected losses for all {episodes} episodes, got a sequence of {losses.episodes}; "
            f"make a longer one."
        )
    if losses.mdp.shape != layered.shape or not np.array_equal(losses.mdp.widths, layered.widths):
        raise InvalidInputError(
            f"Expected losses for layers of widths {layered.widths.tolist()}, got "
            f"{losses.mdp.widths.tolist()}."
        )
    return losses


def checked_losses(block: FloatArray, first: int) -> FloatArray:
    """Losses of a block, refused outside [0, 1]."""
    if not ((block >= 0) & (block <= 1)).all():
        wrong = np.argwhere(~((block >= 0) & (block <= 1)))[0]
        raise InvalidInputError(
            f"Expected losses in [0, 1], got {block[tuple(wrong)]} in episode "
            f"{first + int(wrong[0])}; rescale them."
        )
    return np.ascontiguousarray(block, np.float64)


class HindsightRegret:
    """Exact regret against the best fixed policy in hindsight, at log-spaced episodes."""

    def __init__(self, world: World) -> None:
        self._mdp = world.mdp
        self._recorder = RegretRecorder(world.episodes)
        self._paid = 0.0
        self._total = np.zeros(world.mdp.shape.visits)

    def add(self, losses: FloatArray, paid: FloatArray) -> None:
        """The losses of some episodes and what the learner's policies paid in expectation."""
        points = self._recorder.ahead(len(paid))
        self._recorder.record([self._after(losses[:n], paid[:n]) for n in points], len(paid))
        self._total += losses.sum(axis=0)
        self._paid += float(paid.sum())

    def _after(self, losses: FloatArray, paid: FloatArray) -> float:
        """Regret when these episodes are over, too."""
        from discreet.learners.adversarial.episode_kernels import least_loss

        total = self._total + losses.sum(axis=0)
        best = least_loss(self._mdp.transitions, self._mdp.widths, total)
        return self._paid + float(paid.sum()) - best

    def curve(self) -> RegretCurve:
        return self._recorder.curve()

    def uniform_regret(self) -> float:
        """What the uniformly random policy would have lost against the best one, in all."""
        from discreet.learners.adversarial.episode_kernels import expected_loss, least_loss

        moves, widths = self._mdp.transitions, self._mdp.widths
        uniform = np.full(self._mdp.shape.visits, 1 / self._mdp.shape.actions)
        paid = expected_loss(moves, widths, uniform, self._total)
        return float(paid - least_loss(moves, widths, self._total))
