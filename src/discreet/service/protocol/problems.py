"""Every refusal of the service: one code per reason, and a problem document (RFC 9457) for each.

A refusal changes nothing. What it says depends on the reason alone: no ticket, no cell and no
number of a request stands in it.
"""

from typing import NamedTuple

from discreet import errors
from discreet.service.protocol import canonical

MEDIA_TYPE = "application/problem+json"


class Problem(NamedTuple):
    """A reason to refuse: the HTTP status, and a sentence."""

    status: int
    title: str


PROBLEMS = {
    "unknownTicket": Problem(403, "This ticket was never handed out for this study."),
    "ticketSpent": Problem(409, "This ticket has taken part as often as it may."),
    "alreadyInBatch": Problem(409, "This ticket has a report in this batch; come to a later one."),
    "policyOutdated": Problem(409, "The report was made for another manifest; fetch this one."),
    "wrongLength": Problem(422, "All reports of a manifest have one length; this has another."),
    "copiedEnvelope": Problem(422, "Two envelopes of a report are the same."),
    "tooLarge": Problem(413, "The body is larger than anything this endpoint takes."),
    "tooSlow": Problem(408, "The body did not arrive in time."),
    "noOpenBatch": Problem(404, "No batch is open at the moment; come again later."),
    "notFull": Problem(425, "The batch is not complete: nothing leaves before it is."),
    "batchPending": Problem(409, "Another batch is pending, or this number is not the next."),
    "batchExpired": Problem(410, "The deadline has passed: all reports of the batch are deleted."),
    "batchAbandoned": Problem(410, "The batch was given up: all its reports are deleted."),
    "batchDone": Problem(410, "The batch was acknowledged: its messages are deleted."),
    "unknownBatch": Problem(404, "There is no batch of this number."),
    "forbiddenMutation": Problem(409, "A manifest of this number was announced with other words."),
    "badManifest": Problem(422, "The manifest breaks the charter."),
    "badDeadline": Problem(422, "The deadline is past or too far: a clock is wrong."),
    "badSignature": Problem(403, "The signature is not that of the study's analyser."),
    "unauthorised": Problem(
        401,
        "This is the analyser's, and the token is not: compare token_file here with "
        "analyser_token_sha256 at the shuffler.",
    ),
    "unknownVersion": Problem(422, "This version of the format is not known here."),
    "busy": Problem(503, "Too much at once; send the same bytes again in a moment."),
    "notFound": Problem(
        404, "There is nothing at this address: check url, with /studies/NAME if it has one."
    ),
    "notAllowed": Problem(405, "This endpoint does not take this method."),
    "broken": Problem(500, "Something failed here; nothing was changed."),
}
"""Code -> status and sentence."""


class Refusal(errors.DiscreetError):  # a refusal is not always somebody's error
    """Something was refused; nothing was changed.

    Attributes:
        code: the reason, a key of `PROBLEMS`.
    """

    def __init__(self, code: str, more: str = "") -> None:
        super().__init__(f"{code}: {PROBLEMS[code].title}{more and ' '}{more}")
        self.code = code

    @property
    def status(self) -> int:
        return PROBLEMS[self.code].status


def document(code: str) -> bytes:
    """The problem document of a reason.

    >>> document("busy")[:45]
    b'{"code":"busy","status":503,"title":"Too much'
    """
    status, title = PROBLEMS[code]
    kind = f"urn:discreet:problem:{code}"
    return canonical.to_bytes({"type": kind, "title": title, "status": status, "code": code})


def code_of(body: bytes) -> str:
    """The reason in a problem document; ``broken`` if it is none of ours."""
    try:
        code = canonical.from_bytes(body, "problem document").get("code")
    except errors.InvalidInputError:
        return "broken"
    return code if isinstance(code, str) and code in PROBLEMS else "broken"
