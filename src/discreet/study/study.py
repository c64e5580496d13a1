"""Ask and tell: a learner on real people's episodes, for weeks, across restarts and crashes.

A study lives in one file (`study.store`). `ask` names the policy and the size of the next batch,
`tell` takes what those users sent: raw trajectories where the learner is trusted (central), encoded
reports where nobody is (local, shuffle; `encoder` is what their devices run). `start`, `tell`,
`reissue` and `close` change the file, each in one transaction; nothing else does. A batch is
counted once or not at all. What is refused is refused in one sentence and leaves the study as it
was. `head` is the digest of everything told (see `study.ledger`).

The file holds released statistics, never a raw episode, and keyed digests of the users' names, so
that a user who comes twice is recognised and the list says nothing to who lacks the key. The key
is in the file: keep it as you keep the list of participants.
"""

import contextlib
import copy
import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from discreet import _validate
from discreet._types import IntArray, JsonObject, Plain
from discreet.data.vocabulary import Vocabulary
from discreet.errors import DiscreetError, StudyError
from discreet.learners.base import Batch, Problem
from discreet.learners.estimate import Estimate
from discreet.mdp.policies import DeterministicPolicy, Policy
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.base import BatchMechanism, ContinualMechanism, Encoder
from discreet.privacy.sampling.samplers import Sampler, SecureSampler, SimulationSampler
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import TrustModel
from discreet.study import config as configs
from discreet.study import files, store
from discreet.study.config import Names, SamplerName, study_guarantee
from discreet.study.drivers import (
    ContinualDriver,
    check_first_release,
    check_reports_or_episodes,
    how_it_ended,
    make_driver,
)
from discreet.study.estimate import Answer, StudyEstimate
from discreet.study.ledger import StudySeal, Tail
from discreet.study.participants import Participants, digests_of, seen_before, split
from discreet.study.plan import Expected, expect
from discreet.study.store import Change, Content, Event, Store

Returning = Literal["nobody", "unseen", "seen"]


