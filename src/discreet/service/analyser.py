"""The analyser: owns the study, signs manifests, opens envelopes, tells the study.

A worker. `step` may be killed at any point and called again: what it does
follows from the study (which batches are counted), from the manifests it has written and from the
shuffler's answers.

1. A manifest whose batch is counted: back up, destroy its key, acknowledge it.
2. No manifest for the pending batch: make a key, write and sign one.
3. Announce it; fetch all groups. Not full: wait. Expired: the study issues the batch again.
4. Check that every group has its size; copies of an envelope are dummies; open the others.
5. Tell the study: counts and ledger entry in one transaction, with the manifest's hash.

The next manifest is made from the study after 5, so it is published if and only if 5 is committed.
"""

import logging
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from discreet._files import write_atomically
from discreet._types import Plain
from discreet.device import MessageGroup, load
from discreet.errors import DiscreetError, InvalidInputError
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.guarantee import REHEARSED
from discreet.service.client import Client, UnreachableError
from discreet.service.configs import (
    At,
    Clock,
    SystemClock,
    instant,
    nothing_happens,
)
from discreet.service.opening import (
    BatchKeys,
    Fetched,
    Opener,
    Task,
    in_processes,
)
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol.charter import Charter, layout_of
from discreet.service.protocol.manifest import Announced, Manifest
from discreet.service.protocol.problems import Refusal
from discreet.study.study import Study

log = logging.getLogger("discreet.service.analyser")


class RubbishError(DiscreetError):
    """A batch of which too much cannot be read; a person has to say what becomes of it."""


