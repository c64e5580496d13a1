"""The keyed digests that a study keeps of its users' names."""

from collections.abc import Iterable

from discreet._spelling import RefusedNameError, digest_of, person, quoted, warn_of_lookalikes
from discreet.errors import StudyError


def digests_of(users: Iterable[object], key: bytes) -> dict[bytes, str]:
    """Keyed digest -> name of users of whom none comes twice, in the order of the digests."""
    found: dict[bytes, str] = {}
    for user in users:
        try:
            name = person(user)
        except RefusedNameError as error:
            raise StudyError(f"{error} Nothing was counted.") from None
        digest = digest_of(name, key)
        if digest in found:
            raise seen_before(name)
        found[digest] = name
    warn_of_lookalikes(found.values())
    return dict(sorted(found.items()))


def seen_before(name: str) -> StudyError:
    """The refusal of a user who comes again."""
    return StudyError(
        f"User {quoted(name)} has taken part already; a user takes part once, nothing was counted."
    )
