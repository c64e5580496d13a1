"""Bodies of requests: whole, bounded in size and time."""

import asyncio

import pytest

from discreet.service.protocol.problems import Refusal
from discreet.service.shuffler.web import read_body


def read(*messages, headers=(), most=10, seconds=5.0):
    """What becomes of these messages; after the last one nothing comes."""
    left = list(messages)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return asyncio.run(read_body(headers, receive, most, seconds)), len(left)


def part(body, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_is_put_together():
    assert read(part(b"abc", True), part(b"def", True), part(b"")) == (b"abcdef", 0)
    assert read(part(b"0123456789")) == (b"0123456789", 0)


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([part(b"0123456789x")], "tooLarge"),
        ([part(b"01234567", True), part(b"89x", True)], "tooLarge"),
        ([part(b"0", True), {"type": "http.disconnect"}], "wrongLength"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(messages, code):
    with pytest.raises(Refusal, match=code):
        read(*messages)


def test_a_body_that_says_it_is_too_large_is_not_read():
    with pytest.raises(Refusal, match="tooLarge"):
        read(headers=[(b"content-length", b"11")])


def test_a_body_that_does_not_end_is_refused():
    with pytest.raises(Refusal, match="tooSlow"):
        read(part(b"0", True), seconds=0.01)
