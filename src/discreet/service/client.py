"""How analyser and devices speak to the shuffler."""

import contextlib
import ssl
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NoReturn, Self

import httpx

from discreet._files import reason
from discreet.errors import DiscreetError, InvalidInputError
from discreet.service.protocol import canonical, manifest
from discreet.service.protocol.problems import PROBLEMS, Refusal, code_of

PATIENCE = 60.0
"""Seconds for one request."""
_PIECE = 1 << 20
_LARGEST = manifest.LARGEST
"""Bytes of an answer, envelopes apart: nothing that is served is larger than a manifest may be."""


class UnreachableError(DiscreetError):
    """The shuffler did not answer; the request may have arrived or not, so send it again."""


class Client:
    """Requests to one shuffler.

    Args:
        url: of the shuffler.
        token: the analyser's; devices have none.
        http: makes the connections (of tests: without a network).
        proxy: through which the shuffler is reached, if that is needed.
        ca_file: certificates (PEM) of who may vouch for the shuffler, and nobody else; without it,
            everybody whom browsers believe.

    Attributes:
        date: what the shuffler's clock said in its last answer, in seconds since 1970.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        http: httpx.Client | None = None,
        *,
        proxy: str = "",
        ca_file: Path | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        # What HTTP_PROXY names would be handed token and tickets: only a proxy that was asked for.
        self._http = http or httpx.Client(
            timeout=PATIENCE,
            trust_env=False,
            proxy=proxy or None,
            verify=True if ca_file is None else _trusting(ca_file),
        )
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self.date: float | None = None

    def charter(self) -> bytes:
        """The charter's bytes; compare their hash with the study's name."""
        return self._ask("GET", "/v1/charter")

    def studies(self) -> list[dict[str, str]]:
        """All studies of the server: name, purpose and path."""
        answer: Any = canonical.from_bytes(self._ask("GET", "/v1/studies"), "list of studies")
        listed = answer.get("studies")
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise UnreachableError(f"{self._url}/v1/studies is no list of studies.")
        return listed

    def manifest(self) -> bytes:
        return self._ask("GET", "/v1/manifest")

    def manifest_at(self, number: int) -> bytes:
        return self._ask("GET", f"/v1/manifests/{number}")

    def manifests(self) -> list[bytes]:
        """All that the shuffler keeps: it is the second witness of an analyser's ledger."""
        found: list[bytes] = []
        while True:
            try:
                found.append(self.manifest_at(len(found)))
            except Refusal as refusal:
                if refusal.code != "unknownBatch":
                    raise
                return found

    def send(self, report: bytes) -> None:
        self._ask("POST", "/v1/reports", report)

    def announce(self, number: int, signed: bytes) -> None:
        self._ask("PUT", f"/v1/batches/{number}", signed)

    def state(self, number: int) -> str:
        """Of a batch: as the shuffler's store calls it."""
        answer = canonical.from_bytes(self._ask("GET", f"/v1/batches/{number}"), "state")
        return str(answer.get("state"))

    def messages(self, number: int, place: int, take: Callable[[bytes], object]) -> None:
        """All envelopes of a group, in whatever pieces they come."""
        with self._answer("GET", f"/v1/batches/{number}/messages/{place}") as answer:
            try:
                for part in answer.iter_bytes(_PIECE):
                    take(part)
            except httpx.TransportError as error:
                raise UnreachableError(
                    f"Group {place} of manifest {number} ended early at {self._url} "
                    f"({type(error).__name__}). If it always does, the shuffler has lost some of "
                    f"it, or keeps it back: 'A sealed batch is damaged' in "
                    f"docs/how-to/operator/recover.md gives the batch up."
                ) from None

    def done(self, number: int) -> None:
        """The batch is counted: the shuffler may forget it."""
        self._ask("POST", f"/v1/batches/{number}/done")

    def metrics(self) -> dict[str, int]:
        from prometheus_client.parser import text_string_to_metric_families

        text = self._ask("GET", "/metrics").decode("utf-8", "replace")
        try:
            samples = [s for one in text_string_to_metric_families(text) for s in one.samples]
            totals = (s for s in samples if not s.labels)
            return {s.name.removeprefix("discreet_"): int(s.value) for s in totals}
        except (ValueError, OverflowError):
            raise UnreachableError(f"{self._url}/metrics are no metrics.") from None

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, method: str, path: str, content: bytes = b"") -> bytes:
        with self._answer(method, path, content) as answer:
            return self._read(answer)

    @contextlib.contextmanager
    def _answer(self, method: str, path: str, content: bytes = b"") -> Iterator[httpx.Response]:
        """An answer that is no refusal; its body is still to be read."""
        url, headers = self._url + path, self._headers
        with (
            _reached(self._url),
            self._http.stream(method, url, content=content, headers=headers) as answer,
        ):
            with contextlib.suppress(KeyError, ValueError, TypeError):
                self.date = parsedate_to_datetime(answer.headers["date"]).timestamp()
            if not answer.is_success:
                self._refuse(answer)
            yield answer

    def _read(self, answer: httpx.Response) -> bytes:
        body = bytearray()
        for part in answer.iter_bytes(_PIECE):
            body += part
            if len(body) > _LARGEST:
                raise UnreachableError(f"{self._url} answers with more than {_LARGEST} bytes.")
        return bytes(body)

    def _refuse(self, answer: httpx.Response) -> NoReturn:
        code = code_of(self._read(answer))
        if code == "broken" and answer.status_code != PROBLEMS["broken"].status:
            raise UnreachableError(f"{self._url} answers with status {answer.status_code}.")
        raise Refusal(code)


def _trusting(ca_file: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        why = "no certificate in PEM" if isinstance(error, ssl.SSLError) else reason(error)
        raise InvalidInputError(f"Cannot read ca_file={str(ca_file)!r}: {why}.") from None


@contextlib.contextmanager
def _reached(url: str) -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        tls: BaseException | None = error
        while tls is not None and not isinstance(tls, ssl.SSLError):
            tls = tls.__cause__ or tls.__context__
        if isinstance(tls, ssl.SSLCertVerificationError):
            raise UnreachableError(
                f"TLS: the certificate of {url} is not trusted ({tls.verify_message}). If a "
                f"certificate authority of your own has signed it, name its file in ca_file; else "
                f"check the address, the certificate's dates and this machine's clock."
            ) from None
        if tls is not None:
            raise UnreachableError(
                f"TLS: no secure connection to {url} ({tls.reason or tls}); is that port "
                f"one that speaks https?"
            ) from None
        raise UnreachableError(
            f"Cannot reach a shuffler at {url} ({type(error).__name__}); does it run, and is that "
            f"its address?"
        ) from None
