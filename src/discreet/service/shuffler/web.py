"""The shuffler's endpoints: a Starlette application, and the same as an OpenAPI document.

Devices: charter, manifests, reports. The analyser, with its bearer token: announce, messages, done.
Everybody: health, public totals, and the page. `OPERATIONS` is the one list of them; whatever is
refused is answered with a problem document. ``python -m discreet.service.shuffler.web`` prints the
OpenAPI document; tests send requests that are drawn from it.

The page at ``/`` says what is guaranteed, by whom, how far the batch is, and holds a device to take
part: static files of ``page/`` and nothing from elsewhere; the browser is told to load nothing
else. `hpke.js` seals envelopes with the browser's own cryptography, `protocol.js` is charter,
manifests and reports in JavaScript, `page.js` what is seen. The encoder is `device/web/device.js`.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from importlib import resources
from typing import Any, NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.device.wire import LARGEST_BODY
from discreet.service import health
from discreet.service.protocol import canonical, manifest, report
from discreet.service.protocol.problems import MEDIA_TYPE, PROBLEMS, Refusal, document
from discreet.service.shuffler.shuffler import CODES, Shuffler
from discreet.service.shuffler.state import ACCEPTED, STATES

log = logging.getLogger("discreet.service.shuffler.web")
SECONDS = 20.0
"""In which a body must have arrived."""
BYTES = "application/octet-stream"
REPORTS = "/v1/reports"
LARGEST_NUMBER = 10**9 - 1
"""In paths: both databases hold it."""
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
}
FILES = ("page.css", "page.js", "protocol.js", "hpke.js")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
METRICS = {f"batches_{state}": f"Batches that are {state}." for state in STATES} | {
    "tickets": "Tickets whose digests this shuffler has.",
    "tickets_spent": "Uses of tickets: reports that were accepted.",
    "tickets_void": "Uses in abandoned batches that were handed over, and void tickets.",
    "received": "Reports in the current batch.",
    "wanted": "Reports that fill the current batch.",
    "batch_age_seconds": "Seconds since the manifest of the batch was made.",
    "batch_seconds_left": "Seconds to the deadline of the batch.",
    "bytes_free": "Free bytes on the disk of the store.",
}
"""Name -> meaning, of what is read from the store."""
Document = dict[str, Any]
Endpoint = Callable[[Request], Awaitable[Response]]


class Operation(NamedTuple):
    """What one endpoint does.

    Attributes:
        name: of the method that does it.
        path: with its parameters in braces.
        method: of HTTP.
        summary: in words.
        answers: status -> media type of what it gives; empty if it gives nothing.
        problems: codes with which it may refuse, besides those of all endpoints.
        body: the largest body that it reads; 0: none.
        analyser: only the analyser may.
    """

    name: str
    path: str
    method: str
    summary: str
    answers: dict[int, str]
    problems: tuple[str, ...] = ()
    body: int = 0
    analyser: bool = False


_JSON = {200: "application/json"}
_BODY = ("tooLarge", "tooSlow", "wrongLength")
_MANIFEST = (
    "badSignature",
    "unknownVersion",
    "badManifest",
    "badDeadline",
    "forbiddenMutation",
    "batchPending",
)
_BATCH = ("unknownBatch", "notFull", "batchExpired", "notFound")
_GONE = ("batchDone", "batchAbandoned")
EVERYWHERE = ("busy", "broken")
OPERATIONS = (
    Operation("charter", "/v1/charter", "GET", "What the study guarantees.", _JSON),
    Operation(
        "manifest",
        "/v1/manifest",
        "GET",
        "The open batch's manifest.",
        {200: BYTES},
        ("noOpenBatch",),
    ),
    Operation(
        "manifest_at",
        "/v1/manifests/{number}",
        "GET",
        "Any manifest.",
        {200: BYTES},
        ("unknownBatch", "notFound"),
    ),
    Operation(
        "never",
        REPORTS,
        "POST",
        "Take part: one sealed report.",
        {201: ""},
        CODES,
        report.HEADER + LARGEST_BODY,
    ),
    Operation(
        "announce",
        "/v1/batches/{number}",
        "PUT",
        "Open a batch with a signed manifest.",
        {200: "", 201: ""},
        (*_BODY, *_MANIFEST, "unknownBatch", "notFound"),
        manifest.LARGEST,
        analyser=True,
    ),
    Operation(
        "state",
        "/v1/batches/{number}",
        "GET",
        "How far a batch is.",
        _JSON,
        ("unknownBatch", "notFound"),
        analyser=True,
    ),
    Operation(
        "messages",
        "/v1/batches/{number}/messages/{place}",
        "GET",
        "All envelopes of a group; the same bytes at every reading.",
        {200: BYTES},
        (*_BATCH, *_GONE),
        analyser=True,
    ),
    Operation(
        "done",
        "/v1/batches/{number}/done",
        "POST",
        "The batch is counted: forget it.",
        {200: ""},
        _BATCH,
        analyser=True,
    ),
    Operation("studies", "/v1/studies", "GET", "All studies of this server.", _JSON),
    Operation("alive", "/livez", "GET", "Whether the server answers.", _JSON),
    Operation(
        "ready",
        "/readyz",
        "GET",
        "Whether the store takes what is written, and the disk has room: checks in colours.",
        _JSON | {503: "application/json"},
    ),
    Operation("metrics", "/metrics", "GET", "Public totals.", {200: "text/plain"}),
    Operation("index", "/", "GET", "The page.", {200: "text/html"}),
    Operation("file", "/page/{name}", "GET", "A file of the page.", {200: ""}, ("notFound",)),
)


class Studies:
    """Several studies at one address: each at ``/studies/NAME``, the first at ``/`` too.

    They share the process and nothing else: charter, tickets, token and store are each study's own.

    Args:
        studies: shufflers, each with the world of its page.
    """

    def __init__(self, studies: Sequence[tuple[Shuffler, bytes]]) -> None:
        (first, world), *rest = studies
        self._first = make_app(first, *(one for one, _ in rest), world=world)
        self._apps = {one.charter.id.hex(): make_app(one, world=world) for one, world in rest}
        self._apps[first.charter.id.hex()] = self._first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts = scope.get("path", "").split("/", 3)
        if len(parts) == 3 and parts[1] == "studies" and parts[2] in self._apps:
            there = Response(status_code=308, headers={"location": f"{parts[2]}/"})
            await there(scope, receive, send)
            return
        if parts[:2] == ["", "studies"] and len(parts) == 4 and parts[2] in self._apps:
            own = {**scope, "path": f"/{parts[3]}", "raw_path": f"/{parts[3]}".encode()}
            await self._apps[parts[2]](own, receive, send)
        else:
            await self._first(scope, receive, send)


def make_app(
    shuffler: Shuffler, *others: Shuffler, body_seconds: float = SECONDS, world: bytes = b""
) -> ASGIApp:
    """The application of one shuffler.

    Args:
        shuffler: the role.
        others: whose lives begin and end with this one's, and whose health it tells.
        body_seconds: in which a body must have arrived.
        world: JSON of a public model that people can play at the page; empty: they type outcomes.
    """
    endpoints = _Endpoints(shuffler, others, body_seconds, world)

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for one in (shuffler, *others):
                await stack.enter_async_context(one.life())
            yield

    framework = Starlette(
        lifespan=life,
        routes=[
            Route(one.path, endpoints.answering(one), methods=[one.method]) for one in OPERATIONS
        ],
        exception_handlers={HTTPException: _of_framework, Exception: _of_accident},
    )
    framework.router.redirect_slashes = False  # it would send people wherever the Host header says
    return Express(framework, shuffler, body_seconds)


class _Endpoints:
    def __init__(
        self, shuffler: Shuffler, others: Sequence[Shuffler], body_seconds: float, world: bytes
    ) -> None:
        self._shuffler, self._all, self._seconds = shuffler, [shuffler, *others], body_seconds
        own = resources.files("discreet.service.shuffler") / "page"
        self._files = {name: own.joinpath(name).read_bytes() for name in FILES}
        device = resources.files("discreet.device") / "web" / "device.js"
        self._files |= {"device.js": device.read_bytes(), "world.json": world or b"null"}
        self._index = own.joinpath("index.html").read_bytes()

    def answering(self, operation: Operation) -> Endpoint:
        """Every refusal as a problem document; of an accident only its kind is noted."""
        do: Endpoint = getattr(self, operation.name)

        async def answered(request: Request) -> Response:
            try:
                given = request.headers.get("authorization", "")
                if operation.analyser:
                    self._shuffler.check_analyser(given)
                return await do(request)
            except Refusal as refusal:
                return problem(refusal.code)
            except Exception as error:
                log.error("an endpoint failed: %s", type(error).__name__)
                return problem("broken")

        return answered

    async def charter(self, _: Request) -> Response:
        return Response(self._shuffler.charter.data, media_type="application/json")

    async def studies(self, _: Request) -> Response:
        found = [
            {
                "study": one.charter.id.hex(),
                "purpose": one.charter.purpose,
                "path": f"/studies/{one.charter.id.hex()}",
            }
            for one in self._all
        ]
        return Response(canonical.to_bytes({"studies": found}), media_type="application/json")

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

    async def state(self, request: Request) -> Response:
        state = await self._shuffler.state(_number(request))
        return Response(canonical.to_bytes({"state": state}), media_type="application/json")

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

    async def alive(self, _: Request) -> Response:
        return Response(canonical.to_bytes({"ok": True}), media_type="application/json")

    async def ready(self, _: Request) -> Response:
        checks = [check for one in self._all for check in one.checks()]
        if len(self._all) > 1:
            names = [one.charter.id.hex()[:16] for one in self._all for _ in one.checks()]
            checks = [
                check._replace(name=f"{check.name} of study {name}")
                for check, name in zip(checks, names, strict=True)
            ]
        status = 200 if health.ready(checks) else 503
        return Response(health.to_json(checks), status, media_type="application/json")

    async def metrics(self, _: Request) -> Response:
        registry = CollectorRegistry()
        for name, value in sorted((await self._shuffler.totals()).items()):
            Gauge(f"discreet_{name}", METRICS[name], registry=registry).set(value)
        text = generate_latest(registry) + generate_latest(self._shuffler.registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    async def index(self, _: Request) -> Response:
        return Response(self._index, headers=HEADERS | {"content-type": KINDS["html"]})

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            raise Refusal("notFound")
        kind = KINDS[name.rpartition(".")[2]]
        return Response(self._files[name], headers=HEADERS | {"content-type": kind})


def _number(request: Request, name: str = "number") -> int:
    """A number of the path; the framework's own numbers break at some thousand digits."""
    digits = request.path_params[name]
    if not (digits.isascii() and digits.isdigit()):
        raise Refusal("notFound")
    if len(digits) > len(str(LARGEST_NUMBER)):
        raise Refusal("unknownBatch")
    return int(digits)


