"""The world that adversarial learners run in: users, their losses and release, exact regret.

A run alternates between blocks of loss vectors, noise and uniform numbers (drawn by NumPy, from
named seeds) and a compiled loop over the episodes of the block. The regret after k episodes is
sum over i <= k of V(pi_i, l_i) minus the least total loss of a fixed policy on those same k
losses (equation (2.2)), both computed exactly in the true model.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet import _validate
from discreet._jit import kernel
from discreet._seeds import RunSeeds
from discreet._types import FloatArray, Floats, IntArray
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
from discreet.adversarial.noise import LOSS_UNITS
from discreet.errors import InvalidInputError
from discreet.learners.result import RegretCurve, RegretRecorder
from discreet.learners.settings import Settings
from discreet.mdp.dense import occupancy, optimal_values
from discreet.mdp.layered import LayeredMDP, tabular_losses
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import TrustModel

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
        confidence: multiplies beta, the width of the confidence boxes.
        error: multiplies E, the bound on the noise of a counter.
        literal: as printed: X counts the states of the last layer, where nobody acts, and the root
            of (3.1) covers both terms; False counts states with actions, and follows the proof.
        rate: multiplies the learning rate eta.
        public_losses: losses are not personal and are released without noise.
    """

    confidence: float = 1.0
    error: float = 1.0
    literal: bool = False
    rate: float = 1.0
    public_losses: bool = False

    def check(self) -> None:
        _validate.positive(confidence=self.confidence, error=self.error, rate=self.rate)

    def release_options(self) -> dict[str, Any]:
        """How losses are released: keywords of `calibrate_layered`."""
        return {"public_losses": self.public_losses}


class LayeredCounters(NamedTuple):
    """Cumulative counts, and losses: of all episodes (full information) or of one (bandit)."""

    transitions: FloatArray  # [H, W, A, W]
    visits: FloatArray  # [H, W, A]
    losses: FloatArray  # [H, W, A]


class LayeredUsers(NamedTuple):
    """Some consecutive users; ``raw`` and ``path`` are for the release alone."""

    transitions: FloatArray  # [H, W, A, W], of the true model
    widths: IntArray  # [H + 1], of its layers
    reported: FloatArray  # [n, H, W, A], the losses as users report them
    uniforms: FloatArray  # [n, H, 2], draws for actions and next states
    noise: LayeredCounters  # of the release after each of them, [n, ...]
    raw: LayeredCounters  # what was counted so far
    public: LayeredCounters  # what is released
    path: IntArray  # [H, 2], the last user's (x, a) per step
    full: bool  # everybody reports the losses of all pairs; otherwise of the visited ones
    shift: float  # what users subtract from a loss before they report it


@kernel
def add_layered_user(users: LayeredUsers, k: int, policy: FloatArray) -> None:
    """User k of the block plays ``policy[H, W, A]``; then ``users.public`` is the next release."""
    raw, noise, public = users.raw, users.noise, users.public
    horizon, width, actions, successors = raw.transitions.shape
    x = 0
    for h in range(horizon):
        a = _draw(policy[h, x], actions, users.uniforms[k, h, 0])
        y = _draw(users.transitions[h, x, a], users.widths[h + 1], users.uniforms[k, h, 1])
        raw.visits[h, x, a] += 1.0
        raw.transitions[h, x, a, y] += 1.0
        users.path[h, 0], users.path[h, 1] = x, a
        x = y
    for h in range(horizon):
        for x in range(width):
            for a in range(actions):
                public.visits[h, x, a] = raw.visits[h, x, a] + noise.visits[k, h, x, a]
                for y in range(successors):
                    public.transitions[h, x, a, y] = (
                        raw.transitions[h, x, a, y] + noise.transitions[k, h, x, a, y]
                    )
                public.losses[h, x, a] = noise.losses[k, h, x, a]
                if users.full:
                    raw.losses[h, x, a] += users.reported[k, h, x, a]
                    public.losses[h, x, a] += raw.losses[h, x, a]
    if not users.full:
        for h in range(users.path.shape[0]):
            x, a = users.path[h, 0], users.path[h, 1]
            public.losses[h, x, a] += users.reported[k, h, x, a] - users.shift


@kernel
def _draw(probabilities: FloatArray, n: int, uniform: float) -> int:
    """Index i with probability ``probabilities[i]``; rounding falls on the last possible one."""
    total, last = 0.0, 0
    for i in range(n):
        if probabilities[i] > 0.0:
            total += probabilities[i]
            last = i
            if uniform < total:
                return i
    return last


def no_layered_counts(shape: tuple[int, ...]) -> LayeredCounters:
    """Before the first user; ``shape`` is (H, W, A, W)."""
    return LayeredCounters(np.zeros(shape), np.zeros(shape[:3]), np.zeros(shape[:3]))


class Episodes(NamedTuple):
    """Some consecutive episodes, and what a learner's loop leaves of each."""

    losses: Floats  # [n, H, W, A], what the regret is measured on
    users: LayeredUsers  # who plays them, seen through their release
    errors: Floats  # [n], E of the release after each episode
    confidence: float  # multiplier on the width of the boxes
    log_iota: float  # ln(XAK/delta)
    literal: bool  # boxes as (3.1) prints them
    rate: float  # eta
    paid: Floats  # [n], expected losses, filled
    gaps: Floats  # [n], certificates, filled


