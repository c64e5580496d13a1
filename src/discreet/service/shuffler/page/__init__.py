"""The page at ``/``: what is promised, by whom, how far the batch is, and a device to take part.

Static files of this package and nothing from elsewhere; the browser is told to load nothing else.
`hpke.js` seals envelopes with the browser's own cryptography, `protocol.js` is charter, manifests
and reports in JavaScript, `page.js` what is seen. The encoder is `discreet/device/web/device.js`.
"""

from collections.abc import Awaitable, Callable
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

from discreet.service.protocol.problems import Refusal

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
Serve = Callable[[Request], Awaitable[Response]]


class Page:
    """The files, read once.

    Args:
        world: JSON of a public model, so that people can play it; empty: they type outcomes.
    """

    def __init__(self, world: bytes = b"") -> None:
        own, device = resources.files(__name__), resources.files("discreet.device")
        self._files = {name: own.joinpath(name).read_bytes() for name in FILES}
        self._files["device.js"] = device.joinpath("web/device.js").read_bytes()
        self._files["world.json"] = world or b"null"
        self._index = own.joinpath("index.html").read_bytes()

    def routes(self) -> tuple[tuple[str, str, Serve], ...]:
        return (("/", "GET", self.index), ("/page/{name}", "GET", self.file))

    async def index(self, _: Request) -> Response:
        return _answer(self._index, "html")

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            raise Refusal("notFound")
        return _answer(self._files[name], name.rpartition(".")[2])


def _answer(content: bytes, kind: str) -> Response:
    return Response(content, headers=HEADERS | {"content-type": KINDS[kind]})
