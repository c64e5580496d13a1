"""Whether the noise of a batch is as good as the limit that the charter's certificate is about."""

from collections.abc import Sequence
from fractions import Fraction

from discreet.device import MessageClass
from discreet.device.draws import WORD
from discreet.errors import CalibrationError, InvalidInputError
from discreet.service.charter import Charter


def check(charter: Charter, users: int, classes: Sequence[MessageClass]) -> None:
    """Refuse a batch whose finite noise the limit does not cover (none is known).

    The analyser checks before it announces, the shuffler before it lets anybody send.
    """
    from discreet.privacy.calibration.classes import Trials, check_batch

    times: dict[tuple[int, Fraction], int] = {}
    for one in classes:
        if one.cells > 1:  # with nothing but none, nobody can move
            key = charter.reliable(users) * one.noise, Fraction(one.weight, WORD * one.cells)
            times[key] = times.get(key, 0) + 1
    parts = [Trials(trials=n, probability=p, times=count) for (n, p), count in times.items()]
    try:
        check_batch(parts, charter.mean)
    except CalibrationError as error:
        raise InvalidInputError(str(error)) from None
