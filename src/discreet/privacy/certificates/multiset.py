"""What shuffled integers deliver: the printed protocols of papers 000 and 001, as printed.

For every counter each of n users sends one integer, data bit + m fair bits, and a shuffler of that
counter alone permutes the n integers. The analyser sees their multiset, which tells more than their
sum. Let R be Binomial(m, 1/2), R_0 its distribution and R_1 that of 1 + R.

**Assumed**: the integers of different counters cannot be linked (one shuffle for each), all n users
follow the protocol, and batches hold disjoint users, so that replacing one user changes one batch.

**1. One counter, N users alike.** A replaced user changes a counter's bit from 0 to 1 or back. Of
the n - 1 other bits, at least ceil((n - 1)/2) are equal. Show the analyser, for free, the integers
of all the other users, but for N - 1 = ceil((n - 1)/2) with an equal bit: the view that was there
before is a function of this one, which therefore has at least its delta at every epsilon. Let the
equal bit be 0; for 1, exchange every z with m + 1 - z, and the two worlds. The N integers are
independent of R_0 in one world (P); in the other (Q) one of them is of R_1. Of the multiset,

    dQ/dP = (1/N)·sum of w(z_i),    w(z) = R_1(z)/R_0(z) = z/(m + 1 - z),

since each of the N integers is equally likely to be the user's. Only Q can show m + 1, with
probability 2^-m: the singular mass. Let S be the sum of the w(z_i) under P.

**2. A grid.** delta(epsilon) is 2^-m + E(S/N - e^epsilon)+ in one direction, E(1 - e^epsilon·S/N)+
in the other: expectations of convex functions of S. Let each w(z) be moved, at random, to one of
its two neighbours among the multiples of 1/D, such that its mean stays. By Jensen neither
expectation falls, at any epsilon: a pair of distributions that dominates both directions.

**3. Rounding.** Masses are rounded down or left out. Let L <= P be what is left, and L·S/N <= Q.
Since (p - e^epsilon·q)+ <= (l - e^epsilon·l')+ + (p - l) for l <= p and l' <= q, all that is
missing from a total of one counts as delta, the singular mass 2^-m with it.

**4. Composition.** One user moves at most 6H counters, with independent noise. Which of (P, Q) and
(Q, P) each is depends on the others' bits: all 6H + 1 numbers of either are composed (`verify`:
losses on a grid by "connect the dots", masses rounded up), and the worst counts. Domination is kept
by composition. The singular mass is 1 - (1 - 2^-m)^6H.

**5. Many batch sizes at once.** More users alike, or more fair bits, only hide more (show the
analyser the further users; add a further bit to every integer). What holds for alike(a) users with
ceil(tau/b) bits therefore holds for every printed batch of a to b users.

**6. It is tight at infinity.** If all others share one trajectory, and the user either has it too,
or one that differs in every counter, then an m + 1 among zeros, or a 0 among ones, tells the second
for certain: at every epsilon delta is at least 1 - (1 - 2^-m)^6H.
"""

import functools
import math
from fractions import Fraction

from discreet import _validate
from discreet.privacy.certificates import verify

_BITS = 96
_ONE = 1 << _BITS
_FINE = 4
"""Steps of either grid within a standard deviation: they raise epsilon by about a percent."""
_MOST = 1 << 15
"""Further users alike are not counted, which only raises epsilon: sums of more take minutes."""
_DIGITS = 10**5
"""Epsilon is found up to 1e-5, rounded up."""


def alike(users: int) -> int:
    """The fewest users, the replaced one among them, who hide in each other's equal data."""
    return users // 2 + 1


