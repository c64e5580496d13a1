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

**Proof.** Full information: all counters are released continually, with sensitivity 4H + X·A.
Bandit: counters and losses are two releases about the same user. The counters are first calibrated
as if they had sensitivity 4H/(1-s), of which their 4H units use the share 1-s of the budget, and
one-shot noise on the losses as if they alone had sensitivity 2H/s (both 6H for s = 1/3, as
printed). What holds is then proved for the counts and the finer losses *together*:

* Laplace noise: pure epsilons add up; the losses get what the counts leave of epsilon, in exact
  rationals.
* Local Gaussian reports: `two_lattice_delta` bounds delta for discrete counts and
  losses on their two lattices, for all moves of one user; the noise on both is raised (by 1% at
  most) until the guarantee holds. (That the sum is "again Gaussian" is *not* true: at
  H = 1, epsilon = 40 it would deliver 1.07 times the delta.)
* Toeplitz: counts carry continuous Gaussian noise, rounded, up to the cost of its grid (proof in
  `mechanisms.toeplitz`). Cumulative losses are
  treated likewise, on a grid of at least as many steps. Bandit losses exceed a continuous Gaussian
  loss by at most the slack of `two_lattice_delta`. Where the grid costs too much (very large
  epsilon), concentrated privacy adds up instead.

Both notions are those of the counts: JDP by the billboard lemma, LDP because every report is
private by itself.

Losses are counted in units of 1/1024 (rounded to the nearest), with integer noise 1024 times as
large: no floating-point noise, and no extra variance from rounding to bits.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, cast

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
    Laplace,
    NoiseDistribution,
    check_exact,
)
from discreet.privacy.mechanisms.registry import mechanisms
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.trust import Local, PrivateTrust, TrustModel, check_trust_model
from discreet.privacy.vectors import VectorMechanism, calibrate_vectors

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
        return cls(tuple(int(w) for w in mdp.widths), mdp.shape.actions)

    @property
    def horizon(self) -> int:
        return len(self.widths) - 1

    @property
    def pairs(self) -> int:
        """X·A, the last layer excluded."""
        return sum(self.widths[:-1]) * self.actions

    @property
    def states(self) -> int:
        """X as 004 writes it: all layers, the last one included."""
        return sum(self.widths)

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


