"""Ask and tell: a learner on real people's episodes, for weeks, across restarts and crashes.

A study lives in one file (`study.store`). `ask` names the policy and the size of the next batch,
`tell` takes what those users sent: raw trajectories where the learner is trusted (central), encoded
reports where nobody is (local, shuffle; `encoder` is what their devices run). `start_study`,
`tell`, `reissue`, `extend` and `close` change the file, each in one transaction; nothing else does.
A batch is counted once or not at all. What is refused is refused in one sentence and leaves the
study as it was. `head` is the digest of everything told (see `study.ledger`).

The file holds released statistics, never a raw episode, and keyed digests of the users' names, so
that a user who comes twice is recognised and the list says nothing to who lacks the key. The key
is in the file: keep it as you keep the list of participants.
"""

import contextlib
import copy
import dataclasses
import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._types import BoolArray, IntArray, JsonObject, Plain
from discreet.data.layout import Layout
from discreet.data.tables import read_by
from discreet.data.vocabulary import Vocabulary
from discreet.errors import (
    DiscreetError,
    InvalidInputError,
    MissingExtraError,
    StudyError,
    UnsupportedError,
)
from discreet.learners.base import Batch, BatchLearner, PublicFacts
from discreet.learners.estimate import Estimate
from discreet.learners.learn import make_batch_learner
from discreet.mdp.policies import DeterministicPolicy, Policy
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.certificates.document import proven
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.base import BatchMechanism, Encoder
from discreet.privacy.sampling.samplers import Sampler, SecureSampler, SimulationSampler
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import Local, Shuffle, TrustModel
from discreet.study import files, store
from discreet.study.design import Design, Names, SamplerName
from discreet.study.estimate import Answer, StudyEstimate
from discreet.study.ledger import Tail
from discreet.study.participants import Participants, digests_of, seen_before, split
from discreet.study.plan import Expected, expect
from discreet.study.promise import WEAK, study_guarantee
from discreet.study.store import Change, Content, Event, Store

Returning = Literal["nobody", "unseen", "seen"]


def start_study(  # noqa: PLR0913 - each is one public choice of the caller
    path: str | Path,
    *,
    learner: str,
    trust: TrustModel,
    states: Names,
    actions: Names,
    horizon: Names,
    episodes: int,
    start_states: Sequence[int | str] | None = None,
    stationary: bool = False,
    sampler: SamplerName = "secure",
    seed: int | None = None,
    table: JsonObject | None = None,
    allowed: Sequence[JsonObject] = (),
    **settings: object,
) -> "Study":
    """Begin a study. Its file must not exist yet, and everything is checked first.

    `Study.expected` says how small a difference so many users can show.

    Args:
        path: the study's file.
        learner: a registered learner that asks for batches.
        trust: who sees raw episodes, and the guarantee.
        states: number of states, or their names.
        actions: number of actions, or their names; the first (of those that are possible) is the
            default: what is done today, and stays where the evidence is too weak to recommend
            another.
        horizon: steps per episode, or their names.
        episodes: how many users will take part in all.
        start_states: where an episode can begin, if that is public (anywhere by default).
        stationary: declares that transitions and rewards are the same at every step.
        sampler: ``"secure"`` protects people; ``"simulation"`` is for rehearsals.
        seed: the seed of a rehearsal; a secure study has none.
        table: how tables of episodes are read (`Study.read_table`), as
            `discreet.data.TableFormat` keeps it; public, like the names.
        allowed: which actions are possible where, if not all are, as `discreet.data.Vocabulary`
            takes it.
        settings: the learner's own.
    """
    design = Design(
        states=states,
        actions=actions,
        steps=horizon,
        trust=trust,
        learner=learner,
        episodes=episodes,
        start_states=start_states,
        stationary=stationary,
        settings=settings,
        table=table or {},
        allowed=allowed,
        sampler=sampler,
        seed=seed,
    )
    return Study.begin(path, design)


