"""Shuffle: users send single bits, a shuffler mixes them, the analyser can only add them up.

**The protocol.** For every counter a user sends its own bit (0 or 1) and m noise bits, each as a
separate message ``(counter, bit)``. The number of messages per user and counter is constant. The
noise bits are ones with probability p each. The shuffler permutes all messages of all users
together.

**Proof.** After the shuffler a counter's messages are a uniformly random order of n(m + 1) bits, of
which only the number of ones depends on data: the analyser's view is a function of the sums
``count + noise``, where the noise is a sum over users, and of fresh randomness. (It would not be if
a user's bits were added up before they are sent, or if a user's messages travelled together: see
`integer_messages_delta` and `whole_vectors_delta`.) When one user is replaced, at most kH sums rise
by one and kH fall by one (k statistics, H steps), and the noises are independent.
`accounting.noise_bits` composes these shifts of the noise exactly and takes the least noise with
delta(epsilon) <= delta. If only a fraction f of the users is honest, the noise of f·n users alone
is made to suffice. Batches hold disjoint users, so all batches together deliver what one does.

A batch is simulated by drawing the sums directly: the same distribution in constant time per
counter. `BitsEncoder`, `shuffle` and `BitsBatch.release_reports` are the real thing.

**What the printed mechanisms of papers 000 and 001 deliver.** The papers give every counter
eps' = eps/(3H), beta' = beta/(HXA) (000: the whole beta) and
tau = 96·log(2/beta')/eps'², and let each of n users add m = ceil(tau/n) fair bits (n <= tau) or one
bit with probability tau/(2n). The user sends the *integer* z = data bit + noise bits. The proof
treats the analyser's view as the sum of the z; the analyser receives the shuffled *multiset*.

**What the sums deliver, whatever the number of users** (`PrintedShuffle.delivered_epsilon`). Let g
be the honest ones among n users, and compare noises by what they hide: adding independent noise, or
withholding a part of the view, only lowers delta at every epsilon.

*n <= tau.* The noise is g·ceil(tau/n) fair bits. More fair bits are fewer and independent others,
so the least number counts; it is at least tau times the least g/n over all n with g >= 1.

*n > tau.* A bit that is one with probability tau/(2n) is a fair bit with probability tau/n, and a
zero otherwise. Show the analyser, for every counter, how many of the honest bits are fair: M of
them, a sum of g independent choices of mean mu = g·tau/n. Chernoff's bound for c < mu,
P(M <= c) <= exp(c - mu - c·log(c/mu)), holds for every n and falls as mu grows, so the least mean
can be put in: tau if all are honest, else f·tau - 1 < (f - 1/n)·tau. A counter with M fair bits, M
drawn from that tail, hides less than the printed one: the mixture of M is composed exactly, M
rounded down to a few dozen values.

That "the variance only grows" from tau/4 to tau/2 is *not* a proof: rare bits have heavier edges
(nobody draws a one with probability e^(-tau/2), more than the 2^-tau of fair bits).
"""

import functools
import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.device.wire import ENVELOPE
from discreet.errors import DiscreetWarning, InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import NOT_SHUFFLED, need_delta
from discreet.privacy.accounting.distributions import NoisePmf, binomial_pmf
from discreet.privacy.accounting.losses import epsilon_of_moves
from discreet.privacy.accounting.piles import honest_users, least_crowd
from discreet.privacy.accounting.search import NoiseBits, noise_bits
from discreet.privacy.guarantee import Guarantee, rounded_down, rounded_up, shuffled
from discreet.privacy.mechanisms.additive import cell_mask, episode_counts, support_cells
from discreet.privacy.mechanisms.base import (
    BatchMechanism,
    Certified,
    Request,
    Traffic,
    randomised_batch,
)
from discreet.privacy.mechanisms.registry import MechanismSpec
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.statistics import (
    Debias,
    PrivateCounts,
    check_support,
    flatten_rows,
    split_rows,
)

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust, Shuffle, TrustModel

