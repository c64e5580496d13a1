"""Convex problems over occupancy measures with transitions in confidence boxes.

Three problems, each solved by a compiled kernel that exploits the layers (see `entropy_kernels`,
`barrier_kernels` and `occupancy_kernels` for the mathematics), each checked on every solve by its
duality gap. The learners call the kernels inside their compiled episode loops; these functions are
the same solvers for one problem at a time.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet._seeds import RunSeeds
from discreet._types import FloatArray, Floats, Plain
from discreet.adversarial.barrier import barrier_state, barrier_step
from discreet.adversarial.entropy import entropy_state, row_major, solve_entropy
from discreet.adversarial.layered import LayeredMDP
from discreet.adversarial.losses import LossSequence
from discreet.adversarial.mechanism import Feedback
from discreet.adversarial.occupancy import Boxes, state_action_occupancy, upper_occupancy
from discreet.adversarial.world import (
    AdversarialSettings,
    Block,
    HindsightRegret,
    World,
    make_world,
)
from discreet.errors import InvalidInputError, SolverError
from discreet.learners.registry import LearnerSpec
from discreet.learners.result import Result, noise_deviations
from discreet.mdp.policies import StochasticPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.trust import TrustModel

if TYPE_CHECKING:
    from discreet.adversarial.world import Episodes


GAP_LIMIT = 1e-3
"""A solve that misses its certificate by more than this is an error; most gaps are below 1e-8."""


@dataclass(frozen=True, eq=False)
class OccupancySolution:
    """A feasible solution and how far its objective can be from the optimum.

    Attributes:
        policy: ``[H, X, A]``.
        transitions: ``[H, X, A, X]``, inside the boxes.
        occupancy: ``[H, X, A, X]``, of the policy under these transitions.
        gap: duality gap: the objective is within it of the optimum.
        steps: Newton steps.
    """

    policy: Floats
    transitions: Floats
    occupancy: Floats
    gap: float
    steps: int


def confidence_boxes(widths: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Boxes:
    """Boxes around the transitions of a layered problem, checked.

    Args:
        widths: ``(H + 1,)``, states in each layer.
        lower: ``(H, X, A, X)``, padded to the widest layer.
        upper: the same shape.
    """
    boxes = Boxes(
        np.array(widths, np.int64),
        np.ascontiguousarray(lower, np.float64),
        np.ascontiguousarray(upper, np.float64),
    )
    horizon, widest = len(boxes.widths) - 1, int(boxes.widths.max())
    expected = (horizon, widest, boxes.lower.shape[2] if boxes.lower.ndim == 4 else "A", widest)
    if boxes.lower.shape != expected or boxes.upper.shape != expected:
        raise InvalidInputError(
            f"Expected boxes of shape {expected}, got {boxes.lower.shape} and {boxes.upper.shape}."
        )
    for h in range(horizon):
        here, ahead = boxes.widths[h], boxes.widths[h + 1]
        low, high = boxes.lower[h, :here, :, :ahead], boxes.upper[h, :here, :, :ahead]
        if (low < 0).any() or (low > high).any():
            raise InvalidInputError(f"Expected 0 <= lower <= upper in layer {h}.")
        if (low.sum(-1) > 1 + 1e-9).any() or (high.sum(-1) < 1 - 1e-9).any():
            raise InvalidInputError(
                f"Expected a distribution in every box of layer {h}, but lower bounds sum to more "
                f"than one or upper bounds to less."
            )
    return boxes


def entropy_ftrl(costs: ArrayLike, boxes: Boxes) -> OccupancySolution:
    """Minimise <costs, q> + sum q ln q: follow the regularised leader, costs = eta·losses.

    >>> boxes = confidence_boxes([1, 2, 1], np.zeros((2, 2, 2, 2)), np.ones((2, 2, 2, 2)))
    >>> free = entropy_ftrl(np.zeros((2, 2, 2)), boxes)
    >>> free.policy[0, 0].tolist(), free.occupancy[0, 0, 0].tolist()
    ([0.5, 0.5], [0.25, 0.25])
    """
    given = _checked_costs(costs, boxes)
    state = entropy_state(boxes.widths, given.shape[2])
    gap, steps = solve_entropy(given, boxes, state, False)
    return _solution(state.policy, row_major(state), boxes, gap, steps)


def barrier_update(
    losses: ArrayLike, rate: float, occupancy: ArrayLike, boxes: Boxes
) -> OccupancySolution:
    """Minimise rate·<losses, q> + D(q || occupancy), D the Bregman divergence of -sum ln q.

    Args:
        losses: ``(H, X, A)``; rate·losses + 1/occupancy must be positive.
        rate: the learning rate eta.
        occupancy: ``(H, X, A, X)``, the current iterate, positive.
        boxes: where the transitions of the result must lie.
    """
    given = _checked_costs(losses, boxes)
    state = barrier_state(boxes.widths, given.shape[2])
    state.occupancy[:] = occupancy
    price = rate * given[..., None] + 1 / state.occupancy
    if not (price > 0).all():
        raise InvalidInputError(
            "Expected rate·losses + 1/occupancy > 0; use a smaller rate or clip negative losses."
        )
    gap, steps = barrier_step(given, float(rate), boxes, state, np.zeros_like(boxes.lower))
    return _solution(state.policy, state.transitions, boxes, gap, steps)


def upper_occupancy_bounds(policy: ArrayLike, boxes: Boxes) -> Floats:
    """``[H, X, A]``: the largest probability of each (x, a) over all transitions in the boxes."""
    given = np.ascontiguousarray(policy, np.float64)
    bounds = np.zeros(given.shape)
    upper_occupancy(boxes, given, bounds)
    return bounds


def check_gap(gap: float, episode: int | None = None) -> None:
    """Raise if a solve missed its certificate.

    Raises:
        SolverError: the gap exceeds `GAP_LIMIT`.
    """
    if not gap <= GAP_LIMIT:
        where = "" if episode is None else f" in episode {episode}"
        raise SolverError(
            f"The occupancy solver stopped{where} with a duality gap of {gap:.3g} > {GAP_LIMIT}; "
            f"use a smaller learning rate or larger epsilon."
        )


def _checked_costs(costs: ArrayLike, boxes: Boxes) -> Floats:
    given = np.array(costs, np.float64)
    if given.shape != boxes.lower.shape[:3] or not np.isfinite(given).all():
        raise InvalidInputError(
            f"Expected finite costs of shape {boxes.lower.shape[:3]}, got shape {given.shape}."
        )
    return given


def _solution(
    policy: Floats, transitions: Floats, boxes: Boxes, gap: float, steps: int
) -> OccupancySolution:
    check_gap(gap)
    pairs = np.zeros(policy.shape)
    state_action_occupancy(transitions, policy, boxes.widths, pairs)
    occupancy = pairs[..., None] * transitions
    for h, ahead in enumerate(boxes.widths[1:]):
        occupancy[h, :, :, ahead:] = 0.0
        occupancy[h, boxes.widths[h] :] = 0.0
    return OccupancySolution(policy, transitions, occupancy, float(gap), steps)


# The schedule of adversarial learners: blocks of episodes, one result; shared by both of them.


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
        from discreet.adversarial.occupancy import open_boxes

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
        from discreet.adversarial.world import Episodes

        paid, gaps = np.empty(len(block.losses)), np.empty(len(block.losses))
        confidence = self.settings.confidence, self.world.log_iota
        return Episodes(block.losses, block.users, block.errors, *confidence, self.rate, paid, gaps)


def adversarial_spec(kind: type[AdversarialLearner], *, paper: str) -> LearnerSpec:
    """The line of an adversarial learner in the roster, whose class knows the rest."""
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
