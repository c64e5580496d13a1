"""A device: fetches the manifest, plays its policy, encodes, seals, sends.

It encodes once per manifest, keeps the sealed bytes before it sends them, and after an error, a
kill or a lie of the shuffler sends the same bytes again: noise that is drawn twice for one episode
is less noise. Randomness is the operating system's; a source of its own is refused unless the
charter says that this is a rehearsal.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from discreet._files import hold_alone, write_atomically
from discreet.device import Draws
from discreet.errors import InvalidInputError
from discreet.service.client import Client, UnreachableError
from discreet.service.configs import DeviceConfig
from discreet.service.protocol import canonical, report
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import ticket as tickets
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.manifest import Announced, Manifest
from discreet.service.protocol.problems import Refusal

_LONGEST_DELAY = 86_400
TAKEN = ("accepted", "alreadyInBatch", "ticketSpent")
"""Answers after which nothing more is sent for a manifest."""
Episode = Mapping[str, object]
Play = Callable[[Announced], Episode]
"""Plays the policy of a manifest: states, actions, rewards."""


class Outbox:
    """Where a device keeps what it sealed, before it is sent for the first time.

    By a name for the ticket (its owner) and one for batch and manifest, in a folder of the device:
    it outlives a device that is killed. Empty bytes stand for a report that was answered.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """For the time of the block no other device works with it: of two, both would encode."""
        try:
            lock = hold_alone(self._folder / "outbox")
        except BlockingIOError:
            raise InvalidInputError(
                f"Another device works with {str(self._folder)!r}; let it finish, then try again."
            ) from None
        try:
            yield
        finally:
            os.close(lock)

    def read(self, owner: str, name: str) -> bytes | None:
        path = self._path(owner, name)
        return path.read_bytes() if path.exists() else None

    def write(self, owner: str, name: str, data: bytes) -> None:
        """Keep this; other bytes that were kept for this owner go when this is on the disk."""
        path = self._path(owner, name)
        if not data:  # should a power cut undo this, the same bytes are sent again
            path.write_bytes(data)
            return
        write_atomically(path, data, private=True)
        for older in self._folder.glob(f"{owner}-*.report"):
            if older != path and older.stat().st_size:
                older.unlink()

    def times(self, owner: str) -> int:
        """In how many batches a report of this owner was answered, as far as this device knows.

        A batch that expired and was announced again counts once.
        """
        return self.owners(owner).count(owner)

    def owners(self, of: str = "*") -> list[str]:
        """The owner of every report that was answered, one time for each batch."""
        files = self._folder.glob(f"{of}-*.report")
        batches = {tuple(one.name.split("-")[:2]) for one in files if not one.stat().st_size}
        return [owner for owner, _ in batches]

    def _path(self, owner: str, name: str) -> Path:
        return self._folder / f"{owner}-{name}.report"


def fetch_charter(client: Client, study: bytes, *, rehearsal: bool = False) -> Charter:
    """The charter of this name, from the shuffler; its hash is its proof."""
    data = client.charter()
    found = canonical.sha256(data)
    if found != study:  # before anything in it is believed
        raise InvalidInputError(
            f"The shuffler serves the study {found.hex()[:16]}..., expected "
            f"{study.hex()[:16]}...; ask who gave you the ticket."
        )
    charter = Charter.from_bytes(data)
    charter.check_rehearsal(rehearsal)
    return charter


class Chain:
    """The manifests that a device has seen: each must follow the one before it.

    Args:
        charter: of the study.
        client: gives manifests that were missed.
        seen: the last one that was checked, if any.
        keep: called with the bytes of every manifest that was checked.
    """

    def __init__(
        self,
        charter: Charter,
        client: Client,
        seen: Manifest | None = None,
        keep: Callable[[bytes], object] = lambda _: None,
    ) -> None:
        self.charter, self._client, self.seen, self._keep = charter, client, seen, keep

    def current(self) -> Announced:
        """The open batch's manifest, checked against charter and chain."""
        signed = self._client.manifest()
        claimed = manifests.parse(signed)  # signed by whoever the one before it names
        if self.seen is not None and claimed.number <= self.seen.number:
            if claimed.hash != self.seen.hash:
                raise Refusal(
                    "badManifest", "Another one of this number, or a later one, is known."
                )
            return manifests.reread(signed, self.charter)
        first = 0 if self.seen is None else self.seen.number + 1
        for number in range(first, claimed.number):
            self._follow(self._client.manifest_at(number))
        announced = self._follow(signed)
        self._keep(signed)
        return announced

    def _follow(self, signed: bytes) -> Announced:
        announced = manifests.read(signed, self.charter, self.seen)
        manifests.check_follows(announced.manifest, self.seen)
        self.seen = announced.manifest
        return announced


