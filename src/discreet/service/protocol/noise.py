"""Whether the noise of a batch is as good as the limit that the charter's certificate is about."""

from collections.abc import Sequence

from discreet.device import MessageClass
from discreet.errors import CalibrationError, InvalidInputError
from discreet.service.protocol.charter import Charter


def check(charter: Charter, users: int, classes: Sequence[MessageClass]) -> None:
    """Refuse a batch whose finite noise the limit does not cover (none is known).

    The analyser checks before it announces, the shuffler before it lets anybody send.
    """
    from discreet.privacy.calibration.classes import batch_trials, check_batch

    try:
        check_batch(batch_trials(tuple(classes), charter.reliable(users)), charter.mean)
    except CalibrationError as error:
        raise InvalidInputError(str(error)) from None
