"""What the printed shuffle mechanisms of papers 000 and 001 deliver, by calculation.

The papers give every counter eps' = eps/(3H), beta' = beta/(HXA), tau = 96·log(2/beta')/eps'², and
let each of n users add m = ceil(tau/n) fair bits (n <= tau) or one bit with probability tau/(2n).
The user sends the *integer* z = data bit + noise bits. The proof treats the analyser's view as the
sum of the z; the analyser receives the shuffled *multiset* of them.
"""

import math
from dataclasses import dataclass

from discreet import _validate
from discreet.mdp.shape import Shape
from discreet.privacy.calibration.closed_forms import need_delta
from discreet.privacy.calibration.distributions import binomial_pmf
from discreet.privacy.calibration.losses import epsilon_of_moves
from discreet.privacy.calibration.search import NoiseBits


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

    def delivered_epsilon(self, moves: int, delta: float, honest: float = 1.0) -> float:
        """The epsilon that the *sums* deliver at ``delta``, whatever the number of users.

        n <= tau users add at least tau fair bits; with more users the variance of the noise only
        grows, from tau/4 to tau/2. So Binomial(tau, 1/2) is the least noise (of which ``honest``
        users add their share).
        """
        trials = max(1, math.floor(honest * self.tau))
        return epsilon_of_moves(binomial_pmf(trials, 0.5), moves, moves, delta)


def printed_shuffle(shape: Shape, epsilon: float, beta: float) -> PrintedShuffle:
    """tau, eps' and beta' as 001 prints them (Section IV; 000 without the split of beta).

    >>> from discreet.mdp.shape import Shape
    >>> round(printed_shuffle(Shape(states=4, actions=2, horizon=2), 1, 1e-6).tau)
    59724
    """
    _validate.positive(epsilon=epsilon)
    need_delta(beta, "The printed shuffle mechanism")
    share = float(epsilon) / (3 * shape.horizon)
    failure = float(beta) / (shape.horizon * shape.states * shape.actions)
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
    return each.probability**each.bits, (1 - each.probability) ** each.bits


def whole_vectors_delta(each: NoiseBits, cells: int) -> float:
    """A lower bound on delta, at every epsilon, if each user's messages travel together.

    All other users went through the same ``cells`` counters, one user through ``cells`` others.
    The shuffled vectors then betray that user if a noisy zero shows where everybody has a one, or a
    full count where nobody has one; each of the ``cells`` counters of either kind is a new chance.
    """
    _validate.count(cells=cells)
    full, empty = integer_messages_delta(each)
    return 1 - ((1 - full) * (1 - empty)) ** cells
