"""Bodies of requests: read whole, if they are not too large and come in time."""

import asyncio
from collections.abc import Iterable

from starlette.types import Receive

from discreet.service.protocol.problems import Refusal

SECONDS = 20.0
"""In which a body must have arrived."""
_LENGTH = b"content-length"


async def read_body(
    headers: Iterable[tuple[bytes, bytes]], receive: Receive, most: int, seconds: float
) -> bytes:
    """The whole body of a request.

    Args:
        headers: of the request; one that says it is too large is not read.
        receive: gives its parts.
        most: bytes that it may have.
        seconds: in which all of it must have arrived.

    Raises:
        Refusal: ``tooLarge``, ``tooSlow``, or ``wrongLength`` if somebody hung up.
    """
    for name, value in headers:
        if name == _LENGTH and int(value) > most:
            raise Refusal("tooLarge")
    try:
        async with asyncio.timeout(seconds):
            return await _whole(receive, most)
    except TimeoutError:
        raise Refusal("tooSlow") from None


async def _whole(receive: Receive, most: int) -> bytes:
    data, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] != "http.request":  # somebody hung up
            raise Refusal("wrongLength")
        data += message.get("body", b"")
        if len(data) > most:
            raise Refusal("tooLarge")
        more = message.get("more_body", False)
    return bytes(data)
