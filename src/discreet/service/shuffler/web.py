"""Bodies of requests: read whole, if they are not too large and come in time."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.device.base import LARGEST_BODY
from discreet.service.protocol import canonical, manifest, report
from discreet.service.protocol.problems import MEDIA_TYPE, PROBLEMS, Refusal, document
from discreet.service.shuffler.page import Page
from discreet.service.shuffler.shuffler import Shuffler
from discreet.service.shuffler.stores.base import ACCEPTED

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


# Reports pass by the framework: they are almost all that a shuffler is asked.
#
# Every answer to a report is one of a few, so all of them are made beforehand. What a report may
# hold and how long it may take is the same here as at any other endpoint.


log = logging.getLogger("discreet.service.shuffler.web")
REPORTS = "/v1/reports"


def headers_of(code: str) -> dict[str, str]:
    """What an answer says besides the problem."""
    return {"retry-after": "1"} if code == "busy" else {}


def answer(code: str) -> tuple[Message, Message]:
    """The two messages that answer a report.

    >>> answer("accepted")[0]["status"], answer("busy")[0]["status"]
    (201, 503)
    """
    if code == ACCEPTED:
        return _messages(201, b"", {})
    headers = {"content-type": MEDIA_TYPE} | headers_of(code)
    return _messages(PROBLEMS[code].status, document(code), headers)


def _messages(status: int, body: bytes, headers: dict[str, str]) -> tuple[Message, Message]:
    all_of_them = {"content-length": str(len(body))} | headers
    raw = [(name.encode(), value.encode()) for name, value in all_of_them.items()]
    return (
        {"type": "http.response.start", "status": status, "headers": raw},
        {"type": "http.response.body", "body": body},
    )


ANSWERS = {code: answer(code) for code in (ACCEPTED, *PROBLEMS)}


class Express:
    """An application that takes reports itself and hands on everything else.

    Args:
        app: takes everything else.
        shuffler: takes reports.
        seconds: in which a body must have arrived.
    """

    def __init__(self, app: ASGIApp, shuffler: Shuffler, seconds: float) -> None:
        self._app, self._shuffler, self._seconds = app, shuffler, seconds
        self._most = shuffler.largest_report

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") != REPORTS or scope.get("method") != "POST":
            await self._hand_on(scope, receive, send)
            return
        start, body = ANSWERS[await self._taken(scope["headers"], receive)]
        await send(start)
        await send(body)

    async def _hand_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The framework raises again what it answered; the server would write it all down."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            log.error("a request failed: %s", type(error).__name__)

    async def _taken(self, headers: Iterable[tuple[bytes, bytes]], receive: Receive) -> str:
        """What became of a report; of an accident only its kind is noted."""
        try:
            data = await read_body(headers, receive, self._most, self._seconds)
            return await self._shuffler.take(data)
        except Refusal as refusal:
            return refusal.code
        except Exception as error:
            log.error("an endpoint failed: %s", type(error).__name__)
            return "broken"


# The shuffler's endpoints as an OpenAPI document: who may ask what, and every possible answer.
#
# `python -m discreet.service.shuffler.web` prints it. Tests compare it with the routes that are
# served and send requests that are drawn from it.


Document = dict[str, Any]
BYTES = "application/octet-stream"
LARGEST_NUMBER = 10**9 - 1
"""In paths: both databases hold it."""


class Operation(NamedTuple):
    """What one endpoint does.

    Attributes:
        path: with its parameters in braces.
        method: of HTTP.
        summary: in words.
        answers: status -> media type of what it gives; empty if it gives nothing.
        problems: codes with which it may refuse, besides those of all endpoints.
        body: the largest body that it reads; 0: none.
        analyser: only the analyser may.
    """

    path: str
    method: str
    summary: str
    answers: dict[int, str]
    problems: tuple[str, ...] = ()
    body: int = 0
    analyser: bool = False


_BODY = ("tooLarge", "tooSlow", "wrongLength")
EVERYWHERE = ("busy", "broken")
OPERATIONS = (
    Operation("/v1/charter", "GET", "What the study promises.", {200: "application/json"}),
    Operation("/v1/manifest", "GET", "The open batch's manifest.", {200: BYTES}, ("noOpenBatch",)),
    Operation(
        "/v1/manifests/{number}", "GET", "Any manifest.", {200: BYTES}, ("unknownBatch", "notFound")
    ),
    Operation(
        REPORTS,
        "POST",
        "Take part: one sealed report.",
        {201: ""},
        (
            *_BODY,
            "unknownVersion",
            "copiedEnvelope",
            "unknownTicket",
            "ticketSpent",
            "policyOutdated",
            "noOpenBatch",
        ),
        report.HEADER + LARGEST_BODY,
    ),
    Operation(
        "/v1/batches/{number}",
        "PUT",
        "Open a batch with a signed manifest.",
        {200: "", 201: ""},
        (
            *_BODY,
            "badSignature",
            "unknownVersion",
            "badManifest",
            "forbiddenMutation",
            "batchPending",
            "unknownBatch",
            "notFound",
        ),
        manifest.LARGEST,
        analyser=True,
    ),
    Operation(
        "/v1/batches/{number}/messages/{place}",
        "GET",
        "All envelopes of a group; the same bytes at every reading.",
        {200: BYTES},
        ("unknownBatch", "notFull", "batchExpired", "batchDone", "notFound"),
        analyser=True,
    ),
    Operation(
        "/v1/batches/{number}/done",
        "POST",
        "The batch is counted: forget it.",
        {200: ""},
        ("unknownBatch", "notFull", "batchExpired", "notFound"),
        analyser=True,
    ),
    Operation("/healthz", "GET", "Whether the store answers.", {200: "application/json"}),
    Operation("/metrics", "GET", "Public totals.", {200: "text/plain"}),
    Operation("/", "GET", "The page.", {200: "text/html"}),
    Operation("/page/{name}", "GET", "A file of the page.", {200: ""}, ("notFound",)),
)


def codes(operation: Operation) -> set[str]:
    """Every code with which an endpoint may refuse."""
    own = {"unauthorised"} if operation.analyser else set()
    return own | {*operation.problems, *EVERYWHERE}


def openapi_document() -> Document:
    """The OpenAPI document.

    >>> document()["paths"]["/v1/reports"]["post"]["requestBody"]["required"]
    True
    """
    paths: Document = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "discreet shuffler", "version": f"{report.VERSION}"},
        "paths": paths,
        "components": {
            "securitySchemes": {"analyser": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _problem_schema()},
        },
    }


def _described(operation: Operation) -> Document:
    found: Document = {"summary": operation.summary, "responses": _responses(operation)}
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    if names:
        found["parameters"] = [_parameter(name) for name in names]
    if operation.body:
        schema = {"type": "string", "format": "binary", "maxLength": operation.body}
        found["requestBody"] = {"required": True, "content": {BYTES: {"schema": schema}}}
    if operation.analyser:
        found["security"] = [{"analyser": []}]
    return found


def _parameter(name: str) -> Document:
    number = {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}
    schema = {"type": "string"} if name == "name" else number
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _responses(operation: Operation) -> Document:
    found: Document = {}
    for status, kind in operation.answers.items():
        found[str(status)] = {"description": "Done."} | ({"content": {kind: {}}} if kind else {})
    by_status: dict[int, list[str]] = {}
    for code in sorted(codes(operation)):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    for status, names in by_status.items():
        schema = {
            "allOf": [
                {"$ref": "#/components/schemas/Problem"},
                {"properties": {"code": {"enum": names}}},
            ]
        }
        found[str(status)] = {
            "description": " ".join(PROBLEMS[code].title for code in names),
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
    return found


def _problem_schema() -> Document:
    texts = {name: {"type": "string"} for name in ("type", "title", "code")}
    return {
        "type": "object",
        "required": ["type", "title", "status", "code"],
        "properties": texts | {"status": {"type": "integer"}},
        "additionalProperties": False,
    }


if __name__ == "__main__":
    print(json.dumps(openapi_document(), indent=1))  # noqa: T201


# The shuffler's endpoints, as a Starlette application.
#
# Devices: charter, manifests, reports. The analyser, with its bearer token: announce, messages,
# done.
# Everybody: health and public totals. Whatever is refused is answered with a problem document.


web_log = logging.getLogger("discreet.service.shuffler.web")
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(shuffler: Shuffler, *, body_seconds: float = SECONDS, world: bytes = b"") -> ASGIApp:
    """The application of one shuffler.

    Args:
        shuffler: the role.
        body_seconds: in which a body must have arrived.
        world: JSON of a public model that people can play at the page.
    """
    endpoints, page = _Endpoints(shuffler, body_seconds), Page(world)

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        async with shuffler.life():
            yield

    others = Starlette(
        lifespan=life,
        routes=endpoints.routes() + public(page.routes()),
        exception_handlers={HTTPException: _of_framework, Exception: _of_accident},
    )
    others.router.redirect_slashes = False  # it would send people wherever the Host header says
    return Express(others, shuffler, body_seconds)


def public(endpoints: Iterable[tuple[str, str, Endpoint]]) -> list[Route]:
    """Routes for everybody, from path, method and what is done."""
    return [Route(path, _answered(do), methods=[method]) for path, method, do in endpoints]


def problem(code: str) -> Response:
    status, headers = PROBLEMS[code].status, headers_of(code)
    return Response(document(code), status, media_type=MEDIA_TYPE, headers=headers)


class _Endpoints:
    def __init__(self, shuffler: Shuffler, body_seconds: float) -> None:
        self._shuffler, self._seconds = shuffler, body_seconds

    def routes(self) -> list[Route]:
        """Path, method, who may, and what is done."""
        device = (
            ("/v1/charter", "GET", self.charter),
            ("/v1/manifest", "GET", self.manifest),
            ("/v1/manifests/{number}", "GET", self.manifest_at),
            (REPORTS, "POST", self.never),
            ("/healthz", "GET", self.health),
            ("/metrics", "GET", self.metrics),
        )
        analyser = (
            ("/v1/batches/{number}", "PUT", self.announce),
            ("/v1/batches/{number}/messages/{place}", "GET", self.messages),
            ("/v1/batches/{number}/done", "POST", self.done),
        )
        return public(device) + [
            Route(path, _answered(self._analyser_only(do)), methods=[method])
            for path, method, do in analyser
        ]

    def _analyser_only(self, do: Endpoint) -> Endpoint:
        async def guarded(request: Request) -> Response:
            if not self._shuffler.is_analyser(request.headers.get("authorization", "")):
                raise Refusal("unauthorised")
            return await do(request)

        return guarded

    async def charter(self, _: Request) -> Response:
        return Response(self._shuffler.charter.data, media_type="application/json")

    async def manifest(self, _: Request) -> Response:
        return Response(await self._shuffler.manifest(), media_type=BYTES)

    async def manifest_at(self, request: Request) -> Response:
        signed = await self._shuffler.manifest_at(_number(request))
        return Response(signed, media_type=BYTES)

    async def never(self, _: Request) -> Response:
        """`Express` has taken it; the route is here so that other methods are refused by name."""
        raise Refusal("notFound")

    async def announce(self, request: Request) -> Response:
        headers, receive = request.headers.raw, request.receive
        signed = await read_body(headers, receive, manifest.LARGEST, self._seconds)
        new = await self._shuffler.announce(_number(request), signed)
        return Response(status_code=201 if new else 200)

    async def messages(self, request: Request) -> Response:
        number, place = _number(request), _number(request, "place")
        length = await self._shuffler.length(number, place)
        return StreamingResponse(
            self._shuffler.messages(number, place),
            media_type=BYTES,
            headers={"content-length": str(length)},
        )

    async def done(self, request: Request) -> Response:
        await self._shuffler.done(_number(request))
        return Response(status_code=200)

    async def health(self, _: Request) -> Response:
        await self._shuffler.live()
        return Response(canonical.to_bytes({"ok": True}), media_type="application/json")

    async def metrics(self, _: Request) -> Response:
        totals = await self._shuffler.totals()
        lines = [f"discreet_{name} {value}\n" for name, value in sorted(totals.items())]
        return Response("".join(lines), media_type="text/plain; version=0.0.4")


def _number(request: Request, name: str = "number") -> int:
    """A number of the path; the framework's own numbers break at some thousand digits."""
    digits = request.path_params[name]
    if not (digits.isascii() and digits.isdigit()):
        raise Refusal("notFound")
    if len(digits) > len(str(LARGEST_NUMBER)):
        raise Refusal("unknownBatch")
    return int(digits)


def _answered(do: Endpoint) -> Endpoint:
    """Every refusal as a problem document; of an accident only its kind is noted."""

    async def answered(request: Request) -> Response:
        try:
            return await do(request)
        except Refusal as refusal:
            return problem(refusal.code)
        except Exception as error:
            web_log.error("an endpoint failed: %s", type(error).__name__)
            return problem("broken")

    return answered


async def _of_framework(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return problem("notAllowed" if status == 405 else "notFound")


async def _of_accident(_: Request, error: Exception) -> Response:
    web_log.error("a request failed: %s", type(error).__name__)
    return problem("broken")
