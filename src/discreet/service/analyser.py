"""The analyser: owns the study, signs manifests, opens envelopes, tells the study.

A worker. `step` may be killed at any point and called again: what it does
follows from the study (which batches are counted), from the manifests it has written and from the
shuffler's answers.

1. A manifest whose batch is counted: destroy its key, acknowledge it.
2. No manifest for the pending batch: make a key, write and sign one.
3. Announce it; fetch all groups. Not full: wait. Expired: the study issues the batch again.
4. Check that every group has its size; copies of an envelope are dummies; open the others.
5. Tell the study: counts and ledger entry in one transaction, with the manifest's hash.

The next manifest is made from the study after 5, so it is published if and only if 5 is committed.
"""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from discreet._files import hold_alone, write_atomically
from discreet.device import load
from discreet.errors import DiscreetError, InvalidInputError
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.guarantee import REHEARSED
from discreet.service.client import Client, UnreachableError
from discreet.service.configs import (
    AnalyserConfig,
    At,
    Clock,
    SystemClock,
    nothing_happens,
    on_signals,
)
from discreet.service.health import Format, set_up_logging
from discreet.service.opening import (
    BatchKeys,
    Fetched,
    Opener,
    Task,
    in_processes,
    on_ray,
    read_signing_key,
)
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol.charter import Charter, layout_of
from discreet.service.protocol.manifest import Announced, Manifest
from discreet.service.protocol.problems import Refusal
from discreet.study.study import Study, resume

log = logging.getLogger("discreet.service.analyser")
GRACE = 5
"""Seconds for what is under way when the process is told to end."""
_SKEW = 300
"""Seconds by which the shuffler's clock may be behind before it finds a deadline too far."""


