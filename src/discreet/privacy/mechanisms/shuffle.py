"""Shuffle: users send single bits, a shuffler mixes them, the analyser can only add them up.

**The protocol.** For every counter a user sends its own bit (0 or 1) and m noise bits, each as a
separate message ``(counter, bit)``. The number of messages per user and counter is constant. The
noise bits are ones with probability p each, or, where that would take more noise than a trusted
learner's (large epsilon), a number of ones drawn from a table and zeros for the rest (`jumps`). The
shuffler permutes all messages of all users together.

**Proof.** After the shuffler a counter's messages are a uniformly random order of n(m + 1) bits, of
which only the number of ones depends on data: the analyser's view is a function of the sums
``count + noise``, where the noise is a sum over users, and of fresh randomness. (It would not be if
a user's bits were added up before they are sent, or if a user's messages travelled together: see
`discreet.privacy.errata`.) When one user is replaced, at most kH sums rise by one and kH fall by
one (k statistics, H steps), and the noises are independent. `calibration.noise_bits` composes these
shifts of the noise exactly and takes the least noise with delta(epsilon) <= delta. If only a
fraction f of the users is honest, the noise of f·n users alone is made to suffice. Batches hold
disjoint users, so all batches together deliver what one of them does.

A batch is simulated by drawing the sums directly: the same distribution in constant time per
counter. `ShuffleEncoder`, `shuffle` and `ShuffleBatch.release_reports` are the real thing.
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.device.base import ENVELOPE
from discreet.errors import DiscreetWarning, InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import NOT_SHUFFLED, need_delta
from discreet.privacy.accounting.piles import honest_users, least_crowd
from discreet.privacy.accounting.routes import Route, binomial_routes, moves_routes
from discreet.privacy.accounting.search import NoiseBits, noise_bits
from discreet.privacy.errata import PrintedShuffle, printed_shuffle
from discreet.privacy.guarantee import Guarantee, rounded_up, shuffled
from discreet.privacy.mechanisms._encoders import cell_mask, episode_counts, support_cells
from discreet.privacy.mechanisms._printed import printed_in
from discreet.privacy.plans import CountsMechanism, ReportMechanism, Traffic, randomised_batch
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import sensitivity
from discreet.privacy.statistics import (
    Debias,
    PrivateCounts,
    check_support,
    flatten_rows,
    split_rows,
)

if TYPE_CHECKING:
    from discreet.privacy.trust import Shuffle

_LARGEST_BATCH = 10**12
"""Users: more than there are, and few enough for probabilities of noise bits near 1e-10."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ShuffleBatch(CountsMechanism, ReportMechanism):
    """One message per bit and noise bit of every counter: what the papers' constants are for.

    Attributes:
        moves: counters that one user can raise (and lower) by one.
        honest: fraction of users whose noise bits can be relied on.
        printed: the papers' constants, or None for the exact calibration.
    """

    epsilon: float
    delta: float
    moves: int
    honest: float = 1.0
    printed: PrintedShuffle | None = None

    @classmethod
    def calibrate(
        cls, trust: "Shuffle", shape: Shape, *, statistics: tuple[str, ...], **_: object
    ) -> "ShuffleBatch":
        """The plan; how many bits each user adds depends on the batch (`bits`)."""
        need_delta(trust.delta, "Shuffle noise", NOT_SHUFFLED)
        constants = _printed_constants(trust, shape) if trust.printed else None
        moves = sensitivity(shape.horizon, statistics).moves
        plan = cls(
            shape=shape,
            statistics=statistics,
            mechanism="bits",
            guarantee=_guarantee(trust, constants, moves),
            epsilon=float(trust.epsilon),
            delta=float(trust.delta),
            moves=moves,
            honest=float(trust.honest),
            printed=constants,
        )
        if plan.printed:
            warnings.warn(
                f"The printed shuffle constants were used; with one message per bit they deliver "
                f"{plan.guarantee}. But {plan.printed.integers(plan.delta)}.",
                DiscreetWarning,
                stacklevel=3,
            )
        return plan

    def bits(self, users: int) -> NoiseBits:
        """The noise bits of each of ``users`` users, for one counter."""
        _validate.count(users=users)
        rare = "noise bits that rare have no probability in double precision; use smaller batches"
        _validate.at_most(_LARGEST_BATCH, rare, users=users)
        reliable = self.reliable(users)
        if self.printed:
            return self.printed.bits(users)
        return noise_bits(reliable, self.moves, self.moves, self.epsilon, self.delta)

    def reliable(self, users: int) -> int:
        """How many of ``users`` users are counted on to add noise."""
        return honest_users(self.honest, users)

    @property
    def min_users(self) -> int:
        """So many that one of them is honest."""
        return least_crowd(self.honest)

    def noise_variance(self, users: int) -> dict[str, float]:
        """Variance of all users' noise bits on one counter."""
        return dict.fromkeys(self.statistics, self.bits(users).variance(users))

    def accountings(self, users: int, *, with_library: bool = False) -> list[Route]:
        """Privacy-loss distribution of the honest users' noise, and bounds."""
        each, reliable = self.bits(users), self.reliable(users)
        if each.weights:
            noise = each.pmf(reliable)
            return moves_routes(
                noise, self.moves, self.moves, self.delta, with_library=with_library
            )
        return binomial_routes(
            reliable * each.bits,
            each.probability,
            self.moves,
            self.moves,
            self.delta,
            with_library=with_library,
        )

    def release(
        self, counts: Counts, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """Simulate encoder, shuffler and analyser at once: counts plus centred noise."""
        each = self.bits(counts.users)

        def randomise(_: str, raw: IntArray) -> IntArray:
            return raw + each.draw(sampler, counts.users, raw.size)

        estimate, secure = self._debias(each, counts.users), sampler.secure
        return randomised_batch(
            self, counts, randomise, secure=secure, support=support, estimate=estimate
        )

    def _debias(self, each: NoiseBits, users: int) -> Debias:
        """All noise bits have the mean ``users·m·p``."""
        mean = users * each.bits * each.probability
        return Debias(centres=dict.fromkeys(self.statistics, mean))

    def encoder(self, users: int, *, support: BoolArray | None = None) -> "ShuffleEncoder":
        """What runs on the device of each of ``users`` users."""
        each = self.bits(users)
        mask = check_support(support, self.shape)
        return ShuffleEncoder(self.shape, self.statistics, each, mask)

    def add_up(
        self, reports: IntArray, users: int, support: BoolArray
    ) -> tuple[dict[str, IntArray], Debias]:
        """The analyser: adds up shuffled messages ``(counter, bit)`` and removes the noise's mean.

        Nothing is released unless every counter has exactly ``users·(m + 1)`` messages.
        """
        each = self.bits(users)
        cells = cell_mask(support, self.statistics, stationary=False)
        sums = _sums(reports, cells, users * (1 + each.bits))
        return split_rows(sums[cells], support, self.statistics), self._debias(each, users)


@dataclass(frozen=True, eq=False)
class ShuffleEncoder:
    """Turns one episode into messages ``(counter, bit)``; holds no data and travels as JSON."""

    shape: Shape
    statistics: tuple[str, ...]
    noise: NoiseBits
    support: BoolArray

    @property
    def traffic(self) -> Traffic:
        """One message per counter and bit, each in an envelope of its own."""
        messages = support_cells(self.support, self.statistics) * (1 + self.noise.bits)
        return Traffic(messages, messages * ENVELOPE)

    def encode(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, sampler: Sampler
    ) -> IntArray:
        """``int64[messages, 2]``: for every played counter, one data bit and its noise bits.

        They are sent as separate messages; their order says nothing, since zeros follow ones. An
        episode that left the public policy is reported as zeros from there on, which moves nothing
        further.
        """
        counts = episode_counts(self.shape, states, actions, rewards, sampler, self.support)
        counters = np.flatnonzero(cell_mask(self.support, self.statistics, stationary=False))
        own = flatten_rows(counts.at(self.support), self.statistics)
        ones = own + self.noise.draw(sampler, 1, counters.size)
        each = 1 + self.noise.bits
        bits = np.arange(each) < ones[:, None]
        return np.stack([np.repeat(counters, each), bits.ravel()], axis=1).astype(np.int64)

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON."""
        return {
            "encoder": "shuffle-bits",
            "states": self.shape.states,
            "actions": self.shape.actions,
            "horizon": self.shape.horizon,
            "statistics": list(self.statistics),
            "bits": self.noise.bits,
            "probability": self.noise.probability,
            "weights": list(self.noise.weights),
            "support": np.flatnonzero(self.support).tolist(),
        }

    @classmethod
    def from_dict(cls, data: JsonObject) -> "ShuffleEncoder":
        """The inverse of `to_dict`."""
        _validate.choice(("shuffle-bits",), encoder=_validate.description(data).get("encoder"))
        shape = Shape(states=data["states"], actions=data["actions"], horizon=data["horizon"])
        support = np.zeros(shape.visits, np.bool_)
        support.ravel()[data["support"]] = True
        weights = tuple(int(w) for w in data.get("weights", ()))
        noise = NoiseBits(int(data["bits"]), float(data["probability"]), weights)
        return cls(shape, tuple(data["statistics"]), noise, support)


def shuffle(messages: IntArray, sampler: Sampler) -> IntArray:
    """The shuffler: all messages of all users in one uniformly random order.

    Args:
        messages: ``int64[messages, 2]``, the users' messages one below the other.
        sampler: the shuffler's randomness.
    """
    return np.asarray(messages)[sampler.permutation(len(messages))]


def _sums(messages: IntArray, cells: BoolArray, expected: int) -> IntArray:
    """Ones per counter, after checking that no message is missing, foreign or not a bit."""
    if messages.ndim != 2 or messages.shape[1] != 2 or messages.dtype.kind not in "iu":
        raise InvalidInputError("Expected messages as integers [(counter, bit), ...].")
    counters, bits = messages[:, 0], messages[:, 1]
    if ((bits != 0) & (bits != 1)).any():
        raise InvalidInputError("Expected one-bit messages; a message holds another number.")
    if ((counters < 0) | (counters >= cells.size)).any():
        raise InvalidInputError(f"Expected counters from 0 to {cells.size - 1}.")
    received = np.bincount(counters, minlength=cells.size)
    if (received != np.where(cells, expected, 0)).any():
        raise InvalidInputError(
            f"Expected {expected} messages for each played counter and none for others; messages "
            f"are missing or foreign, or a user was counted twice. Nothing was released."
        )
    return np.bincount(counters[bits == 1], minlength=cells.size).astype(np.int64)


def _printed_constants(trust: "Shuffle", shape: Shape) -> PrintedShuffle:
    """Those of 001, or of 000, which gives every counter the whole beta."""
    printed_in(trust, "bits", "001", "000")
    return printed_shuffle(shape, trust.epsilon, trust.delta, split=trust.paper != "000")


def _guarantee(trust: "Shuffle", printed: PrintedShuffle | None, moves: int) -> Guarantee:
    epsilon, claimed = float(trust.epsilon), None
    if printed:
        epsilon = printed.delivered_epsilon(moves, trust.delta, trust.honest)
        claimed = f"({rounded_up(trust.epsilon)}, {rounded_up(trust.delta, 3)})-SDP"
    return Guarantee(
        notion="SDP",
        epsilon=epsilon,
        delta=float(trust.delta),
        assumptions=shuffled(trust.honest, "noise bits"),
        claimed=claimed,
    )
