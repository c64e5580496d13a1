"""The printed shuffle mechanisms, by calculation and by attack."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import gaussian_epsilon
from discreet.privacy.accounting.distributions import binomial_pmf
from discreet.privacy.accounting.losses import epsilon_of_moves
from discreet.privacy.accounting.search import NoiseBits, noise_bits
from discreet.privacy.mechanisms.bits import (
    _least_share,
    integer_messages_delta,
    printed_shuffle,
    whole_vectors_delta,
)


@pytest.mark.core
def test_integer_messages_at_the_papers_own_size():
    printed = printed_shuffle(Shape(states=4, actions=2, horizon=2), 1, 1e-6)
    nobody, everybody = integer_messages_delta(printed.bits(597_240))
    assert nobody == pytest.approx(0.05, rel=1e-3)
    assert everybody == pytest.approx(0.95, rel=1e-3)


@pytest.mark.core
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 2.0**-7, 0.3, 0.9])
def test_a_claim_is_refuted_from_the_first_batch_that_betrays_more_often(delta):
    printed = printed_shuffle(Shape(states=4, actions=2, horizon=2), 1, 1e-6)
    first = printed.refuted_from(delta, 6)
    below, at = (1 - (1 - Fraction(1, 2 ** printed.bits(n).bits)) ** 12 for n in (first - 1, first))
    assert below <= Fraction(delta) < at
    assert f"delta = {delta:g} is refuted from n = {first:,} on" in printed.integers(delta, 6)


def test_integer_messages_are_caught_in_the_act():
    """Simulate the printed integers: the event that betrays the user has the computed frequency."""
    rng = np.random.default_rng(0)
    users, each = 50, NoiseBits(2, 0.3)
    betrayed = 0
    for _ in range(4000):
        z = rng.binomial(each.bits, each.probability, users)
        z[0] += 1  # the only user with the bit
        betrayed += (z == each.bits + 1).any()
    low, _ = integer_messages_delta(each)
    assert abs(betrayed / 4000 - low) < 6 * math.sqrt(low / 4000)


def test_whole_vectors_link_the_cells_of_one_user():
    each = noise_bits(1000, 18, 18, 1, 1e-6)
    assert whole_vectors_delta(each, 6) == pytest.approx(0.93, abs=0.01)
    assert whole_vectors_delta(each, 18) > 0.999
    assert whole_vectors_delta(each, 1) < whole_vectors_delta(each, 2)


def test_printed_bits_switch_at_tau():
    printed = printed_shuffle(Shape(states=4, actions=2, horizon=2), 1, 1e-6)
    assert printed.bits(59_723) == NoiseBits(2, 0.5)
    assert printed.bits(59_724).bits == 1
    assert printed.bits(10) == NoiseBits(math.ceil(printed.tau / 10), 0.5)


SMALL = Shape(states=4, actions=2, horizon=6)


class TestDeliveredEpsilon:
    def test_half_of_two_users_add_half_of_the_noise(self):
        """floor(0.9·2) = 1 honest user: epsilon 0.0803, not the 0.0586 of 0.9·tau fair bits."""
        printed = printed_shuffle(SMALL, 1, 1e-6)
        assert printed.delivered_epsilon(18, 1e-6, 0.9, users=2) == pytest.approx(0.0803, rel=1e-3)
        trials = math.ceil(printed.tau / 2)
        fair = epsilon_of_moves(binomial_pmf(trials, 0.5), 18, 18, 1e-6)
        assert printed.delivered_epsilon(18, 1e-6, 0.9, users=2) == fair
        assert printed.delivered_epsilon(18, 1e-6, 0.9) >= fair

    def test_a_batch_without_a_whole_honest_user_is_refused(self):
        printed = printed_shuffle(SMALL, 1, 1e-6)
        with pytest.raises(InvalidInputError, match="at least one honest user"):
            printed.delivered_epsilon(18, 1e-6, 0.9, users=1)

    @pytest.mark.parametrize("honest", [1.0, 0.9, 0.5, 0.3])
    @pytest.mark.parametrize("epsilon", [5.0, 12.0])
    def test_the_bound_for_every_batch_covers_each(self, honest, epsilon):
        printed = printed_shuffle(Shape(states=2, actions=2, horizon=1), epsilon, 1e-4)
        least = math.ceil(1 / honest)
        tau = round(printed.tau)
        sizes = {*range(least, least + 8), tau - 2, tau - 1, tau, tau + 1, 2 * tau, 1000 * tau}
        whole = printed.delivered_epsilon(3, 1e-4, honest)
        each = [printed.delivered_epsilon(3, 1e-4, honest, users=n) for n in sorted(sizes)]
        assert max(each) <= whole
        assert whole <= 1.15 * max(each)

    def test_the_bound_for_every_batch_of_a_small_epsilon(self):
        """Noise of so many users is nearly Gaussian, with the variance tau/4 on each counter."""
        printed = printed_shuffle(Shape(states=2, actions=2, horizon=1), 0.005, 1e-3)
        found = printed.delivered_epsilon(1, 1e-3)
        gaussian = gaussian_epsilon(math.sqrt(printed.tau / 4), math.sqrt(2), 1e-3)
        assert found == pytest.approx(gaussian, rel=0.2) and found >= gaussian

    def test_the_bound_is_tight_at_the_papers_size(self):
        printed = printed_shuffle(SMALL, 1, 1e-6)
        exact = printed.delivered_epsilon(18, 1e-6, users=math.ceil(printed.tau))
        assert exact < printed.delivered_epsilon(18, 1e-6) < 1.002 * exact

    def test_rare_bits_can_hide_less_than_fair_ones_of_less_variance(self):
        """Why a growing variance is no proof: at tiny deltas the edges decide."""
        fair, rare = binomial_pmf(20, 0.5), binomial_pmf(10_000, 10 / 10_000)
        assert rare.variance > 1.9 * fair.variance
        delta = 2e-5
        assert epsilon_of_moves(fair, 1, 1, delta) < math.inf
        assert epsilon_of_moves(rare, 1, 1, delta) == math.inf

    @pytest.mark.parametrize("honest", ["1", "0.9", "0.5", "0.37", "0.99", "0.1"])
    def test_the_least_share_of_honest_users(self, honest):
        fraction = Fraction(honest)
        shares = [Fraction(math.floor(fraction * n), n) for n in range(1, 3000)]
        assert _least_share(fraction) == min(share for share in shares if share)