_LARGEST_BATCH = 10**12
"""Users: more than there are, and few enough for probabilities of noise bits near 1e-10."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BitsBatch(BatchMechanism):
    """One message per bit and noise bit of every counter: what the papers' constants are for.

    Attributes:
        moves: counters that one user can raise (and lower) by one.
        honest: fraction of users whose noise bits can be relied on.
        least: users of a batch, as its trust model asks.
        printed: the papers' constants, or None for the exact calibration.
    """

    epsilon: float
    delta: float
    moves: int
    honest: float = 1.0
    least: int = 0
    printed: "PrintedShuffle | None" = None

    @classmethod
    def designed(
        cls, spec: MechanismSpec, trust: "PrivateTrust", request: Request
    ) -> dict[str, Any]:
        # How many bits each user adds depends on the batch (`bits`).
        need_delta(trust.delta, "Shuffle noise", NOT_SHUFFLED)
        shuffled = cast("Shuffle", trust)  # no other trust model knows this mechanism
        constants = None
        if trust.printed:  # of 001, or of 000, which gives every counter the whole beta
            split = trust.paper != "000"
            constants = printed_shuffle(request.shape, trust.epsilon, trust.delta, split=split)
        moves = Sensitivity.of(request.shape.horizon, request.statistics).moves
        guarantee = _guarantee(shuffled, constants, moves)
        if constants:
            range_ = " The papers claim it for epsilon < 1 only." if trust.epsilon >= 1 else ""
            warnings.warn(
                f"The printed shuffle constants were used; with one message per bit they deliver "
                f"{guarantee}. But {constants.integers(float(trust.delta), moves)}.{range_}",
                DiscreetWarning,
                stacklevel=4,
            )
        return {
            "guarantee": guarantee,
            "epsilon": float(trust.epsilon),
            "delta": float(trust.delta),
            "moves": moves,
            "honest": float(shuffled.honest),
            "least": shuffled.min_users,
            "printed": constants,
        }

    @property
    def takes_reports(self) -> bool:
        return True

    @property
    def per_batch(self) -> bool:
        """How many bits each user adds depends on the batch."""
        return True

    def release_facts(self, users: int | None = None) -> dict[str, Plain]:
        honest = str(_validate.exact(self.honest))
        return super().release_facts(users) | {"users": users, "honest": honest}

    def certified(self, users: int | None = None) -> Certified:
        """The noise bits of the reliable users of a batch."""
        if users is None:
            raise InvalidInputError("Shuffle noise depends on the batch: give users=...")
        bits = self.bits(users)
        trials = self.reliable(users) * bits.bits
        return "binomial", {"trials": trials, "probability": Fraction(bits.probability)}

    def cost_facts(self, trust: "TrustModel", users: int) -> JsonObject:
        """The noise of every user."""
        each = self.bits(users)
        return {
            "noise_bits": {
                "per_user_and_counter": each.bits,
                "probability": each.probability,
                "fair_bits_in_all": 4 * each.variance(users),
            },
        }

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
        """So many that one of them is honest, and as the trust model asks."""
        return max(self.least, least_crowd(self.honest))

    def noise_variance(self, users: int) -> dict[str, float]:
        """Variance of all users' noise bits on one counter."""
        return dict.fromkeys(self.statistics, self.bits(users).variance(users))

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

    def encoder(self, users: int = 1, *, support: BoolArray | None = None) -> "BitsEncoder":
        """What runs on the device of each of ``users`` users."""
        each = self.bits(users)
        mask = check_support(support, self.shape)
        return BitsEncoder(self.shape, self.statistics, each, mask)

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
class BitsEncoder:
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
        """``int64[messages, 2]``: one data bit and noise bits per counter of the support.

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
            "support": np.flatnonzero(self.support).tolist(),
        }

    @classmethod
    def from_dict(cls, data: JsonObject) -> "BitsEncoder":
        """The inverse of `to_dict`."""
        _validate.choice(("shuffle-bits",), encoder=_validate.description(data).get("encoder"))
        shape = Shape(states=data["states"], actions=data["actions"], horizon=data["horizon"])
        support = np.zeros(shape.visits, np.bool_)
        support.ravel()[data["support"]] = True
        noise = NoiseBits(int(data["bits"]), float(data["probability"]))
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
            f"Expected {expected} messages for each counter of the support and none for others; "
            f"messages are missing or foreign, or a user was counted twice. Nothing was released."
        )
    return np.bincount(counters[bits == 1], minlength=cells.size).astype(np.int64)


def _guarantee(trust: "Shuffle", printed: "PrintedShuffle | None", moves: int) -> Guarantee:
    epsilon, claimed = float(trust.epsilon), None
    if printed:
        epsilon = printed.delivered_epsilon(moves, trust.delta, trust.honest)
        claimed = f"({rounded_up(trust.epsilon)}, {rounded_up(trust.delta, 3)})-SDP"
        if trust.epsilon > 1:  # 1 itself is figure 4's
            claimed += " extrapolated from what is claimed for epsilon < 1"
    return Guarantee(
        notion="SDP",
        epsilon=epsilon,
        delta=float(trust.delta),
        assumptions=shuffled(trust.honest, "noise bits"),
        claimed=claimed,
    )


_NEGLIGIBLE = 1e-30


@dataclass(frozen=True)
class PrintedShuffle:
    """The printed constants of one problem size."""

    epsilon_per_counter: float
    beta_per_counter: float
    tau: float

    def bits(self, users: int) -> NoiseBits:
        """Noise bits of each user for one counter, as printed."""
        _validate.count(users=users)
        if users <= self.tau:
            return NoiseBits(math.ceil(self.tau / users), 0.5)
        return NoiseBits(1, self.tau / (2 * users))

    def refuted_from(self, delta: float, moves: int) -> int:
        """The least batch of at most tau users whose integers betray one more often than ``delta``.

        Each of the 2·moves counters betrays with probability 2^-m (`integer_messages_delta`) if all
        others went another way: 1 - (1 - 2^-m)^(2·moves). Some 1 - 2^-36 from tau users on.
        """
        _validate.probability(delta=delta)
        _validate.count(moves=moves)
        bits = 1  # the most that betray more often
        while -math.expm1(2 * moves * math.log1p(-(0.5 ** (bits + 1)))) > delta:
            bits += 1
        return math.ceil(self.tau / bits)

    def integers(self, delta: float, moves: int) -> str:
        """What is known of the printed protocol, whose integers the analyser sees, in one sentence.

        One wording for guarantees, warnings, lists and `discreet calibrate`.
        """
        return (
            f"printed integers show their multiset, which betrays a user at every epsilon with "
            f"probability 1 - (1 - 2^-ceil(tau/n))^{2 * moves} in a batch of n <= tau = "
            f"{self.tau:,.0f} users: delta = {rounded_down(delta, 6)} is refuted from "
            f"n = {self.refuted_from(delta, moves):,} on; what holds in smaller batches is computed"
        )

    def delivered_epsilon(
        self, moves: int, delta: float, honest: float = 1.0, *, users: int | None = None
    ) -> float:
        """The epsilon that the *sums* deliver at ``delta``.

        Args:
            moves: counters that one user can raise (and lower) by one.
            delta: at which delta.
            honest: fraction of the users, rounded down to whole ones, who add their noise.
            users: of the batch; None for a bound that holds for every batch in which somebody is
                honest (see the proof above).
        """
        _validate.count(moves=moves)
        if users is None:
            return _for_every_batch(self.tau, moves, float(delta), _validate.exact(honest))
        each = self.bits(users)
        noise = binomial_pmf(honest_users(honest, users) * each.bits, each.probability)
        return epsilon_of_moves(noise, moves, moves, delta)


@functools.lru_cache(maxsize=256)
def _for_every_batch(tau: float, moves: int, delta: float, honest: Fraction) -> float:
    """The larger of the two cases of the proof."""
    fair = binomial_pmf(max(1, math.ceil(_least_share(honest) * Fraction(tau))), 0.5)
    mean = tau if honest == 1 else float(honest) * tau - 1
    rare = epsilon_of_moves(_rare_bits(mean), moves, moves, delta) if mean > 1 else math.inf
    return max(epsilon_of_moves(fair, moves, moves, delta), rare)


def _least_share(honest: Fraction) -> Fraction:
    """The least floor(f·n)/n over all n with floor(f·n) >= 1.

    g honest users are fewest in the largest batch that has no more, n = ceil((g + 1)/f) - 1, and
    g/n > f·g/(g + 1): few g need a look.

    >>> _least_share(Fraction(9, 10)), _least_share(Fraction(1))
    (Fraction(1, 2), Fraction(1, 1))
    """
    best, count = honest, 1
    while honest * count < best * (count + 1) and honest < 1:
        best = min(best, Fraction(count, math.ceil((count + 1) / honest) - 1))
        count += 1
    return best


def _rare_bits(mean: float) -> NoisePmf:
    """Binomial(M, 1/2) beside the M that it came from, with the tail of M as in the proof.

    The tables of different M stand side by side with a gap, so that no move by one leads from one
    to another. What remains of the tail counts as an infinite loss.
    """
    spread = math.sqrt(mean)
    # A table has 12·spread entries and there are 12·spread/step of them: a few million in all.
    step = max(1, math.floor(spread * max(0.25, 3e-5 * spread)))
    below = np.arange(math.floor(mean) - 1, -1, -step)  # M <= below has the probability `tail`
    shares = np.log1p((np.maximum(below, 1) - mean) / mean)  # near 0, where a logarithm is lost
    tail = np.exp(below - mean - below * shares)
    kept = int((tail > _NEGLIGIBLE).sum())
    weights = -np.diff(tail[:kept], prepend=1.0)
    parts, outside = [np.array([-np.inf])], float(tail[kept - 1])
    for trials, weight in zip((below[:kept] + 1).tolist(), weights.tolist(), strict=True):
        noise = binomial_pmf(trials, 0.5)
        outside += noise.outside
        parts += [noise.log_probabilities + math.log(weight), parts[0]]
    return NoisePmf(0, np.concatenate(parts), outside)


def printed_shuffle(
    shape: Shape, epsilon: float, beta: float, *, split: bool = True
) -> PrintedShuffle:
    """tau, eps' and beta' as 001 prints them (Section V, proof of Lemma 10).

    000 (Section V-A) gives every counter the whole beta: ``split=False``. The constant 96 of tau is
    printed in 000 (Algorithm 4); 001 prints O(H²·log(1/beta)/eps²), and its proof needs the same.

    >>> river = Shape(states=4, actions=2, horizon=6)
    >>> [round(printed_shuffle(river, 1, 1e-5, split=s).tau) for s in (True, False)]
    [500068, 379658]
    >>> round(printed_shuffle(Shape(states=4, actions=2, horizon=2), 1, 1e-6).tau)
    59724
    """
    _validate.positive(epsilon=epsilon)
    need_delta(beta, "The printed shuffle mechanism", NOT_SHUFFLED)
    share = float(epsilon) / (3 * shape.horizon)
    failure = float(beta) / (shape.horizon * shape.states * shape.actions if split else 1)
    return PrintedShuffle(share, failure, 96 * math.log(2 / failure) / share**2)


def integer_messages_delta(each: NoiseBits) -> tuple[float, float]:
    """Lower bounds on delta, at every epsilon, if users send data bit plus noise as one integer.

    First: nobody else has the bit. The user's message is m + 1 with probability p^m, which no other
    dataset can produce. Second: everybody else has it. A user without it sends 0 with probability
    (1-p)^m, which cannot happen on the neighbouring dataset.

    >>> integer_messages_delta(NoiseBits(1, 0.05))
    (0.05, 0.95)
    """
    return each.extremes


def whole_vectors_delta(each: NoiseBits, cells: int) -> float:
    """A lower bound on delta, at every epsilon, if each user's messages travel together.

    All other users went through the same ``cells`` counters, one user through ``cells`` others.
    The shuffled vectors then betray that user if a noisy zero shows where everybody has a one, or a
    full count where nobody has one; each of the ``cells`` counters of either kind is a new chance.
    """
    _validate.count(cells=cells)
    full, empty = integer_messages_delta(each)
    return 1 - ((1 - full) * (1 - empty)) ** cells
