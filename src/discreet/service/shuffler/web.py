"""The shuffler's endpoints, a Starlette application.

Devices: charter, manifests, reports. The analyser, with its bearer token: announce, messages, done.
Everybody: health, public totals, and the page. `OPERATIONS` is the one list of them; whatever is
refused is answered with a problem document.

The page at ``/`` says what is guaranteed, by whom, how far the batch is, and holds a device to take
part: static files of ``page/`` and nothing from elsewhere; the browser is told to load nothing
else. `hpke.js` seals envelopes with the browser's own cryptography, `protocol.js` is charter,
manifests and reports in JavaScript, `page.js` what is seen. The encoder is `device/web/device.js`.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib import resources
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.service import health
from discreet.service.protocol import canonical, manifest, report
from discreet.service.protocol.problems import MEDIA_TYPE, PROBLEMS, Refusal, document
from discreet.service.shuffler.shuffler import Shuffler
from discreet.service.shuffler.store import ACCEPTED

log = logging.getLogger("discreet.service.shuffler.web")
SECONDS = 20.0
"""In which a body must have arrived."""
BYTES = "application/octet-stream"
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
Endpoint = Callable[[Request], Awaitable[Response]]


class Operation(NamedTuple):
    """What one endpoint does.

    Attributes:
        name: of the method that does it.
        method: of HTTP.
        path: with its parameters in braces.
        analyser: only the analyser may.
    """

    name: str
    method: str
    path: str
    analyser: bool = False


OPERATIONS = (  # reports are almost all that a shuffler is asked: first
    Operation("report", "POST", "/v1/reports"),
    Operation("charter", "GET", "/v1/charter"),
    Operation("manifest", "GET", "/v1/manifest"),
    Operation("manifest_at", "GET", "/v1/manifests/{number}"),
    Operation("announce", "PUT", "/v1/batches/{number}", analyser=True),
    Operation("state", "GET", "/v1/batches/{number}", analyser=True),
    Operation("messages", "GET", "/v1/batches/{number}/messages/{place}", analyser=True),
    Operation("done", "POST", "/v1/batches/{number}/done", analyser=True),
    Operation("studies", "GET", "/v1/studies"),
    Operation("alive", "GET", "/livez"),
    Operation("ready", "GET", "/readyz"),
    Operation("metrics", "GET", "/metrics"),
    Operation("index", "GET", "/"),
    Operation("file", "GET", "/page/{name}"),
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

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        """The framework raises again what it answered; the server would write it all down."""
        try:
            await framework(scope, receive, send)
        except Exception as error:
            log.error("a request failed: %s", type(error).__name__)

    return app


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
        signed = await self._shuffler.run(self._shuffler.store.manifest, _number(request))
        return Response(signed, media_type=BYTES)

    async def report(self, request: Request) -> Response:
        code, shuffler = "broken", self._shuffler
        try:
            most, look = shuffler.largest_report, shuffler.look
            code = await shuffler.take(await read_body(request, most, self._seconds, look))
        except Refusal as refusal:
            code = refusal.code
        finally:
            shuffler.count(code)
        return Response(status_code=201) if code == ACCEPTED else problem(code)

    async def announce(self, request: Request) -> Response:
        signed = await read_body(request, manifest.LARGEST, self._seconds)
        new = await self._shuffler.announce(_number(request), signed)
        return Response(status_code=201 if new else 200)

    async def state(self, request: Request) -> Response:
        state = await self._shuffler.run(self._shuffler.store.state, _number(request))
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
        await self._shuffler.run(self._shuffler.store.done, _number(request))
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
            health.gauge(name, value, registry)
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
    """Who comes with a wrong ticket has one try with each connection."""
    headers = {"connection": "close"} if code in ("busy", "unknownTicket") else {}
    if code == "busy":
        headers["retry-after"] = "1"
    return Response(document(code), PROBLEMS[code].status, headers, MEDIA_TYPE)


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
    request: Request,
    most: int,
    seconds: float,
    look: Callable[[bytes], object] | None = None,
) -> bytes:
    """The whole body of a request.

    Args:
        request: one that says it is too large is not read.
        most: bytes that it may have.
        seconds: in which all of it must have arrived.
        look: given the ticket with which a report begins as soon as that is there; may refuse.

    Raises:
        Refusal: ``tooLarge``, ``tooSlow``, or ``wrongLength`` if somebody hung up.
    """
    if int(request.headers.get("content-length", 0)) > most:
        raise Refusal("tooLarge")
    data, more = bytearray(), True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await request.receive()
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
