"""How many users are counted on, and how much noise all of them must bring so that these suffice.

The standard library alone: plans ask, and so do devices and the shuffler of a service.
"""

import math
from fractions import Fraction

from discreet import _validate
from discreet.errors import InvalidInputError


def honest_users(honest: float | Fraction, users: int) -> int:
    """Whole users among ``users`` who are counted on if the fraction ``honest`` is: rounded down.

    The fraction is the decimal that a person wrote: 0.9 of 10 users are 9, and 0.8999999999 are 8.

    Raises:
        InvalidInputError: if nobody is left whose noise could be relied on.

    >>> honest_users(0.9, 10), honest_users(0.8999999999, 10)
    (9, 8)
    """
    _validate.count(users=users)
    _validate.probability(honest=honest)
    count = math.floor(_validate.exact(honest) * users)
    if not count:
        raise InvalidInputError(
            f"Expected at least one honest user, got honest={honest} of users={users}; "
            f"use a larger batch."
        )
    return count


def least_crowd(honest: float | Fraction) -> int:
    """How many users it takes until `honest_users` counts on one of them.

    >>> least_crowd(1.0), least_crowd(0.9), least_crowd(0.3)
    (1, 2, 4)
    """
    _validate.positive(honest=honest)
    return math.ceil(1 / _validate.exact(honest))


def mean_of_all(mean: Fraction, honest: float | Fraction, users: int) -> Fraction:
    """The mean of all users' noise of which those who are counted on add ``mean``.

    >>> mean_of_all(Fraction(300), 0.75, 10)  # seven of ten are counted on
    Fraction(3000, 7)
    """
    return mean * users / honest_users(honest, users)