def problem(code: str) -> Response:
    status, headers = PROBLEMS[code].status, _headers_of(code)
    return Response(document(code), status, media_type=MEDIA_TYPE, headers=headers)


def _headers_of(code: str) -> dict[str, str]:
    """Who comes with a wrong ticket has one try with each connection."""
    if code in ("busy", "unknownTicket"):
        return {"connection": "close"} | ({"retry-after": "1"} if code == "busy" else {})
    return {}


async def _of_framework(_: Request, error: Exception) -> Response:
    if getattr(error, "status_code", 404) != 405:
        return problem("notFound")
    answer = problem("notAllowed")
    answer.headers.update(getattr(error, "headers", None) or {})  # Allow
    return answer


async def _of_accident(_: Request, error: Exception) -> Response:
    log.error("a request failed: %s", type(error).__name__)
    return problem("broken")


async def read_body(
    headers: Iterable[tuple[bytes, bytes]],
    receive: Receive,
    most: int,
    seconds: float,
    look: Callable[[bytes], object] | None = None,
) -> bytes:
    """The whole body of a request.

    Args:
        headers: of the request; one that says it is too large is not read.
        receive: gives its parts.
        most: bytes that it may have.
        seconds: in which all of it must have arrived.
        look: given the ticket with which a report begins as soon as that is there; may refuse.

    Raises:
        Refusal: ``tooLarge``, ``tooSlow``, or ``wrongLength`` if somebody hung up.
    """
    for name, value in headers:
        if name == b"content-length" and int(value) > most:
            raise Refusal("tooLarge")
    data, more = bytearray(), True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await receive()
                if message["type"] != "http.request":  # somebody hung up
                    raise Refusal("wrongLength")
                data += message.get("body", b"")
                if len(data) > most:
                    raise Refusal("tooLarge")
                if look is not None and len(data) >= report.TICKET:
                    look(bytes(data[1 : report.TICKET]))
                    look = None
                more = message.get("more_body", False)
    except TimeoutError:
        raise Refusal("tooSlow") from None
    return bytes(data)


