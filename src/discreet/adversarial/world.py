"""Compiled pieces shared by the adversarial learners: confidence boxes, losses, comparators."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet import _validate
from discreet._jit import kernel
from discreet._seeds import RunSeeds
from discreet._types import FloatArray, Floats, Ints
from discreet.adversarial.layered import LayeredMDP, tabular_losses
from discreet.adversarial.losses import (
    LossSequence,
    drifting_losses,
    stochastic_losses,
    switching_losses,
)
from discreet.adversarial.mechanism import (
    Feedback,
    LayeredMechanism,
    LayeredSize,
    calibrate_layered,
)
from discreet.adversarial.occupancy import Boxes
from discreet.adversarial.users import LayeredCounters, LayeredUsers, SimulatedLayers
from discreet.errors import InvalidInputError
from discreet.learners.result import RegretCurve, RegretRecorder
from discreet.learners.settings import Settings
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.projection.valid_counts import valid_row
from discreet.privacy.trust import TrustModel

if TYPE_CHECKING:
    from discreet.adversarial.users import LayeredUsers


class Episodes(NamedTuple):
    """Some consecutive episodes, and what a learner's loop leaves of each.

    Attributes:
        losses: ``[n, H, W, A]``, what the regret is measured on.
        users: who plays them, seen through their release.
        errors: ``[n]``, E of the release after each episode.
        confidence: multiplier on the width of the boxes.
        log_iota: ln(XAK/delta).
        rate: eta.
        paid: ``[n]``, expected losses, filled.
        gaps: ``[n]``, certificates, filled.
    """

    losses: Floats
    users: LayeredUsers
    errors: Floats
    confidence: float
    log_iota: float
    rate: float
    paid: Floats
    gaps: Floats


@kernel
def update_boxes(
    public: LayeredCounters, error: float, log_iota: float, confidence: float, boxes: Boxes
) -> None:
    """Confidence boxes (3.1) from the released counts of all pairs.

    Released counts are made consistent as in (5.1) and (5.2): a valid distribution with a total
    within E/4 of the noisy visits, then E/2 in all on top; E = ``error`` (zero without privacy).
    The width is confidence·(sqrt(2·P(1-P)·ln iota/N) + (4E + 7·ln iota)/N): the root covers the
    first term only, as in the paper's proof (the printed (3.1) extends it over both).
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
                        radius = confidence * (
                            math.sqrt(2.0 * centre * (1.0 - min(centre, 1.0)) * log_iota / visits)
                            + (4.0 * error + 7.0 * log_iota) / visits
                        )
                    boxes.lower[h, x, a, y] = max(centre - radius, 0.0)
                    boxes.upper[h, x, a, y] = min(centre + radius, 1.0)


@kernel
def expected_loss(transitions: Floats, widths: Ints, policy: Floats, losses: Floats) -> float:
    """V(policy, losses) in the true model, equation (2.1)."""
    horizon, width, actions = policy.shape
    reach, ahead = np.zeros(width), np.zeros(width)
    reach[0] = 1.0
    total = 0.0
    for h in range(horizon):
        ahead[:] = 0.0
        for x in range(widths[h]):
            if reach[x] > 0.0:
                for a in range(actions):
                    mass = reach[x] * policy[h, x, a]
                    total += mass * losses[h, x, a]
                    if h + 1 < horizon:
                        for y in range(widths[h + 1]):
                            ahead[y] += mass * transitions[h, x, a, y]
        reach, ahead = ahead, reach
    return total


@kernel
def least_loss(transitions: Floats, widths: Ints, losses: Floats) -> float:
    """Min over policies of V(policy, losses): the best fixed policy in hindsight."""
    horizon, width, actions = losses.shape
    values, ahead = np.zeros(width), np.zeros(width)
    for h in range(horizon - 1, -1, -1):
        for x in range(widths[h]):
            best = np.inf
            for a in range(actions):
                value = losses[h, x, a]
                for y in range(widths[h + 1]):
                    value += transitions[h, x, a, y] * ahead[y]
                best = min(best, value)
            values[x] = best
        values, ahead = ahead, values
    return float(ahead[0])


# The world that adversarial learners run in, and the exact regret.
#
# A run alternates between blocks of loss vectors, noise and uniform numbers (drawn by NumPy, from
# named seeds) and a compiled loop over the episodes of the block. The regret after k episodes is
# sum over i <= k of V(pi_i, l_i) minus the least total loss of a fixed policy on those same k
# losses (equation (2.2)), both computed exactly in the true model.


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
    plan: LayeredMechanism
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
        total = self._total + losses.sum(axis=0)
        best = least_loss(self._mdp.transitions, self._mdp.widths, total)
        return self._paid + float(paid.sum()) - best

    def curve(self) -> RegretCurve:
        return self._recorder.curve()

    def uniform_regret(self) -> float:
        """What the uniformly random policy would have lost against the best one, in all."""
        moves, widths = self._mdp.transitions, self._mdp.widths
        uniform = np.full(self._mdp.shape.visits, 1 / self._mdp.shape.actions)
        paid = expected_loss(moves, widths, uniform, self._total)
        return float(paid - least_loss(moves, widths, self._total))
