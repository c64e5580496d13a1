"""Endpoints: whole bodies, every refusal a problem document."""

import asyncio
import json

import httpx
import pytest
from starlette.requests import Request

from discreet.service.protocol import manifest, ticket
from discreet.service.protocol.problems import MEDIA_TYPE, PROBLEMS, Refusal, document
from discreet.service.shuffler.shuffler import CODES, Shuffler
from discreet.service.shuffler.web import make_app, problem, read_body
from helpers.services import TOKEN, announced, charter, fake_report, make_test_shuffler

OF = charter()
ANALYSER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def ask(tmp_path):
    """Sends requests, one after the other, to one application; their answers."""

    def send(*requests, tickets=()):
        shuffler = make_test_shuffler(tmp_path / "s.db", OF, tickets)

        async def run():
            transport = httpx.ASGITransport(make_app(shuffler), raise_app_exceptions=False)
            async with (
                shuffler.life(),
                httpx.AsyncClient(transport=transport, base_url="http://shuffler") as client,
            ):
                return [
                    await client.request(method, path, **more) for method, path, more in requests
                ]

        return asyncio.run(run())

    return send


def code(answer):
    """Of a problem document; its status is the one that belongs to it."""
    assert answer.headers["content-type"].startswith(MEDIA_TYPE)
    found = json.loads(answer.content)["type"].rpartition(":")[2].rpartition("/")[2]
    assert answer.status_code == PROBLEMS[found].status
    return found


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/batches/0"),
        ("GET", "/v1/batches/0/messages/0"),
        ("POST", "/v1/batches/0/done"),
    ],
)
def test_what_is_the_analyser_s_is_refused_to_everybody_else(ask, method, path):
    wrong = {"authorization": "Bearer guess"}
    answers = ask((method, path, {}), (method, path, {"headers": wrong}))
    assert [code(answer) for answer in answers] == ["unauthorised"] * 2


def test_a_batch_over_the_wire(ask):
    one, passes = announced(OF), ticket.make(3)
    reports = [("POST", "/v1/reports", {"content": fake_report(one, x)}) for x in passes]
    answers = ask(
        ("GET", "/v1/charter", {}),
        ("GET", "/v1/manifest", {}),
        ("PUT", "/v1/batches/0", {"content": one.signed, "headers": ANALYSER}),
        ("PUT", "/v1/batches/0", {"content": one.signed, "headers": ANALYSER}),
        ("GET", "/v1/manifest", {}),
        ("GET", "/v1/batches/0/messages/0", {"headers": ANALYSER}),
        *reports,
        ("POST", "/v1/reports", {"content": fake_report(one, passes[0])}),
        ("GET", "/metrics", {}),
        tickets=passes,
    )
    assert answers[0].content == OF.data
    assert code(answers[1]) == "noOpenBatch"
    assert [answer.status_code for answer in answers[2:5]] == [201, 200, 200]
    assert answers[4].content == one.signed
    assert code(answers[5]) == "notFull"
    assert [(answer.status_code, answer.content) for answer in answers[6:9]] == [(201, b"")] * 3
    assert code(answers[9]) in ("noOpenBatch", "ticketSpent")
    assert "discreet_tickets_spent 3.0\n" in answers[10].text


def test_paths_and_methods_that_are_not_there(ask):
    answers = ask(
        ("GET", "/v2/charter", {}),
        ("POST", "/v1/charter", {}),
        ("GET", "/v1/reports", {}),
        ("GET", f"/v1/manifests/{1 << 60}", {}),
        ("GET", "/v1/manifests/5", {}),
        ("GET", "/v1/manifests/" + "9" * 5000, {}),
        ("GET", "/v1/manifests/-1", {}),
        ("GET", "/v1/manifests/\N{ARABIC-INDIC DIGIT THREE}", {}),
        ("GET", "/v1/charter/", {"headers": {"host": "elsewhere.example"}}),
        ("POST", "/v1/reports/", {}),
    )
    found = [code(answer) for answer in answers]
    assert found[:3] == ["notFound", "notAllowed", "notAllowed"]
    assert found[3:6] == ["unknownBatch"] * 3
    assert found[6:] == ["notFound"] * 4


def test_too_much_is_refused_by_what_is_stated_and_by_what_comes(ask):
    def parts():
        for _ in range(20):
            yield bytes(1 << 20)

    async def stream():
        for part in parts():
            yield part

    stated = {"content": b"x", "headers": {"content-length": str(1 << 30)}}
    answers = ask(("POST", "/v1/reports", stated), ("POST", "/v1/reports", {"content": stream()}))
    assert [code(answer) for answer in answers] == ["tooLarge"] * 2


def test_who_is_told_to_come_again_is_told_when():
    assert problem("busy").headers["retry-after"] == "1"
    assert "retry-after" not in problem("ticketSpent").headers


def test_a_manifest_without_an_end_is_not_read_to_its_end(ask, monkeypatch):
    monkeypatch.setattr(manifest, "LARGEST", 1000)
    read = []

    async def endless():
        for i in range(100):
            read.append(i)
            yield bytes(400)

    (answer,) = ask(("PUT", "/v1/batches/0", {"content": endless(), "headers": ANALYSER}))
    assert code(answer) == "tooLarge"
    assert len(read) < 10


@pytest.mark.parametrize(
    ("name", "request_"),
    [("totals", ("GET", "/metrics", {})), ("take", ("POST", "/v1/reports", {"content": b"x"}))],
)
def test_of_an_accident_only_its_kind_is_noted(ask, monkeypatch, caplog, name, request_):
    def fail(*_):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(Shuffler, name, fail)
    (answer,) = ask(request_)
    assert code(answer) == "broken"
    assert "ZeroDivisionError" in caplog.text and "secret" not in caplog.text


def test_an_accident_in_an_answer_is_not_handed_to_the_server_s_log(ask, monkeypatch, caplog):
    """The server would write down the whole of it, with its words."""

    async def length(*_):
        return 5

    async def messages(*_):
        yield b"12"
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(Shuffler, "length", length)
    monkeypatch.setattr(Shuffler, "messages", messages)
    with pytest.raises(AssertionError):  # the answer has no end
        ask(("GET", "/v1/batches/0/messages/0", {"headers": ANALYSER}))
    assert "ZeroDivisionError" in caplog.text and "secret" not in caplog.text


@pytest.mark.parametrize("raised", [False, True])
def test_every_refusal_of_a_report_is_its_document_and_is_counted(ask, monkeypatch, raised):
    left = list(CODES)

    async def take(*_):
        refused = left.pop(0)
        if raised:
            raise Refusal(refused)
        return refused

    monkeypatch.setattr(Shuffler, "take", take)
    requests = [("POST", "/v1/reports", {"content": b"x"})] * len(CODES)
    *answers, metrics = ask(*requests, ("GET", "/metrics", {}))
    assert [code(answer) for answer in answers] == list(CODES)
    assert [answer.content for answer in answers] == [document(one) for one in CODES]
    closed = [one for one, a in zip(CODES, answers, strict=True) if "connection" in a.headers]
    assert closed == ["unknownTicket", "busy"]
    assert all(f'discreet_reports_total{{code="{one}"}} 1.0' in metrics.text for one in CODES)


def read(*messages, headers=(), most=10, seconds=5.0):
    """What becomes of these messages; after the last one nothing comes."""
    left = list(messages)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    request = Request({"type": "http", "headers": list(headers)}, receive)
    return asyncio.run(read_body(request, most, seconds)), len(left)


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
