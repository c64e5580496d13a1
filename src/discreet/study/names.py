"""Users' names, one spelling each, and the keyed digests that are kept of them.

Two spellings of one name must not make two users of one person: see `discreet._spelling`.
"""

import hashlib
from collections.abc import Iterable, Sequence
from numbers import Integral

from discreet._spelling import has_half_characters, spelled
from discreet.errors import StudyError


def canonical(user: object) -> str:
    r"""The one spelling of a user's name, or one sentence why it is none.

    >>> canonical(" u0 "), canonical("\ufeffu0"), canonical(7)
    ('u0', 'u0', '7')
    """
    if isinstance(user, bool) or not isinstance(user, str | Integral):
        raise StudyError(
            f"Expected users named by text or by integers, got {user!r} of type "
            f"{type(user).__name__}; nothing was counted."
        )
    name = spelled(str(user))
    if not name:
        raise StudyError(
            f"Expected a name for every user, got {user!r}, which is empty; nothing was counted."
        )
    if has_half_characters(name):
        raise StudyError(
            f"Expected names of whole characters, got {user!a}, which holds half of one (a lone "
            f"surrogate); nothing was counted."
        )
    return name


def digests_of_new(users: Sequence[object], seen: Iterable[str], key: bytes) -> list[str]:
    """Keyed digests of users of whom none is among ``seen`` and none comes twice."""
    known, digests = set(seen), []
    for user in users:
        name = canonical(user)
        digest = hashlib.blake2b(name.encode(), key=key, digest_size=16).hexdigest()
        if digest in known:
            raise StudyError(
                f"User {name!r} has taken part already; a user takes part once, nothing was "
                f"counted."
            )
        known.add(digest)
        digests.append(digest)
    return digests