@dataclass(frozen=True, eq=False, kw_only=True)
class LayeredMechanism:
    """A calibrated release after every episode of an adversarial learner.

    Attributes:
        feedback: "full" (cumulative losses of all pairs) or "bandit" (each episode's observed).
        name: of the continual mechanism of the counts, resolved.
        noise: noise over time on one cumulative counter, None without privacy.
        loss_noise: one-shot noise on one observed loss (in loss units), None where there is none.
        public_losses: losses carry no noise.
        centred_losses: bandit users report l - 1/2.
        padded_losses: cumulative losses carry the padded tree of 004, counts the plain one.
    """

    size: LayeredSize
    feedback: Feedback
    episodes: int
    guarantee: Guarantee
    name: str = "none"
    noise: CumulativeNoise | None = None
    loss_noise: NoiseDistribution | None = None
    public_losses: bool = False
    centred_losses: bool = False
    padded_losses: bool = False

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
        if self.feedback == "full":  # as noisy as the counts, in loss units, on every level
            sigma = Fraction(float(counts["sigma"]) * LOSS_UNITS)
        else:
            noise = cast(NoiseDistribution, self.loss_noise)
            sigma = noise.certified()[1]["sigma"]
        return "layered-gaussian", {"count_sigma": counts["sigma"], "loss_sigma": sigma}

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
            **({} if self.noise is None else self.noise.facts),
        }

    @property
    def cumulative_loss_noise(self) -> CumulativeNoise | None:
        """The noise on cumulative losses, of one unit; None where there is none.

        The padded tree is the plain one with fresh noise added to its releases: post-processing,
        which delivers what the plain tree does.
        """
        if self.noise is None or self.public_losses or self.feedback != "full":
            return None
        return self.noise.padded_variant() if self.padded_losses else self.noise

    def noise_variance(self) -> dict[str, float]:
        """Noise variance on one counter of each statistic after all episodes.

        Losses: on the cumulative losses of a pair (full information), or on one episode's (bandit).
        """
        counts = 0.0 if self.noise is None else self.noise.variance(self.episodes)
        noise = self.cumulative_loss_noise
        losses = self.loss_std**2 if noise is None else noise.variance(self.episodes)
        return {"transitions": counts, "visits": counts, "losses": losses}

    def error_bounds(self, failure: float, users: IntArray) -> FloatArray:
        """What |noise| on one count exceeds with probability ``failure``, after so many users."""
        return np.zeros(len(users)) if self.noise is None else self.noise.bounds(failure, users)

    def loss_bound(self, failure: float, *, printed: bool = False) -> float:
        """What |noise| on one episode's loss exceeds with probability ``failure`` (bandit).

        Laplace noise has an exact tail, scale·ln(1/failure), as printed (004, Lemma 5.1).
        """
        if self.loss_noise is None:
            return 0.0
        if printed and isinstance(self.loss_noise, Laplace):
            return self.loss_noise.scale / LOSS_UNITS * math.log(1 / failure)
        return self.loss_noise.bound({1.0: 1.0}, failure) / LOSS_UNITS

    @property
    def loss_std(self) -> float:
        """Standard deviation of the noise on one episode's loss (bandit)."""
        return 0.0 if self.loss_noise is None else math.sqrt(self.loss_noise.variance) / LOSS_UNITS

    @property
    def rounds_losses(self) -> bool:
        """Private losses are rounded to units."""
        return self.noise is not None and not self.public_losses

    def vectors(self) -> list[VectorMechanism]:
        """What is released continually: counts, and cumulative losses in units of their own."""
        if self.noise is None:
            return []
        common: Any = {"episodes": self.episodes, "name": self.name, "guarantee": self.guarantee}
        sizes = {"transitions": self.size.triples, "visits": self.size.pairs}
        sensitivity = Sensitivity(units=4 * self.size.horizon)
        found = [VectorMechanism(sizes=sizes, noise=self.noise, sensitivity=sensitivity, **common)]
        if self.cumulative_loss_noise is not None:
            sensitivity = Sensitivity(units=self.size.pairs * LOSS_UNITS, pile=LOSS_UNITS)
            sizes, noise = {"losses": self.size.pairs}, in_loss_units(self.cumulative_loss_noise)
            losses = VectorMechanism(sizes=sizes, noise=noise, sensitivity=sensitivity, **common)
            found.append(losses)
        return found

    def open(self, sampler: Sampler) -> "LayeredNoise":
        """Start the releases of one run."""
        return LayeredNoise(self, sampler)


