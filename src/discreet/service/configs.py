"""What every role does as a process: says what happens, and ends when it is told to."""

import logging
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from discreet._files import read_parsed
from discreet._settings import make, read_toml
from discreet.errors import InvalidInputError


def set_up_logging() -> None:
    """Our own lines, and the server's warnings, on standard error. No request stands in them."""
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("discreet").setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def on_signals(do: Callable[[], object]) -> None:
    """Let SIGTERM and SIGINT end things in order."""
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: do())


# Where time comes from: an object that is handed in. Nothing else here looks at a clock.


class Clock(Protocol):
    """Seconds since 1970."""

    def now(self) -> float:
        """The time."""


class SystemClock:
    """The machine's."""

    def now(self) -> float:
        """The time."""
        return time.time()


# What tests hang onto every commit: a function that does nothing in a deployment.


At = Callable[[str], object]
"""Called with ``name.before`` and ``name.after`` wherever something is kept."""


def nothing_happens(_: str) -> None:
    """What a deployment does before and after a commit."""


# One TOML file per role, with comments; paths in it are relative to the file.


@dataclass(frozen=True, kw_only=True)
class Config:
    """What all roles share.

    Attributes:
        folder: where the file lies.
    """

    folder: Path = Path()

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a file; every key must be known and of its kind."""
        values, folder = read_toml(path), path.resolve().parent
        made = make(cls, values, called=repr(path.name), place=str(path), folder=folder)
        if "url" in values:
            check_url(values["url"])
        return made

    def path(self, name: str) -> Path:
        """A path of the file, which is relative to it."""
        return self.folder / name


@dataclass(frozen=True, kw_only=True)
class ShufflerConfig(Config):
    """Of the shuffler."""

    charter: str
    digests: str
    analyser_token_sha256: str
    store: str = "shuffler.db"
    host: str = "127.0.0.1"
    port: int = 8700
    world: str = ""

    @property
    def where(self) -> str:
        """The store: an address, or a path beside the file."""
        return self.store if "://" in self.store else str(self.path(self.store))

    @property
    def token_digest(self) -> bytes:
        """SHA-256 of the analyser's token."""
        try:
            digest = bytes.fromhex(self.analyser_token_sha256)
        except ValueError:
            digest = b""
        if len(digest) != 32:
            raise InvalidInputError(
                f"Expected analyser_token_sha256 in 64 hexadecimal digits, got "
                f"{len(self.analyser_token_sha256)} characters; `discreet service init` writes it."
            )
        return digest


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


_THIS_MACHINE = ("127.0.0.1", "localhost", "[::1]")
SHUFFLER = """\
# The shuffler of a discreet service: the only server. It cannot read what it holds.

# What the study promises; public.
charter = "{charter}"
# SHA-256 of every ticket that may take part, from the enroller; read at every start.
digests = "{digests}"
# SHA-256 of the token with which the analyser names itself. The token itself is not kept here.
analyser_token_sha256 = "{token}"
# A SQLite file beside this one, or "postgresql://user@host/database" for several processes.
store = "{store}"
# Where it listens. TLS belongs to a reverse proxy before it.
host = "127.0.0.1"
port = {port}
"""

ANALYSER = """\
# The analyser of a discreet service: a worker without an inbound port.

# What the study promises; public.
charter = "{charter}"
# The study's file: keep it in backups. Keep the folder "keys" beside it out of them.
study = "study.db"
# Signs manifests; its public half stands in the charter.
signing_key = "signing.key"
# The token with which it names itself to the shuffler.
token_file = "token"
# Where the shuffler is.
url = "{url}"
# Processes that open envelopes; engine = "ray" (with ray_address) takes a cluster.
jobs = 1
engine = "processes"
# An HTTP proxy on the way, if there is one; what the environment says (HTTP_PROXY) is not used.
proxy = ""
"""

DEVICE = """\
# One participant's device.

# The study's name: the SHA-256 of its charter, from whoever handed out the ticket.
study = "{study}"
# Where the shuffler is.
url = "{url}"
# This participant's ticket, 64 hexadecimal digits, or given with --ticket.
ticket = ""
# Sealed reports wait here until they are taken; the same bytes are sent again after an error.
outbox = "outbox"
# The most seconds before a report is sent; the number is random.
delay = 60.0
# An HTTP proxy on the way, if there is one; what the environment says (HTTP_PROXY) is not used.
proxy = ""
"""


def check_url(url: str) -> None:
    """Refuse an address that no request can go to."""
    found = re.fullmatch(r"(https?)://([^/\s:]+|\[[^/\s]+\])(:\d+)?(/\S*)?", url)
    if found is None:
        raise InvalidInputError(
            f"Expected an address such as 'https://shuffler.example.org', got url={url!r}."
        )
    if found[1] == "http" and found[2] not in _THIS_MACHINE:
        raise InvalidInputError(
            f"Expected https://, got url={url!r}: tickets and the analyser's token would travel "
            f"for everybody to read. Only to this machine (127.0.0.1) http:// will do."
        )