def start(  # noqa: PLR0913 - each is one public choice of the caller
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
        learner: a registered learner, of the batch or the continual schedule.
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
            `discreet.data.tables.TableFormat` keeps it; public, like the names.
        allowed: which actions are possible where, if not all are, as `discreet.data.Vocabulary`
            takes it.
        settings: the learner's own.
    """
    names: dict[str, Names] = {"states": states, "actions": actions, "steps": horizon}
    config = configs.make_config(
        learner=learner,
        trust=trust,
        names=names,
        episodes=episodes,
        start_states=start_states,
        stationary=stationary,
        sampler=sampler,
        seed=seed,
        settings=settings,
        table=table,
        allowed=allowed,
    )
    return Study.begin(path, config)


def resume(path: str | Path, head: str | None = None) -> "Study":
    """Open a study that was begun before, also after a crash.

    Args:
        path: the study's file. An edited or damaged file is refused.
        head: the `Study.head` that you noted last. An older copy of the file, or another study, is
            refused. Without a head an older copy looks like the newest file, and its users could
            be counted twice.
    """
    return Study.resume(path, head)


class Study:
    """A running study; make one with `start` or `resume`. Reading it writes nothing.

    Programs that run studies for others (a service) need no more than its public names: `ask`,
    `batch_size`, `token`, `encoder`, `tell`, `reissue`, `refresh`, `extend`, `close`; `policy`,
    `value`, `answer`, `notes`, `guarantee`, `expected`, `mechanism`, `config`, `names`;
    `users`, `episodes`, `batches`, `finished`, `ending`, `encoded`, `ledger`, `head`, `verify`,
    `report`, `bundle`. Two objects of one file may live in two processes; in one process keep one
    object per file.
    """

    def __init__(self, path: Path, config: JsonObject, key: bytes) -> None:
        self.path = path
        self._store = Store(path)
        self._config, self._key = config, key
        self._secure = config["sampler"] == "secure"
        self._generators = configs.generators(config)
        self._seal = StudySeal(path, hashlib.sha256(key).hexdigest()[:12])
        self.driver = make_driver(
            config["learner"],
            configs.problem_of(config),
            configs.trust_of(config),
            self._generators["policy"],
            dict(config["settings"]),
            sampler=self._sampler(),
            seal=self._seal,
        )
        self._estimate = StudyEstimate(self.driver.problem, self.driver.mechanism)
        self._participants = Participants()
        self._tail = Tail()
        self._issue: dict[str, int] = {"number": 0, "users": 0, "releases": 1}
        self._over = False
        self._saved: dict[str, Plain] = {}

    @classmethod
    def begin(cls, path: str | Path, config: dict[str, Plain]) -> Self:
        """A new study with the configuration that `start` describes."""
        where = store.path_of(path)
        store.check_new(where)
        fresh = cls(where, config, secrets.token_bytes(32))
        check_first_release(fresh.driver)
        fresh.driver.ask()
        if fresh.driver.sealed:
            fresh._seal.create()
        try:
            state = fresh._state()
            event = Event("start", {"guarantee": str(fresh.guarantee)}, state)
            fresh._tail = fresh._store.create(config, fresh._key, event)
        except BaseException:
            fresh._seal.remove()
            raise
        fresh._saved = state
        return fresh

    @classmethod
    def resume(cls, path: str | Path, head: str | None = None) -> Self:
        """As `discreet.resume`."""
        study = cls.read(path, head)
        store.remove_leftovers(study.path)
        return study

    @classmethod
    def read(cls, path: str | Path, head: str | None = None) -> Self:
        """As `resume`, for who only wants to look."""
        where, participants = store.path_of(path), Participants()
        content: Content = Store(where).read(head, participants.add)
        try:
            study = cls(where, content.config, content.key)
            study._restore(content.state)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, DiscreetError):
                raise
            raise StudyError(
                f"{str(where)!r} is whole, but this version of discreet cannot go on with it: it "
                f"was written by another one; use the version that its ledger names."
            ) from error
        study._participants, study._tail = participants, content.tail
        return study

    @property
    def head(self) -> str:
        """The digest of all that was told so far: note it, and give it to `resume`."""
        return self._tail.head

    @property
    def key_file(self) -> Path | None:
        """Where the key of what is not released yet is kept (central streams): not in backups."""
        return self._seal.path if self.driver.sealed else None

    @property
    def names(self) -> Vocabulary:
        """What states, actions and steps are called."""
        return configs.vocabulary_of(self._config)

    @property
    def expected(self) -> Expected:
        """How small a difference it will find: a small simulation, as in `discreet.plan_study`."""
        return expect({**self._config, "episodes": self.episodes})

    @property
    def settings(self) -> dict[str, Plain]:
        """The learner's: those that were given, and what the others are."""
        return dict(self.driver.settings)

    @property
    def stages(self) -> str:
        """How many users each recruitment has, where that is public from the start; or nothing."""
        sizes, aim = self.settings.get("stages"), self.settings.get("aim")
        if not isinstance(sizes, list):
            return ""
        said = f"{' + '.join(f'{size:,}' for size in sizes)} users, aim {aim!r}"
        most = self._config["settings"].get("batches", 0)
        if len(sizes) < most and aim == "participants":
            said += f"; not {most}: the first of more would be too small for its noise"
        return said

    @property
    def reward_range(self) -> tuple[float, float]:
        """The least and the largest reward of a step, in the units of the study's tables."""
        return configs.table_of(self._config).reward_range

    @property
    def problem(self) -> Problem:
        """Public facts, all that the learner knows beforehand."""
        return self.driver.problem

    @property
    def mechanism(self) -> BatchMechanism | ContinualMechanism:
        """The calibrated release: its mechanism, its noise and its own guarantee, without data."""
        return self.driver.mechanism

    def ask(self) -> Policy:
        """The policy for the next `batch_size` users; the same until they have been told."""
        return self._batch.policy

    @property
    def batch_size(self) -> int:
        """How many users the next batch takes; of a stream one, and more are welcome."""
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
        return self.driver.problem.episodes

    @property
    def encoded(self) -> bool:
        """Whether users send reports (local, shuffle) and never episodes."""
        return self.driver.encoded

    @property
    def config(self) -> JsonObject:
        """What `start` was told, as plain values; the seed of a secure study breaks ties only."""
        return copy.deepcopy(dict(self._config))

    @property
    def finished(self) -> bool:
        """True when the last batch is counted, or it was closed.

        The last batch asks for all users who are left. Who does not come is not replaced: batches
        of the few who are left, and of those who are left of them, would show nothing.
        """
        left = self.episodes - self.users
        return self._tail.closed or self._over or left < self.driver.min_users

    @property
    def ending(self) -> str:
        """How it ended, in words; nothing while it goes on."""
        if not self.finished:
            return ""
        closed = self._tail.closed
        return how_it_ended(self.users, self.episodes, closed=closed, over=self._over)

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed to every user, spent in the one batch each takes part in."""
        return study_guarantee(
            self.driver.mechanism.guarantee,
            secure=self._secure,
            releases=self._issue["releases"],
            stream=self.driver.schedule == "continual",
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
        estimate, driver = self._estimate, self.driver
        if isinstance(driver, ContinualDriver):  # each release is of all users so far
            estimate = StudyEstimate(driver.problem, driver.mechanism)
            if driver.counts.users:
                estimate.add(driver.counts)
        answer = estimate.answer(driver.greedy())
        return answer.in_units(*self.reward_range)

    def said(self, value: Estimate) -> str:
        """A value of `answer` in words; one that may be anything is not known yet."""
        low, high = self.reward_range
        whole = (high - low) * len(self.names.steps)
        return "not known yet" if value.high - value.low > 0.99 * whole else str(value)

    @property
    def notes(self) -> tuple[str, ...]:
        """What its reader should know, in sentences: a declaration that the counts contradict."""
        return self.driver.notes

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
        return configs.table_of(self._config).read(path, self.names, policy)

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

    def report(self, path: str | Path, progress: Callable[[str], None] = lambda _: None) -> Path:
        """Write the dossier, one HTML page to sign; certificate and audit are made now."""
        from discreet.study.dossier.page import write_dossier

        return write_dossier(self, path, progress=progress)

    def bundle(self, path: str | Path, progress: Callable[[str], None] = lambda _: None) -> str:
        """Write the dossier with all that a reviewer checks it by, a zip file; its SHA-256."""
        from discreet.study.dossier.bundle import write_bundle

        return write_bundle(self, path, progress=progress)

    def __str__(self) -> str:
        about = "finished" if self.finished else f"next batch {self.batch_size:,} users"
        batches = "1 batch" if self.batches == 1 else f"{self.batches:,} batches"
        return (
            f"{self._config['learner']}, {self.guarantee}\n"
            f"{self.users:,} of {self.episodes:,} users in {batches}, {about}\n"
            f"value of the policy so far: {self.said(self.value)}\n"
            + "".join(f"{note}\n" for note in self.notes)
            + f"head {self.head}"
        )

    def encoder(self) -> Encoder:
        """What runs on each device of the pending batch (local and shuffle studies)."""
        return self.driver.encoder(self._batch.users)

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
            token: the study's `token` when the reports were made; needed with reports of a batch,
                whose policy cannot be read off them.
            dropped_out: called with the number of users who left the policy, once the batch is
                counted (not with reports, which do not show it, nor in streams, which count every
                step). Raw data, for the eyes of the trusted operator only: keep it nowhere.
            note: public facts that the ledger's entry shall hold besides (of a service: the hash of
                the manifest under which these users took part).

        Raises:
            StudyError: refused, with the reason; nothing was counted.
        """
        batch = self._batch
        people = self._people(users, batch)
        if token is None and self.driver.encoded and self.driver.schedule == "batch":
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
            self._check_number(len(people), self._batch)  # others may have ended it meanwhile
            check_reports_or_episodes(self.driver, data, len(people))
            self._check_new(people, change)
            if isinstance(data, Trajectories) and self.driver.schedule == "batch":
                left = int((~data.followed(self.driver.support())[:, -1]).sum())
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
        if self.driver.schedule == "continual":
            raise StudyError(
                "A continual learner has no batch to open again: a report counts whenever it "
                "comes; ask() for the next user."
            )
        if returning == "unseen" and self.guarantee.notion == "LDP":
            raise StudyError(
                "Under local trust nobody stands between a device and the operator: a report that "
                "was sent has been seen; say returning='seen', or 'nobody' and ask new users."
            )
        if returning == "seen" and self.driver.fixed:
            raise StudyError(
                f"Under shuffle a report hides among all {self.batch_size} of its batch: a part of "
                f"them that was seen had too little noise, and no second report makes up for it; "
                f"say returning='nobody' (--returning nobody) and ask new users. Nothing was "
                f"changed."
            )
        asked = self._learner_batch.users
        wanted = self._batch.users if users is None else users
        _validate.count(users=wanted)
        min_users = self.driver.min_users
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
            least = max(self.users + self.driver.min_users, 0 if self._over else before + 1)
            if episodes < least:
                raise StudyError(
                    f"Expected episodes >= {least}, the users of all batches together, of whom "
                    f"{self.users} are counted, got episodes={episodes}; nothing was changed."
                )
            self.driver.extend(episodes, pending=pending)
            self._over = False
            self.driver.ask()
            facts: dict[str, Plain] = {"episodes": episodes, "before": before, "total": self.users}
            self._write("extend", facts, change)

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
            self._catch_up(change)

    def _catch_up(self, change: Change) -> None:
        if change.moved:
            self._tail, state = change.news(self._participants.add)
            self._restore(state)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Change]:
        """A transaction; whatever fails in it, the file and this object stay as they were."""
        try:
            with self._store.changing(self._tail) as change:
                # A stream takes its users whatever others told; a batch was for one policy only.
                if change.moved and self.driver.schedule == "batch":
                    raise StudyError(
                        f"{str(self.path)!r} was changed by another process; refresh() it and "
                        f"ask() again. Nothing was counted."
                    )
                self._catch_up(change)
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
        if self.driver.schedule == "batch":
            self._over = self._learner_batch.users == self.episodes - self.users
            self._estimate.add(released, batch.policy)
        self.driver.learn(released)
        last = self._over or self.users + len(people) >= self.episodes
        if not last:
            self.driver.ask()
        if last or self.driver.schedule == "batch":  # not after every user of a stream
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
        driver = self.driver.state()  # may draw: before the generators are written down
        generators: Any = {k: v.bit_generator.state for k, v in self._generators.items()}
        return {
            "driver": driver,
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
        self.driver.restore(state["driver"])
        if self.episodes != state["episodes"]:
            self.driver.extend(state["episodes"], pending=True)
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
        return self.driver.ask()

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
        left = self.episodes - self.users
        most = left if self.driver.schedule == "continual" else batch.users
        if self.driver.fixed and users != most:
            fewer = min(max(users, self.driver.min_users), most)
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

    def _release(self, data: Trajectories | ArrayLike, users: int) -> PrivateCounts:
        rounding = self._generators["rounding"]
        return self.driver.release(data, users, sampler=self._sampler(), rounding=rounding)

    def _sampler(self) -> Sampler:
        return SecureSampler() if self._secure else SimulationSampler(self._generators["noise"])
