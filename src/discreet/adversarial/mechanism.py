"""Releases for learners with adversarial losses: counts of a layered MDP, and losses.

What a user hands over besides the trajectory depends on the feedback:

* *full information*: a loss for **every** (x, a). The vector is dense: replacing the user can move
  each of its X·A entries by one, L1 = X·A and L2 = sqrt(X·A), not H. It enters a cumulative sum.
* *bandit*: the losses of the H visited pairs: L1 = 2H. They enter an importance-weighted estimate
  one episode at a time: each episode's vector is released once, with one-shot noise. Users who
  report l - 1/2 halve the sensitivity: L1 = H (see `loss_sensitivity`).
* *public* losses (a price, a weather cost) are no personal data and carry no noise; then only the
  trajectories are protected, and the guarantee says so.

Transitions and visits move by 4H units together (see `sensitivity`).

**Proof.** Full information: all counters form one stream of sensitivity 4H + X·A. Bandit: counters
and losses are two releases about the same user. The stream is first calibrated as if it had
sensitivity 4H/(1-s), of which its 4H units use the share 1-s of the budget, and one-shot noise on
the losses as if they alone had sensitivity 2H/s (both 6H for s = 1/3, as printed). What holds is
then proved for the counts and the finer losses *together*:

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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray, NumberArray, Plain
from discreet.adversarial.noise import LOSS_UNITS, Shares, in_loss_units, together
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.layered import LayeredMDP
from discreet.privacy.guarantee import NO_GUARANTEE, Guarantee
from discreet.privacy.mechanisms.base import Certified, delivered
from discreet.privacy.mechanisms.noise import (
    CumulativeNoise,
    IndependentNoise,
    Laplace,
    NoiseDistribution,
    check_exact,
)
from discreet.privacy.mechanisms.registry import mechanisms
from discreet.privacy.mechanisms.tree import PaddedTreeNoise, TreeNoise, tree_levels
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.trust import Local, PrivateTrust, TrustModel, check_trust_model
from discreet.privacy.vectors import VectorMechanism, vector_stream

if TYPE_CHECKING:
    from discreet.privacy.auditing.paths import Path

Feedback = Literal["full", "bandit"]

_LEAST_SHARE = 1e-3
"""Of the budget; with less, counts or losses would drown in noise."""


@dataclass(frozen=True)
class LayeredSize:
    """What a release needs to know of a layered MDP.

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

    @property
    def triples(self) -> int:
        """Cells (x, a, y) of neighbouring layers."""
        return self.actions * sum(x * y for x, y in pairwise(self.widths))

    @property
    def real_pairs(self) -> BoolArray:
        """``bool[H, W, A]``: the pairs that a model has, in arrays padded to the widest layer."""
        return np.repeat(self._layers[:-1, :, None], self.actions, axis=2)

    @property
    def real_triples(self) -> BoolArray:
        """``bool[H, W, A, W]``, likewise."""
        return self.real_pairs[..., None] & self._layers[1:, None, None, :]

    @property
    def _layers(self) -> BoolArray:
        """``bool[H + 1, W]``: the states of each layer."""
        return np.arange(max(self.widths)) < np.array(self.widths)[:, None]


