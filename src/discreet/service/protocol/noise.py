"""Whether the noise of a batch is as good as the limit that the charter's certificate is about."""

import contextlib
from collections.abc import Sequence

from discreet.device import MessageGroup
from discreet.errors import CalibrationError, InvalidInputError
from discreet.service.protocol.charter import Charter


def check(charter: Charter, users: int, groups: Sequence[MessageGroup]) -> None:
    """Refuse a batch whose finite noise the limit does not cover.

    No such batch is known: this guards what the certificate, which is about the limit, cannot say.
    The analyser checks before it announces, the shuffler before it lets anybody send.
    """
    from discreet.privacy.accounting.histogram import batch_trials, check_batch

    try:
        check_batch(batch_trials(tuple(groups), charter.reliable(users)), charter.mean)
    except CalibrationError as error:
        raise InvalidInputError(str(error)) from None


def prepare(charter: Charter) -> None:
    """Load the compiled code of `check`, or compile it, once.

    A shuffler does so when it starts: where compiled code cannot be kept, that is the moment to
    hear of it, and not the first batch.

    Raises:
        DiscreetError: there is no place for it.
    """
    users = charter.min_users
    anything = [[0] * charter.states] * charter.horizon
    with contextlib.suppress(InvalidInputError):  # a batch that is announced is refused by name
        check(charter, users, charter.device(anything, users).groups)
