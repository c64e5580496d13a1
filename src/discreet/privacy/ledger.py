"""What was released about which people, added up person by person, and what they may still pay.

A release is charged *before* it is made, and kept before anybody sees it (`Ledger.once`): charge on
the disk, draw, result on the disk, answer, all under one lock. What is asked for again is answered
with what was kept, and costs nothing. A process killed before its charge has released nothing; one
killed between charge and result may have drawn, so nobody draws for that charge again: whoever asks
again is charged anew, and told so. Later the result is kept. So there is never an answer without a
charge, nor a second draw for one. Releases about one person add up, releases about others do not
(basic composition); what counts is the person about whom most was released. Sums are exact rational
numbers: 0.1 + 0.9 of 1 is not an overspend. What the budget does not cover is refused, and then
nothing has changed.

A ledger knows people, in a file beside the data: they are recognised by keyed digests of their
names (`discreet._spelling.person`), and all people of a table by the digest of its file, should its
names be read from another column. So a copy, a table
with one row changed and half of a table are charged to the people in them. What was asked for is
recognised by such a digest, too. The file is written whole or not at all, under a lock, readable by
its owner only. Its key is in it, and whoever has it can test a guess of a name or of a whole table:
keep it as you keep the table. Who loses the ledger loses the count.
"""

import base64
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._files import hold_alone, read_parsed, reason, remove_strays, write_atomically
from discreet._spelling import digest_of, person, quoted, spellings, warn_of_lookalikes
from discreet._types import Plain
from discreet.errors import BudgetError, InvalidInputError
from discreet.privacy.guarantee import rounded_down, rounded_up

Number = float | Fraction


@dataclass(frozen=True)
class Cost:
    """An exact (epsilon, delta)."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Number, delta: Number = 0) -> "Cost":
        """From what a person writes: 0.1 means one tenth; integers and fractions are welcome."""
        _validate.real(epsilon=epsilon, delta=delta)
        if epsilon < 0 or not 0 <= delta <= 1:
            raise InvalidInputError(
                f"Expected epsilon >= 0 and delta in [0, 1], got epsilon={epsilon!r} and "
                f"delta={delta!r}."
            )
        return cls(_validate.exact(epsilon), _validate.exact(delta))

    def __add__(self, other: "Cost") -> "Cost":
        """Sequential composition."""
        return Cost(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: "Cost") -> "Cost":
        """What is left."""
        return Cost(self.epsilon - other.epsilon, self.delta - other.delta)

    def covers(self, other: "Cost") -> bool:
        """True if both parts of ``other`` fit into this one."""
        return other.epsilon <= self.epsilon and other.delta <= self.delta

    def __str__(self) -> str:
        """The two numbers as a person writes them."""
        return f"epsilon {rounded_up(self.epsilon, 28)}, delta {rounded_up(self.delta, 28)}"


class Budget(NamedTuple):
    """The most that all releases about one person may spend.

    >>> Budget(2, 1e-5).total
    Cost(epsilon=Fraction(2, 1), delta=Fraction(1, 100000))
    """

    epsilon: Number
    delta: Number = 0

    @property
    def total(self) -> Cost:
        """Exact."""
        _validate.positive(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        return Cost.of(*self)


FORMAT = "discreet-ledger-2"
OLD = "discreet-ledger-1"
"""Whose people may stand there as 7 and as 7.0, as two: they are looked up under all spellings."""
NAME = "people.ledger"
"""Of the ledger beside a table: one for all tables of a folder, so that copies meet in it."""
_WORD = 8  # bytes of a digest: two people who share them are charged together, which is safe
_BLOCK = 20_000  # names in memory with all their spellings

_People = dict[tuple[int, ...], NDArray[np.uint64]]
"""Sorted digests of people, by the numbers of the releases that they were in."""


@dataclass(frozen=True)
class Account:
    """What a ledger says of the people of a release, of whom the one with most counts.

    Attributes:
        before: spent before the release.
        spent: with it.
        budget: that was declared, if one was.
        people: of the release.
        known: of them in an earlier one.
        path: of the ledger; None if it is in memory only.
        again: whether it was made before and is given again, at no cost.
        lost: how often it was charged before and not kept.
    """

    before: Cost
    spent: Cost
    budget: Cost | None
    people: int
    known: int
    path: Path | None
    again: bool = False
    lost: int = 0

    @property
    def left(self) -> Cost | None:
        """Of the budget, after the release."""
        return None if self.budget is None else self.budget - self.spent

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON."""
        plain: dict[str, Plain] = {"charged": not self.again, "people_known": self.known}
        plain["path"] = None if self.path is None else str(self.path)
        for name in ("spent", "left", "budget"):
            cost = getattr(self, name)
            plain[name] = cost and {"epsilon": float(cost.epsilon), "delta": float(cost.delta)}
        return plain

    @property
    def whom(self) -> str:
        """How many were recognised, and where; and what became of the same release before."""
        where = "" if self.path is None else f" of {str(self.path)!r}"
        known = f"{self.known:,} of {self.people:,} people were in an earlier release{where}"
        if not self.lost:
            return known
        times = "once" if self.lost == 1 else f"{self.lost:,} times"
        return (
            f"{known}; this same release was charged {times} before and ended before it was kept: "
            f"nobody saw it, and nobody may draw again for that charge"
        )

    def __str__(self) -> str:
        """One sentence: what is spent rounded up, what is left rounded down."""
        left = "no budget was declared"
        if self.left is not None and self.budget is not None:
            left = f"{_said(self.left, rounded_down)} left of {_said(self.budget, rounded_down)}"
        with_this = f"{_said(self.spent, rounded_up)} with this release"
        if self.again:
            with_this = "nothing with this release, which was made before and kept"
        before = _said(self.before, rounded_up)
        return f"{before} spent before, {with_this} (on the person with most), {left}; {self.whom}"