@functools.lru_cache(maxsize=256)
def multiset_epsilon(users: int, bits: int, counters: int, delta: Fraction) -> float:
    """An upper bound on what the multisets deliver at ``delta``; infinite if this proof gives none.

    Args:
        users: of the batch.
        bits: fair bits that each of them adds to each counter.
        counters: that one user can move by one: 6H.
        delta: at which delta.

    >>> multiset_epsilon(85, 5884, 36, Fraction(1, 100_000)) < 0.0721
    True
    >>> multiset_epsilon(31_255, 16, 36, Fraction(1, 100_000))
    inf
    """
    _validate.count(users=users, bits=bits, counters=counters)
    if Fraction(1, 1 << bits) > delta:
        return math.inf
    count, cut = min(_MOST, alike(users)), max(1, math.floor(delta * _ONE) >> 28)
    sums, one = _sums(bits, count, cut)
    base = 1 - Fraction(1, math.ceil(_FINE * math.sqrt(bits * count) / 2))
    backward = [(mass, k, one) for k, mass in sums if k]
    forward = [(mass * k // one, one, k) for k, mass in sums if mass * k >= one]
    powers = []
    for atoms in (forward, backward):
        lost = _ONE - sum(mass for mass, _, _ in atoms)
        each = verify.crop(verify.dots(atoms, lost, base, _BITS), cut)
        powers.append(_powers(each, counters, cut))
    worst: float = 0
    for first, second in zip(powers[0], reversed(powers[1]), strict=True):
        worst = _least(verify.compose(first, second, _BITS, cut), worst, delta, base)
    return worst / _DIGITS


def _sums(bits: int, count: int, cut: int) -> tuple[list[tuple[int, int]], int]:
    """Lower bounds on the masses of S on its grid, and the index of S = N (where Q = P)."""
    # Of few users a sum that is moved to zero weighs: an infinite loss.
    scale = math.ceil(_FINE * math.sqrt(bits) / 2) * (1 + 16 // count)
    grid: dict[int, int] = {}
    for z, mass in _fair(bits):
        place, rest = divmod(z * scale, bits + 1 - z)
        above = mass * rest // (bits + 1 - z)
        below = mass * (bits + 1 - z - rest) // (bits + 1 - z)
        grid[place] = grid.get(place, 0) + below
        grid[place + 1] = grid.get(place + 1, 0) + above
    each = verify.crop(verify.gathered(grid, 0), cut)
    first, masses, _ = verify.repeat(each, count, _BITS, cut, 0)
    return list(enumerate(masses, first)), count * scale


def _fair(bits: int) -> list[tuple[int, int]]:
    """Values of Binomial(bits, 1/2) and lower bounds on their probabilities.

    Weights fall from the middle, and every step loses less than one unit.
    """
    z, weight, left = bits // 2, _ONE << _BITS, []
    while weight:
        left.append((z, weight))
        weight = weight * z // (bits - z + 1)
        z -= 1
    unseen = len(left) ** 2 + verify.up(len(left) * (bits - z + 1), bits - 2 * z + 1)
    both = left + [(bits - z, weight) for z, weight in left if 2 * z != bits]
    total = sum(weight for _, weight in both) + 2 * unseen
    return [(z, weight * _ONE // total) for z, weight in both]


def _powers(each: verify.Masses, times: int, cut: int) -> list[verify.Masses]:
    """The same move 0, 1, ..., ``times`` times."""
    found: list[verify.Masses] = [(0, [_ONE], 0)]
    for _ in range(times):
        found.append(verify.compose(found[-1], each, _BITS, cut))
    return found


def _least(total: verify.Masses, worst: float, delta: Fraction, base: Fraction) -> float:
    """The least epsilon from ``worst`` on, in units of 1e-5, at which a total has this delta."""

    def holds(units: float) -> bool:
        spent = verify.hockey_stick(total, Fraction(int(units), _DIGITS), base, _BITS)
        return Fraction(spent, _ONE) <= delta

    if worst == math.inf or Fraction(total[2], _ONE) > delta:
        return math.inf
    if holds(worst):
        return worst
    low, high = int(worst), 2 * int(worst) + 1024
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
