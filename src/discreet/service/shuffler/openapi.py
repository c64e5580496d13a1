"""The shuffler's endpoints as an OpenAPI document: who may ask what, and every possible answer.

`python -m discreet.service.shuffler.openapi` prints it. Tests compare it with the routes that are
served and send requests that are drawn from it.
"""

import json
from typing import Any, NamedTuple

from discreet.device.base import LARGEST_BODY
from discreet.service.protocol import manifest, report
from discreet.service.protocol.problems import MEDIA_TYPE, PROBLEMS
from discreet.service.shuffler.express import REPORTS

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
        "All envelopes of a class; the same bytes at every reading.",
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


def document() -> Document:
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
    print(json.dumps(document(), indent=1))  # noqa: T201
