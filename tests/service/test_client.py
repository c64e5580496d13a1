"""The client: what it asks, and what it makes of every answer, without a network."""

import httpx
import pytest

from discreet.service.client import Client, UnreachableError
from discreet.service.protocol.problems import PROBLEMS, Refusal, document


def client(answer, token=""):
    """A client whose requests are answered by a function."""
    return Client("http://shuffler/", token, httpx.Client(transport=httpx.MockTransport(answer)))


@pytest.mark.parametrize(
    ("job", "line"),
    [
        (lambda c: c.charter(), "GET /v1/charter"),
        (lambda c: c.manifest(), "GET /v1/manifest"),
        (lambda c: c.manifest_at(7), "GET /v1/manifests/7"),
        (lambda c: c.send(b"report"), "POST /v1/reports report"),
        (lambda c: c.announce(3, b"signed"), "PUT /v1/batches/3 signed"),
        (lambda c: c.messages(3, 2, [].append), "GET /v1/batches/3/messages/2"),
        (lambda c: c.done(3), "POST /v1/batches/3/done"),
    ],
)
def test_every_request_is_what_the_shuffler_expects(job, line):
    seen = []

    def answer(request):
        seen.append(f"{request.method} {request.url.path} {request.read().decode()}".strip())
        return httpx.Response(200)

    with client(answer) as one:
        job(one)
    assert seen == [line]


def test_the_token_goes_along_and_devices_have_none():
    seen = []

    def answer(request):
        seen.append(request.headers.get("authorization"))
        return httpx.Response(200)

    for token in ("secret", ""):
        client(answer, token).charter()
    assert seen == ["Bearer secret", None]


def test_metrics_are_numbers_by_name():
    text = "# TYPE discreet_received gauge\ndiscreet_received 3.0\ndiscreet_batches_open 1.0\n"
    assert client(lambda _: httpx.Response(200, text=text)).metrics() == {
        "received": 3,
        "batches_open": 1,
    }


@pytest.mark.parametrize(
    "text", ["<html> x", "discreet_received +Inf\n", "discreet_received NaN\n"]
)
def test_what_is_no_metric_is_no_answer(text):
    with pytest.raises(UnreachableError, match="no metrics"):
        client(lambda _: httpx.Response(200, text=text)).metrics()


@pytest.mark.parametrize("text", ['{"x":1}', '{"studies":3}', '{"studies":[1]}'])
def test_what_lists_no_studies_is_no_answer(text):
    with pytest.raises(UnreachableError, match="no list of studies"):
        client(lambda _: httpx.Response(200, text=text)).studies()


@pytest.mark.parametrize("code", ["busy", "notFull", "ticketSpent", "broken"])
def test_a_problem_document_is_a_refusal_with_its_code(code):
    body = document(code)
    refused = client(lambda _: httpx.Response(PROBLEMS[code].status, content=body))
    with pytest.raises(Refusal) as caught:
        refused.manifest()
    assert caught.value.code == code


@pytest.mark.parametrize("status", [404, 502, 503])
def test_an_answer_of_somebody_else_is_not_a_refusal(status):
    """A proxy in between says nothing about the study: the request may be sent again."""
    with pytest.raises(UnreachableError, match=str(status)):
        client(lambda _: httpx.Response(status, text="<html>")).manifest()


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ReadTimeout, httpx.ReadError])
def test_no_answer_names_the_place_and_not_the_request(error):
    def answer(request):
        raise error("a secret path")

    with pytest.raises(UnreachableError, match=rf"http://shuffler \({error.__name__}\)") as caught:
        client(answer).send(b"report")
    assert "secret" not in str(caught.value)


def test_envelopes_come_in_pieces_and_other_answers_are_bounded():
    endless = httpx.Response(200, content=bytes(3 << 20))
    parts = []
    client(lambda _: endless).messages(0, 0, parts.append)
    assert sum(map(len, parts)) == 3 << 20 and max(map(len, parts)) <= 1 << 20

    def pour():
        while True:
            yield bytes(1 << 20)

    for status in (200, 500):
        with pytest.raises(UnreachableError, match="more than 16777216 bytes"):
            client(lambda _, s=status: httpx.Response(s, content=pour())).charter()


def test_who_takes_envelopes_may_stop():
    def enough(_):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        client(lambda _: httpx.Response(200, content=bytes(9))).messages(0, 0, enough)


def test_nobody_is_told_secrets_because_the_environment_says_so(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with Client("http://127.0.0.1:8700", "secret") as one:
        assert not one._http.trust_env and not one._http._mounts
    with Client("http://127.0.0.1:8700", "secret", proxy="http://127.0.0.1:9") as one:
        assert one._http._mounts
