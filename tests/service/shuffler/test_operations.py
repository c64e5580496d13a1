"""Requests drawn from the list of operations: every answer is stated here, and none is 500."""

import re

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.service.client import Client
from discreet.service.protocol import ticket
from discreet.service.protocol.problems import MEDIA_TYPE, PROBLEMS, document
from discreet.service.shuffler import web
from discreet.service.shuffler.shuffler import CODES
from helpers.services import (
    TOKEN,
    announced,
    charter,
    content,
    fake_report,
    make_test_shuffler,
    serving,
)

OF = charter()
HTTP = httpx.Client(verify=False, timeout=60)
ONE = announced(OF)
PASSES = ticket.make(3)

JSON = {200: "application/json"}
BYTES = {200: web.BYTES}
UNKNOWN = ("unknownBatch", "notFound")
BATCH = (*UNKNOWN, "notFull", "batchExpired")
ANNOUNCE = (
    *UNKNOWN,
    "tooLarge",
    "tooSlow",
    "wrongLength",
    "badSignature",
    "unknownVersion",
    "badManifest",
    "badDeadline",
    "forbiddenMutation",
    "batchPending",
)
STATED = {
    "report": ({201: ""}, CODES),
    "charter": (JSON, ()),
    "manifest": (BYTES, ("noOpenBatch",)),
    "manifest_at": (BYTES, UNKNOWN),
    "announce": ({200: "", 201: ""}, ANNOUNCE),
    "state": (JSON, UNKNOWN),
    "messages": (BYTES, (*BATCH, "batchDone", "batchAbandoned")),
    "done": ({200: ""}, BATCH),
    "studies": (JSON, ()),
    "alive": (JSON, ()),
    "ready": (JSON | {503: "application/json"}, ()),
    "metrics": ({200: "text/plain"}, ()),
    "index": ({200: "text/html"}, ()),
    "file": ({200: ""}, ("notFound",)),
}
"""Of each operation status -> media type of what it gives, empty if it gives nothing; and the codes
with which it may refuse, besides ``busy`` and ``broken``."""


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A shuffler with an open batch that lacks one user; its address and its store's file."""
    path = tmp_path_factory.mktemp("live") / "s.db"
    with serving(make_test_shuffler(path, OF, PASSES)) as url, Client(url, TOKEN) as client:
        client.announce(0, ONE.signed)
        client.send(fake_report(ONE, PASSES[0]))
        yield url, path
        HTTP.close()


NUMBERS = (
    st.integers(0, 3)
    | st.integers(-2, 1 << 64)
    | st.sampled_from(["x", "1.0", "%00", "..", "0x1", "٣", "1e3", ""])
)
TOKENS = st.sampled_from([None, "", "Bearer", "Bearer wrong", f"Bearer {TOKEN}"])
REPORT = fake_report(ONE, PASSES[0])  # its ticket is spent
BODIES = (
    st.binary(max_size=300)
    | st.integers(0, len(REPORT)).map(lambda n: REPORT[:n])
    | st.integers(0, len(REPORT) - 1).map(
        lambda n: REPORT[:n] + bytes([REPORT[n] ^ 1]) + REPORT[n + 1 :]
    )
    | st.just(REPORT + REPORT)
    | st.sampled_from([ONE.signed, ONE.signed[:-1], b"0" * 128 + b"\n{}", OF.data])
)


@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    operation=st.sampled_from(web.OPERATIONS),
    numbers=st.lists(NUMBERS, min_size=2, max_size=2),
    token=TOKENS,
    body=BODIES,
)
def test_p10_every_answer_is_one_that_is_stated(live, operation, numbers, token, body):
    url, path = live
    rest = iter(numbers)
    asked = re.sub(r"\{\w+\}", lambda _: str(next(rest)), operation.path)
    before = content(path)
    headers = {} if token is None else {"authorization": token}
    request = httpx.Request(operation.method, url + asked, content=body, headers=headers)
    answer = HTTP.send(request)
    if answer.status_code < 400:
        kind = STATED[operation.name][0][answer.status_code]
        assert answer.headers.get("content-type", "").startswith(kind)
        if operation.analyser:
            assert token == f"Bearer {TOKEN}"
    else:
        assert answer.headers["content-type"] == MEDIA_TYPE
        code = answer.json()["code"]
        known = codes(operation)
        if numbers and "{" in operation.path:
            known |= {"notFound", "notAllowed"}  # it was another path after all
        assert code in known - {"broken", "busy"}
        assert (answer.status_code, answer.content) == (PROBLEMS[code].status, document(code))
    assert content(path) == before


def codes(operation):
    """Every code with which an endpoint may refuse."""
    own = {"unauthorised"} if operation.analyser else set()
    return own | {*STATED[operation.name][1], "busy", "broken"}


def test_every_reason_is_given_by_some_endpoint():
    stated = set().union(*(codes(one) for one in web.OPERATIONS))
    assert stated | {"notAllowed"} == set(PROBLEMS)
