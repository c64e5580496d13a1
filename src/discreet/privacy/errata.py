"""What the printed shuffle mechanisms of papers 000 and 001 deliver, by calculation.

The papers give every counter eps' = eps/(3H), beta' = beta/(HXA) (000: the whole beta) and
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
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import _validate
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import NOT_SHUFFLED, need_delta
from discreet.privacy.accounting.distributions import NoisePmf, binomial_pmf
from discreet.privacy.accounting.losses import epsilon_of_moves
from discreet.privacy.accounting.piles import honest_users
from discreet.privacy.accounting.search import NoiseBits
from discreet.privacy.guarantee import rounded_down

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

    def refuted_from(self, delta: float) -> int:
        """The least batch whose integers betray a user with a probability above ``delta``.

        Of n <= tau users that is 2^-ceil(tau/n), of more 1 - tau/(2n) (`integer_messages_delta`).
        """
        _validate.probability(delta=delta)
        bits = math.ceil(-math.log2(delta)) - 1  # the most fair bits that betray more often
        if bits >= 1:
            return math.ceil(self.tau / bits)
        return math.floor(self.tau / (2 * (1 - delta))) + 1

    def integers(self, delta: float) -> str:
        """What is known of the printed protocol, whose integers the analyser sees, in one sentence.

        One wording for guarantees, warnings, lists and `discreet calibrate`.
        """
        return (
            f"printed integers show their multiset, which betrays a user at every epsilon with "
            f"probability 2^-ceil(tau/n) in a batch of n <= tau = {self.tau:,.0f} users, "
            f"1 - tau/(2n) in a larger one: delta = {rounded_down(delta, 6)} is refuted from "
            f"n = {self.refuted_from(delta):,} on, nothing is proven below"
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

    000 (Section V-A) gives every counter the whole beta: ``split=False``. The print of 000 leaves
    the constant of tau open, O(H²·log(1/beta)/eps²); that of the proof in 001 is taken for both.

    >>> from discreet.mdp.shape import Shape
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


def printed_total_beta(shape: Shape, beta: float) -> float:
    """What the printed beta' adds up to over the 6H counters that one user moves: 6·beta/(XA)."""
    return 6 * beta / (shape.states * shape.actions)


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