@kernel
def expected_loss(transitions: Floats, policy: Floats, losses: Floats) -> float:
    """V(policy, losses) in the true model, equation (2.1)."""
    start = np.zeros(policy.shape[1])
    start[0] = 1.0
    reached, total = occupancy(transitions, start, policy), 0.0
    for h in range(reached.shape[0]):
        for x in range(reached.shape[1]):
            for a in range(reached.shape[2]):
                total += reached[h, x, a] * losses[h, x, a]
    return total


def least_loss(transitions: Floats, losses: Floats) -> float:
    """Min over policies of V(policy, losses): the best fixed policy in hindsight."""
    return -float(optimal_values(transitions, -losses)[0, 0])


@dataclass(frozen=True, eq=False)
class World:
    """The true model, the losses that the adversary chose and the calibrated release of one run."""

    mdp: LayeredMDP
    losses: LossSequence
    mechanism: LayeredMechanism
    seeds: RunSeeds
    literal: bool = False

    @property
    def episodes(self) -> int:
        return self.mechanism.episodes

    @property
    def states(self) -> int:
        """X of the formulas."""
        size = self.mechanism.size
        return size.states if self.literal else sum(size.widths[:-1])

    @property
    def pairs(self) -> int:
        """X·A of the formulas."""
        return self.states * self.mechanism.size.actions

    @property
    def failure(self) -> float:
        """Delta = XA/K, the failure probability of Theorems 3.3 and 4.2."""
        return self.pairs / self.episodes

    @property
    def log_iota(self) -> float:
        """Ln iota, iota = XAK/delta."""
        return float(np.log(self.pairs * self.episodes / self.failure))

    def blocks(self, settings: AdversarialSettings, rate: float) -> Iterator[tuple[int, Episodes]]:
        """All episodes in blocks of a fixed size, which changes nothing; each with its first.

        Users draw from the seeds "environment" and "policy", the release from "noise".
        """
        mdp, mechanism = self.mdp, self.mechanism
        horizon, width, actions = mdp.shape.visits
        size = max(16, _BLOCK_VALUES // (horizon * width * actions * (width + 2)))
        failure = self.failure / (mechanism.size.pairs * (width + 1) * self.episodes)
        environment, policy = self.seeds.generator("environment"), self.seeds.generator("policy")
        noise = mechanism.open(SimulationSampler(self.seeds.generator("noise")))
        raw, public = (no_layered_counts(mdp.shape.transitions) for _ in range(2))
        for first in range(0, self.episodes, size):
            last = min(first + size, self.episodes)
            count = last - first
            losses = np.ascontiguousarray(self.losses.block(first, last), np.float64)
            inside = (losses >= 0) & (losses <= 1)
            if not inside.all():
                wrong = np.argwhere(~inside)[0]
                raise InvalidInputError(
                    f"Expected losses in [0, 1], got {losses[tuple(wrong)]} in episode "
                    f"{first + int(wrong[0])}; rescale them."
                )
            reported = losses
            if mechanism.rounds_losses:
                reported = np.rint(losses * LOSS_UNITS) / LOSS_UNITS
            draws = policy.random((count, horizon)), environment.random((count, horizon))
            users = LayeredUsers(
                transitions=mdp.transitions,
                widths=mdp.widths,
                reported=reported,
                uniforms=np.stack(draws, axis=-1),
                noise=LayeredCounters(*noise.block(count)),
                raw=raw,
                public=public,
                path=np.zeros((horizon, 2), np.int64),
                full=mechanism.feedback == "full",
                shift=0.5 if mechanism.centred_losses else 0.0,
            )
            bounds = mechanism.error_bounds(failure, np.arange(first + 1, last + 1))
            episodes = Episodes(
                losses=losses,
                users=users,
                errors=4 * settings.error * bounds,
                confidence=settings.confidence,
                log_iota=self.log_iota,
                literal=self.literal,
                rate=rate,
                paid=np.empty(count),
                gaps=np.empty(count),
            )
            yield first, episodes


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
    pairs = size.states * size.actions if settings.literal else size.pairs
    if episodes <= pairs:
        raise InvalidInputError(
            f"Expected more episodes than pairs, X·A={pairs} (the failure probability XA/K "
            f"must be below one), got episodes={episodes}; run longer."
        )
    if isinstance(losses, str):
        _validate.choice(LOSS_KINDS, losses=losses)
        means = tabular_losses(mdp) if isinstance(mdp, TabularMDP) else None
        seed = int(seeds.sequence("environment").generate_state(1)[0])
        losses = LOSS_KINDS[losses](layered, episodes, means=means, seed=seed)
    elif losses.episodes < episodes:
        raise InvalidInputError(
            f"Expected losses for all {episodes} episodes, got a sequence of {losses.episodes}; "
            f"make a longer one."
        )
    if losses.mdp.shape != layered.shape or not np.array_equal(losses.mdp.widths, layered.widths):
        raise InvalidInputError(
            f"Expected losses for layers of widths {layered.widths.tolist()}, got "
            f"{losses.mdp.widths.tolist()}."
        )
    options = settings.release_options()
    mechanism = calibrate_layered(trust, size, episodes, feedback=feedback, **options)
    return World(layered, losses, mechanism, seeds, settings.literal)


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
        best = least_loss(self._mdp.transitions, total)
        return self._paid + float(paid.sum()) - best

    def curve(self) -> RegretCurve:
        return self._recorder.curve()

    def uniform_regret(self) -> float:
        """What the uniformly random policy would have lost against the best one, in all."""
        moves = self._mdp.transitions
        uniform = np.full(self._mdp.shape.visits, 1 / self._mdp.shape.actions)
        paid = expected_loss(moves, uniform, self._total)
        return float(paid - least_loss(moves, self._total))