def _answer(code: str) -> tuple[Message, Message]:
    body, headers, status = b"", {}, 201
    if code != ACCEPTED:
        body, status = document(code), PROBLEMS[code].status
        headers = {"content-type": MEDIA_TYPE} | _headers_of(code)
    headers = {"content-length": str(len(body))} | headers
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return (
        {"type": "http.response.start", "status": status, "headers": raw},
        {"type": "http.response.body", "body": body},
    )


ANSWERS = {code: _answer(code) for code in (ACCEPTED, *CODES)}
"""Every answer to a report is one of a few."""


class Express:
    """Takes reports itself and hands on everything else.

    Reports are almost all that a shuffler is asked, so they pass by the framework. What a report
    may hold and how long it may take is the same here as at any other endpoint.

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
        code = await self._taken(scope["headers"], receive)
        self._shuffler.count(code)
        start, body = ANSWERS[code]
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
            look = self._shuffler.look
            data = await read_body(headers, receive, self._most, self._seconds, look)
            return await self._shuffler.take(data)
        except Refusal as refusal:
            return refusal.code
        except Exception as error:
            log.error("an endpoint failed: %s", type(error).__name__)
            return "broken"


def codes(operation: Operation) -> set[str]:
    """Every code with which an endpoint may refuse."""
    own = {"unauthorised"} if operation.analyser else set()
    return own | {*operation.problems, *EVERYWHERE}


def openapi_document() -> Document:
    """Who may ask what, and every possible answer.

    >>> openapi_document()["paths"]["/v1/reports"]["post"]["requestBody"]["required"]
    True
    """
    paths: Document = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    texts = {name: {"type": "string"} for name in ("type", "title", "code")}
    problem_schema = {
        "type": "object",
        "required": ["type", "title", "status", "code"],
        "properties": texts | {"status": {"type": "integer"}},
        "additionalProperties": False,
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "discreet shuffler", "version": f"{report.VERSION}"},
        "paths": paths,
        "components": {
            "securitySchemes": {"analyser": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": problem_schema},
        },
    }


def _described(operation: Operation) -> Document:
    found: Document = {"summary": operation.summary, "responses": _responses(operation)}
    number = {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    if names:
        kinds = {name: {"type": "string"} if name == "name" else number for name in names}
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": kind}
            for name, kind in kinds.items()
        ]
    if operation.body:
        schema = {"type": "string", "format": "binary", "maxLength": operation.body}
        found["requestBody"] = {"required": True, "content": {BYTES: {"schema": schema}}}
    if operation.analyser:
        found["security"] = [{"analyser": []}]
    return found


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


if __name__ == "__main__":
    print(json.dumps(openapi_document(), indent=1))  # noqa: T201
