"""The shuffler: takes sealed reports, waits for n users, permutes, hands over, forgets.

It holds no key that opens anything. One thread owns the store; what arrives while a transaction is
written waits in a queue and shares the next one (a group commit). What depends on time (a deadline
that passes) happens in `tick`, which asks the clock that was handed in.
"""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Summary, disable_created_metrics

from discreet.device import ENVELOPE
from discreet.errors import InvalidInputError
from discreet.service.configs import Clock, SystemClock, instant
from discreet.service.health import Check, check_disk
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import report
from discreet.service.protocol import ticket as tickets
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.manifest import Announced
from discreet.service.protocol.problems import Refusal
from discreet.service.protocol.report import Submission
from discreet.service.shuffler.store import ACCEPTED, Store, StoreBusyError

disable_created_metrics()  # type: ignore[no-untyped-call]
log = logging.getLogger("discreet.service.shuffler.shuffler")
T = TypeVar("T")
_GROUP = 512
"""Reports in one transaction at most."""
_WAITING = 4096
"""Reports that may wait for theirs; more are told to come again."""
_WAITING_BYTES = 64 << 20
_STRANGERS = 100
"""Reports in a second that are read although nobody here knows their ticket."""
_PROBE = 5.0
"""Seconds between looks at the store's health; after three of them the last one says nothing."""
CODES = (
    "tooLarge",
    "tooSlow",
    "wrongLength",
    "unknownVersion",
    "copiedEnvelope",
    "unknownTicket",
    "ticketSpent",
    "alreadyInBatch",
    "policyOutdated",
    "noOpenBatch",
    "busy",
    "broken",
)
"""With which a report may be refused."""
_JUMP = 60.0
"""Seconds by which the time may run away from the clock that nobody sets."""
_TICK = 0.5
"""Seconds between looks at the clock."""


