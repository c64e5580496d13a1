"""Who has taken part: keyed digests of names, appended batch by batch, looked up in memory.

In the file each batch is one run of sorted digests, 16 bytes per user, and is never touched again:
an index over all users would be changed in as many places as a batch has users, and in a large
study each place is a page of its own to be rewritten. In memory the first eight bytes of every
digest are kept in sorted runs, of which equal ones are merged (so there are about as many as the
number of users has binary digits). A match of eight bytes is looked up in the file before anybody
is refused. A whole number is looked up in all its spellings: each was once a name of its own.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from discreet._spelling import (
    RefusedNameError,
    digest_of,
    person,
    quoted,
    spellings,
    warn_of_lookalikes,
)
from discreet._types import IntArray, WordArray
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
            raise StudyError(
                f"User {quoted(name)} has taken part already, in this batch; a user is in a batch "
                f"once, with one episode; nothing was counted."
            )
        found[digest] = name
    warn_of_lookalikes(found.values())
    return dict(sorted(found.items()))


def seen_before(name: str, participations: int = 1, others: int = 0) -> StudyError:
    """The refusal of a user who comes again, or comes too often, as others here do."""
    if participations == 1:
        rule = "has taken part already; a user takes part once"
    else:
        rule = f"has taken part {participations} times, as often as is guaranteed for"
    more = f"; so have {others:,} others of this batch" if others else ""
    return StudyError(f"User {quoted(name)} {rule}{more}. Leave them out; nothing was counted.")


SIZE = 16
"""Bytes of a digest."""


class Participants:
    """The users of a study, by the first half of their digests.

    >>> participants = Participants()
    >>> participants.add(bytes(16) + bytes([7] * 16))
    >>> participants.matches(bytes([5] * 16) + bytes([7] * 16)), len(participants)
    ([1], 2)
    >>> participants.matches(bytes([7] * 16), times=2)
    []
    """

    def __init__(self) -> None:
        self._runs: list[WordArray] = []

    def __len__(self) -> int:
        """Users."""
        return sum(map(len, self._runs))

    def add(self, digests: bytes) -> None:
        """One more run of sorted digests."""
        run = _halves(digests)
        if not len(run):
            return
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)

    def matches(self, digests: bytes, times: int = 1) -> list[int]:
        """Places of sorted digests whose first half was seen so often before, or more often."""
        return [int(place) for place in np.flatnonzero(self._times(digests) >= times)]

    def too_often(
        self,
        people: Mapping[bytes, str],
        key: bytes,
        most: int,
        counted: Callable[[set[bytes]], Mapping[bytes, int]],
    ) -> list[bytes]:
        """The digests of those who were here ``most`` times, under all spellings of their names.

        Args:
            people: digest -> name.
            key: of the digests.
            most: how often anybody may come.
            counted: how often whole digests are in the file, for those who may be too often.
        """
        known_as = [
            [digest, *(digest_of(other, key) for other in spellings(name))]
            for digest, name in people.items()
        ]
        owner = np.repeat(np.arange(len(known_as)), [len(digests) for digests in known_as])
        seen = self._times(b"".join(digest for digests in known_as for digest in digests))
        maybe = [known_as[i] for i in np.flatnonzero(np.bincount(owner, seen) >= most)]
        if not maybe:
            return []
        times = counted({digest for digests in maybe for digest in digests})
        often = [own for own in maybe if sum(times.get(digest, 0) for digest in own) >= most]
        return sorted(digests[0] for digests in often)

    def _times(self, digests: bytes) -> IntArray:
        """How often the first half of each digest was seen."""
        asked = _halves(digests)
        seen = np.zeros(len(asked), np.int64)
        for run in self._runs:
            seen += np.searchsorted(run, asked, "right") - np.searchsorted(run, asked, "left")
        return seen


def split(digests: bytes) -> list[bytes]:
    """The single digests of a run."""
    return [digests[i : i + SIZE] for i in range(0, len(digests), SIZE)]


def _halves(digests: bytes) -> WordArray:
    return np.frombuffer(digests, ">u8")[::2].astype(np.uint64)
