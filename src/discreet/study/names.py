"""Users' names, one spelling each, and the keyed digests that are kept of them.

Two spellings of one name must not make two users of one person: see `discreet._spelling`.
"""

import hashlib
from collections.abc import Iterable
from numbers import Integral

from discreet._spelling import has_half_characters, quoted, spelled
from discreet.errors import StudyError


def canonical(user: object) -> str:
    r"""The one spelling of a user's name, or one sentence why it is none.

    >>> canonical(" u0 "), canonical("\ufeffu0"), canonical(7)
    ('u0', 'u0', '7')
    """
    if isinstance(user, bool) or not isinstance(user, str | Integral):
        raise StudyError(
            f"Expected users named by text or by integers, got {quoted(user)} of type "
            f"{type(user).__name__}; nothing was counted."
        )
    name = spelled(str(user))
    if not name:
        raise StudyError(
            f"Expected a name for every user, got {quoted(user)}, which is empty; nothing was "
            f"counted."
        )
    if has_half_characters(name):
        raise StudyError(
            f"Expected names of whole characters, got {user!a}, which holds half of one (a lone "
            f"surrogate); nothing was counted."
        )
    return name


def digests_of(users: Iterable[object], key: bytes) -> dict[bytes, str]:
    """Keyed digest -> name of users of whom none comes twice, in the order of the digests."""
    found: dict[bytes, str] = {}
    for user in users:
        name = canonical(user)
        digest = hashlib.blake2b(name.encode(), key=key, digest_size=16).digest()
        if digest in found:
            raise seen_before(name)
        found[digest] = name
    return dict(sorted(found.items()))


def seen_before(name: str) -> StudyError:
    """The refusal of a user who comes again."""
    return StudyError(
        f"User {quoted(name)} has taken part already; a user takes part once, nothing was counted."
    )