class Participant:
    """One user's device.

    Args:
        chain: of the study's manifests.
        client: to the shuffler.
        ticket: of this user.
        outbox: keeps what was sealed.
        delay: the most seconds to wait before sending; the real number is random.
        pause: waits for so many seconds.
        draws: of a rehearsal.
    """

    def __init__(
        self,
        chain: Chain,
        client: Client,
        ticket: bytes,
        outbox: Outbox,
        *,
        delay: float = 0.0,
        pause: Callable[[float], object] = lambda _: None,
        draws: Draws | None = None,
    ) -> None:
        if not 0 <= delay <= _LONGEST_DELAY:
            raise InvalidInputError(
                f"Expected a delay of 0 to {_LONGEST_DELAY} seconds, got delay={delay}."
            )
        if draws is not None and not chain.charter.rehearsal:
            raise InvalidInputError(
                "A device that protects somebody draws from the operating system; leave out draws."
            )
        self._chain, self._client, self._ticket, self._outbox = chain, client, ticket, outbox
        self._delay, self._pause, self._draws = delay, pause, draws
        self._owner = tickets.digest(ticket).hex()[:32]

    def attempt(self, play: Play) -> str:
        """Take part in the open batch, once.

        Returns:
            ``accepted``; ``alreadyInBatch`` or, with no use of the ticket left, ``ticketSpent``
            (perhaps by an earlier attempt whose answer was lost); ``policyOutdated`` or
            ``noOpenBatch``: come again, for another manifest.

        Raises:
            UnreachableError: nobody knows whether the report arrived: attempt again, the same
                bytes will be sent.
        """
        with self._outbox.alone():
            try:
                announced = self._chain.current()
            except Refusal as refusal:
                return _come_again(refusal, ("noOpenBatch",))
            name = f"{announced.manifest.batch}-{announced.hash.hex()}"
            sealed = self._outbox.read(self._owner, name)
            if sealed is None:
                cells = announced.device.encode(play(announced), self._draws)
                sealed = report.seal(cells, announced, self._ticket)
                self._outbox.write(self._owner, name, sealed)
            if not sealed:
                return "alreadyInBatch" if self.left else "ticketSpent"
            self._pause(secrets.SystemRandom().uniform(0, self._delay))
            try:
                self._client.send(sealed)
                state = "accepted"
            except Refusal as refusal:
                state = _come_again(refusal, (*TAKEN, "policyOutdated", "noOpenBatch"))
            if state in TAKEN:
                self._outbox.write(self._owner, name, b"")
            return state

    @property
    def left(self) -> int:
        """Batches for which the ticket is still good, as far as this device knows.

        The shuffler knows better: it says ``ticketSpent``.
        """
        return max(0, self._chain.charter.participations - self._outbox.times(self._owner))


def _come_again(refusal: Refusal, expected: tuple[str, ...]) -> str:
    """The code of a refusal that is an answer; a shuffler that is busy has not answered."""
    if refusal.code in ("busy", "broken", "tooSlow"):
        raise UnreachableError("The shuffler is busy; send the same bytes again.") from None
    if refusal.code not in expected:
        raise refusal
    return refusal.code


# The device as a process: from its file, and what it remembers from one start to the next.


def make_participant(
    config: DeviceConfig,
    client: Client,
    pause: Callable[[float], object],
    *,
    own: str = "",
    rehearsal: bool = False,
) -> tuple[Chain, Participant]:
    """The device of a file.

    Args:
        config: the file.
        client: to the shuffler.
        pause: waits for so many seconds.
        own: the ticket, if the file holds none.
        rehearsal: take part although nobody is protected.
    """
    try:
        ticket = bytes.fromhex(own or config.ticket)
        study = bytes.fromhex(config.study)
    except ValueError:
        # A ticket is not said again: whoever reads messages over a shoulder could use it.
        raise InvalidInputError(
            f"Expected ticket and study in hexadecimal digits, got study={config.study!r}; take "
            f"both from the invitation."
        ) from None
    if len(ticket) != tickets.SIZE:
        raise InvalidInputError("Expected a ticket of 64 hexadecimal digits; give --ticket.")
    folder = config.path(config.outbox)
    charter, outbox = fetch_charter(client, study, rehearsal=rehearsal), Outbox(folder)
    path = folder / "seen.manifest"  # the last one that this device has checked
    seen = manifests.reread(path.read_bytes(), charter).manifest if path.exists() else None
    chain = Chain(charter, client, seen, lambda signed: write_atomically(path, signed))
    return chain, Participant(chain, client, ticket, outbox, delay=config.delay, pause=pause)