def loss_sensitivity(
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
    losses = loss_sensitivity(size, feedback, public=False)
    levels = 1.0 if episodes is None else tree_levels(episodes) / math.log2(episodes)
    counts = 4 * size.horizon * levels
    streamed = losses * levels if feedback == "full" else losses
    return epsilon * (counts + streamed) / (3 * size.horizon)


@dataclass(frozen=True, eq=False, kw_only=True)
class LayeredMechanism:
    """A calibrated release after every episode of an adversarial learner.

    Attributes:
        size: layers and actions.
        feedback: "full" (cumulative losses of all pairs) or "bandit" (each episode's observed).
        episodes: length of the stream.
        guarantee: what it delivers.
        name: of the stream's mechanism, resolved.
        noise: noise over time on one cumulative counter, None without privacy.
        loss_law: one-shot noise on one observed loss (in loss units), None where there is none.
        streamed_losses: losses are part of the stream (full information).
        public_losses: losses carry no noise.
        centred_losses: bandit users report l - 1/2.
        padded_losses: streamed losses carry the padded tree of 004, counts the plain one.
    """

    size: LayeredSize
    feedback: Feedback
    episodes: int
    guarantee: Guarantee
    name: str = "none"
    noise: CumulativeNoise | None = None
    loss_law: NoiseDistribution | None = None
    streamed_losses: bool = False
    public_losses: bool = False
    centred_losses: bool = False
    padded_losses: bool = False

    def audit_paths(self) -> "Iterator[Path]":
        """How it is audited (see `discreet.privacy.auditing.check_mechanism`)."""
        from discreet.adversarial.audited import layered_path

        yield layered_path(self, centred=self.centred_losses)

    def certified(self, users: int | None = None) -> Certified:
        """The noise of counts and losses, for a certificate to bound; the length is in it."""
        size, horizon = self.size, self.size.horizon
        if self.noise is None or self.noise.unit < 1:
            raise UnsupportedError("Layered Toeplitz noise is not covered by certificates.")
        name, counts = self.noise.certified(Sensitivity(units=4 * horizon, horizon=horizon))
        # The certificate does not say whether users report centred losses: the worst is assumed.
        losses = loss_sensitivity(size, self.feedback, public=self.public_losses)
        if not losses:
            return name, counts
        if name != "discrete-gaussian":
            raise UnsupportedError(
                "Layered releases are covered by certificates with Gaussian noise only."
            )
        if self.streamed_losses:  # as noisy as the counts, in loss units, on every level
            sigma = Fraction(float(counts["sigma"]) * LOSS_UNITS)
            losses *= counts["times"] // (4 * horizon)
        else:
            sigma = cast(NoiseDistribution, self.loss_law).certified(Sensitivity(units=1))[1][
                "sigma"
            ]
        return "layered-gaussian", {
            "count_sigma": counts["sigma"],
            "counts": counts["times"],
            "loss_sigma": sigma,
            "loss_shift": LOSS_UNITS,
            "losses": losses,
        }

    def release_facts(self, users: int | None = None) -> dict[str, Plain]:
        """What is released, of whom and when."""
        return {
            "trust": {"JDP": "central", "LDP": "local"}[self.guarantee.notion],
            "mechanism": self.name,
            "participations": 1,
            "schedule": "layered continual",
            "widths": list(self.size.widths),
            "actions": self.size.actions,
            "feedback": self.feedback,
            "public_losses": self.public_losses,
            "episodes": self.episodes,
        }

    @property
    def loss_stream(self) -> CumulativeNoise | None:
        """The noise on streamed losses, of one unit; None where there is none.

        The padded tree is the plain one with fresh noise added to its releases: post-processing,
        which delivers what the plain tree does.
        """
        if self.noise is None or not self.streamed_losses:
            return None
        if self.padded_losses and isinstance(self.noise, TreeNoise):
            return PaddedTreeNoise(episodes=self.episodes, distribution=self.noise.distribution)
        return self.noise

    def noise_variance(self) -> dict[str, float]:
        """Noise variance on one counter of each statistic after all episodes.

        Losses: on the cumulative losses of a pair (full information), or on one episode's (bandit).
        """
        counts = 0.0 if self.noise is None else self.noise.variance(self.episodes)
        stream = self.loss_stream
        losses = self.loss_std**2 if stream is None else stream.variance(self.episodes)
        return {"transitions": counts, "visits": counts, "losses": losses}

    def error_bounds(self, failure: float, users: IntArray) -> FloatArray:
        """What |noise| on one count exceeds with probability ``failure``, after so many users."""
        return np.zeros(len(users)) if self.noise is None else self.noise.bounds(failure, users)

    def loss_bound(self, failure: float) -> float:
        """What |noise| on one episode's loss exceeds with probability ``failure`` (bandit)."""
        if self.loss_law is None:
            return 0.0
        return self.loss_law.bound({1.0: 1.0}, failure) / LOSS_UNITS

    def loss_tail(self, failure: float) -> float:
        """The same by the exact tail of Laplace noise, scale·ln(1/failure) (004, Lemma 5.1)."""
        if isinstance(self.loss_law, Laplace):
            return self.loss_law.scale / LOSS_UNITS * math.log(1 / failure)
        return self.loss_bound(failure)

    @property
    def loss_std(self) -> float:
        """Standard deviation of the noise on one episode's loss (bandit)."""
        return 0.0 if self.loss_law is None else math.sqrt(self.loss_law.variance) / LOSS_UNITS

    @property
    def rounds_losses(self) -> bool:
        """Private losses are rounded to units."""
        return self.noise is not None and not self.public_losses

    def streams(self) -> list[VectorMechanism]:
        """The streams behind it: counts, and streamed losses in units of their own."""
        if self.noise is None:
            return []
        stream = partial(
            VectorMechanism,
            episodes=self.episodes,
            name=self.name,
            guarantee=self.guarantee,
        )
        counts = {"transitions": self.size.triples, "visits": self.size.pairs}
        sensitivity = Sensitivity(units=4 * self.size.horizon)
        streams = [stream(sizes=counts, noise=self.noise, sensitivity=sensitivity)]
        if self.loss_stream is not None:
            sensitivity = Sensitivity(units=self.size.pairs * LOSS_UNITS, pile=LOSS_UNITS)
            losses = {"losses": self.size.pairs}
            noise = in_loss_units(self.loss_stream)
            streams.append(stream(sizes=losses, noise=noise, sensitivity=sensitivity))
        return streams

    def open(self, sampler: Sampler) -> "LayeredNoise":
        """Start a stream; it is used once."""
        return LayeredNoise(self, sampler)


class LayeredNoise:
    """The noise of one running stream, in blocks padded like the learner's arrays."""

    def __init__(self, mechanism: LayeredMechanism, sampler: Sampler) -> None:
        self.mechanism, self._sampler = mechanism, sampler
        self._releases = [stream.open(sampler) for stream in mechanism.streams()]
        self._pairs, self._triples = mechanism.size.real_pairs, mechanism.size.real_triples

    def block(self, episodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Noise of the next episodes on transitions, visits and losses, ``[episodes, ...]``.

        Losses: on the cumulative sums (full information) or on each episode's (bandit).
        """
        drawn: dict[str, NumberArray] = {}
        for release in self._releases:
            drawn |= release.mechanism.split(release.noise_block(episodes))
        if self.mechanism.loss_law is not None:
            drawn["losses"] = self.mechanism.loss_law.draw(
                self._sampler, (episodes, self.mechanism.size.pairs)
            )
        return (
            _padded(drawn.get("transitions"), self._triples, episodes),
            _padded(drawn.get("visits"), self._pairs, episodes),
            _padded(drawn.get("losses"), self._pairs, episodes, LOSS_UNITS),
        )


def _padded(
    values: NumberArray | None, real: BoolArray, episodes: int, units: int = 1
) -> FloatArray:
    """``values[episodes, cells]`` where a model has cells, zero in the padding."""
    out = np.zeros((episodes, *real.shape))
    if values is not None:
        out[:, real] = values / units
    return out


def calibrate_layered(
    trust: TrustModel,
    size: LayeredSize,
    episodes: int,
    *,
    feedback: Feedback,
    public_losses: bool = False,
    loss_share: float = 1 / 3,
    centred_losses: bool = False,
    padded_losses: bool = False,
) -> LayeredMechanism:
    """Noise on counts and losses that delivers the trust model's promise.

    Args:
        trust: central, local or none.
        size: of the layered MDP.
        episodes: K.
        feedback: "full" or "bandit".
        public_losses: the losses are no personal data; only trajectories are protected.
        loss_share: of the budget, for bandit losses (the paper's is a third).
        centred_losses: bandit users report l - 1/2 on the visited pairs: half the sensitivity.
        padded_losses: the central privatizer of 004: a plain Laplace tree on the counts, a padded
            one (Algorithm 4) on the losses of full information.
    """
    _validate.count(2, episodes=episodes)
    _check_share(loss_share)
    check_trust_model(trust)
    silent = LayeredMechanism(
        size=size,
        feedback=feedback,
        episodes=episodes,
        guarantee=NO_GUARANTEE,
        centred_losses=centred_losses,
    )
    if not isinstance(trust, PrivateTrust):
        return silent
    name = _additive_name(trust)
    losses = loss_sensitivity(size, feedback, public=public_losses, centred=centred_losses)
    moved = _Moved(size, losses, streamed=losses > 0 and feedback == "full")
    if padded_losses:
        _check_padding(name, moved)
    if trust.printed:
        noise, loss_law, guarantee = _printed(trust, name, moved, episodes)
    else:
        noise, loss_law, guarantee = _exact(trust, moved, episodes, loss_share)
    if loss_law is not None:
        check_exact(loss_law.variance)
    mechanism = replace(
        silent,
        guarantee=_noted(guarantee) if public_losses else guarantee,
        noise=noise,
        loss_law=loss_law,
        streamed_losses=moved.streamed,
        public_losses=public_losses,
        name=name,
        padded_losses=padded_losses,
    )
    mechanism.streams()  # refuses, before anything is drawn, what does not fit
    return mechanism


def _check_share(loss_share: float) -> None:
    """Both counts and losses need a part of the budget."""
    _validate.real(loss_share=loss_share)
    if not _LEAST_SHARE <= loss_share <= 1 - _LEAST_SHARE:
        raise InvalidInputError(
            f"Expected loss_share in [{_LEAST_SHARE:g}, {1 - _LEAST_SHARE:g}], got "
            f"loss_share={loss_share!r}: counts and losses both need a part of the budget; use "
            f"public_losses=True if losses need none."
        )


def _check_padding(name: str, moved: "_Moved") -> None:
    """Padding is worked out for losses that a plain Laplace tree carries."""
    if name != "tree-laplace" or not moved.streamed:
        raise UnsupportedError(
            f"padded_losses is the central privatizer of paper 004: losses of full information "
            f"under Central(mechanism='tree-laplace'), got mechanism {name!r}; leave it out."
        )


def _additive_name(trust: PrivateTrust) -> str:
    name = trust.resolve("continual")
    allowed = [known.name for known in mechanisms(trust.name, "continual").values() if known.losses]
    if name not in allowed:
        raise UnsupportedError(
            f"Losses need additive noise: mechanism {name!r} does not serve adversarial learners; "
            f"use one of {', '.join(allowed)}."
        )
    return name


_Design = tuple[CumulativeNoise, NoiseDistribution | None, Guarantee]


@dataclass(frozen=True)
class _Moved:
    """What one user moves: 4H units of the counts, and ``losses`` of at most one each."""

    size: LayeredSize
    losses: int
    streamed: bool

    @property
    def counts(self) -> int:
        return 4 * self.size.horizon

    @property
    def once(self) -> int:
        """Losses that are released once (bandit)."""
        return 0 if self.streamed else self.losses

    def sensitivity(self, units: int) -> Sensitivity:
        return Sensitivity(units=units, horizon=self.size.horizon)


def _exact(trust: PrivateTrust, moved: _Moved, episodes: int, loss_share: float) -> _Design:
    """The least noise on counts and losses that keeps the promise for both together."""
    units = moved.counts + moved.losses
    if moved.once:
        units = math.ceil(moved.counts / (1 - loss_share) - 1e-9)
    sizes = {"counts": moved.size.triples + moved.size.pairs}
    stream = vector_stream(trust, sizes, moved.sensitivity(units), episodes=episodes)
    if not moved.losses:
        return stream.noise, None, stream.guarantee
    shares = Shares(moved.counts, moved.losses, units, moved.once / loss_share)
    return *together(stream.noise, trust, shares), stream.guarantee


def _printed(trust: PrivateTrust, name: str, moved: _Moved, episodes: int) -> _Design:
    """The constants of paper 004 and what they deliver under replace-one."""
    spec = trust.spec("continual")
    replace(spec, papers=tuple(p for p in spec.papers if p == "004")).check_printed(trust)
    scale = 3 * moved.size.horizon / float(trust.epsilon)
    loss_law = Laplace(scale).scaled(LOSS_UNITS) if moved.once else None
    noise: CumulativeNoise
    if isinstance(trust, Local):
        noise = IndependentNoise(episodes=episodes, distribution=Laplace(scale))
        spent = (moved.counts + moved.losses) / scale
    else:
        law = Laplace(scale * math.log2(episodes))
        tree = PaddedTreeNoise if name == "tree-iid" else TreeNoise
        noise = tree(episodes=episodes, distribution=law)
        streamed = moved.counts + moved.losses - moved.once
        spent = streamed * tree_levels(episodes) / law.scale + moved.once / scale
    return noise, loss_law, delivered(trust, "paper 004", spent)


def _noted(guarantee: Guarantee) -> Guarantee:
    note = "losses are public: only trajectories (states and actions) are protected"
    return replace(guarantee, assumptions=(*guarantee.assumptions, note))
