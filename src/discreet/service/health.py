"""What an operator sees of a role: its log, and checks that are green, yellow or red.

A log is lines of text, or one JSON object per line with time, level, code and reason. Neither a
request nor a number of one stands in them, and whatever says the same again and again is cut short.
"""

import json
import logging
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, Gauge

Format = Literal["text", "json"]
Colour = Literal["green", "yellow", "red"]
_LINES, _SECONDS = 20, 60.0
"""So many lines of one kind in so many seconds."""
_LITTLE = 64 << 20
"""Bytes of disk below which a role says that it cannot go on."""


def set_up_logging(written: Format = "text") -> None:
    """Our own lines, and the server's warnings, on standard error. No request stands in them."""
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLines() if written == "json" else _TextLines())
    handler.addFilter(_Calm())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("discreet").setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


class _TextLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "code": getattr(record, "code", record.name.rpartition(".")[2]),
            "reason": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line)


class _Calm(logging.Filter):
    """Of one kind of line some in a minute; then how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], list[float]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind, now = (record.name, str(record.msg)), record.created
        since, count = self._seen.get(kind, [now, 0])
        if now - since > _SECONDS:
            if count > _LINES:
                record.msg = f"{record.getMessage()} ({count - _LINES:.0f} more were left out)"
                record.args = None
            since, count = now, 0
        self._seen[kind] = [since, count + 1]
        return count < _LINES


class Check(NamedTuple):
    """One thing that an operator watches, in words for them."""

    name: str
    colour: Colour
    words: str


def check_disk(folder: Path) -> Check:
    """Whether the disk of a folder has room."""
    free = shutil.disk_usage(folder).free
    words = f"{free / 1e6:,.0f} MB free"
    return (
        Check("disk", "red", f"full: {words}") if free < _LITTLE else Check("disk", "green", words)
    )


def check_clock(skew: float | None, allowed: float) -> Check:
    """Whether two clocks agree.

    Args:
        skew: seconds by which this machine is ahead of the shuffler; None: not known yet.
        allowed: seconds.
    """
    if skew is None:
        return Check("clock", "yellow", "the shuffler has not said its time yet")
    words = f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the shuffler's"
    return Check("clock", "green" if abs(skew) <= allowed else "red", words)


def ready(checks: Iterable[Check]) -> bool:
    """Nothing is red.

    >>> ready([Check("disk", "yellow", "little")]), ready([Check("store", "red", "away")])
    (True, False)
    """
    return all(one.colour != "red" for one in checks)


def to_json(checks: Iterable[Check]) -> bytes:
    found = [one._asdict() for one in checks]
    return json.dumps({"ready": ready(checks), "checks": found}).encode()


def gauge(name: str, value: float, registry: CollectorRegistry) -> None:
    """A public number among a role's metrics; its name says what it is."""
    words = name.replace("_", " ").capitalize()
    Gauge(f"discreet_{name}", f"{words}.", registry=registry).set(value)
