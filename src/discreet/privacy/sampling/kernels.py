"""Words of a compiled generator."""

import numpy as np

from discreet._jit import inlined
from discreet._types import WordArray


@inlined
def next_word(s0: WordArray, s1: WordArray, s2: WordArray, s3: WordArray, j: int) -> np.uint64:
    """One output of generator j (xoshiro256++, Blackman and Vigna, 2021)."""
    a, b, c, d = s0[j], s1[j], s2[j], s3[j]
    mixed = a + d
    result = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + a
    c ^= a
    d ^= b
    s1[j] = b ^ c
    s0[j] = a ^ d
    s2[j] = c ^ (b << np.uint64(17))
    s3[j] = (d << np.uint64(45)) | (d >> np.uint64(19))
    return np.uint64(result)
