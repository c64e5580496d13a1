"""The shuffler's state machine on a database, in whole transactions.

A batch is ``open`` (reports come), ``full`` (the n-th report has come, in its own transaction),
``sealed`` (permuted, the bodies deleted, in several transactions), ``handed`` (the analyser has
asked for its messages: set before the first byte leaves), ``done`` (acknowledged, the messages
deleted); or it was ``open`` when its deadline passed and is ``expired``: its bodies are deleted and
its tickets as before it, in one transaction. At most one batch is live (one of the first four).

A ticket is worth as many batches as the charter's ``participations`` m say, one report in each. *A
use is counted in the transaction that takes the report*, so before anybody is told of it: a ticket
is refused if the live batch has a report of it, or if it was used m times.

A live batch can be ``abandoned``, by the manifest after it or by `recover`: all it holds is gone.
*Its tickets get this use back if and only if nothing of it was handed over.* Then no release of it
can exist, and its people may send another report as after an expiry. Otherwise the analyser may
have opened it, whatever it says: the use stays counted, so that nobody is in more than m releases.

Tables: ``about`` (version and charter), ``batch`` (one row per manifest), ``ticket`` (digest, the
manifest of its last use, and how many uses; or the mark of a recovery), ``report`` (bodies in the
order of arrival), ``piece`` (bodies on their way into buckets), ``sealed`` (buckets of permuted
envelopes). No time, no address and no link from a ticket to a body stands in any of them. One
thread owns a store (the one that made it); several processes may have one each where the database
is a server.

*The permutation* is uniform over all envelopes of a group, from the operating system's randomness.
Every envelope draws a bucket and, inside its bucket, a key of 64 bits; the order is that of bucket
and key. If all keys of a bucket are distinct (they are drawn again otherwise) every order of its
envelopes is equally likely, by symmetry; and so is every order of all of them, because the pair
(bucket, key) of one envelope is independent of all others and of what it holds. Buckets keep the
memory bounded: all envelopes of a group need never be there at once.
"""

import contextlib
import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from discreet._types import ByteArray
from discreet.device import ENVELOPE
from discreet.errors import DiscreetError, InvalidInputError
from discreet.service.configs import At, nothing_happens
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.manifest import Announced, Manifest
from discreet.service.protocol.problems import Refusal
from discreet.service.protocol.report import Submission
from discreet.service.protocol.ticket import SIZE

BUCKET = 4 << 20
"""Bytes of a bucket, about."""


