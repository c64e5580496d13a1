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
    noise.check(OF, users, OF.device(POLICY, users).classes)


def test_a_class_with_one_noise_message_less_is_refused():
    classes = OF.device(POLICY, 3).classes
    for place, one in enumerate(classes):
        fewer = list(classes)
        fewer[place] = one._replace(noise=one.noise - 1)
        with pytest.raises(InvalidInputError):
            noise.check(OF, 3, fewer)


def test_the_noise_of_a_larger_batch_is_too_little_for_a_smaller_one():
    with pytest.raises(InvalidInputError):
        noise.check(OF, 4, OF.device(POLICY, 40).classes)


def test_only_the_honest_half_of_the_users_is_counted_on():
    classes = OF.device(POLICY, 40).classes
    half = charter(honest=Fraction(1, 2))
    with pytest.raises(InvalidInputError):
        noise.check(half, 40, classes)
    noise.check(half, 40, half.device(POLICY, 40).classes)
