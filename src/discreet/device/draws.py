"""Randomness of a device: which bytes are drawn, in which order, and what they become.

All integers are big-endian. Every draw is exact, and how many bytes are drawn depends on public
numbers and on earlier random bytes, never on an episode:

- *words*: a block of 4 bytes each, read as integers below 2^32.
- *below(bound, count)*: words below ``limit = 2^32 - 2^32 mod bound`` are kept, all others thrown
  away; a kept word w becomes ``w mod bound``. The first block has ``count`` words; as long as some
  are missing, another block of exactly the missing number follows. Unbiased, because ``limit`` is a
  multiple of ``bound``.
- *noise(cells, weight, count)*: a block of ``count`` words (the coins), then ``below(cells,
  count)``. Noise cell i is the i-th of these if its coin is below ``weight`` (probability
  weight/2^32) and ``cells``, which means dummy, otherwise.
- *rewards*: a block of 7 bytes for each step, whatever its reward. The leading 53 of the 56 bits
  are an integer u; the bit is one if u < reward·2^53. That product is exact (a power of two moves
  only the exponent) and so is the comparison, in Python as in JavaScript. The bit is one with
  probability ceil(reward·2^53)/2^53: the reward itself for every double of at least one half, and
  less than 2^-53 above it for all others.
- *bits(numerator, denominator, count)*: ``count`` bits, each one with probability exactly
  numerator/denominator, a fraction below one whose denominator is a power of two. A uniform number
  is compared with it digit by digit in base 256: one block with a byte for each bit, below the
  digit: one, above: zero, equal: undecided; then a block with a byte for each undecided bit, in
  order, against the next digit. What is undecided after the last digit is not below: zero.
"""

import secrets
import struct
from collections.abc import Callable, Sequence
from typing import Protocol

from discreet.device.description import DeviceError

ByteSource = Callable[[int], bytes]
"""``source(n)`` gives n random bytes."""

WORD = 1 << 32


class Draws(Protocol):
    """What the encoders ask for. The library's samplers speak it too, in simulations and audits."""

    def below(self, bound: int, count: int) -> list[int]:
        """Uniform integers from 0 to ``bound - 1``."""

    def noise(self, cells: int, weight: int, count: int) -> list[int]:
        """Cells, uniform with probability ``weight``/2^32, and ``cells`` (dummy) otherwise."""

    def rewards(self, rewards: Sequence[float]) -> list[int]:
        """Every reward rounded to a bit."""

    def bits(self, numerator: int, denominator: int, count: int) -> list[int]:
        """Bits that are one with probability ``numerator/denominator``."""


class ByteDraws:
    """Draws from a source of bytes: the operating system's, unless a test brings its own.

    >>> zeros = ByteDraws(bytes)
    >>> zeros.below(5, 2), zeros.noise(5, 1, 2), zeros.rewards([0.0, 0.1])
    ([0, 0], [0, 0], [0, 1])
    """

    def __init__(self, source: ByteSource = secrets.token_bytes) -> None:
        self._source = source

    def _block(self, length: int) -> bytes:
        drawn = self._source(length)
        if not isinstance(drawn, bytes) or len(drawn) != length:
            raise DeviceError("badRandomness", f"Expected {length} random bytes from the source.")
        return drawn

    def _words(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f">{count}I", self._block(4 * count))

    def below(self, bound: int, count: int) -> list[int]:
        """Uniform integers by rejection."""
        limit = WORD - WORD % bound
        kept: list[int] = []
        while len(kept) < count:
            kept += [w % bound for w in self._words(count - len(kept)) if w < limit]
        return kept

    def noise(self, cells: int, weight: int, count: int) -> list[int]:
        """Coins first, then as many uniform cells, whether the coins need them or not."""
        coins = self._words(count)
        places = self.below(cells, count)
        return [p if c < weight else cells for c, p in zip(coins, places, strict=True)]

    def rewards(self, rewards: Sequence[float]) -> list[int]:
        """A 53-bit integer against each reward."""
        block = self._block(7 * len(rewards))
        coins = [int.from_bytes(block[i : i + 7]) >> 3 for i in range(0, len(block), 7)]
        return [int(u < reward * 2.0**53) for u, reward in zip(coins, rewards, strict=True)]

    def bits(self, numerator: int, denominator: int, count: int) -> list[int]:
        """All bits at once, digit by digit."""
        bits = [0] * count
        undecided: Sequence[int] = range(count)
        while undecided and numerator:
            digit, numerator = divmod(256 * numerator, denominator)
            block = self._block(len(undecided))
            drawn = list(zip(undecided, block, strict=True))
            for i, byte in drawn:
                bits[i] = int(byte < digit)
            undecided = [i for i, byte in drawn if byte == digit]
        return bits