class LayeredNoise:
    """The noise of one run, in blocks padded like the learner's arrays."""

    def __init__(self, mechanism: LayeredMechanism, sampler: Sampler) -> None:
        self.mechanism, self._sampler = mechanism, sampler
        self._runs = [(vectors, vectors.open(sampler)) for vectors in mechanism.vectors()]

    def block(self, episodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Noise of the next episodes on transitions, visits and losses, ``[episodes, ...]``.

        Losses: on the cumulative sums (full information) or on each episode's (bandit). Zero in
        the padding.
        """
        size, loss_noise = self.mechanism.size, self.mechanism.loss_noise
        drawn: dict[str, NumberArray] = {}
        for vectors, run in self._runs:
            drawn |= vectors.split(run.block(episodes))
        if loss_noise is not None:
            drawn["losses"] = loss_noise.draw(self._sampler, (episodes, size.pairs))
        real = {"transitions": size.real_triples, "visits": size.real_pairs}
        real["losses"] = size.real_pairs
        padded = {name: np.zeros((episodes, *cells.shape)) for name, cells in real.items()}
        for name, values in drawn.items():
            padded[name][:, real[name]] = values / (LOSS_UNITS if name == "losses" else 1)
        return padded["transitions"], padded["visits"], padded["losses"]


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
    """Noise on counts and losses that delivers the trust model's guarantee.

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
    _validate.real(loss_share=loss_share)
    if not _LEAST_SHARE <= loss_share <= 1 - _LEAST_SHARE:
        raise InvalidInputError(
            f"Expected loss_share in [{_LEAST_SHARE:g}, {1 - _LEAST_SHARE:g}], got "
            f"loss_share={loss_share!r}: counts and losses both need a part of the budget; use "
            f"public_losses=True if losses need none."
        )
    check_trust_model(trust)
    mechanism = LayeredMechanism(
        size=size,
        feedback=feedback,
        episodes=episodes,
        guarantee=NO_GUARANTEE,
        centred_losses=centred_losses,
    )
    if not isinstance(trust, PrivateTrust):
        return mechanism
    name = trust.resolve("continual")
    allowed = [known.name for known in mechanisms(trust.name, "continual").values() if known.losses]
    if name not in allowed:
        raise UnsupportedError(
            f"Losses need additive noise: mechanism {name!r} does not serve adversarial learners; "
            f"use one of {', '.join(allowed)}."
        )
    losses = loss_sensitivity(size, feedback, public=public_losses, centred=centred_losses)
    once = losses if feedback == "bandit" else 0
    design = _printed if trust.printed else _exact
    noise, loss_noise, guarantee = design(trust, size, losses, once, episodes, loss_share)
    if padded_losses and (noise.padded_variant() is None or losses == once):
        raise UnsupportedError(
            f"padded_losses is the central privatizer of paper 004: losses of full information "
            f"under Central(mechanism='tree-laplace'), got mechanism {name!r}; leave it out."
        )
    if loss_noise is not None:
        check_exact(loss_noise.variance)
    if public_losses:
        note = "losses are public: only trajectories (states and actions) are protected"
        guarantee = replace(guarantee, assumptions=(*guarantee.assumptions, note))
    mechanism = replace(
        mechanism,
        guarantee=guarantee,
        noise=noise,
        loss_noise=loss_noise,
        public_losses=public_losses,
        name=name,
        padded_losses=padded_losses,
    )
    mechanism.vectors()  # refuses, before anything is drawn, what does not fit
    return mechanism


_Design = tuple[CumulativeNoise, NoiseDistribution | None, Guarantee]


def _exact(
    trust: PrivateTrust, size: LayeredSize, losses: int, once: int, episodes: int, share: float
) -> _Design:
    """The least noise on counts and losses that keeps the guarantee for both together."""
    counts = 4 * size.horizon
    units = math.ceil(counts / (1 - share) - 1e-9) if once else counts + losses
    vectors = _vectors(trust, size, units, episodes)
    if not losses:
        return vectors.noise, None, vectors.guarantee
    shares = Shares(counts, losses, units, once / share)
    return *together(vectors.noise, trust, shares), vectors.guarantee


def _printed(
    trust: PrivateTrust, size: LayeredSize, losses: int, once: int, episodes: int, _: float
) -> _Design:
    """The constants of paper 004 and what they deliver under replace-one.

    Laplace noise of scale 3H/eps on every counter and loss (local), 3H·log2(K)/eps on every node
    of a tree (central).
    """
    spec = trust.spec("continual")
    replace(spec, papers=tuple(p for p in spec.papers if p == "004")).check_printed(trust)
    scale = 3 * size.horizon / float(trust.epsilon)
    wider = scale if isinstance(trust, Local) else scale * math.log2(episodes)
    units = 4 * size.horizon + losses - once
    pure = replace(trust, delta=0.0, mechanism=spec.name, calibration="exact")
    noise: Any = _vectors(pure, size, units, episodes).noise
    noise = replace(noise, distribution=Laplace(wider))
    spent = units * noise.draws_moved / wider + once / scale
    loss_noise = Laplace(scale).scaled(LOSS_UNITS) if once else None
    return noise, loss_noise, delivered(trust, "paper 004", spent)


def _vectors(trust: PrivateTrust, size: LayeredSize, units: int, episodes: int) -> VectorMechanism:
    sensitivity = Sensitivity(units=units, horizon=size.horizon)
    cells = {"counts": size.triples + size.pairs}
    return calibrate_vectors(trust, cells, sensitivity, episodes=episodes)
