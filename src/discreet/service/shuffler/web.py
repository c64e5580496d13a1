"""The shuffler's endpoints, as a Starlette application.

Devices: charter, manifests, reports. The analyser, with its bearer token: announce, messages, done.
Everybody: health and public totals. Whatever is refused is answered with a problem document.
"""

import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from discreet.service.protocol import canonical, manifest
from discreet.service.protocol.problems import MEDIA_TYPE, PROBLEMS, Refusal, document
from discreet.service.shuffler.bodies import SECONDS, read_body
from discreet.service.shuffler.express import REPORTS, Express, headers_of
from discreet.service.shuffler.openapi import BYTES, LARGEST_NUMBER
from discreet.service.shuffler.page import Page
from discreet.service.shuffler.shuffler import Shuffler

log = logging.getLogger("discreet.service.shuffler.web")
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
            log.error("an endpoint failed: %s", type(error).__name__)
            return problem("broken")

    return answered


async def _of_framework(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return problem("notAllowed" if status == 405 else "notFound")


async def _of_accident(_: Request, error: Exception) -> Response:
    log.error("a request failed: %s", type(error).__name__)
    return problem("broken")
