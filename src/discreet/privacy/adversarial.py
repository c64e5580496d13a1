"""Releases for learners with adversarial losses: counts of a layered MDP, and losses.

What a user hands over besides the trajectory depends on the feedback:

* *full information*: a loss for **every** (x, a). The vector is dense: replacing the user can move
  each of its X·A entries by one, L1 = X·A and L2 = sqrt(X·A), not H. It enters a cumulative sum.
* *bandit*: the losses of the H visited pairs: L1 = 2H. They enter an importance-weighted estimate
  one episode at a time: each episode's vector is released once, with one-shot noise. Users who
  report l - 1/2 halve the sensitivity: L1 = H (see `loss_reach`).
* *public* losses (a price, a weather cost) are no personal data and carry no noise; then only the
  trajectories are protected, and the guarantee says so.

Transitions and visits move by 4H units together (see `sensitivity`).

**Proof.** Full information: all counters form one stream of reach 4H + X·A. Bandit: counters and
losses are two releases about the same user. The stream is first calibrated as if it had reach
4H/(1-s), of which its 4H units use the share 1-s of the budget, and one-shot noise on the losses as
if they alone had reach 2H/s (both 6H for s = 1/3, as printed). What holds is then proved for the
counts and the finer losses *together*:

* Laplace noise: pure epsilons add up; the losses get what the stream leaves of epsilon, in exact
  rationals.
* Plain Gaussian trees and local reports: `two_lattices` bounds delta for discrete counts and losses
  on their two lattices, for all moves of one user; the noise on both is raised (by 1% at most)
  until the promise holds. (That the sum is "again Gaussian" is *not* true: at H = 1, epsilon = 40
  it would deliver 1.07 times the delta.)
* Toeplitz, averaged and padded trees: the stream carries continuous Gaussian noise, rounded, up to
  the cost of its grid (proofs in `mechanisms.toeplitz` and `mechanisms.tree`). Streamed losses are
  treated likewise, on a grid of at least as many steps. Bandit losses exceed a continuous Gaussian
  loss by at most the slack of `two_lattices`. Where the grid costs too much (very large epsilon),
  concentrated privacy adds up instead.

Both notions are the stream's: JDP by the billboard lemma, LDP because every report is private by
itself.

Losses are counted in units of 1/1024 (rounded to the nearest), with integer noise 1024 times as
large: no floating-point noise, and no extra variance from rounding to bits.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from discreet import _validate
from discreet._types import FloatArray
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.layered import LayeredMDP
from discreet.privacy.guarantee import NO_GUARANTEE, Guarantee
from discreet.privacy.loss_noise import LOSS_UNITS, Shares, in_loss_units, together
from discreet.privacy.mechanisms._cumulative import (
    CumulativeNoise,
    IndependentNoise,
    NoiseRun,
    Reach,
    check_exact,
)
from discreet.privacy.mechanisms._laws import LaplaceLaw, NoiseLaw
from discreet.privacy.mechanisms._printed import delivered
from discreet.privacy.mechanisms.tree import PaddedTreeNoise, TreeNoise, tree_levels
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.trust import Local, NoPrivacy, PrivateTrust, TrustModel

Feedback = Literal["full", "bandit"]

_ADDITIVE = ("toeplitz", "tree-gaussian", "tree-honaker", "tree-laplace", "tree-iid")
_ADDITIVE_LOCAL = ("laplace", "gaussian")
_LEAST_SHARE = 1e-3
"""Of the budget; with less, counts or losses would drown in noise."""


@dataclass(frozen=True)
class LayeredSize:
    """What a plan needs to know of a layered MDP.

    >>> LayeredSize(widths=(1, 4, 4, 1), actions=2).pairs
    18
    """

    widths: tuple[int, ...]
    actions: int

    @classmethod
    def of(cls, mdp: LayeredMDP) -> "LayeredSize":
        """The size of a model."""
        return cls(tuple(int(w) for w in mdp.widths), mdp.shape.actions)

    @property
    def horizon(self) -> int:
        """H."""
        return len(self.widths) - 1

    @property
    def pairs(self) -> int:
        """X·A, the last layer excluded."""
        return sum(self.widths[:-1]) * self.actions

    @property
    def padded(self) -> tuple[int, int, int]:
        """(H, W, A)."""
        return self.horizon, max(self.widths), self.actions


def loss_reach(
    size: LayeredSize, feedback: Feedback, *, public: bool, centred: bool = False
) -> int:
    """How far one user can move the losses: sum of absolute changes, each of at most one.

    ``centred`` bandit losses, l - 1/2 on the visited pairs, lie within 1/2 of the zeros elsewhere:
    a step moves one entry by at most one, or two by at most 1/2 each. H instead of 2H.
    """
    if public:
        return 0
    if feedback == "full":
        return size.pairs
    return size.horizon if centred else 2 * size.horizon


def printed_epsilon(
    size: LayeredSize, epsilon: float, feedback: Feedback, *, episodes: int | None = None
) -> float:
    """The pure epsilon that the printed noise of paper 004 delivers.

    Printed: Laplace noise of scale 3H/eps on every counter and loss (local), 3H·log2(K)/eps on
    every node of the tree (central, give ``episodes``), claimed to be eps in both cases.

    >>> round(printed_epsilon(LayeredSize((1, *[4] * 5, 1), 2), 1.0, "full"), 3)
    3.667
    >>> printed_epsilon(LayeredSize((1, *[4] * 5, 1), 2), 1.0, "bandit")
    2.0
    """
    losses = loss_reach(size, feedback, public=False)
    levels = 1.0 if episodes is None else tree_levels(episodes) / math.log2(episodes)
    counts = 4 * size.horizon * levels
    streamed = losses * levels if feedback == "full" else losses
    return epsilon * (counts + streamed) / (3 * size.horizon)


@dataclass(frozen=True, eq=False, kw_only=True)
class LayeredPlan:
    """A calibrated release after every episode of an adversarial learner.

    Attributes:
        size: layers and actions.
        feedback: "full" (cumulative losses of all pairs) or "bandit" (each episode's observed).
        episodes: length of the stream.
        guarantee: what it delivers.
        noise: noise over time on one cumulative counter, None without privacy.
        loss_law: one-shot noise on one observed loss (in loss units), None where there is none.
        streamed_losses: losses are part of the stream (full information).
        public_losses: losses carry no noise.
        mechanism: the name of the stream's, resolved.
    """

    size: LayeredSize
    feedback: Feedback
    episodes: int
    guarantee: Guarantee
    noise: CumulativeNoise | None = None
    loss_law: NoiseLaw | None = None
    streamed_losses: bool = False
    public_losses: bool = False
    mechanism: str = "none"

    def noise_variance(self) -> dict[str, float]:
        """Noise variance on one counter of each statistic after all episodes.

        Losses: on the cumulative losses of a pair (full information), or on one episode's (bandit).
        """
        counts = 0.0 if self.noise is None else self.noise.variance(self.episodes)
        losses = counts if self.streamed_losses else self.loss_std**2
        return {"transitions": counts, "visits": counts, "losses": losses}

    def error_bounds(self, failure: float) -> FloatArray:
        """What |noise| on one count exceeds with probability ``failure``, after 1..K episodes."""
        return np.zeros(self.episodes) if self.noise is None else self.noise.bounds(failure)

    def loss_bound(self, failure: float) -> float:
        """What |noise| on one episode's loss exceeds with probability ``failure`` (bandit)."""
        if self.loss_law is None:
            return 0.0
        return self.loss_law.bound({1.0: 1.0}, failure) / LOSS_UNITS

    @property
    def loss_std(self) -> float:
        """Standard deviation of the noise on one episode's loss (bandit)."""
        return 0.0 if self.loss_law is None else math.sqrt(self.loss_law.variance) / LOSS_UNITS

    @property
    def rounds_losses(self) -> bool:
        """Private losses are rounded to units."""
        return self.noise is not None and not self.public_losses

    def open(self, sampler: Sampler) -> "LayeredNoise":
        """Start a stream; it is used once."""
        return LayeredNoise(self, sampler)


class LayeredNoise:
    """The noise of one running stream, in blocks padded like the learner's arrays."""

    def __init__(self, plan: LayeredPlan, sampler: Sampler) -> None:
        self.plan = plan
        self._sampler = sampler
        horizon, width, _ = plan.size.padded
        pair, triple = np.zeros(plan.size.padded, bool), np.zeros((*plan.size.padded, width), bool)
        for h in range(horizon):
            pair[h, : plan.size.widths[h]] = True
            triple[h, : plan.size.widths[h], :, : plan.size.widths[h + 1]] = True
        self._pair, self._triple = np.flatnonzero(pair), np.flatnonzero(triple)
        self._shapes = (pair.shape, triple.shape)
        self._counts = self._start(plan.noise, self._triple.size + self._pair.size)
        streamed = plan.noise if plan.streamed_losses else None
        in_units = None if streamed is None else in_loss_units(streamed)
        self._losses = self._start(in_units, self._pair.size)

    def _start(self, noise: CumulativeNoise | None, cells: int) -> NoiseRun | None:
        return None if noise is None else noise.start(cells, self._sampler)

    def block(self, episodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Noise of the next episodes on transitions, visits and losses, ``[episodes, ...]``.

        Losses: on the cumulative sums (full information) or on each episode's (bandit).
        """
        pair_shape, triple_shape = self._shapes
        transitions = np.zeros((episodes, math.prod(triple_shape)))
        visits = np.zeros((episodes, math.prod(pair_shape)))
        losses = np.zeros((episodes, math.prod(pair_shape)))
        if self._counts is not None:
            drawn = self._counts.block(episodes)
            transitions[:, self._triple] = drawn[:, : self._triple.size]
            visits[:, self._pair] = drawn[:, self._triple.size :]
        if self._losses is not None:
            losses[:, self._pair] = self._losses.block(episodes) / LOSS_UNITS
        elif self.plan.loss_law is not None:
            fresh = self.plan.loss_law.draw(self._sampler, (episodes, self._pair.size))
            losses[:, self._pair] = fresh / LOSS_UNITS
        return (
            transitions.reshape(episodes, *triple_shape),
            visits.reshape(episodes, *pair_shape),
            losses.reshape(episodes, *pair_shape),
        )


def calibrate_layered(
    trust: TrustModel,
    size: LayeredSize,
    episodes: int,
    *,
    feedback: Feedback,
    public_losses: bool = False,
    loss_share: float = 1 / 3,
    centred_losses: bool = False,
) -> LayeredPlan:
    """Noise on counts and losses that delivers the trust model's promise.

    Args:
        trust: central, local or none.
        size: of the layered MDP.
        episodes: K.
        feedback: "full" or "bandit".
        public_losses: the losses are no personal data; only trajectories are protected.
        loss_share: of the budget, for bandit losses (the paper's is a third).
        centred_losses: bandit users report l - 1/2 on the visited pairs: half the sensitivity.
    """
    _validate.count(2, episodes=episodes)
    _check_share(loss_share)
    if isinstance(trust, NoPrivacy):
        return LayeredPlan(size=size, feedback=feedback, episodes=episodes, guarantee=NO_GUARANTEE)
    private = cast("PrivateTrust", trust)
    name = _additive_name(private)
    losses = loss_reach(size, feedback, public=public_losses, centred=centred_losses)
    counts = 4 * size.horizon
    streamed = losses > 0 and feedback == "full"
    reach = Reach(units=counts + losses, horizon=size.horizon)
    if losses and not streamed and private.calibration == "exact":
        reach = Reach(units=math.ceil(counts / (1 - loss_share) - 1e-9), horizon=size.horizon)
    loss_law: NoiseLaw | None = None
    if private.calibration == "paper":
        noise, guarantee = _printed(private, size, episodes, feedback, name, reach)
        if losses and not streamed:
            loss_law = LaplaceLaw(3 * size.horizon / float(private.epsilon)).scaled(LOSS_UNITS)
    else:
        noise, guarantee = private.load("stream").design(private, reach, episodes)
        if losses:
            once = 0.0 if streamed else losses / loss_share
            noise, loss_law = together(noise, private, Shares(counts, losses, reach.units, once))
    if streamed:
        in_loss_units(noise)  # refuses, before anything is drawn, what does not fit
    if loss_law is not None:
        check_exact(loss_law.variance)
    if public_losses:
        note = "losses are public: only trajectories (states and actions) are protected"
        guarantee = replace(guarantee, assumptions=(*guarantee.assumptions, note))
    return LayeredPlan(
        size=size,
        feedback=feedback,
        episodes=episodes,
        guarantee=guarantee,
        noise=noise,
        loss_law=loss_law,
        streamed_losses=streamed,
        public_losses=public_losses,
        mechanism=name,
    )


def _check_share(loss_share: float) -> None:
    """Both counts and losses need a part of the budget."""
    _validate.real(loss_share=loss_share)
    if not _LEAST_SHARE <= loss_share <= 1 - _LEAST_SHARE:
        raise InvalidInputError(
            f"Expected loss_share in [{_LEAST_SHARE:g}, {1 - _LEAST_SHARE:g}], got "
            f"loss_share={loss_share!r}: counts and losses both need a part of the budget; use "
            f"public_losses=True if losses need none."
        )


def _additive_name(trust: PrivateTrust) -> str:
    name = trust.resolve("stream")
    allowed = _ADDITIVE_LOCAL if isinstance(trust, Local) else _ADDITIVE
    if name not in allowed:
        raise UnsupportedError(
            f"Losses need additive noise: mechanism {name!r} does not serve adversarial learners; "
            f"use one of {', '.join(allowed)}."
        )
    return name


def _printed(
    trust: PrivateTrust,
    size: LayeredSize,
    episodes: int,
    feedback: Feedback,
    name: str,
    reach: Reach,
) -> tuple[CumulativeNoise, Guarantee]:
    """The constants of paper 004 and what they deliver under replace-one."""
    scale = 3 * size.horizon / float(trust.epsilon)
    noise: CumulativeNoise
    if isinstance(trust, Local):
        noise = IndependentNoise(episodes=episodes, law=LaplaceLaw(scale))
        spent = reach.l1 / scale
    else:
        law = LaplaceLaw(scale * math.log2(episodes))
        tree = PaddedTreeNoise if name == "tree-iid" else TreeNoise
        noise = tree(episodes=episodes, law=law)
        once = reach.l1 - 4 * size.horizon if feedback == "bandit" else 0
        spent = (reach.l1 - once) * tree_levels(episodes) / law.scale + once / scale
    return noise, delivered(trust, "paper 004", spent)
