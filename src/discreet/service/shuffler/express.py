"""Reports pass by the framework: they are almost all that a shuffler is asked.

Every answer to a report is one of a few, so all of them are made beforehand. What a report may hold
and how long it may take is the same here as at any other endpoint.
"""

import logging
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.service.protocol.problems import MEDIA_TYPE, PROBLEMS, Refusal, document
from discreet.service.shuffler.bodies import read_body
from discreet.service.shuffler.shuffler import Shuffler
from discreet.service.shuffler.stores.base import ACCEPTED

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
