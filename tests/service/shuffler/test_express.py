"""Reports pass by the framework, and are answered as if they had not."""

import asyncio
import json

import pytest

from discreet.service.protocol.problems import PROBLEMS, Refusal, document
from discreet.service.shuffler.web import ANSWERS, REPORTS, Express, problem

MOST = 1000


class Shuffler:
    """Takes what it was told to take."""

    largest_report = MOST

    def __init__(self, answer="accepted"):
        self.answer, self.taken = answer, []

    async def take(self, data):
        self.taken.append(data)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def asked(shuffler, *messages, headers=(), path=REPORTS, method="POST", seconds=60.0):
    """The messages with which one request is answered."""
    rest, sent = list(messages), []

    async def others(scope, receive, send):
        await send({"type": "others"})

    async def receive():
        if not rest:
            await asyncio.Event().wait()
        return rest.pop(0)

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": path, "method": method, "headers": list(headers)}
    asyncio.run(Express(others, shuffler, seconds)(scope, receive, send))
    return sent


def part(body, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


def status(sent):
    return sent[0]["status"], json.loads(sent[1]["body"])["code"] if sent[1]["body"] else ""


def test_a_report_comes_whole_or_in_parts():
    for messages in ([part(b"abc")], [part(b"a", True), part(b"", True), part(b"bc")]):
        shuffler = Shuffler()
        assert status(asked(shuffler, *messages)) == (201, "")
        assert shuffler.taken == [b"abc"]


@pytest.mark.parametrize("code", PROBLEMS)
def test_every_refusal_is_the_same_document_as_elsewhere(code):
    for answer in (code, Refusal(code)):
        start, body = asked(Shuffler(answer), part(b"abc"))
        theirs = problem(code)
        assert body["body"] == theirs.body == document(code)
        assert start["status"] == theirs.status_code
        assert set(start["headers"]) == set(theirs.raw_headers)


def test_what_is_too_large_is_not_read():
    shuffler = Shuffler()
    headers = [(b"content-length", str(MOST + 1).encode())]
    assert status(asked(shuffler, headers=headers)) == (413, "tooLarge")
    half = bytes(MOST // 2 + 1)
    assert status(asked(shuffler, part(half, True), part(half, True))) == (413, "tooLarge")
    assert not shuffler.taken
    assert status(asked(shuffler, part(bytes(MOST)))) == (201, "")


def test_who_hangs_up_or_waits_is_not_heard(caplog):
    shuffler = Shuffler()
    gone = {"type": "http.disconnect"}
    assert status(asked(shuffler, part(b"a", True), gone)) == (422, "wrongLength")
    assert status(asked(shuffler, part(b"a", True), seconds=0.01)) == (408, "tooSlow")
    assert not shuffler.taken


def test_of_an_accident_only_its_kind_is_noted(caplog):
    assert status(asked(Shuffler(ZeroDivisionError("secret")), part(b"a"))) == (500, "broken")
    assert "ZeroDivisionError" in caplog.text and "secret" not in caplog.text


def test_an_accident_of_the_framework_is_not_handed_to_the_server_s_log(caplog):
    """The server would write down the whole of it, with its words."""

    async def others(scope, receive, send):
        raise ZeroDivisionError("secret")

    scope = {"type": "http", "path": "/", "method": "GET", "headers": []}
    asyncio.run(Express(others, Shuffler(), 1.0)(scope, None, None))
    assert "ZeroDivisionError" in caplog.text and "secret" not in caplog.text


@pytest.mark.parametrize(("path", "method"), [(REPORTS, "GET"), ("/", "POST"), ("/v1", "POST")])
def test_everything_else_goes_to_the_framework(path, method):
    assert asked(Shuffler(), path=path, method=method) == [{"type": "others"}]


def test_answers_are_made_beforehand():
    assert set(ANSWERS) == {"accepted", *PROBLEMS}