def open_study(path: str | Path, head: str | None = None) -> "Study":
    """Open a study that was begun before, also after a crash.

    Args:
        path: the study's file. An edited or damaged file is refused.
        head: the `Study.head` that you noted last. An older copy of the file, or another study, is
            refused. Without a head an older copy looks like the newest file, and its users could
            be counted twice.
    """
    return Study.resume(path, head)


class Study:
    """A running study; make one with `start_study` or `open_study`. Reading it writes nothing.

    Programs that run studies for others (a service) need no more than its public names: `ask`,
    `batch_size`, `token`, `encoder`, `tell`, `reissue`, `refresh`, `extend`, `close`; `policy`,
    `value`, `answer`, `notes`, `guarantee`, `expected`, `mechanism`, `config`, `names`;
    `users`, `episodes`, `batches`, `finished`, `ending`, `encoded`, `ledger`, `head`, `verify`,
    `bundle`. Two objects of one file may live in two processes; in one process keep one
    object per file.
    """

    def __init__(self, path: Path, design: Design, key: bytes) -> None:
        self.path = path
        self._store = Store(path)
        self._design, self._key = design, key
        self._secure = design.sampler == "secure"
        self._generators = design.generators()
        self._sampler()  # what noise needs must be there before anybody is asked
        self.learner = self._learner()
        self._estimate = StudyEstimate(self.problem, self.mechanism)
        self._participants = Participants()
        self._tail = Tail()
        self._issue: dict[str, int] = {"number": 0, "users": 0, "releases": 1}
        self._over = False
        self._saved: dict[str, Plain] = {}

    @classmethod
    def begin(cls, path: str | Path, design: Design) -> Self:
        """A new study of a design; its file must not exist yet, and everything is checked first."""
        where = store.path_of(path)
        store.check_new(where)
        fresh = cls(where, design.checked(), secrets.token_bytes(32))
        if fresh.episodes < fresh.min_users:
            raise InvalidInputError(
                f"Expected episodes >= {fresh.min_users}, the smallest release of this guarantee, "
                f"got episodes={fresh.episodes}."
            )
        if fresh._secure and fresh.mechanism.guarantee.notion != "none":
            proven(fresh.mechanism)
        fresh.learner.ask()
        state = fresh._state()
        event = Event("start", {"guarantee": str(fresh.guarantee)}, state)
        fresh._tail = fresh._store.create(fresh.config, fresh._key, event)
        fresh._saved = state
        return fresh

    @classmethod
    def resume(cls, path: str | Path, head: str | None = None) -> Self:
        """As `discreet.open_study`."""
        study = cls.read(path, head)
        store.remove_leftovers(study.path)
        return study

    @classmethod
    def read(cls, path: str | Path, head: str | None = None) -> Self:
        """As `open_study`, for who only wants to look."""
        where, participants = store.path_of(path), Participants()
        content: Content = Store(where).read(head, participants.add)
        try:
            study = cls(where, Design.from_dict(content.config), content.key)
            study._restore(content.state)
        except (StudyError, MissingExtraError):
            raise
        except DiscreetError as error:
            raise StudyError(
                f"{str(where)!r} is whole, but this version of discreet cannot go on with it; use "
                f"the version that its ledger names, or start another study. {error}"
            ) from error
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise StudyError(
                f"{str(where)!r} is whole, but this version of discreet cannot go on with it: it "
                f"was written by another one; use the version that its ledger names."
            ) from error
        study._participants, study._tail = participants, content.tail
        return study

    @property
    def head(self) -> str:
        """The digest of all that was told so far: note it, and give it to `open_study`."""
        return self._tail.head

    @property
    def names(self) -> Vocabulary:
        """What states, actions and steps are called."""
        return self._design.vocabulary

    @property
    def expected(self) -> Expected:
        """How small a difference it will find: a small simulation, as in `discreet.plan_study`."""
        return expect(dataclasses.replace(self._design, episodes=self.episodes))

    @property
    def settings(self) -> dict[str, Plain]:
        """The learner's: those that were given, and what the others are."""
        return dict(self.learner.settings)

    @property
    def reward_range(self) -> tuple[float, float]:
        """The least and the largest reward of a step, in the units of the study's tables."""
        return self._design.format.reward_range

    @property
    def problem(self) -> PublicFacts:
        """Public facts, all that the learner knows beforehand."""
        return self.learner.problem

    @property
    def mechanism(self) -> BatchMechanism:
        """The calibrated release: its mechanism, its noise and its own guarantee, without data."""
        return self.learner.mechanism

    @property
    def min_users(self) -> int:
        """Users of the smallest release."""
        return self.mechanism.min_users

    def ask(self) -> Policy:
        """The policy for the next `batch_size` users; the same until they have been told."""
        return self._batch.policy

    @property
    def batch_size(self) -> int:
        """How many users the next batch takes."""
        return self._batch.users

    @property
    def token(self) -> str:
        """Names the pending batch and its policy; reports made for it carry this name."""
        batch, issue = self._batch, self._issue["number"]
        text = f"{self._key.hex()}:{self.batches}:{batch.users}:{issue}:".encode()
        return hashlib.blake2b(text + batch.policy.key, digest_size=16).hexdigest()

    @property
    def batches(self) -> int:
        """Batches counted so far."""
        return self._tail.batches

    @property
    def users(self) -> int:
        """Users counted so far."""
        return self._tail.users

    @property
    def episodes(self) -> int:
        """Users in all, as the study was designed or extended."""
        return self.problem.episodes

    @property
    def encoded(self) -> bool:
        """Whether users send reports (local, shuffle) and never episodes."""
        return isinstance(self._design.trust, Local | Shuffle)

    @property
    def all_must_come(self) -> bool:
        """Whether as many users as were asked for must come: a report hides among all (shuffle)."""
        return isinstance(self._design.trust, Shuffle)

    @property
    def config(self) -> dict[str, Plain]:
        """What `start_study` was told, plain; the seed of a secure study breaks ties only."""
        return copy.deepcopy(self._design.to_dict())

    @property
    def finished(self) -> bool:
        """True when the last batch is counted, or it was closed.

        The last batch asks for all users who are left. Who does not come is not replaced: batches
        of the few who are left, and of those who are left of them, would show nothing.
        """
        left = self.episodes - self.users
        return self._tail.closed or self._over or left < self.min_users

    @property
    def ending(self) -> str:
        """How it ended, in words; nothing while it goes on."""
        if not self.finished:
            return ""
        users, episodes = self.users, self.episodes
        if self._tail.closed:
            return f"was closed after {users} users"
        if users >= episodes:
            return f"has counted all its {users} users"
        if self._over:
            return (
                f"has counted {users} of {episodes} users: its last batch asked for all who were "
                f"left, and who does not come is not replaced"
            )
        return f"has counted {users} of {episodes} users, and no batch has only {episodes - users}"

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed to every user, spent in the one batch each takes part in."""
        return study_guarantee(
            self.mechanism.guarantee,
            secure=self._secure,
            releases=self._issue["releases"],
            weak=self._tail.weak,
        )

    @property
    def policy(self) -> DeterministicPolicy:
        """What all that was released so far recommends, and the default where it defers."""
        return self.answer.policy

    @property
    def value(self) -> Estimate:
        """What `policy` earns per episode, with an interval, in the units of the tables."""
        return self.answer.value

    @property
    def answer(self) -> Answer:
        """`policy`, where it defers, differences with their standard errors, and `value`.

        It is post-processing of releases: reading it costs no privacy.
        """
        answer = self._estimate.answer(self.learner.greedy())
        return answer.in_units(*self.reward_range)

    def said(self, value: Estimate) -> str:
        """A value of `answer` in words; one that may be anything is not known yet."""
        low, high = self.reward_range
        whole = (high - low) * len(self.names.steps)
        return "not known yet" if value.high - value.low > 0.99 * whole else str(value)

    @property
    def notes(self) -> tuple[str, ...]:
        """What its reader should know, in sentences: a declaration that the counts contradict."""
        return (*map(f"{WEAK}.".format, self._tail.weak), *self.learner.notes)

    @property
    def ledger(self) -> list[dict[str, Plain]]:
        """Every entry of the file's ledger."""
        return list(self._store.entries())

    @property
    def record(self) -> tuple[list[str], bytes, str]:
        """Entries as they were hashed, digests of participants and design, up to `head`; no key."""
        return self._store.record(self._tail.number)

    def save_policy(self, path: str | Path) -> None:
        """Write `policy` with names, as JSON or CSV by the ending of ``path``."""
        files.save_policy(path, self.answer, self.names, self.guarantee, self.head)

    def save_request(self, path: str | Path) -> None:
        """Write what the next users are asked to do, as JSON or CSV by the ending of ``path``."""
        batch = self._batch
        about: dict[str, Plain] = {"batch": self.batches, "users": batch.users, "token": self.token}
        files.save_request(path, batch.policy, self.names, self.guarantee, about)

    def read_table(self, path: str | Path) -> tuple[Trajectories, list[str]]:
        """Episodes and users of a CSV or Parquet file, as `tell` takes them (central studies).

        Who ended early stays at the end by the pending policy, if the table's format has padding.
        """
        policy = None if self.finished else self.ask()
        return read_by(path, Layout(self.names, self._design.format, policy))

    def read_reports(self, path: str | Path) -> IntArray:
        """Reports of the pending batch from a folder or a file, as `tell` takes them."""
        return files.read_reports(path, self.encoder())

    def verify(self) -> None:
        """The full check: SQLite's own, the chain of hashes, and that nobody was counted too often.

        That is once in a batch, and in as many batches as is guaranteed for.
        """
        seen, most = Participants(), self.guarantee.participations

        def add(digests: bytes) -> None:  # by the first half of the digest
            people = split(digests)
            if seen.matches(digests, most) or len(set(people)) != len(people):
                raise ValueError("A user was counted twice, or more often than is guaranteed for.")
            seen.add(digests)

        content = self._store.read(self.head or None, add)
        self._store.check_pages()
        if len(seen) != content.tail.users:
            raise StudyError(f"{str(self.path)!r} holds users of no batch; keep it and find out.")

    def bundle(self, path: str | Path, progress: Callable[[str], None] = lambda _: None) -> str:
        """Write the dossier with all that a reviewer checks it by, a zip file; its SHA-256."""
        from discreet.study.dossier.bundle import write_bundle

        return write_bundle(self, path, progress=progress)

    def __str__(self) -> str:
        about = "finished" if self.finished else f"next batch {self.batch_size:,} users"
        batches = "1 batch" if self.batches == 1 else f"{self.batches:,} batches"
        return (
            f"{self._design.learner}, {self.guarantee}\n"
            f"{self.users:,} of {self.episodes:,} users in {batches}, {about}\n"
            f"value of the policy so far: {self.said(self.value)}\n"
            + "".join(f"{note}\n" for note in self.notes)
            + f"head {self.head}"
        )

    def encoder(self) -> Encoder:
        """What runs on each device of the pending batch (local and shuffle studies)."""
        return self.mechanism.encoder(self._batch.users, support=self._support())

    def tell(
        self,
        data: Trajectories | ArrayLike,
        *,
        users: Sequence[str | int],
        token: str | None = None,
        dropped_out: Callable[[int], object] | None = None,
        note: Mapping[str, str] | None = None,
    ) -> None:
        """Count the pending batch: all of it, once, or not at all.

        Fewer users than asked for may come, except under shuffle, where every report was made to
        hide among exactly as many others: `reissue` asks for fewer. A user who left the policy is
        counted up to that step and as nothing from there on, and so is one who began elsewhere: a
        refusal would tell the others that somebody did.

        Args:
            data: `Trajectories` in a central study; the encoded (and, under shuffle, shuffled)
                reports of all users otherwise.
            users: who they are, one name each; a user takes part once, or as often as the
                trust model's participations say, and in a batch once.
            token: the study's `token` when the reports were made; needed with reports, whose policy
                cannot be read off them.
            dropped_out: called with the number of users who left the policy, once the batch is
                counted (not with reports, which do not show it). Raw data, for the eyes of the
                trusted operator only: keep it nowhere.
            note: public facts that the ledger's entry shall hold besides (of a service: the hash of
                the manifest under which these users took part).

        Raises:
            StudyError: refused, with the reason; nothing was counted.
        """
        batch = self._batch
        people = self._people(users, batch)
        if token is None and self.encoded:
            raise StudyError(
                "Reports do not show their policy: pass the token of the batch they were made "
                "for; nothing was counted."
            )
        if token not in (None, self.token):
            raise StudyError(
                "These reports were made for another batch or under another policy; nothing was "
                "counted."
            )
        left = 0
        with self._changing() as change:
            self._check_data(data, len(people))
            self._check_new(people, change)
            if isinstance(data, Trajectories):
                left = int((~data.followed(self._support())[:, -1]).sum())
            released = self._release(data, len(people))
            self._count(released, people, batch, change, note or {})
        if dropped_out is not None and isinstance(data, Trajectories):
            dropped_out(left)

    def reissue(
        self,
        users: int | None = None,
        *,
        returning: Returning = "nobody",
        note: Mapping[str, str] | None = None,
    ) -> None:
        """Open the pending batch again: reports made for it so far are not accepted any more.

        Args:
            users: how many to ask for now; as many as before by default.
            returning: who may be asked again. ``"nobody"``: only users who were not asked before.
                ``"unseen"``: the same users, because no report has left the shuffler, which has
                deleted them. ``"seen"``: the same users although reports were seen: a user can
                then be in one release more, and all are charged to the guarantee. Not under
                shuffle: a part of a batch has too little noise, whatever is charged.
            note: public facts that the ledger's entry shall hold besides.
        """
        _validate.choice(("nobody", "unseen", "seen"), returning=returning)
        if returning == "unseen" and self.guarantee.notion == "LDP":
            raise StudyError(
                "Under local trust nobody stands between a device and the operator: a report that "
                "was sent has been seen; say returning='seen', or 'nobody' and ask new users."
            )
        if returning == "seen" and self.all_must_come:
            raise StudyError(
                f"Under shuffle a report hides among all {self.batch_size} of its batch: a part of "
                f"them that was seen had too little noise, and no second report makes up for it; "
                f"say returning='nobody' (--returning nobody) and ask new users. Nothing was "
                f"changed."
            )
        asked = self._learner_batch.users
        wanted = self._batch.users if users is None else users
        _validate.count(users=wanted)
        min_users = self.min_users
        if not min_users <= wanted <= asked:
            raise StudyError(f"This batch takes {min_users} to {asked} users, got users={wanted}.")
        with self._changing() as change:
            issue = self._issue
            more = int(returning == "seen")
            self._issue = {
                "number": issue["number"] + 1,
                "users": wanted,
                "releases": issue["releases"] + more,
            }
            facts: dict[str, Plain] = {"batch": self.batches, "asked": wanted}
            if note:
                facts["note"] = dict(note)
            self._write("reissue", {**facts, "returning": returning}, change)

    def extend(self, episodes: int) -> None:
        """Go on with more users than were planned, or with those who did not come.

        It changes nobody's guarantee: a batch is released once, whatever comes after it. The batch
        that is pending stays as it was asked for. The learner goes on as if the new number had been
        planned (learners that cannot are refused by name). Who extends a study because of what it
        has shown looks twice: the intervals of its answer are of one look.

        Args:
            episodes: how many users will take part in all.
        """
        _validate.count(episodes=episodes)
        with self._changing() as change:
            if self._tail.closed:
                raise StudyError(f"This study {self.ending}; start another one.")
            before, pending = self.episodes, not self.finished
            least = max(self.users + self.min_users, 0 if self._over else before + 1)
            if episodes < least:
                raise StudyError(
                    f"Expected episodes >= {least}, the users of all batches together, of whom "
                    f"{self.users} are counted, got episodes={episodes}; nothing was changed."
                )
            if not self.learner.open_ended:
                raise UnsupportedError(
                    f"The learner {self._design.learner!r} divides what its widths or its "
                    f"exploration may fail by among the {before:,} users that were planned, and "
                    f"cannot go on with {episodes:,}; close this study and start another. The "
                    f"learners 'flow-ucb' and 'trial' can be extended."
                )
            self._plan_for(episodes, pending=pending)
            self._over = False
            self.learner.ask()
            facts: dict[str, Plain] = {"episodes": episodes, "before": before, "total": self.users}
            self._write("extend", facts, change)

    def _plan_for(self, episodes: int, *, pending: bool) -> None:
        problem = dataclasses.replace(self.problem, episodes=episodes)
        self.learner.extend(problem, pending=pending)

    def close(self) -> DeterministicPolicy:
        """End the study before all users came; what was learnt stays, and is returned."""
        if not self.finished:
            with self._changing() as change:
                if not self.finished:  # nor by others
                    facts: dict[str, Plain] = {"total": self.users}
                    self._write("close", facts | {"recommends": self._recommends()}, change)
        return self.policy

    def refresh(self) -> None:
        """Take in what other processes have told since."""
        with self._store.changing(self._tail) as change:
            if change.moved:
                self._tail, state = change.news(self._participants.add)
                self._restore(state)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Change]:
        """A transaction; whatever fails in it, the file and this object stay as they were."""
        try:
            with self._store.changing(self._tail) as change:
                if change.moved:
                    raise StudyError(
                        f"{str(self.path)!r} was changed by another process; refresh() it and "
                        f"ask() again. Nothing was counted."
                    )
                yield change
        except BaseException as error:
            self._restore(self._saved)
            if isinstance(error, DiscreetError) and not isinstance(error, StudyError):
                raise StudyError(f"{error} Nothing was counted.") from error
            raise
        self._tail, self._saved = change.tail, change.state
        self._participants.add(change.users)

    def _count(
        self,
        released: PrivateCounts,
        people: Mapping[bytes, str],
        batch: Batch,
        change: Change,
        note: Mapping[str, str],
    ) -> None:
        """Learn, ask for the next batch and write both: the file never lacks its batch request."""
        facts: dict[str, Plain] = {
            "batch": self.batches,
            "users": len(people),
            "asked": batch.users,
            "policy": hashlib.blake2b(batch.policy.key, digest_size=16).hexdigest(),
        }
        if note:
            facts["note"] = dict(note)
        self._over = self._learner_batch.users == self.episodes - self.users
        self._estimate.add(released, batch.policy)
        self.learner.tell(self.learner.reading(released))
        if not self._over and self.users + len(people) < self.episodes:
            self.learner.ask()
        facts["recommends"] = self._recommends()
        self._issue = {**self._issue, "number": 0, "users": 0}
        self._write("batch", facts, change, b"".join(people))

    def _recommends(self) -> str:
        """The digest of `policy`: who knows the head knows whether a policy is this study's."""
        return hashlib.blake2b(self.policy.key, digest_size=16).hexdigest()

    def _write(
        self, kind: str, facts: Mapping[str, Plain], change: Change, users: bytes = b""
    ) -> None:
        said: dict[str, Plain] = {**facts, "guarantee": str(self.guarantee)}
        change.append(Event(kind, said, self._state(), users))

    def _state(self) -> dict[str, Plain]:
        learner = self.learner.state()  # may draw: before the generators are written down
        generators: Any = {k: v.bit_generator.state for k, v in self._generators.items()}
        return {
            "driver": learner,
            "estimate": self._estimate.state(),
            "generators": generators,
            "issue": dict(self._issue),
            "episodes": self.episodes,
            "over": self._over,
        }

    def _restore(self, state: JsonObject) -> None:
        self._saved = dict(state)
        for name, generator in self._generators.items():
            generator.bit_generator.state = state["generators"][name]
        self.learner.restore(dict(state["driver"]))
        if self.episodes != state["episodes"]:
            self._plan_for(state["episodes"], pending=True)
        self._over = state["over"]
        self._estimate.restore(state["estimate"])
        self._issue = dict(state["issue"])

    @property
    def _learner_batch(self) -> Batch:
        if self.finished:
            raise StudyError(
                f"This study {self.ending}; there is nothing more to ask or to tell, its policy "
                f"and value can be read."
            )
        return self.learner.ask()

    @property
    def _batch(self) -> Batch:
        """The pending batch, perhaps issued again for fewer users."""
        batch = self._learner_batch
        return Batch(batch.policy, self._issue["users"] or batch.users)

    def _people(self, users: Sequence[str | int], batch: Batch) -> dict[bytes, str]:
        if isinstance(users, str | bytes) or not hasattr(users, "__len__"):
            raise StudyError(
                f"Expected a list of users' names, got {type(users).__name__}; nothing was counted."
            )
        people = digests_of(users, self._key)
        self._check_number(len(people), batch)
        return people

    def _check_number(self, users: int, batch: Batch) -> None:
        most = batch.users
        if self.all_must_come and users != most:
            fewer = min(max(users, self.min_users), most)
            raise StudyError(
                f"This batch takes {most} users, got {users}; under shuffle a report hides among "
                f"exactly {most}, so reissue(users={fewer}), `study reissue --users {fewer}`, and "
                f"let {fewer} new users encode, or the same if nobody has seen their reports "
                f"(returning='unseen'). Nothing was counted."
            )
        if not 1 <= users <= most:
            raise StudyError(
                f"This batch takes 1 to {most} users, got {users}; nothing was counted."
            )

    def _check_new(self, people: Mapping[bytes, str], change: Change) -> None:
        most = self.guarantee.participations
        known = self._participants.too_often(people, self._key, most, change.times)
        if known:
            raise seen_before(people[known[0]], most, len(known) - 1)

    def _check_data(self, data: Trajectories | ArrayLike, users: int) -> None:
        """Refuse what is no data of these users. Well-formed episodes pass, whatever they hold."""
        if self.encoded:
            if isinstance(data, Trajectories):
                raise StudyError(
                    "This study takes encoded reports (see encoder()), never raw trajectories; "
                    "nothing was counted."
                )
            return
        if not isinstance(data, Trajectories):
            raise StudyError(
                f"A central study takes Trajectories, got {type(data).__name__}; nothing was "
                f"counted."
            )
        if len(data) != users:
            raise StudyError(
                f"Expected one trajectory for each of the {users} users, got {len(data)} "
                f"trajectories; nothing was counted."
            )
        data.check(self.mechanism.shape)

    def _support(self) -> BoolArray:
        """What the pending policy can play."""
        return self.learner.ask().policy.support(self.problem.shape, self.problem.start)

    def _release(self, data: Trajectories | ArrayLike, users: int) -> PrivateCounts:
        sampler, support = self._sampler(), self._support()
        if not isinstance(data, Trajectories):
            return self.mechanism.release_reports(
                np.asarray(data), users, secure=sampler.secure, support=support
            )
        counts = data.counts(self.mechanism.shape, self._generators["rounding"], support)
        return self.mechanism.release(counts, sampler=sampler, support=support)

    def _learner(self) -> BatchLearner:
        design, rng = self._design, self._generators["policy"]
        settings = dict(design.settings)
        return make_batch_learner(design.spec, design.problem, design.trust_model, rng, settings)

    def _sampler(self) -> Sampler:
        return SecureSampler() if self._secure else SimulationSampler(self._generators["noise"])
