"""The multisets of papers 000 and 001 as printed: every proof step against an exhaustive count."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import pytest

from discreet.mdp.shape import Shape
from discreet.privacy.certificates.multiset import alike, multiset_epsilon
from discreet.privacy.mechanisms.bits import printed_shuffle

RIVER = Shape(states=4, actions=2, horizon=6)
BETA = Fraction(1, 100_000)
View = dict[tuple[int, ...], Fraction]


def view(ones: int, zeros: int, bits: int) -> View:
    """Exact probabilities of all multisets."""
    found: View = {(): Fraction(1)}
    for bit in [1] * ones + [0] * zeros:
        longer: View = defaultdict(Fraction)
        for seen, mass in found.items():
            for k in range(bits + 1):
                chance = Fraction(math.comb(bits, k), 2**bits)
                longer[tuple(sorted((*seen, k + bit)))] += mass * chance
        found = longer
    return found


def both(a: View, b: View) -> View:
    """Two independent counters."""
    return {(*x, -1, *y): p * q for (x, p), (y, q) in itertools.product(a.items(), b.items())}


def excess(first: View, second: View, epsilon: float) -> float:
    least = Fraction(math.exp(epsilon))
    return float(sum(max(Fraction(0), p - least * second.get(x, 0)) for x, p in first.items()))


@pytest.mark.parametrize("users", range(1, 9))
def test_whatever_the_others_hold_so_many_are_alike(users: int) -> None:
    """The replaced user, and the larger half of the others, however they are divided."""
    assert alike(users) == 1 + min(max(ones, users - 1 - ones) for ones in range(users))


@pytest.mark.parametrize(
    ("users", "bits", "delta"), [(1, 9, 0.01), (2, 6, 0.05), (4, 5, 0.1), (5, 4, 0.1), (6, 3, 0.2)]
)
def test_no_dataset_of_few_users_is_betrayed_more(users: int, bits: int, delta: float) -> None:
    epsilon = multiset_epsilon(users, bits, 1, Fraction(str(delta)))
    for ones in range(users):  # among the others
        one, zero = view(ones + 1, users - 1 - ones, bits), view(ones, users - ones, bits)
        assert excess(one, zero, epsilon) <= delta
        assert excess(zero, one, epsilon) <= delta
    n = alike(users)  # and those whom the proof gives away cost little
    one, zero = view(1, n - 1, bits), view(0, n, bits)
    near = 0.9 * epsilon
    assert max(excess(one, zero, near), excess(zero, one, near)) > delta


@pytest.mark.parametrize(("users", "bits", "delta"), [(1, 7, 0.03), (3, 5, 0.1), (2, 6, 0.05)])
def test_two_counters_compose_whatever_the_others_hold(users: int, bits: int, delta: float) -> None:
    epsilon = multiset_epsilon(users, bits, 2, Fraction(str(delta)))
    moves = [
        pair
        for ones in range(users)
        for one, zero in [(view(ones + 1, users - 1 - ones, bits), view(ones, users - ones, bits))]
        for pair in [(one, zero), (zero, one)]
    ]
    worst = 0.0
    for (a, b), (c, d) in itertools.product(moves, repeat=2):
        worst = max(worst, excess(both(a, c), both(b, d), epsilon))
    assert worst <= delta


@pytest.mark.parametrize(
    ("split", "users", "expected"),
    [
        (True, 85, 0.0721),
        (True, 1_024, 0.0725),
        (True, 5_146, 0.0729),
        (True, 22_000, 0.0799),
        (False, 4_096, 0.0851),
        (False, 17_000, 0.092),
    ],
)
def test_what_the_printed_protocols_deliver_at_six_sizes(
    split: bool, users: int, expected: float
) -> None:
    bits = printed_shuffle(RIVER, 1, float(BETA), split=split).bits(users).bits
    found = multiset_epsilon(users, bits, 36, BETA)
    assert expected - 2e-4 < found <= expected


@pytest.mark.parametrize(("split", "last"), [(True, 23_812), (False, 18_078)])
def test_the_claim_holds_for_every_batch_up_to_a_size_and_for_none_from_there(
    split: bool, last: int
) -> None:
    """Ranges of batch sizes at once: the fewest users of a range with the bits of the most."""
    printed = printed_shuffle(RIVER, 1, float(BETA), split=split)
    ends = [1, 65, 4_097, last + 1]
    for least, over in itertools.pairwise(ends):
        assert multiset_epsilon(least, printed.bits(over - 1).bits, 36, BETA) < 1
    refuting = 1 - (1 - Fraction(1, 2 ** printed.bits(last + 1).bits)) ** 36
    assert refuting > BETA
    assert multiset_epsilon(last + 1, printed.bits(last + 1).bits, 36, BETA) == math.inf
