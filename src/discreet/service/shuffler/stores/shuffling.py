"""The permutation: uniform over all envelopes of a class, from the operating system's randomness.

Every envelope draws a bucket and, inside its bucket, a key of 64 bits; the order is that of bucket
and key. If all keys of a bucket are distinct (they are drawn again otherwise) every order of its
envelopes is equally likely, by symmetry; and so is every order of all of them, because the pair
(bucket, key) of one envelope is independent of all others and of what it holds. Buckets keep the
memory bounded: all envelopes of a class need never be there at once.
"""

import os
from collections.abc import Iterator

import numpy as np

from discreet._types import ByteArray
from discreet.device import ENVELOPE

BUCKET = 4 << 20
"""Bytes of a bucket, about."""


def buckets_for(envelopes: int) -> int:
    """How many buckets keep each of them small: a power of two.

    >>> buckets_for(1000), buckets_for(1_000_000)
    (1, 16)
    """
    wanted = -(-envelopes * ENVELOPE // BUCKET)
    return 1 << (wanted - 1).bit_length() if wanted > 1 else 1


def scatter(envelopes: ByteArray, buckets: int) -> Iterator[tuple[int, bytes]]:
    """Every envelope into a bucket of its own luck: the buckets that got some, with them."""
    if buckets == 1:
        yield 0, envelopes.tobytes()
        return
    drawn = np.frombuffer(os.urandom(4 * len(envelopes)), np.uint32) & np.uint32(buckets - 1)
    order = np.argsort(drawn, kind="stable")
    found, first = np.unique(drawn[order], return_index=True)
    ends = [*first[1:].tolist(), len(envelopes)]
    for bucket, a, b in zip(found.tolist(), first.tolist(), ends, strict=True):
        yield bucket, envelopes[order[a:b]].tobytes()


def permuted(data: bytes) -> bytes:
    """The envelopes of a bucket in a uniformly random order."""
    envelopes = np.frombuffer(data, np.uint8).reshape(-1, ENVELOPE)
    while True:
        keys = np.frombuffer(os.urandom(8 * len(envelopes)), np.uint64)
        order = np.argsort(keys)
        ordered = keys[order]
        if (ordered[1:] != ordered[:-1]).all():
            return envelopes[order].tobytes()