class Shuffler:
    """The role, without its web server.

    Attributes:
        store: whose methods go through `run`.

    Args:
        charter: of the study.
        make_store: opens the store, in the thread that will own it.
        token_digests: SHA-256 of the analyser's bearer token; of two while it is rotated.
        digests: of tickets that may take part.
        clock: where time comes from.
        rehearsal: serve a charter that says it protects nobody.
    """

    def __init__(
        self,
        charter: Charter,
        make_store: Callable[[], Store],
        *,
        token_digests: Sequence[bytes],
        digests: Sequence[bytes] = (),
        clock: Clock | None = None,
        rehearsal: bool = False,
    ) -> None:
        charter.check_rehearsal(rehearsal)
        self.charter, self._token_digests = charter, token_digests
        self._clock = clock or SystemClock()
        self._began = self._clock.now() - self._clock.elapsed()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._waiting: list[tuple[Submission, asyncio.Future[str]]] = []
        self._bytes = 0
        self._strangers, self._since = float(_STRANGERS), 0.0
        self._arrived: asyncio.Event | None = None
        self._filled = asyncio.Event()
        self._checks, self._checked = [Check("store", "red", "was not looked at yet")], 0.0
        self.registry = CollectorRegistry()
        reports = Counter(
            "discreet_reports", "Reports by what became of them.", ["code"], registry=self.registry
        )
        self._reports = {code: reports.labels(code) for code in (ACCEPTED, *CODES)}
        self._seals = Summary("discreet_seal_seconds", "Sealing a batch.", registry=self.registry)
        self._refused = Counter(
            "discreet_manifests_refused", "Manifests refused.", registry=self.registry
        )
        self._unauthorised = Counter(
            "discreet_unauthorised",
            "Requests without the analyser's token.",
            registry=self.registry,
        )
        self._name = f"study {charter.id.hex()[:16]}"
        self.store = self._thread.submit(make_store).result()
        try:
            self._thread.submit(self.store.adopt, on_new=charter.verify).result()
            # Not before: the store of another study must not learn the tickets of this one.
            self._thread.submit(self.store.admit, digests).result()
        except BaseException:
            self._thread.submit(self.store.close).result()
            self._thread.shutdown()
            raise

    @property
    def largest_report(self) -> int:
        """Bytes; longer ones belong to no batch that the charter allows."""
        return report.HEADER + self.charter.largest_body

    async def run(self, job: Callable[..., T], *arguments: object) -> T:
        """Run a store's method in the thread that owns the store."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, job, *arguments)
        except StoreBusyError as error:
            log.warning("the store is busy: %s", error, extra={"code": "storeBusy"})
            raise Refusal("busy") from None

    @contextlib.asynccontextmanager
    async def life(self) -> AsyncIterator[None]:
        """Take reports and look at the clock, until the end of the block."""
        self._arrived = asyncio.Event()
        jobs = (self._write(), self._look(), self._watch())
        tasks = [asyncio.create_task(job) for job in jobs]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            self.store.end()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.get_running_loop().run_in_executor(self._thread, self.store.close)
            self._thread.shutdown()

    def look(self, ticket: bytes) -> None:
        """Before the rest of a report is read: strangers are few in a second, or told to wait.

        Not refused: another process of this shuffler may know the ticket, and the store then does.
        """
        if self.store.may_know(tickets.digest(ticket)):
            return
        now = asyncio.get_running_loop().time()
        self._strangers += _STRANGERS * (now - self._since)
        self._strangers, self._since = min(self._strangers, _STRANGERS), now
        if self._strangers < 1:
            raise Refusal("busy")
        self._strangers -= 1

    async def take(self, data: bytes) -> str:
        """Take one report: ``accepted`` if it is on the disk, or the code of a refusal."""
        if self._arrived is None or len(self._waiting) >= _WAITING or self._bytes > _WAITING_BYTES:
            return "busy"
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((report.read(data), answer))
        self._bytes += len(data)
        self._arrived.set()
        return await answer

    def count(self, code: str) -> None:
        """One more report of which this became."""
        self._reports[code].inc()

    async def announce(self, number: int, signed: bytes) -> bool:
        """Open a batch; False if this very manifest was announced before."""
        try:
            new = await self._announce(number, signed)
        except Refusal as refusal:
            self._refused.inc()
            words = "%s: manifest %d was refused: %s"
            log.warning(words, self._name, number, refusal, extra={"code": refusal.code})
            raise
        if new:
            manifest = manifests.parse(signed)
            log.info("%s: manifest %d opens a batch of %d", self._name, number, manifest.users)
            if manifest.abandons is not None:
                words = "%s: manifests %d to %d are abandoned"
                log.warning(words, self._name, manifest.abandons, number - 1)
        return new

    async def _announce(self, number: int, signed: bytes) -> bool:
        try:
            before = await self.run(self.store.before, number)
        except Refusal as refusal:
            raise Refusal("batchPending") if refusal.code == "unknownBatch" else refusal from None
        announced = manifests.read(signed, self.charter, before)
        if announced.manifest.number != number:
            raise Refusal("badManifest", "It has another number.")
        try:
            await self.run(self.store.manifest, number)
        except Refusal as refusal:
            if refusal.code != "unknownBatch":
                raise
            await asyncio.to_thread(self._check, announced)
        return await self.run(self.store.announce, announced)

    def _check(self, announced: Announced) -> None:
        """What is asked of a new manifest beyond its form."""
        manifest, now = announced.manifest, self._clock.now()
        if not now < manifest.deadline <= now + self.charter.patience:
            late = now + self.charter.deadline - manifest.deadline
            raise Refusal(
                "badDeadline",
                f"By this machine's clock, {instant(now)}, it was made {abs(late):,.0f} seconds "
                f"{'ago' if late > 0 else 'in the future'}: the analyser's clock is wrong, or this "
                f"one.",
            )
        try:
            self.charter.check_noise(manifest.users, announced.device.groups)
        except InvalidInputError as error:
            raise Refusal("badManifest", str(error)) from None

    async def manifest(self) -> bytes:
        """Of the open batch."""
        row = await self.run(self.store.live)
        if row is None or row.state != "open":
            raise Refusal("noOpenBatch")
        return row.announced.signed

    async def messages(self, number: int, place: int) -> AsyncIterator[bytes]:
        """All envelopes of a group of a sealed batch, bucket by bucket."""
        for bucket in await self.run(self.store.buckets, number, place):
            yield await self.run(self.store.bucket, number, place, bucket)

    async def length(self, number: int, place: int) -> int:
        """Bytes that `messages` gives; refuses whatever it would refuse."""
        await self.run(self.store.buckets, number, place)
        row = await self.run(self.store.live)
        if row is None:
            raise Refusal("batchDone")
        return row.announced.manifest.users * row.announced.device.groups[place].messages * ENVELOPE

    async def totals(self) -> dict[str, int]:
        """Public ones: of the store, and how old the batch is."""
        found, row = await self.run(self.store.totals), await self.run(self.store.live)
        if self.store.folder is not None:
            found["bytes_free"] = shutil.disk_usage(self.store.folder).free
        if row is None:
            return found
        left = int(row.announced.manifest.deadline - self._clock.now())
        age = max(0, self.charter.deadline - left)
        return found | {"batch_age_seconds": age, "batch_seconds_left": left}

    def checks(self) -> list[Check]:
        """What an operator should know, as it was found some seconds ago."""
        age = asyncio.get_running_loop().time() - self._checked
        if age > 3 * _PROBE:
            return [Check("store", "red", f"did not answer for {age:.0f} s"), *self._checks[1:]]
        return self._checks

    async def _watch(self) -> None:
        while True:
            try:
                self._checks = await asyncio.to_thread(self._probed)
            except Exception as error:  # whatever it is: the next look may find it gone
                log.error("looking failed: %s", type(error).__name__, extra={"code": "probe"})
                self._checks = [Check("store", "red", f"was not seen: {type(error).__name__}")]
            self._checked = asyncio.get_running_loop().time()
            await asyncio.sleep(_PROBE)

    def _probed(self) -> list[Check]:
        checks = []
        try:
            self.store.probe()
            checks.append(Check("store", "green", "takes what is written to it"))
        except StoreBusyError as error:
            checks.append(Check("store", "red", str(error)))
            log.error("the store takes nothing: %s", error, extra={"code": "storeBroken"})
        if self.store.folder is not None:
            checks.append(check_disk(self.store.folder))
        else:
            checks.append(Check("disk", "yellow", "the database does not tell how much is free"))
        if abs(jump := self._jump()) > _JUMP:
            words = f"was set by {jump:+,.0f} s: no deadline passes; set it right, or start again"
            checks.append(Check("clock", "red", words))
        if checks[-1].colour == "red":
            log.warning("%s", checks[-1].words, extra={"code": checks[-1].name})
        return checks

    def check_analyser(self, authorization: str) -> None:
        """Refuse a request without the analyser's token; compared in constant time."""
        scheme, _, token = authorization.partition(" ")
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        known = [hmac.compare_digest(digest, one) for one in self._token_digests]
        if not any(known) or scheme.lower() != "bearer":
            self._unauthorised.inc()
            words = "%s: a request without the analyser's token was refused"
            log.warning(words, self._name, extra={"code": "unauthorised"})
            raise Refusal("unauthorised")

    async def reload(self, token_digests: Sequence[bytes], digests: Sequence[bytes]) -> None:
        """From now on these tokens are the analyser's, and these tickets may take part, too."""
        await self.run(self.store.admit, digests)
        self._token_digests = token_digests

    def _jump(self) -> float:
        """Seconds by which the clock was set since the start."""
        return self._clock.now() - self._clock.elapsed() - self._began

    async def tick(self) -> None:
        """Seal a full batch; give up one whose deadline has passed, by a clock that nobody set."""
        if self.store.untidy:
            await self.run(self.store.tidy)
        row = await self.run(self.store.live)
        if row is None:
            return
        if row.state == "full":
            began = asyncio.get_running_loop().time()
            while (state := await self.run(self.store.shuffle_step)) == "full":
                pass  # others are answered between two steps
            if state == "sealed":
                self._seals.observe(asyncio.get_running_loop().time() - began)
                log.info("%s: the batch of manifest %d is sealed", self._name, row.number)
        late = self._clock.now() > row.announced.manifest.deadline and self._jump() <= _JUMP
        if row.state == "open" and late and await self.run(self.store.expire, row.number):
            log.info("%s: the batch of manifest %d has expired", self._name, row.number)

    async def _look(self) -> None:
        while True:
            await self._calmly(self.tick)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._filled.wait(), _TICK)
            self._filled.clear()

    async def _write(self) -> None:
        arrived = self._arrived
        while arrived is not None:
            await arrived.wait()
            group, self._waiting = self._waiting[:_GROUP], self._waiting[_GROUP:]
            if not self._waiting:
                arrived.clear()
            self._bytes = sum(len(submission.body) for submission, _ in self._waiting)
            codes = await self._submitted([submission for submission, _ in group])
            for (_, answer), code in zip(group, codes, strict=True):
                if not answer.done():  # somebody hung up
                    answer.set_result(code)
            if self.store.filled:
                self._filled.set()

    async def _submitted(self, reports: list[Submission]) -> list[str]:
        try:
            return await self.run(self.store.submit, reports)
        except Refusal as refusal:
            return [refusal.code] * len(reports)
        except Exception as error:  # whatever it is: senders must be told, others go on
            log.error("a group failed: %s", type(error).__name__)
            return ["broken"] * len(reports)

    async def _calmly(self, job: Callable[[], Awaitable[object]]) -> None:
        """Do something that will be tried again anyway."""
        try:
            await job()
        except Refusal:
            pass
        except Exception as error:
            log.error("%s failed: %s", job.__name__, type(error).__name__)