class _Release(NamedTuple):
    """What was charged: ``table`` and ``asked`` are digests, ``made`` is what was kept."""

    cost: Cost
    table: str = ""
    asked: str = ""
    made: str | None = None


@dataclass(frozen=True)
class _Content:
    """What the file holds; each person stands in it once; if it is old, once a spelling."""

    format: str = FORMAT
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    budget: Cost | None = None
    releases: tuple[_Release, ...] = ()
    people: _People = field(default_factory=dict)

    def concerned(self, names: Sequence[str], table: str) -> _People:
        """The people of a release; who was in one of the same file is, under whatever name."""
        given = new = np.unique(self._digests(names))
        same = {i for i, one in enumerate(self.releases) if table and one.table == table}
        found: _People = {}
        for history, members in self.people.items():
            met = members if same & set(history) else np.intersect1d(members, given)
            _join(found, same | set(history), met)
            new = np.setdiff1d(new, members)
        _join(found, same, new)
        return self._with_spellings(found, names) if self.format == OLD else found

    def _with_spellings(self, people: _People, names: Sequence[str]) -> _People:
        """The same people; each is charged what was charged on any spelling of the name."""
        charged: dict[int, set[int]] = {}
        for first in range(0, len(names), _BLOCK):
            block = names[first : first + _BLOCK]
            pairs = [(name, text) for name in block for text in spellings(name)]
            owners, others = (self._digests([pair[i] for pair in pairs]) for i in (0, 1))
            for history, members in self.people.items():
                for owner in owners[np.isin(others, members)].tolist():
                    charged.setdefault(owner, set()).update(history)
        several = np.array(list(charged), np.uint64)
        found: _People = {}
        for history, members in people.items():
            _join(found, set(history), np.setdiff1d(members, several))
            for one in np.intersect1d(members, several):
                _join(found, {*history, *charged[int(one)]}, np.array([one]))
        return found

    def _digests(self, names: Sequence[str]) -> NDArray[np.uint64]:
        return _unpacked(b"".join(digest_of(name, self.key)[:_WORD] for name in names))

    def spent(self, people: _People) -> Cost:
        """On the one of them with most, of epsilon and of delta."""
        sums = [sum((self.releases[i].cost for i in history), Cost.of(0)) for history in people]
        return Cost(max(one.epsilon for one in sums), max(one.delta for one in sums))

    def charged(self, release: _Release, people: _People) -> "_Content":
        """With one release more."""
        now: _People = {}
        concerned = np.concatenate(list(people.values()))
        for history, members in self.people.items():
            _join(now, set(history), np.setdiff1d(members, concerned))
        for history, members in people.items():
            _join(now, {*history, len(self.releases)}, members)
        return replace(self, releases=(*self.releases, release), people=now)

    def kept(self, made: str) -> "_Content":
        """With what came out of the last release."""
        *others, last = self.releases
        return replace(self, releases=(*others, last._replace(made=made)))


