"""What every role shares as a process: its TOML file, its clock, and how it ends."""

import contextlib
import re
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Protocol, Self
from urllib.parse import urlsplit

from discreet._files import read_file, read_parsed, reason
from discreet._settings import make, read_toml
from discreet.errors import InvalidInputError


def on_signals(do: Callable[[], object]) -> None:
    """Let SIGTERM and SIGINT end things in order."""
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: do())


class Clock(Protocol):
    """Seconds since 1970: where time comes from, handed in. Nothing else looks at a clock."""

    def now(self) -> float:
        """The time."""

    def elapsed(self) -> float:
        """Seconds since some moment, for spans: nobody sets it."""


class SystemClock:
    """The machine's."""

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.monotonic()


def instant(seconds: float) -> str:
    """A time in words.

    >>> instant(0)
    '1970-01-01 00:00:00 UTC'
    """
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


At = Callable[[str], object]
"""Called with ``name.before`` and ``name.after`` wherever something is kept: for tests."""


def nothing_happens(_: str) -> None:
    """What a deployment does before and after a commit."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """A role's TOML file; paths in it are relative to the file.

    Attributes:
        folder: where the file lies.
        file: the file, to read it again.
    """

    folder: Path = Path()
    file: Path = Path()

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a file; every key must be known and of its kind."""
        values, folder = read_toml(path), path.resolve().parent
        made = make(cls, values, called=repr(path.name), place=str(path), folder=folder, file=path)
        if "url" in values:
            check_url(values["url"])
        return made

    def path(self, name: str) -> Path:
        """A path of the file, which is relative to it."""
        return self.folder / name

    def optional(self, name: str) -> Path | None:
        """The same of a path that may be left empty."""
        return self.path(name) if name else None


@dataclass(frozen=True, kw_only=True)
class ShufflerConfig(Config):
    """Of the shuffler."""

    charter: str
    digests: str
    analyser_token_sha256: str
    store: str = "shuffler.db"
    studies: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8700
    private: str = ""
    behind_proxy: bool = False
    world: str = ""

    @property
    def where(self) -> str:
        """The store: an address, or a path beside the file."""
        return self.store if "://" in self.store else str(self.path(self.store))

    @property
    def model(self) -> bytes:
        """The public model that the page plays, if the file names one."""
        return read_file(self.path(self.world), "the world") if self.world else b""

    @property
    def token_digests(self) -> list[bytes]:
        """Of the analyser's token; of two while it is rotated."""
        try:
            found = [bytes.fromhex(one) for one in self.analyser_token_sha256.split(",")]
        except ValueError:
            found = []
        if not found or any(len(digest) != 32 for digest in found):
            raise InvalidInputError(
                f"Expected analyser_token_sha256 in 64 hexadecimal digits (of two tokens with a "
                f"comma between), got {len(self.analyser_token_sha256)} characters; `discreet "
                f"service init` and `rotate` write it."
            )
        return found


@dataclass(frozen=True, kw_only=True)
class AnalyserConfig(Config):
    """Of the analyser."""

    charter: str
    study: str
    signing_key: str
    token_file: str
    url: str
    jobs: int = 1
    engine: str = "processes"
    ray_address: str = ""
    proxy: str = ""
    ca_file: str = ""
    page: str = ""
    backup: str = ""

    @property
    def token(self) -> str:
        """With which it names itself, from its file."""
        return read_parsed(self.path(self.token_file), bytes.decode, "the token").strip()


@dataclass(frozen=True, kw_only=True)
class DeviceConfig(Config):
    """Of a device."""

    study: str
    url: str
    ticket: str = ""
    outbox: str = "outbox"
    delay: float = 60.0
    proxy: str = ""
    ca_file: str = ""


_BACKLOG = 2048
"""Connections that may wait to be taken."""
THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


def template(role: str, **fields: str) -> str:
    """The file of a role, with comments."""
    path = resources.files("discreet.service") / "templates" / f"{role}.toml"
    return path.read_text("utf-8").format(**fields)


def places(url: str, study: bytes = b"") -> dict[str, str]:
    """Where roles listen, as fields of their files. A proxy for https:// has a port of its own.

    The page of a study below ``/studies/`` has a port that follows from its name.

    >>> places("https://shuffler.example.org:8443")["port"], places("http://127.0.0.1:9000")["port"]
    ('8700', '9000')
    """
    if url.startswith("http://"):  # one machine: the one port that was asked for, and no other
        return {"port": str(urlsplit(url).port or 8700), "private": "", "page": ""}
    page = 8710 + int.from_bytes(study[:4]) % 1000 if "/studies/" in url else 8702
    return {"port": "8700", "private": "127.0.0.1:8701", "page": f"127.0.0.1:{page}"}


def addresses(text: str) -> list[tuple[str, int]]:
    """Of ``host:port``, or of nothing.

    >>> addresses("127.0.0.1:8701"), addresses("[::1]:8701"), addresses("")
    ([('127.0.0.1', 8701)], [('::1', 8701)], [])
    """
    with contextlib.suppress(ValueError):
        parts = urlsplit(f"//{text}")
        if parts.hostname and parts.port is not None:
            return [(parts.hostname, parts.port)]
    if text:
        raise InvalidInputError(f"Expected an address such as '127.0.0.1:8701', got {text!r}.")
    return []


def listen(host: str, port: int) -> socket.socket:
    """The place where the server will listen, or a sentence why not."""
    if not 0 <= port < 1 << 16:
        raise InvalidInputError(f"Expected a port from 0 to 65535, got port={port}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        why = reason(error).partition(" (while")[0]
        raise InvalidInputError(
            f"Cannot listen on host={host!r}, port={port}: {why}; end what uses the "
            f"port, or choose another host or port in the role's file."
        ) from None


def check_url(url: str) -> None:
    """Refuse an address that no request can go to."""
    try:
        parts = urlsplit(url)
        whole = bool(parts.hostname) and parts.port != 0 and not re.search(r"\s", url)
    except ValueError:
        whole = False
    if not whole or parts.scheme not in ("http", "https"):
        raise InvalidInputError(
            f"Expected an address such as 'https://shuffler.example.org', got url={url!r}."
        )
    if parts.scheme == "http" and parts.hostname not in THIS_MACHINE:
        raise InvalidInputError(
            f"Expected https://, got url={url!r}: tickets and the analyser's token would travel "
            f"for everybody to read. Only to this machine (127.0.0.1) http:// will do."
        )