def buckets_for(envelopes: int) -> int:
    """How many buckets keep each of them small: a power of two.

    >>> buckets_for(1000), buckets_for(1_000_000)
    (1, 16)
    """
    wanted = -(-envelopes * ENVELOPE // BUCKET)
    return 1 << (wanted - 1).bit_length() if wanted > 1 else 1


def scatter(envelopes: ByteArray, buckets: int) -> Iterator[tuple[int, bytes]]:
    """Every envelope into a bucket of its own luck: the buckets that got some, with them."""
    if buckets == 1:
        yield 0, envelopes.tobytes()
        return
    drawn = np.frombuffer(os.urandom(4 * len(envelopes)), np.uint32) & np.uint32(buckets - 1)
    order = np.argsort(drawn, kind="stable")
    found, first = np.unique(drawn[order], return_index=True)
    ends = [*first[1:].tolist(), len(envelopes)]
    for bucket, a, b in zip(found.tolist(), first.tolist(), ends, strict=True):
        yield bucket, envelopes[order[a:b]].tobytes()


def permuted(data: bytes) -> bytes:
    """The envelopes of a bucket in a uniformly random order."""
    envelopes = np.frombuffer(data, np.uint8).reshape(-1, ENVELOPE)
    while True:
        keys = np.frombuffer(os.urandom(8 * len(envelopes)), np.uint64)
        order = np.argsort(keys)
        ordered = keys[order]
        if (ordered[1:] != ordered[:-1]).all():
            return envelopes[order].tobytes()


VERSION = 3
LIVE = ("open", "full", "sealed", "handed")
STATES = (*LIVE, "done", "expired", "abandoned")
VOID = -1
"""The manifest of tickets that nobody may use any more, although none is known to have been."""
RECOVERY = -2
"""The manifest of a row that is no ticket: its hash is the mark of the last `Store.recover`."""
PROBE = "UPDATE about SET id = id"
CLAIM = "UPDATE ticket SET uses = uses + 1, number = ? WHERE"
GOOD = "uses < ? AND coalesce(number, -1) <> ?"
"""Of a ticket: not used as often as it may be, nor under this manifest."""
ACCEPTED = "accepted"
"""What a store says of a report that it has taken."""
_CHUNK = 4 << 20
"""Bytes of bodies that sealing has in memory at a time."""

Value: TypeAlias = bytes | str | int | None
"""Goes into a statement."""
Values: TypeAlias = tuple[Any, ...]
"""One row that a database answers with."""


class StoreBusyError(DiscreetError):
    """The database could not be asked, or not now; nothing is known to have changed."""


@dataclass(frozen=True)
class BatchState:
    """A batch as it stands.

    Attributes:
        announced: its manifest.
        state: of `STATES`.
        received: reports so far; all of them from the moment it is full.
    """

    announced: Announced
    state: str
    received: int

    @property
    def number(self) -> int:
        return self.announced.manifest.number


class Store(ABC):
    """Reports, tickets and batches of one study.

    Attributes:
        charter: of the study.
        filled: whether the last reports that were taken here have filled their batch.
        untidy: whether a log still holds what was deleted; `tidy` again.
        mark: what `recover` has drawn.
    """

    def __init__(self, charter: Charter, at: At = nothing_happens) -> None:
        self.charter = charter
        self._most = charter.participations
        self.filled = False
        self.untidy = False
        self.mark = b""
        self._tickets = self._void = 0
        self._known = bytes(8)
        self._at = at
        self._ending = False
        self._read: dict[bytes, Announced] = {}

    # --- what a database must be able to do

    @abstractmethod
    def _execute(self, sql: str, *values: Value) -> list[Values]:
        """Run one statement with ``?`` for values; all rows it gives."""

    @abstractmethod
    def _begin(self, *, writing: bool) -> None:
        """Begin a transaction; of two that write the second waits for the first."""

    @abstractmethod
    def _end(self, how: str) -> None:
        """COMMIT or ROLLBACK."""

    @abstractmethod
    def _claim(self, digests: Sequence[bytes], number: int) -> set[bytes]:
        """Use once more those of these tickets that are there and may be, under this manifest."""

    @abstractmethod
    def _used(self, digests: Sequence[bytes]) -> dict[bytes, tuple[int, int | None]]:
        """Uses of each of these tickets, and the manifest of the last; unknown ones are missing."""

    @abstractmethod
    def _insert(self, table: str, rows: Sequence[tuple[Value, ...]]) -> None:
        """Rows into a table; a ticket that is there stays as it is."""

    @abstractmethod
    def _empty(self, *tables: str) -> None:
        """Delete all rows, so that no page of the tables keeps them."""

    @abstractmethod
    def tidy(self) -> None:
        """After a deletion was committed: what logs still hold of it goes, or `untidy` is true."""

    @abstractmethod
    def size(self) -> int:
        """Bytes on the disk, with the log that belongs to this study alone."""

    @property
    @abstractmethod
    def folder(self) -> Path | None:
        """Whose disk it fills; None: a server's, whose operator watches it."""

    @abstractmethod
    def probe(self) -> None:
        """From any thread, with a connection of its own: what a report needs can be written."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back."""

    def end(self) -> None:
        """From any thread: a sealing that is under way is given up, its transaction undone."""
        self._ending = True

    def _check_ending(self) -> None:
        if self._ending:
            raise StoreBusyError("the process was told to end")

    # --- transactions

    @contextlib.contextmanager
    def _transaction(self, name: str) -> Iterator[None]:
        try:
            self._begin(writing=True)  # who waits for the lock may be cancelled in a transaction
            yield
            self._at(f"{name}.before")
            self._end("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        self._at(f"{name}.after")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            self._begin(writing=False)
            yield
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        with contextlib.suppress(StoreBusyError):  # a lost connection has rolled back by itself
            self._end("ROLLBACK")

    # --- the charter

    def adopt(self, *, on_new: Callable[[], object]) -> None:
        """Bind the store to its charter.

        Args:
            on_new: called before a charter is written for the first time; raises if it is none.
        """
        with self._reading():
            versions = [version for (version,) in self._execute("SELECT version FROM about")]
        if versions not in ([], [VERSION]):
            raise InvalidInputError(
                f"unknownVersion: This store is of version {versions[0]}, and this discreet keeps "
                f"stores of version {VERSION}; go on with the version of discreet that made it. "
                f"Nothing was changed."
            )
        if not versions:
            on_new()
        with self._transaction("adopt"):
            rows = self._execute("SELECT charter FROM about")
            if not rows:
                self._execute("INSERT INTO about VALUES (1, ?, ?)", VERSION, self.charter.data)
                return
            # Perhaps another process was faster, with another charter.
            if bytes(rows[0][0]) != self.charter.data:
                raise InvalidInputError(
                    "This store belongs to another charter; give it its own store."
                )

    # --- tickets

    def admit(self, digests: Iterable[bytes]) -> None:
        """Tickets that may take part; those that are known already stay as they are.

        After `recover` only those that bear its mark, and so were made after it.
        """
        with self._transaction("admit"):
            rows = self._execute("SELECT hash FROM ticket WHERE number = ?", RECOVERY)
            mark = bytes(rows[0][0]) if rows else b""
            new = [(one[:SIZE],) for one in sorted(digests) if not mark or one[SIZE:] == mark]
            self._insert("ticket", new)
            self._count_tickets()

    def _count_tickets(self) -> None:
        query = "SELECT hash FROM ticket WHERE coalesce(number, 0) <> ?"
        known = b"".join(bytes(one)[:8] for (one,) in self._execute(query, RECOVERY))
        self._tickets = len(known) // 8
        table = np.zeros(1 << max(3, (8 * self._tickets).bit_length()), np.uint8)
        drawn = np.frombuffer(known, ">u8") & np.uint64(8 * len(table) - 1)
        np.bitwise_or.at(table, drawn >> np.uint64(3), np.uint8(1) << (drawn & 7).astype(np.uint8))
        self._known = table.tobytes()
        ((self._void,),) = self._execute("SELECT count(*) FROM ticket WHERE number = ?", VOID)

    def may_know(self, digest: bytes) -> bool:
        """From any thread, without the database: False if this process was told of no such ticket.

        Of at least 64 bits for every ticket one is set, so it says yes to few strangers; `submit`
        knows.
        """
        bit = int.from_bytes(digest[:8]) & (8 * len(self._known) - 1)
        return bool(self._known[bit >> 3] >> (bit & 7) & 1)

    # --- batches

    def announce(self, announced: Announced) -> bool:
        """Open a batch; False if exactly this one was announced before.

        Raises:
            Refusal: ``forbiddenMutation``, ``batchPending``, ``badManifest``.
        """
        number = announced.manifest.number
        with self._transaction("announce"):
            known = self._execute("SELECT hash FROM batch WHERE number = ?", number)
            if known:
                if bytes(known[0][0]) != announced.hash:
                    raise Refusal("forbiddenMutation")
                return False
            last = self._last()
            live = last if last is not None and last.state in LIVE else None
            if live is not None and announced.manifest.abandons is None:
                raise Refusal("batchPending")
            if number != (0 if last is None else last.number + 1):
                raise Refusal("batchPending")
            before = None if last is None else last.announced.manifest
            manifests.check_follows(announced.manifest, before)
            self._check_progress(announced.manifest, last)
            if live is not None:
                self._discard(live, "abandoned")
            self._execute(
                "INSERT INTO batch VALUES (?, ?, ?, 'open', 0, 1)",
                number,
                announced.signed,
                announced.hash,
            )
        if live is not None:
            self.tidy()
        return True

    def _check_progress(self, now: Manifest, last: BatchState | None) -> None:
        """After ``done`` comes the next batch, otherwise the same one for as many users."""
        if last is None:
            return
        before = last.announced.manifest
        if now.abandons is not None:
            before = manifests.parse(self._signed(now.abandons))
        # Of a batch that was lost with a store nobody here knows whether it was counted.
        lost = last.state == "abandoned" and now.batch > before.batch
        if now.batch != before.batch + (now.abandons is None and (lost or last.state == "done")):
            raise Refusal("badManifest", "Its batch is not the one that is due.")
        if now.batch == before.batch and now.users != before.users:
            raise Refusal("badManifest", "A batch is announced again for as many users.")

    def _discard(self, row: BatchState, state: str) -> None:
        """Delete what a live batch holds; this use does not count unless it was handed over."""
        self._empty("report", "piece", "sealed")
        received = row.received
        if row.state != "handed":
            query = "UPDATE ticket SET uses = uses - 1, number = NULL WHERE number = ?"
            self._execute(query, row.number)
            received = 0
        query = "UPDATE batch SET state = ?, received = ?, live = NULL WHERE number = ?"
        self._execute(query, state, received, row.number)

    def recover(self, chain: Sequence[bytes], digests: Iterable[bytes]) -> int:
        """After a store was lost or put back from a copy; how many tickets are void.

        It has forgotten who has sent a report since. So every ticket there is becomes void, however
        many uses it had left, what a batch holds is deleted, and manifests that it has not seen
        stand for batches that are over. Of tickets that it is not told of nobody knows how often
        they were used: from now on a ticket is admitted only with a mark that is drawn here, which
        nobody can have put on it before (`mark`).

        Args:
            chain: all signed manifests, from the analyser.
            digests: of tickets that were made so far, from the enroller; who sends one that is
                missing is told that it is not known, instead of spent.
        """
        announced: list[Announced] = []
        for signed in chain:
            before = announced[-1].manifest if announced else None
            announced.append(manifests.read(signed, self.charter, before))
            manifests.check_follows(announced[-1].manifest, before)
        counted = {  # the next manifest begins another batch, also if a later one forgot it
            now.manifest.number
            for now, after in itertools.pairwise(announced)
            if after.manifest.batch > now.manifest.batch
        }
        with self._transaction("recover"):
            self._execute("DELETE FROM ticket WHERE number = ?", RECOVERY)
            self._insert("ticket", [(one[:SIZE],) for one in sorted(digests)])
            self._empty("report", "piece", "sealed")
            self._execute("UPDATE batch SET state = 'abandoned', live = NULL WHERE live = 1")
            query = "UPDATE ticket SET uses = ?, number = ? WHERE uses < ?"
            self._execute(query, self._most, VOID, self._most)
            self.mark = os.urandom(SIZE)
            self._insert("ticket", [(self.mark,)])
            query = "UPDATE ticket SET uses = ?, number = ? WHERE hash = ?"
            self._execute(query, self._most, RECOVERY, self.mark)
            for number, one in enumerate(announced):
                rows = self._execute("SELECT hash FROM batch WHERE number = ?", number)
                if rows and bytes(rows[0][0]) != one.hash:
                    raise Refusal("forbiddenMutation")
                if not rows:
                    state = "done" if number in counted else "abandoned"
                    query = "INSERT INTO batch VALUES (?, ?, ?, ?, 0, NULL)"
                    self._execute(query, number, one.signed, one.hash, state)
            last = self._last()
            if last is not None and last.number >= len(chain):
                raise InvalidInputError(
                    f"This store knows manifest {last.number}, and the chain that was given ends "
                    f"before it: ask the analyser for all of its manifests. Nothing was changed."
                )
            self._count_tickets()
        self.tidy()
        return self._void

    def submit(self, reports: Sequence[Submission]) -> list[str]:
        """Take reports, all in one transaction; for each of them `ACCEPTED` or a code."""
        answers = [""] * len(reports)
        with self._transaction("submit"):
            row = self._live()
            used = self._used([report.digest for report in reports])
            for i, report in enumerate(reports):
                answers[i] = _refused(report, used, row, self._most)
            fresh = [i for i, answer in enumerate(answers) if not answer]
            if row is not None and fresh:
                last = {digest for digest, (uses, _) in used.items() if uses + 1 == self._most}
                self._accept(row, reports, fresh, answers, last)
        return answers

    def _accept(
        self,
        row: BatchState,
        reports: Sequence[Submission],
        fresh: list[int],
        answers: list[str],
        last: set[bytes],
    ) -> None:
        """Take fresh reports in the order in which they came until the batch is full."""
        users, received = row.announced.manifest.users, row.received
        chosen: dict[bytes, int] = {}
        for i in fresh:
            if reports[i].digest in chosen:
                answers[i] = "ticketSpent" if reports[i].digest in last else "alreadyInBatch"
            elif received + len(chosen) < users:
                chosen[reports[i].digest] = i
                answers[i] = ACCEPTED
            else:
                answers[i] = "policyOutdated"
        claimed = self._claim(list(chosen), row.number)
        for digest in chosen.keys() - claimed:  # somebody else was faster
            answers[chosen[digest]] = "ticketSpent"
        taken = [i for digest, i in chosen.items() if digest in claimed]
        self._insert("report", [(reports[i].body,) for i in taken])
        received += len(taken)
        state = "full" if received == users else "open"
        self.filled = state == "full"
        self._execute(
            "UPDATE batch SET received = ?, state = ? WHERE number = ?", received, state, row.number
        )

    def expire(self, number: int) -> bool:
        """Give up an open batch: bodies deleted and tickets free, at once. False: too late."""
        with self._transaction("expire"):
            row = self._live()
            if row is None or row.number != number or row.state != "open":
                return False
            self._discard(row, "expired")
        self.tidy()
        return True

    def shuffle(self) -> bool:
        """Permute a full batch and delete its bodies; False if there is none."""
        while (state := self.shuffle_step()) == "full":
            pass
        return state == "sealed"

    def shuffle_step(self) -> str:
        """One transaction on the way of a full batch; its state then, empty if there is none.

        Bodies go to pieces of buckets and pieces to buckets, some at a time, so that only some are
        on the disk twice. Between two steps each envelope is in one place: whoever comes next,
        after a kill too, goes on from there. Nothing is handed over before the last step.
        """
        self._check_ending()
        with self._reading():
            row = self._live()
            left = [self._execute(f"SELECT 1 FROM {x} LIMIT 1") for x in ("report", "piece")]
        if row is None or row.state != "full":
            return ""
        step = "scatter" if left[0] else "gather" if left[1] else "seal"
        with self._transaction(step):
            now = self._live()  # another process may have been faster
            if now is None or now.state != "full" or now.number != row.number:
                return ""
            if step == "scatter":
                self._scatter(row.announced)
                return "full"
            if step == "gather":
                self._gather()
                return "full"
            ((found,),) = self._execute("SELECT coalesce(sum(length(body)), 0) FROM sealed")
            wanted = row.announced.manifest.users * row.announced.body
            if found != wanted:
                raise InvalidInputError(
                    f"Expected {wanted} bytes of envelopes, found {found}: nothing is released."
                )
            self._empty("piece")
            self._execute("UPDATE batch SET state = 'sealed' WHERE number = ?", row.number)
        self.tidy()
        self.filled = False
        return "sealed"

    def _scatter(self, announced: Announced) -> None:
        """Some bodies into pieces of buckets."""
        sizes, users = announced.sizes, announced.manifest.users
        count = max(1, _CHUNK // announced.body)
        rows = self._execute("SELECT id, body FROM report ORDER BY id LIMIT ?", count)
        whole = np.frombuffer(b"".join(bytes(body) for _, body in rows), np.uint8)
        whole = whole.reshape(len(rows), sum(sizes), ENVELOPE)
        end = 0
        for place, size in enumerate(sizes):
            end += size
            part = whole[:, end - size : end].reshape(-1, ENVELOPE)
            pieces = scatter(part, buckets_for(users * size))
            self._insert("piece", [(place, bucket, data) for bucket, data in pieces])
        if len(rows) < count:
            self._empty("report")
        else:
            self._execute("DELETE FROM report WHERE id <= ?", rows[-1][0])

    def _gather(self) -> None:
        """All pieces of one bucket, permuted."""
        found = self._execute("SELECT place, bucket FROM piece ORDER BY place, bucket LIMIT 1")
        for place, bucket in found:
            query = "SELECT body FROM piece WHERE place = ? AND bucket = ?"
            data = b"".join(bytes(part) for (part,) in self._execute(query, place, bucket))
            self._insert("sealed", [(place, bucket, permuted(data))])
            self._execute("DELETE FROM piece WHERE place = ? AND bucket = ?", place, bucket)

    def buckets(self, number: int, place: int) -> list[int]:
        """Buckets of a group of a sealed batch, in the order in which they are handed over.

        Raises:
            Refusal: ``unknownBatch``, ``notFull``, ``batchExpired``, ``batchDone``.
        """
        with self._reading():
            state = self._check_sealed(number)
            rows = self._execute("SELECT bucket FROM sealed WHERE place = ? ORDER BY bucket", place)
        if not rows:
            raise Refusal("unknownBatch", "It has no such group.")
        if state == "sealed":
            with self._transaction("hand"):
                self._check_sealed(number)
                self._execute("UPDATE batch SET state = 'handed' WHERE number = ?", number)
        return [bucket for (bucket,) in rows]

    def bucket(self, number: int, place: int, bucket: int) -> bytes:
        """The same bytes at every reading, after `buckets` has noted that they leave."""
        with self._reading():
            if self._check_sealed(number) != "handed":
                raise Refusal("notFull")
            query = "SELECT body FROM sealed WHERE place = ? AND bucket = ?"
            ((body,),) = self._execute(query, place, bucket)
        return bytes(body)

    def _check_sealed(self, number: int) -> str:
        state = self._state(number)
        refused = {
            "open": "notFull",
            "full": "notFull",
            "expired": "batchExpired",
            "abandoned": "batchAbandoned",
            "done": "batchDone",
        }
        if state in refused:
            raise Refusal(refused[state])
        return state

    def _state(self, number: int) -> str:
        rows = self._execute("SELECT state FROM batch WHERE number = ?", number)
        if not rows:
            raise Refusal("unknownBatch")
        return str(rows[0][0])

    def done(self, number: int) -> bool:
        """Scrub a sealed batch; False if there is nothing of it any more."""
        with self._transaction("done"):
            if self._state(number) in ("done", "abandoned"):
                return False
            self._check_sealed(number)
            self._empty("sealed")
            self._execute("UPDATE batch SET state = 'done', live = NULL WHERE number = ?", number)
        self.tidy()
        return True

    # --- reading

    def live(self) -> BatchState | None:
        """The batch that is open, full, sealed or handed."""
        with self._reading():
            return self._live()

    def state(self, number: int) -> str:
        """Of a batch: one of `STATES`."""
        with self._reading():
            return self._state(number)

    def manifest(self, number: int) -> bytes:
        """The signed bytes of a manifest; they stay public for ever."""
        with self._reading():
            return self._signed(number)

    def before(self, number: int) -> Manifest | None:
        """The manifest that one of this number follows."""
        return manifests.parse(self.manifest(number - 1)) if number else None

    def _signed(self, number: int) -> bytes:
        rows = self._execute("SELECT manifest FROM batch WHERE number = ?", number)
        if not rows:
            raise Refusal("unknownBatch")
        return bytes(rows[0][0])

    def totals(self) -> dict[str, int]:
        """Public totals: batches by state, tickets, and reports in the open batch."""
        with self._reading():
            states: dict[str, int] = dict(
                self._execute("SELECT state, count(*) FROM batch GROUP BY state")
            )
            # Every report that was taken is one use of a ticket; to add up tickets takes long.
            query = "SELECT coalesce(sum(received), 0) FROM batch WHERE (state = 'abandoned') = ?"
            ((void,),), ((spent,),) = (self._execute(query, gone) for gone in (True, False))
            row = self._live()
        batches = {f"batches_{state}": int(states.get(state, 0)) for state in STATES}
        now = {"received": row.received, "wanted": row.announced.manifest.users} if row else {}
        tickets = {"tickets": self._tickets, "tickets_spent": int(spent)}
        tickets["tickets_void"] = int(void) + self._void
        return batches | tickets | {"received": 0} | now

    def _live(self) -> BatchState | None:
        query = "SELECT manifest, hash, state, received FROM batch WHERE live = 1"
        return self._row(self._execute(query))

    def _last(self) -> BatchState | None:
        query = "SELECT manifest, hash, state, received FROM batch ORDER BY number DESC LIMIT 1"
        return self._row(self._execute(query))

    def _row(self, rows: list[Values]) -> BatchState | None:
        if not rows:
            return None
        signed, digest, state, received = rows[0]
        digest = bytes(digest)
        if digest not in self._read:  # its signature was checked when it was announced
            self._read = {digest: manifests.reread(bytes(signed), self.charter)}
        return BatchState(self._read[digest], state, received)


def _refused(
    report: Submission,
    used: dict[bytes, tuple[int, int | None]],
    row: BatchState | None,
    most: int,
) -> str:
    """Why a report cannot be taken; empty if nothing speaks against it."""
    if report.digest not in used:
        return "unknownTicket"
    uses, number = used[report.digest]
    if uses >= most:
        return "ticketSpent"
    if row is not None and number == row.number:
        return "alreadyInBatch"
    if row is None or row.state != "open":
        return "noOpenBatch"
    if report.manifest != row.announced.hash:
        return "policyOutdated"
    if len(report.body) != row.announced.body:
        return "wrongLength"
    return "copiedEnvelope" if report.copied else ""


def open_store(where: str, charter: Charter, at: At = nothing_happens) -> Store:
    """The store of a study, made if there is none.

    Args:
        where: the path of a file, or ``postgresql://...``.
        charter: of the study; a store of another one is refused.
        at: called before and after every commit.
    """
    if where.startswith(("postgresql://", "postgres://")):
        from discreet.service.shuffler.postgres import PostgresStore

        return PostgresStore(where, charter, at)
    if "://" in where:
        raise InvalidInputError(f"Expected a path or postgresql://..., got store={where!r}.")
    from discreet.service.shuffler.sqlite import SqliteStore

    return SqliteStore(where, charter, at)