class Ledger:
    """Adds up what is released about people, and refuses what their budget does not cover.

    >>> ledger = Ledger(budget=Budget(2))
    >>> account = ledger.record(1, users=["ann", "bob"])
    >>> str(ledger.record(0.5, users=["eve", "bob"]).left)
    'epsilon 0.5, delta 0'
    >>> str(ledger.record(0.5, users=["eve"]).left)
    'epsilon 1, delta 0'
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        budget: Budget | None = None,
        table: str | Path | None = None,
        told: Callable[[Account], object] = lambda _: None,
    ) -> None:
        """A ledger in a file, which is made with the first release, or in memory.

        Args:
            path: of the file.
            budget: of every person. The file keeps it; a later one may be smaller, not larger.
            table: the file that the people of the releases come from, if they do.
            told: called with the account of each release before it is charged.
        """
        self.path = None if path is None else Path(path)
        self._table, self._told = table, told
        self._budget = None if budget is None else budget.total
        self._content = _Content()

    def record(self, epsilon: Number, delta: Number = 0, *, users: Sequence[object]) -> Account:
        """Charge one release to its people, each named once, before it is made.

        Raises:
            BudgetError: the budget does not cover it; nothing is charged.
            InvalidInputError: a name is none or comes twice, or the ledger cannot be used.
        """
        return self.once(epsilon, delta, users=users, asked=(), make=str)[0]

    def once(
        self,
        epsilon: Number,
        delta: Number = 0,
        *,
        users: Sequence[object],
        asked: Sequence[bytes],
        make: Callable[[], str],
    ) -> tuple[Account, str]:
        """Charge one release as `record` does, make it and keep it; or give what was kept of it.

        Args:
            epsilon: as in `record`.
            delta: as in `record`.
            users: as in `record`.
            asked: what the release is made from, data and names included: the same bytes are the
                same release. If there are none, nothing is kept.
            make: draws once, and returns what anybody may see.
        """
        cost, names = Cost.of(epsilon, delta), distinct(users)
        with self._held():
            content = self._read()
            table = "" if self._table is None else _digest_of_file(Path(self._table), content.key)
            wanted = _Release(cost, table, _digest(asked, content.key) if asked else "")
            people = content.concerned(names, table)
            account, made = self._account(content, wanted, people, len(names))
            self._told(account)
            if made is None:
                content = content.charged(wanted, people)
                self._write(content)
                made = make()
                if asked:
                    self._write(content.kept(made))
        return account, made

    def _account(
        self, content: _Content, wanted: _Release, people: _People, number: int
    ) -> tuple[Account, str | None]:
        """What is spent on them, and what was kept of the release; a refusal if neither will do."""
        same = [one.made for one in content.releases if wanted.asked and one.asked == wanted.asked]
        made = next((text for text in same if text is not None), None)
        before = content.spent(people)
        known = sum(len(members) for history, members in people.items() if history)
        budget, total = content.budget, before + wanted.cost if made is None else before
        again, lost = made is not None, len(same) if made is None else 0
        account = Account(before, total, budget, number, known, self.path, again, lost)
        if made is None and budget is not None and not budget.covers(total):
            over = total - budget
            raise BudgetError(
                f"The privacy budget does not cover this release; nothing was released. Requested: "
                f"{wanted.cost}. Remaining: {budget - before}. Difference: "
                f"{Cost(max(over.epsilon, Fraction(0)), max(over.delta, Fraction(0)))}. "
                f"{account.whom}; ask for less, or leave these people out."
            )
        return account, made

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Nobody else reads or writes the file meanwhile."""
        if self.path is None:
            yield
            return
        try:
            lock = hold_alone(_behind(self.path), wait=True)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            self._check_links()
            yield
        finally:
            os.close(lock)

    def _check_links(self) -> None:
        """A ledger is replaced whole: under a second name (a hard link) the old one would stay."""
        if self.path is None or not self.path.is_file() or self.path.stat().st_nlink == 1:
            return
        raise InvalidInputError(
            f"Expected a ledger with one name, got {str(self.path)!r} with "
            f"{self.path.stat().st_nlink} (hard links): a charge through one of them would be "
            f"missing under the others; nothing was released. Find them with find -samefile, and "
            f"replace all but one by symbolic links."
        )

    def _read(self) -> _Content:
        content = self._content
        if self.path is not None:
            content = _Content()
            if self.path.exists():
                content = read_parsed(self.path, _parsed, "the ledger")
        if self._budget is None:
            return content
        declared, wanted = content.budget, self._budget
        if declared == wanted:
            return content
        if declared is not None and not declared.covers(wanted):
            raise InvalidInputError(
                f"Expected a budget of at most {declared}, which was declared for these people, "
                f"got {wanted}; nothing was released. Whoever answers for raising it writes the "
                f"new one into {str(self.path)!r} by hand."
            )
        content = replace(content, budget=wanted)
        self._write(content)  # declared now: kept, whatever becomes of the release
        return content

    def _write(self, content: _Content) -> None:
        if self.path is None:
            self._content = content
            return
        try:
            remove_strays(_behind(self.path))
            write_atomically(_behind(self.path), _packed(content), private=True)
        except OSError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: OSError) -> InvalidInputError:
        return InvalidInputError(
            f"Cannot use the ledger {str(self.path)!r}: {reason(error)}. Nothing was released; "
            f"name a place where it can be written."
        )