class Analyser:
    """The role.

    Attributes:
        trouble: why the last steps failed, two of them at least; empty if the last did not.

    Args:
        charter: of the study.
        study: the analyser's own, which nobody else tells.
        client: to the shuffler, with the analyser's token.
        signing_key: signs manifests, from the moment at which a manifest names its public half.
        folder: for manifests and batch keys.
        opener: opens envelopes.
        clock: where time comes from.
        at: called before and after every step that is kept.
        old_key: signs until then.
        backup: called when a batch is counted, before the shuffler may forget it.
        accepted: the number of a manifest whose batch is counted whatever share cannot be read.
    """

    trouble = ""

    def __init__(
        self,
        charter: Charter,
        study: Study,
        client: Client,
        signing_key: Ed25519PrivateKey,
        folder: Path,
        *,
        opener: Opener | None = None,
        clock: Clock | None = None,
        at: At = nothing_happens,
        old_key: Ed25519PrivateKey | None = None,
        backup: Callable[[], object] = lambda: None,
        accepted: int | None = None,
    ) -> None:
        self.charter, self.study = charter, study
        self._client, self._at = client, at
        self._opener, self._clock = opener or in_processes(1), clock or SystemClock()
        self._signing_keys = [one for one in (signing_key, old_key) if one is not None]
        self._backup, self._accepted = backup, accepted
        self._folder = folder / "manifests"
        self._folder.mkdir(exist_ok=True)
        self._keys = BatchKeys(folder / "keys")
        self._rebuilt = False
        self._acknowledged: int | None = None
        current = self.latest()
        self._signing_key(None if current is None else current.manifest)
        check_study(charter, study)

    def step(self) -> str:
        """Do what is next.

        Returns:
            ``counted``, ``expired`` (the batch will be announced anew), ``waiting`` or
            ``finished``.
        """
        self._rebuild()
        current = self.latest()
        if current is not None and self._is_counted(current.manifest):
            self._acknowledge(current.manifest.number)
        if self.study.finished:
            return "finished"
        if current is None or current.manifest.ledger.hex() != self.study.head:
            self._check_over(current)
            current = self._next(current)
        current = self._announced(current)
        number, users = current.manifest.number, current.manifest.users
        with Fetched(self._folder, [users * size for size in current.sizes]) as fetched:
            try:
                self._check_key(current.manifest)
                self._fetch(number, fetched)
            except Refusal as refusal:
                return self._not_yet(current, refusal)
            if copies := fetched.dummy_copies():
                log.warning("%d envelopes were copies of others and count as dummies", copies)
            self._count(current, fetched)
        self._acknowledge(number)
        return "counted"

    def run(
        self,
        pause: Callable[[float], object],
        until: Callable[[], bool],
        look: Callable[[str], object] = lambda _: None,
    ) -> str:
        """Steps until the study is finished or ``until`` says so; unreachable is no reason to end.

        Args:
            pause: waits for so many seconds.
            until: asked between steps.
            look: told what every step has given.
        """
        state = "waiting"
        while not until():
            try:
                state, self.trouble = self.step(), ""
            except (UnreachableError, Refusal) as error:
                if isinstance(error, Refusal) and error.code not in ("busy", "broken"):
                    raise
                if state != "unreachable":  # said once, however long it is away
                    log.warning("trying again until the shuffler answers: %s", error)
                else:
                    self.trouble = str(error)
                state = "unreachable"
            look(state)
            if state == "finished":
                return state
            if state == "counted":
                log.info("%s", self.progress())
            else:
                pause(0.2 if state != "unreachable" else 1.0)
        return state

    @property
    def client(self) -> Client:
        return self._client

    def abandon(self) -> str:
        """Give up the pending batch, and all that was counted since this copy of the study.

        A person decides so, when the key of an open batch is lost or the study was put back from a
        backup. The ledger says it, and a manifest that the shuffler and every device check. What
        becomes of the tickets is the shuffler's to say: free if nothing was handed over, else this
        counts as one of their batches.

        Returns:
            What was done, in words.
        """
        self._rebuild()
        written, head = self._manifests(), self.study.head
        seen = written[:-1] if written and self._unseen(written[-1].number) else written
        pending = [one.number for one in seen if one.ledger.hex() == head]
        if pending:
            for one in written[len(seen) :]:  # made by a study that is forgotten; nobody has it
                self._path(one.number).unlink()
                self._keys.destroy(one.number)
            last = seen[-1].number
            free = self._client.state(last) not in ("handed", "done", "abandoned")
            self._give_up(pending[0], last, free=free)
        elif self._abandoned() is None or any(one.ledger.hex() == head for one in written):
            raise InvalidInputError(
                "There is nothing to abandon: the shuffler has no batch of what this study asks "
                "now. `discreet service analyser` goes on from here."
            )
        current = self.latest()
        self._check_over(current)
        self._announced(self._next(current))
        said = self._abandoned() or {}
        return f"Manifests {said['abandoned']} are abandoned; tickets: {said['tickets']}."

    def _give_up(self, first: int, last: int, *, free: bool) -> None:
        """The study asks again; whom, the ledger's entry says."""
        self._at("reissue.before")
        self.study.reissue(
            returning="unseen" if free and first == last else "nobody",
            note={
                "abandoned": f"{first} to {last}",
                "tickets": f"those of manifest {last} are free again" if free else "used",
            },
        )
        self._at("reissue.after")
        for number in range(first, last + 1):
            self._keys.destroy(number)

    def _abandoned(self) -> dict[str, Plain] | None:
        """What the last entry of the ledger says of manifests that it gives up."""
        note = self.study.ledger[-1].get("note")
        return note if isinstance(note, dict) and "abandoned" in note else None

    def close(self) -> None:
        """Close the connections to the shuffler."""
        self._client.close()

    def progress(self) -> str:
        stamp = f"{REHEARSED}: " if self.charter.rehearsal else ""
        return f"{stamp}{self.study.batches} batches counted, {self.study.users} reports in all"

    def latest(self) -> Announced | None:
        """The last manifest that was written."""
        paths = sorted(self._folder.glob("*.manifest"))
        return manifests.reread(paths[-1].read_bytes(), self.charter) if paths else None

    def _manifests(self) -> list[Manifest]:
        paths = sorted(self._folder.glob("*.manifest"))
        return [manifests.parse(path.read_bytes()) for path in paths]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}.manifest"

    def _rebuild(self) -> None:
        """Manifests as the shuffler keeps them: devices have seen those, whatever lies here."""
        if self._rebuilt:
            return
        theirs = self._client.manifests()
        chain: list[Manifest] = []
        for signed in theirs:
            before = chain[-1] if chain else None
            manifest = manifests.read(signed, self.charter, before).manifest
            manifests.check_follows(manifest, before)
            chain.append(manifest)
        own = self._manifests()
        if len(own) > len(chain) + 1:
            raise _forgotten(f"The shuffler keeps {len(chain)} manifests of {len(own)}")
        self._check_alone([*chain, *own[len(chain) :]])
        for number, signed in enumerate(theirs):
            path = self._path(number)
            if not path.exists() or path.read_bytes() != signed:
                log.warning("manifest %d was another here: the shuffler's is taken", number)
                write_atomically(path, signed)
        self._rebuilt = True

    def _check_alone(self, chain: list[Manifest]) -> None:
        """Refuse to go on if another copy of the study did: it gave up what this one counted."""
        lost = manifests.abandoned(chain)
        kept = {one.hash.hex() for one in chain if one.number not in lost}
        if not self._named() <= kept:
            raise _another_copy()

    def _named(self) -> set[object]:
        """Hashes of the manifests whose batches are counted, as the ledger says."""
        notes = [entry.get("note") for entry in self.study.ledger if entry["kind"] == "batch"]
        return {note["manifest"] for note in notes if isinstance(note, dict)}

    def _is_counted(self, manifest: Manifest) -> bool:
        return manifest.batch < self.study.batches and manifest.hash.hex() in self._named()

    def _check_over(self, current: Announced | None) -> None:
        """Before a key is destroyed and another manifest signed: its batch is over.

        It is counted, or expired, or the ledger gives it up. A study that was put back from a copy
        has forgotten batches: to go on from there takes a person's word (`abandon`).
        """
        if current is None or self._is_counted(current.manifest):
            return
        manifest, given_up = current.manifest, self._abandoned()
        if given_up is not None and int(str(given_up["abandoned"]).split()[-1]) == manifest.number:
            return
        heads = [self.study.head, *(str(entry["previous"]) for entry in self.study.ledger)]
        known = manifest.ledger.hex() in heads
        if (
            known
            and manifest.batch == self.study.batches
            and self._client.state(manifest.number) == "expired"
        ):
            return
        if not known and all(one.ledger.hex() != self.study.head for one in self._manifests()):
            raise _another_copy()
        raise InvalidInputError(
            f"The study has counted {self.study.batches} batches and asks for another one than "
            f"manifest {manifest.number}, which is of batch {manifest.batch} and did not expire: "
            f"this is an older copy of the study, or another one. Nothing was changed. Put the "
            f"latest one back; if there is none, `discreet service abandon --config FILE` gives up "
            f"what this copy has forgotten."
        )

    def _has_key(self, manifest: Manifest) -> bool:
        """Its own: whoever was killed while a manifest was made anew has left a newer one."""
        number = manifest.number
        return self._keys.has(number) and self._keys.public(number) == manifest.key

    def _check_key(self, manifest: Manifest) -> None:
        number = manifest.number
        if self._has_key(manifest) or self._client.state(number) in ("expired", "abandoned"):
            return
        raise InvalidInputError(
            f"The key of manifest {number} is not in the folder 'keys': nobody can open what its "
            f"users have sent. Put it back; if it is lost, `discreet service abandon --config "
            f"FILE` gives up the batch."
        )

    def _next(self, before: Announced | None) -> Announced:
        """A manifest for the pending batch, written down before anybody hears of it."""
        if before is not None:
            self._keys.destroy(before.manifest.number)
        return self._written(None if before is None else before.manifest)

    def _signing_key(self, before: Manifest | None) -> Ed25519PrivateKey:
        """The key with which the manifest after this one has to be signed."""
        due = self.charter.signing_key if before is None else before.signer
        for key in self._signing_keys:
            if key.public_key().public_bytes_raw() == due:
                return key
        named = "the charter" if before is None else f"manifest {before.number}"
        raise InvalidInputError(
            f"The signing key is not the one whose public half stands in {named}; use the charter "
            f"and the key of one and the same `discreet service init`. After `discreet service "
            f"rotate` put 'signing.key.old' back beside it: it signs the next manifest."
        )

    @property
    def handed_over(self) -> bool:
        """Whether the signing key has signed a manifest: the one before it is of no use."""
        own = self._signing_keys[0].public_key().public_bytes_raw()
        return any(manifest.signer == own for manifest in self._manifests()[:-1])

    def _written(self, before: Manifest | None) -> Announced:
        study, charter = self.study, self.charter
        policy = policy_of(study)
        device = charter.device(policy, study.batch_size)
        charter.check_noise(study.batch_size, device.groups)
        number = 0 if before is None else before.number + 1
        lost = self._abandoned()
        manifest = Manifest(
            study=charter.id,
            number=number,
            batch=study.batches,
            previous=charter.id if before is None else before.hash,
            ledger=bytes.fromhex(study.head),
            abandons=None if lost is None else int(str(lost["abandoned"]).split()[0]),
            signer=self._signing_keys[0].public_key().public_bytes_raw(),
            users=study.batch_size,
            policy=policy,
            layout=layout_of(device.groups),
            key=self._keys.make(number).public_key().public_bytes_raw(),
            deadline=int(self._clock.now()) + charter.deadline,
        )
        signed = manifest.signed(self._signing_key(before))
        self._at("manifest.before")
        write_atomically(self._path(number), signed)
        self._at("manifest.after")
        return manifests.reread(signed, charter)

    def _announced(self, current: Announced) -> Announced:
        """Announce; one whose deadline does not fit, or whose key is lost, is made anew.

        Only one that the shuffler does not have: no report can have been made for it, so who is
        counted does not change.
        """
        number = current.manifest.number
        before = None if number == 0 else manifests.parse(self._path(number - 1).read_bytes())
        if not self._has_key(current.manifest) and self._unseen(number):
            current = self._written(before)
        try:
            self._client.announce(number, current.signed)
        except Refusal as refusal:
            if refusal.code == "batchPending":  # and the batch before this one is over
                raise _forgotten(
                    f"The shuffler does not know how manifest {number - 1} ended"
                ) from None
            if refusal.code == "forbiddenMutation":
                raise _another_copy() from None
            if refusal.code != "badDeadline":
                raise
            current = self._written(before)
            self._announce_in_time(current)
        return current

    def _announce_in_time(self, current: Announced) -> None:
        try:
            self._client.announce(current.manifest.number, current.signed)
        except Refusal as refusal:
            theirs, now = self._client.date, self._clock.now()
            if refusal.code != "badDeadline" or theirs is None:
                raise
            way = "ahead of" if now > theirs else "behind"
            raise InvalidInputError(
                f"The shuffler refuses the deadline of manifest {current.manifest.number}: this "
                f"machine's clock says {instant(now)} and is {abs(now - theirs):,.0f} seconds "
                f"{way} the shuffler's. Set the clock that is wrong and start again; nothing is "
                f"lost."
            ) from None

    def _unseen(self, number: int) -> bool:
        try:
            self._client.state(number)
        except Refusal as refusal:
            return refusal.code == "unknownBatch"
        return False

    def _fetch(self, number: int, fetched: Fetched) -> None:
        for place in range(fetched.groups):
            fetched.begin(place)
            self._client.messages(number, place, fetched.take)
            fetched.end()

    def _not_yet(self, current: Announced, refusal: Refusal) -> str:
        number = current.manifest.number
        if refusal.code == "notFull":
            return "waiting"
        if refusal.code == "batchAbandoned":  # the shuffler has lost it: see its `recover`
            if not self._unseen(number + 1):
                raise _another_copy()
            self._give_up(number, number, free=False)
            return "expired"
        if refusal.code != "batchExpired":
            raise refusal
        self._at("reissue.before")
        self.study.reissue(returning="unseen")  # the shuffler has deleted what it had
        self._at("reissue.after")
        self._keys.destroy(number)
        return "expired"

    def _count(self, current: Announced, fetched: Fetched) -> None:
        manifest, groups = current.manifest, current.device.groups
        key = self._keys.read(manifest.number)
        tasks = (
            Task(part, key, current.hash, place, groups[place].cells)
            for place, part in fetched.slices()
        )
        tallies = [np.zeros(one.cells + 2, np.int64) for one in groups]
        for place, found in self._opener(tasks):
            tallies[place] += found
        unreadable = [int(tally[-1]) for tally in tallies]
        envelopes = [manifest.users * size for size in current.sizes]
        shares = [Fraction(*one) for one in zip(unreadable, envelopes, strict=True)]
        accepted = self._check_readable(manifest, groups, unreadable)
        for tally in tallies:
            tally[-2] += tally[-1]  # rubbish counts nowhere, like a dummy
        reports = [
            (place, cell, times)
            for place, tally in enumerate(tallies)
            for cell, times in enumerate(tally[:-1].tolist())
        ]
        self._at("tell.before")
        self.study.tell(
            np.array(reports),
            users=[f"{manifest.number}:{i}" for i in range(manifest.users)],
            token=self.study.token,
            note={
                "manifest": current.hash.hex(),
                "charter": self.charter.id.hex(),
                "unreadable": str(sum(unreadable)),
                "envelopes": str(sum(envelopes)),
                "unreadable_share": f"{float(max(shares)):.4f}",
            }
            | ({"accepted": "by a person, with too little noise"} if accepted else {}),
        )
        self._at("tell.after")

    def _check_readable(
        self, manifest: Manifest, groups: Sequence[MessageGroup], unreadable: list[int]
    ) -> bool:
        """More rubbish than the charter covers takes a person's word; whether it was needed.

        Who sends rubbish adds no noise. Each group has noise of its own, which has to be enough by
        itself.

        Args:
            manifest: of the batch.
            groups: of the batch.
            unreadable: envelopes of every group that cannot be read.
        """
        number = manifest.number
        if any(unreadable):
            words = "manifest %d: %s envelopes of its groups cannot be read"
            log.warning(words, number, ", ".join(map(str, unreadable)))
        allowed = [self.charter.tolerated(manifest.users, group) for group in groups]
        beyond = [place for place, most in enumerate(allowed) if unreadable[place] > most]
        if not beyond:
            return False
        if number == self._accepted:
            return True
        raise RubbishError(
            f"{unreadable[beyond[0]]:,} envelopes of group {beyond[0]} of manifest {number} cannot "
            f"be read, and the noise is enough without {allowed[beyond[0]]:,}: more people than "
            f"the charter allows for sent no noise, or the shuffler gave other bytes. Nothing was "
            f"counted. A person decides: give the batch up with `discreet service abandon --config "
            f"FILE` (its tickets count as used), or count it, with less noise than the guarantee "
            f"needs, with `discreet service analyser --config FILE --accept {number}`."
        )

    def _acknowledge(self, number: int) -> None:
        """Backup, key, shuffler: before a copy exists nothing goes, and then the key goes first.

        What the shuffler still holds is closed for ever.
        """
        if number == self._acknowledged:
            return
        self._at("backup.before")
        self._backup()
        self._at("destroy.before")
        self._keys.destroy(number)
        self._at("destroy.after")
        try:
            self._client.done(number)
        except Refusal as refusal:
            if refusal.code not in ("notFull", "unknownBatch", "batchExpired"):
                raise
            raise _forgotten(
                f"Manifest {number} is counted, and the shuffler says that it is not full"
            ) from None
        self._acknowledged = number