class Analyser:
    """The role.

    Args:
        charter: of the study.
        study: the analyser's own, which nobody else tells.
        client: to the shuffler, with the analyser's token.
        signing_key: whose public half stands in the charter.
        folder: for manifests and batch keys.
        opener: opens envelopes.
        clock: where time comes from.
        at: called before and after every step that is kept.
    """

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
    ) -> None:
        self.charter, self.study = charter, study
        self._client, self._signing_key, self._at = client, signing_key, at
        self._opener, self._clock = opener or in_processes(1), clock or SystemClock()
        check_signing_key(charter, signing_key)
        check_study(charter, study)
        self._folder = folder / "manifests"
        self._folder.mkdir(exist_ok=True)
        self._keys = BatchKeys(folder / "keys")

    def step(self) -> str:
        """Do what is next.

        Returns:
            ``counted``, ``expired`` (the batch will be announced anew), ``waiting`` or
            ``finished``.
        """
        current = self.latest()
        if current is not None and current.manifest.batch < self.study.batches:
            self._acknowledge(current.manifest.number)
        if self.study.finished:
            return "finished"
        if current is None or current.manifest.token != self.study.token:
            self._check_over(current)
            current = self._next(current)
        current = self._announced(current)
        users = current.manifest.users
        with Fetched(self._folder, [users * size for size in current.sizes]) as fetched:
            try:
                self._fetch(current.manifest.number, fetched)
            except Refusal as refusal:
                return self._not_yet(current, refusal)
            if copies := fetched.dummy_copies():
                log.warning("%d envelopes were copies of others and count as dummies", copies)
            self._count(current, fetched)
        self._acknowledge(current.manifest.number)
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
                state = self.step()
            except (UnreachableError, Refusal) as error:
                if isinstance(error, Refusal) and error.code not in ("busy", "broken"):
                    raise
                if state != "unreachable":  # said once, however long it is away
                    log.warning("trying again until the shuffler answers: %s", error)
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

    def close(self) -> None:
        """Close the connections to the shuffler."""
        self._client.close()

    def progress(self) -> str:
        stamp = f"{REHEARSED}: " if self.charter.rehearsal else ""
        return f"{stamp}{self.study.batches} batches counted, {self.study.users} users in all"

    def latest(self) -> Announced | None:
        """The last manifest that was written."""
        paths = sorted(self._folder.glob("*.manifest"))
        return manifests.read(paths[-1].read_bytes(), self.charter) if paths else None

    def _check_over(self, current: Announced | None) -> None:
        """Before a key is destroyed and another manifest signed: its batch is counted, or expired.

        A study that was put back from a copy has forgotten batches. To go on from there would fork
        the chain, and with the key of the open batch what its users have sent would be lost.
        """
        if current is None or current.manifest.batch < self.study.batches:
            return
        manifest = current.manifest
        if manifest.batch == self.study.batches and self._expired(manifest.number):
            return
        raise InvalidInputError(
            f"The study has counted {self.study.batches} batches and waits under another token "
            f"than manifest {manifest.number}, which is of batch {manifest.batch} and did not "
            f"expire: this is an older copy of the study, or another one. Put the latest one back; "
            f"nothing was changed."
        )

    def _expired(self, number: int) -> bool:
        try:
            self._client.messages(number, 0, lambda _: None)
        except Refusal as refusal:
            return refusal.code == "batchExpired"
        return False

    def _next(self, before: Announced | None) -> Announced:
        """A manifest for the pending batch, written down before anybody hears of it."""
        number = 0 if before is None else before.manifest.number + 1
        previous = self.charter.id if before is None else before.hash
        if before is not None:
            self._keys.destroy(before.manifest.number)
        return self._written(number, previous)

    def _written(self, number: int, previous: bytes) -> Announced:
        study, charter = self.study, self.charter
        policy = policy_of(study)
        device = charter.device(policy, study.batch_size)
        charter.check_noise(study.batch_size, device.groups)
        key = self._keys.make(number)
        manifest = Manifest(
            study=charter.id,
            number=number,
            batch=study.batches,
            token=study.token,
            previous=previous,
            users=study.batch_size,
            policy=policy,
            layout=layout_of(device.groups),
            key=key.public_key().public_bytes_raw(),
            deadline=int(self._clock.now()) + charter.patience - min(_SKEW, charter.patience // 10),
        )
        signed = manifest.signed(self._signing_key)
        self._at("manifest.before")
        write_atomically(self._folder / f"{number:06d}.manifest", signed)
        self._at("manifest.after")
        return manifests.read(signed, charter)

    def _announced(self, current: Announced) -> Announced:
        """Announce; a manifest that became too old before anybody saw it is made anew."""
        number = current.manifest.number
        try:
            self._client.announce(number, current.signed)
        except Refusal as refusal:
            late = self._clock.now() > current.manifest.deadline
            if refusal.code != "badManifest" or not late or not self._unseen(number):
                raise
            current = self._written(number, current.manifest.previous)
            self._client.announce(number, current.signed)
        return current

    def _unseen(self, number: int) -> bool:
        try:
            self._client.manifest_at(number)
        except Refusal as refusal:
            return refusal.code == "unknownBatch"
        return False

    def _fetch(self, number: int, fetched: Fetched) -> None:
        for place in range(fetched.groups):
            fetched.begin(place)
            self._client.messages(number, place, fetched.take)
            fetched.end()

    def _not_yet(self, current: Announced, refusal: Refusal) -> str:
        if refusal.code == "notFull":
            return "waiting"
        if refusal.code != "batchExpired":
            raise refusal
        self._at("reissue.before")
        self.study.reissue(returning="unseen")  # the shuffler has deleted what it had
        self._at("reissue.after")
        self._keys.destroy(current.manifest.number)
        return "expired"

    def _count(self, current: Announced, fetched: Fetched) -> None:
        manifest, groups = current.manifest, current.device.groups
        key = self._keys.read(manifest.number)
        tasks = (
            Task(part, key, current.hash, place, groups[place].cells)
            for place, part in fetched.slices()
        )
        tallies = [np.zeros(one.cells + 1, np.int64) for one in groups]
        for place, found in self._opener(tasks):
            tallies[place] += found
        reports = [
            (place, cell, times)
            for place, tally in enumerate(tallies)
            for cell, times in enumerate(tally.tolist())
        ]
        self._at("tell.before")
        self.study.tell(
            np.array(reports),
            users=[f"{manifest.number}:{i}" for i in range(manifest.users)],
            token=manifest.token,
            note={"manifest": current.hash.hex(), "charter": self.charter.id.hex()},
        )
        self._at("tell.after")

    def _acknowledge(self, number: int) -> None:
        """The key goes first: what the shuffler still holds is closed for ever."""
        self._at("destroy.before")
        self._keys.destroy(number)
        self._at("destroy.after")
        self._client.done(number)


def policy_of(study: Study) -> list[list[int]]:
    """The pending policy as H lists of S actions."""
    policy = study.ask()
    if not isinstance(policy, DeterministicPolicy):
        raise DiscreetError(
            "The service takes policies with one action per state and step; this learner asks for "
            "a mixture. Use 'flow-ucb', for instance."
        )
    return [[int(action) for action in row] for row in policy.actions]


def check_signing_key(charter: Charter, key: Ed25519PrivateKey) -> None:
    """Refuse a key before anything is signed with it: a written manifest is never made anew."""
    if key.public_key().public_bytes_raw() != charter.signing_key:
        raise InvalidInputError(
            "The signing key is not the one whose public half stands in the charter; use the "
            "charter and the key of one and the same `discreet service init`."
        )


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
        same = own.problem.pairs == theirs.problem.pairs
        same = same and own.groups == getattr(theirs, "groups", None)
    except InvalidInputError:  # a policy of another shape
        same = False
    if not same:
        raise DiscreetError(
            "The charter's devices and the study do not speak of the same groups: its shape, "
            "statistics, noise or start states are others. Use the charter and the study of one "
            "and the same `discreet service init`."
        )


Watched = Callable[
    [Analyser, AnalyserConfig], contextlib.AbstractContextManager[Callable[[str], object]]
]
"""Watches an analyser for the time of a block; what to tell after every step."""


def make_analyser(
    config: AnalyserConfig, *, rehearsal: bool = False, at: At = nothing_happens
) -> Analyser:
    charter = Charter.read(config.path(config.charter))
    charter.check_rehearsal(rehearsal)
    signing_key = read_signing_key(config.path(config.signing_key))
    return Analyser(
        charter,
        resume(config.path(config.study)),
        Client(
            config.url,
            config.token,
            proxy=config.proxy,
            ca_file=config.optional(config.ca_file),
        ),
        signing_key,
        config.folder,
        opener=opener_of(config),
        at=at,
    )


def analyse(
    config: AnalyserConfig,
    *,
    rehearsal: bool = False,
    at: At = nothing_happens,
    log_format: Format = "text",
    watched: Watched = lambda *_: contextlib.nullcontext(lambda _: None),
) -> str:
    """Run the analyser until the study is finished, or SIGTERM or SIGINT; what became of it."""
    set_up_logging(log_format)
    ended = threading.Event()
    on_signals(lambda: _end(ended))
    with working_alone(config):
        analyser = make_analyser(config, rehearsal=rehearsal, at=at)
        log.info("the analyser works with the shuffler at %s", config.url)
        try:
            with watched(analyser, config) as look:
                return analyser.run(ended.wait, ended.is_set, look)
        except _EndedError:
            return "told to end"
        finally:
            signal.alarm(0)
            analyser.close()


@contextlib.contextmanager
def working_alone(config: AnalyserConfig) -> Iterator[None]:
    """Two analysers would overwrite each other's batch keys, and nobody could open the batch."""
    try:
        lock = hold_alone(config.path(config.study))
    except BlockingIOError:
        raise InvalidInputError(
            f"Another analyser works on {config.study!r}; end it, or let it go on alone."
        ) from None
    try:
        yield
    finally:
        os.close(lock)


class _EndedError(Exception):
    """The time for a step that was under way is over."""


def _end(ended: threading.Event) -> None:
    """A step may finish, or is given up: whatever is killed here loses nothing."""

    def give_up(*_: object) -> None:
        raise _EndedError

    if not ended.is_set():
        ended.set()
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(GRACE)


def opener_of(config: AnalyserConfig) -> Opener:
    if config.engine == "processes":
        return in_processes(config.jobs)
    if config.engine == "ray":
        return on_ray(config.ray_address or None, config.jobs)
    raise InvalidInputError(f"Expected engine 'processes' or 'ray', got {config.engine!r}.")