def _behind(path: Path) -> Path:
    """The file that a link leads to; to replace the link would make a ledger that others lack."""
    return Path(os.path.realpath(path))


def distinct(users: Sequence[object]) -> list[str]:
    """The names of people of whom none comes twice, in whatever spelling."""
    if isinstance(users, str | bytes):
        raise InvalidInputError(f"Expected a list of users' names, got {type(users).__name__}.")
    names: dict[str, None] = {}
    for user in users:
        name = person(user)
        if name in names:
            raise InvalidInputError(
                f"Expected every user once, got {quoted(name)} twice; a release covers one "
                f"episode of each. Nothing was released."
            )
        names[name] = None
    if not names:
        raise InvalidInputError("Expected at least one user, got none.")
    warn_of_lookalikes(names)
    return list(names)


def _join(people: _People, releases: set[int], more: NDArray[np.uint64]) -> None:
    history = tuple(sorted(releases))
    if len(more):
        people[history] = np.union1d(people[history], more) if history in people else more


def _digest(parts: Sequence[bytes], key: bytes) -> str:
    made = hashlib.blake2b(key=key, digest_size=16)
    for part in parts:
        made.update(len(part).to_bytes(8))
        made.update(part)
    return made.hexdigest()


def _digest_of_file(table: Path, key: bytes) -> str:
    try:
        with table.open("rb") as file:
            made = hashlib.file_digest(file, lambda: hashlib.blake2b(key=key, digest_size=16))
    except OSError as error:
        raise InvalidInputError(f"Cannot read {str(table)!r}: {reason(error)}.") from None
    return made.hexdigest()


def _unpacked(data: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(data, ">u8").astype(np.uint64)


def _packed(content: _Content) -> bytes:
    budget = content.budget
    plain = {
        "format": content.format,
        "key": content.key.hex(),
        "budget": budget and [str(budget.epsilon), str(budget.delta)],
        "releases": [
            [str(one.cost.epsilon), str(one.cost.delta), one.table, one.asked, one.made]
            for one in content.releases
        ],
        "people": [
            [history, base64.b64encode(members.astype(">u8").tobytes()).decode()]
            for history, members in content.people.items()
        ],
    }
    return json.dumps(plain, indent=1).encode() + b"\n"


def _parsed(data: bytes) -> _Content:
    """The inverse of `_packed`; a ``ValueError`` if it is no ledger, or was damaged."""
    try:
        plain = json.loads(data)
        key = bytes.fromhex(plain["key"])
        if plain["format"] not in (FORMAT, OLD) or len(key) != 32:
            raise ValueError(FORMAT)
        releases = tuple(_Release(_cost(e, d), *kept) for e, d, *kept in plain["releases"])
        people: _People = {}
        for history, digests in plain["people"]:
            numbers = {range(len(releases)).index(i) for i in history}
            _join(people, numbers, np.unique(_unpacked(base64.b64decode(digests, validate=True))))
        budget = None if plain["budget"] is None else _cost(*plain["budget"])
        return _Content(plain["format"], key, budget, releases, people)
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
        raise ValueError(
            f"it is no {FORMAT}, or was damaged; nothing was released. Restore it: an empty one "
            f"would forget what was released"
        ) from None


def _cost(epsilon: str, delta: str) -> Cost:
    return Cost.of(Fraction(epsilon), Fraction(delta))


def _said(cost: Cost, rounded: Callable[[Fraction], str]) -> str:
    return f"epsilon {rounded(cost.epsilon)}, delta {rounded(cost.delta)}"