def _forgotten(seen: str) -> InvalidInputError:
    return InvalidInputError(
        f"{seen}: its store was lost, or put back from a copy, and has forgotten who was counted. "
        f"Nothing was changed. Its operator runs `discreet service recover` "
        f"(docs/how-to/operator/recover.md)."
    )


def _another_copy() -> InvalidInputError:
    return InvalidInputError(
        "Another copy of this study has gone on: the shuffler has manifests that this one did not "
        "sign, or that give up what it counted. Nothing was changed. Go on with that copy, and "
        "take this one out of service: people who are in its last batches were counted here alone."
    )


def policy_of(study: Study) -> list[list[int]]:
    """The pending policy as H lists of S actions."""
    policy = study.ask()
    if not isinstance(policy, DeterministicPolicy):
        raise DiscreetError(
            "The service takes policies with one action per state and step; this learner asks for "
            "a mixture. Use 'flow-ucb', for instance."
        )
    return [[int(action) for action in row] for row in policy.actions]


def check_study(charter: Charter, study: Study) -> None:
    """Refuse a study that would count other groups than the charter's devices send."""
    if study.guarantee.simulated != charter.rehearsal:
        kinds = {True: "a rehearsal", False: "of real people"}
        raise DiscreetError(
            f"The study is {kinds[study.guarantee.simulated]} and its charter says it is "
            f"{kinds[charter.rehearsal]}; use the charter and the study of one and the same "
            f"`discreet service init`."
        )
    if study.finished:
        return
    theirs = load(study.encoder().to_dict())
    try:
        own = charter.device(policy_of(study), study.batch_size)
        same = own.sizes.pairs == theirs.sizes.pairs
        same = same and own.groups == getattr(theirs, "groups", None)
        same = same and study.guarantee.participations == charter.participations
    except InvalidInputError:  # a policy of another shape
        same = False
    if not same:
        raise DiscreetError(
            "The charter's devices and the study do not speak of the same groups: its shape, "
            "statistics, noise, participations or start states are others. Use the charter and the "
            "study of one and the same `discreet service init`."
        )
