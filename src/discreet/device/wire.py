"""Bytes of a report, version 1.

======  =====  ====================================================================================
offset  bytes  meaning
======  =====  ====================================================================================
0       4      ``dscr`` in ASCII
4       1      version of this format: 1
5       1      encoder: 1 classes, 2 one-step, 3 randomized-response, 4 split
6       32     SHA-256 of the public description (`description.digest`): the batch it belongs to
38      ...    the body, of one length for all users of a batch
======  =====  ====================================================================================

Body of *classes*: every message as 4 bytes, its cell as a big-endian integer, in the public order
of the classes. Of *one-step*: the step as 4 bytes, then bits. Of *randomized-response*: bits. Of
*split*: the slot as 4 bytes, then bits. Bits are packed eight to a byte, the first one in the
highest place; places left over are zero.

Through a shuffler messages of classes do not travel as a report: each of them is sealed on its own.
The 4 bytes of a cell in an HPKE envelope (X25519: 32 bytes of key, 16 bytes of tag) take 52 bytes.
"""

import struct
from collections.abc import Sequence

from discreet.device.errors import DeviceError

VERSION = 1
ENVELOPE = 52
"""Bytes of one sealed message."""
HEADER = 38
_MAGIC = b"dscr"


def with_header(kind: int, batch: bytes, body: bytes) -> bytes:
    return _MAGIC + bytes([VERSION, kind]) + batch + body


def body_of(data: object, kind: int, batch: bytes, length: int) -> bytes:
    """The body of a report of this batch, if the bytes are one."""
    report = check_bytes(data)
    if len(report) < HEADER:
        raise DeviceError("wrongLength", f"Expected a report of {HEADER + length} bytes.")
    if report[:5] != _MAGIC + bytes([VERSION]):
        raise DeviceError("unknownVersion", f"Expected a report of version {VERSION}.")
    if report[5:HEADER] != bytes([kind]) + batch:
        raise DeviceError("otherBatch", "Expected a report made for this batch's description.")
    if len(report) != HEADER + length:
        raise DeviceError("wrongLength", f"Expected a report of {HEADER + length} bytes.")
    return report[HEADER:]


def check_bytes(data: object) -> bytes:
    """The data, if they are bytes."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise DeviceError("notBytes", f"Expected bytes, got {type(data).__name__}.")
    return bytes(data)


def pack_words(numbers: Sequence[int]) -> bytes:
    """Four bytes each, big-endian."""
    return struct.pack(f">{len(numbers)}I", *numbers)


def unpack_words(data: bytes) -> list[int]:
    return list(struct.unpack(f">{len(data) // 4}I", data))


def pack_bits(bits: Sequence[int], length: int) -> bytes:
    r"""Eight to a byte, the first in the highest place, in ``length`` bytes.

    >>> pack_bits([1, 0, 1], 1)
    b'\xa0'
    """
    number = int("".join(map(str, bits)) or "0", 2)
    return (number << (8 * length - len(bits))).to_bytes(length)


def unpack_bits(data: bytes, count: int) -> list[int]:
    """The first ``count`` bits; the others must be zero."""
    digits = "".join(f"{byte:08b}" for byte in data)
    if "1" in digits[count:]:
        raise DeviceError("badPadding", "Expected zeros after the last bit.")
    return list(map(int, digits[:count]))
