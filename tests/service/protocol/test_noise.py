"""Noise of a batch: what the certificate's limit covers is announced, anything else refused."""

from fractions import Fraction

import pytest

from discreet.errors import InvalidInputError
from discreet.service.protocol import noise
from helpers.services import charter

OF = charter()
POLICY = [[0, 1], [1, 0]]


@pytest.mark.parametrize("users", [3, 50])
def test_the_noise_that_the_charter_asks_for_is_covered(users):
    noise.check(OF, users, OF.device(POLICY, users).groups)


def test_a_class_with_one_noise_message_less_is_refused():
    groups = OF.device(POLICY, 3).groups
    for place, one in enumerate(groups):
        fewer = list(groups)
        fewer[place] = one._replace(noise=one.noise - 1)
        with pytest.raises(InvalidInputError):
            noise.check(OF, 3, fewer)


def test_the_noise_of_a_larger_batch_is_too_little_for_a_smaller_one():
    with pytest.raises(InvalidInputError):
        noise.check(OF, 4, OF.device(POLICY, 40).groups)


def test_only_the_honest_half_of_the_users_is_counted_on():
    groups = OF.device(POLICY, 40).groups
    half = charter(honest=Fraction(1, 2))
    with pytest.raises(InvalidInputError):
        noise.check(half, 40, groups)
    noise.check(half, 40, half.device(POLICY, 40).groups)
