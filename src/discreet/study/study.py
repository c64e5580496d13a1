"""Ask and tell: a learner on real people's episodes, for weeks, across restarts and crashes.

A study lives in one JSON file. `ask` names the policy and the size of the next batch, `tell` takes
what those users sent: raw trajectories where the learner is trusted (central), encoded reports
where nobody is (local, shuffle; `encoder` is what their devices run). `start` and `tell` write the
file, with the next question in it, and nothing else does. Each change replaces it atomically, so a
batch is counted once or not at all. What `tell` refuses is refused in one sentence and leaves the
study as it was. `head` is the digest of everything told (see `study.chain`).

The file holds released statistics, never a raw episode, and keyed digests of the users' names, so
that a user who comes twice is recognised and the list says nothing to who lacks the key. The key
is in the file: keep it as you keep the list of participants.
"""

import dataclasses
import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet._types import BoolArray
from discreet.errors import DiscreetError, StudyError
from discreet.learners.base import Batch, BatchLearner, Problem
from discreet.learners.learn import check_trust, make_batch_learner
from discreet.learners.registry import get_learner
from discreet.mdp.policies import Policy
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy import trust as trust_models
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.plans import Encoder, with_counts, with_reports
from discreet.privacy.sampling.samplers import Sampler, SecureSampler, SimulationSampler
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import Local, Shuffle, TrustModel
from discreet.study import chain, study_file
from discreet.study.names import digests_of_new
from discreet.study.promise import promise

SamplerName = Literal["secure", "simulation"]


def start(
    path: str | Path,
    *,
    learner: str,
    trust: TrustModel,
    states: int,
    actions: int,
    horizon: int,
    episodes: int,
    start_states: Sequence[int] | None = None,
    stationary: bool = False,
    sampler: SamplerName = "secure",
    seed: int | None = None,
    **settings: Any,
) -> "Study":
    """Begin a study; its file must not exist yet.

    Args:
        path: the study's file.
        learner: a batch learner of the roster.
        trust: who sees raw episodes, with which (epsilon, delta).
        states: number of states; states are 0..states-1.
        actions: number of actions.
        horizon: steps per episode.
        episodes: how many users will take part in all.
        start_states: where an episode can begin, if that is public (anywhere by default).
        stationary: the dynamics are known not to depend on the step.
        sampler: ``"secure"`` protects people; ``"simulation"`` is for rehearsals.
        seed: of a rehearsal; a secure study cannot be seeded.
        settings: the learner's own.
    """
    _validate.choice(("secure", "simulation"), sampler=sampler)
    if sampler == "secure" and seed is not None:
        raise StudyError(
            "A secure study cannot be seeded; leave out seed, or rehearse with "
            "sampler='simulation'."
        )
    trust_models.check_trust_model(trust)
    _validate.truth(stationary=stationary)
    _validate.count(episodes=episodes)
    shape = Shape(states, actions, horizon)
    begin = list(range(states)) if start_states is None else [int(s) for s in start_states]
    config = {
        "learner": learner,
        "trust": {"model": type(trust).__name__, **dataclasses.asdict(trust)},
        "shape": dataclasses.asdict(shape),
        "episodes": int(episodes),
        "start_states": begin,
        "stationary": stationary,
        "sampler": sampler,
        "seed": secrets.randbits(63) if seed is None else int(seed),
        "settings": settings,
    }
    return Study.begin(path, config)


def resume(path: str | Path, head: str | None = None) -> "Study":
    """Go on with a study after a restart or a crash.

    Temporary files that a killed process has left beside the study are removed (`study_file`).

    Args:
        path: the study's file; one that was edited or damaged is refused.
        head: the `Study.head` that you noted last. An older copy of the file, or another study, is
            refused; one that has gone on since is not. Without it an older copy cannot be told
            from the newest file, and its users could be counted twice.
    """
    return Study.resume(path, head)


class Study:
    """A running study; make one with `start` or `resume`. Reading it writes nothing."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.path = path
        self._content: dict[str, Any]
        self._learner: BatchLearner
        self._pending: Batch | None
        self._load(content)

    @classmethod
    def begin(cls, path: str | Path, config: dict[str, Any]) -> Self:
        """A new study with the configuration that `start` describes."""
        where = Path(path)
        study_file.check_new(where)
        key = secrets.token_hex(32)
        names = {"format": study_file.FORMAT, "config": config, "key": key}
        fresh = cls(where, {**names, "users": [], "told": []})
        fresh._content = fresh._closed(fresh._content)
        with study_file.locked(where):
            study_file.check_new(where)
            study_file.write(where, fresh._content)
        return fresh

    @classmethod
    def resume(cls, path: str | Path, head: str | None = None) -> Self:
        """As the function `resume`."""
        study = cls.read(path, head)
        study_file.remove_leftovers(study.path)
        return study

    @classmethod
    def read(cls, path: str | Path, head: str | None = None) -> Self:
        """As `resume`, for who only wants to look: leftovers of writes cut short stay."""
        where = Path(path)
        content = study_file.read(where)
        chain.verify(content, str(where))
        chain.check_head(content, head, str(where))
        return cls(where, content)

    @property
    def head(self) -> str:
        """The digest of all that was told so far: note it, and give it to `resume`."""
        return str(self._content["head"])

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
        batch = self._batch
        text = f"{self._content['key']}:{self.batches}:{batch.users}:".encode() + batch.policy.key
        return hashlib.blake2b(text, digest_size=16).hexdigest()

    @property
    def batches(self) -> int:
        """Batches counted so far."""
        return len(self._content["told"])

    @property
    def users(self) -> int:
        """Users counted so far."""
        return len(self._content["users"])

    @property
    def finished(self) -> bool:
        """True when all episodes have been told."""
        return self.users >= self._learner.problem.episodes

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to every user, spent in the one batch each takes part in."""
        return promise(self._learner.plan.guarantee, secure=self._secure)

    def encoder(self) -> Encoder:
        """What runs on each device of the pending batch (local and shuffle studies)."""
        batch = self._batch
        plan = with_reports(self._learner.plan)
        return plan.encoder(batch.users, played=self._played(batch))

    def tell(
        self,
        data: Trajectories | ArrayLike,
        *,
        users: Sequence[str | int],
        token: str | None = None,
        left_out: Callable[[int], object] | None = None,
    ) -> None:
        """Count the pending batch: all of it, once, or not at all.

        A user who left the policy is counted up to that step and as nothing from there on, and so
        is one who began elsewhere: a refusal would tell the others that somebody did.

        Args:
            data: `Trajectories` in a central study; the encoded (and, under shuffle, shuffled)
                reports of all users otherwise.
            users: who they are, one name each; a user takes part once.
            token: the study's `token` when the reports were made; needed with reports, whose
                policy cannot be read off them.
            left_out: called with the number of users who left the policy, once the batch is
                counted (not with reports, which do not show it). It is raw data of the trusted
                operator of a central study, for the eyes only: the study keeps it nowhere, and
                neither should the callback.

        Raises:
            StudyError: refused, with the reason; nothing was counted.
        """
        batch = self._batch
        digests = self._new_users(users, batch.users)
        if token is not None or self._encoded:
            self._check_token(token)
        saved = self._content
        try:
            self._check_data(data, batch)
            self._count(self._release(data, batch), digests, batch)
        except BaseException as error:
            self._load(saved)
            if isinstance(error, DiscreetError) and not isinstance(error, StudyError):
                raise StudyError(f"{error} Nothing was counted.") from error
            raise
        if left_out is not None and isinstance(data, Trajectories):
            left_out(self._left(data, batch))

    def _count(self, released: PrivateCounts, digests: list[str], batch: Batch) -> None:
        """Learn, ask the next question and write both: the file never lacks its question."""
        saved = self._content
        entry = {
            "batch": self.batches,
            "users": batch.users,
            "policy": hashlib.blake2b(batch.policy.key, digest_size=16).hexdigest(),
            "before": self.head,
        }
        entry["link"] = chain.next_link(chain.last_link(saved), entry, digests)
        self._learner.tell(released)
        told = {"users": [*saved["users"], *digests], "told": [*saved["told"], entry]}
        self._content = {**saved, **told}
        self._pending = None if self.finished else self._learner.ask()
        self._content = self._closed(self._content)
        with study_file.locked(self.path):
            if study_file.read(self.path).get("head") != saved["head"]:
                raise StudyError(
                    f"{str(self.path)!r} was changed by another process; resume() it. "
                    f"Nothing was counted."
                )
            study_file.write(self.path, self._content)

    def _load(self, content: dict[str, Any]) -> None:
        config = content["config"]
        self._content = content
        self._secure = config["sampler"] == "secure"
        fields = dict(config["trust"])
        trust: TrustModel = getattr(trust_models, fields.pop("model"))(**fields)
        self._encoded = isinstance(trust, Local | Shuffle)
        self._streams = _streams(config["seed"], content.get("streams"))
        self._learner = _learner(config, trust, self._streams["policy"])
        if "learner" in content:
            self._learner.restore(content["learner"])
        self._pending = None if self.finished else self._learner.ask()

    def _closed(self, content: dict[str, Any]) -> dict[str, Any]:
        """The content of the file with the present state and the head over both."""
        state = {
            "guarantee": str(self.guarantee),
            "learner": self._learner.state(),
            "streams": {k: v.bit_generator.state for k, v in self._streams.items()},
        }
        whole = {**content, **json.loads(json.dumps(state))}  # as a reader of the file will see it
        return {**whole, "head": chain.head_of(whole)}

    @property
    def _batch(self) -> Batch:
        if self._pending is None:
            raise StudyError(f"All {self.users} users of this study have been counted.")
        return self._pending

    def _played(self, batch: Batch) -> BoolArray:
        problem = self._learner.problem
        return batch.policy.played(problem.shape, problem.start)

    def _new_users(self, users: Sequence[str | int], expected: int) -> list[str]:
        if len(users) != expected:
            raise StudyError(
                f"This batch takes {expected} users, got {len(users)}; nothing was counted."
            )
        key = bytes.fromhex(self._content["key"])
        return digests_of_new(users, self._content["users"], key)

    def _check_token(self, token: str | None) -> None:
        if token is None:
            raise StudyError(
                "Reports do not show their policy: pass the token of the batch they were made "
                "for; nothing was counted."
            )
        if token != self.token:
            raise StudyError(
                "These reports were made for another batch or under another policy; nothing was "
                "counted."
            )

    def _check_data(self, data: Trajectories | ArrayLike, batch: Batch) -> None:
        """Refuse what is no data of this batch. Well-formed episodes pass, whatever they hold."""
        if self._encoded:
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
        if len(data) != batch.users:
            raise StudyError(
                f"This batch takes {batch.users} trajectories, got {len(data)}; nothing was "
                f"counted."
            )
        data.check(self._learner.plan.shape)

    def _release(self, data: Trajectories | ArrayLike, batch: Batch) -> PrivateCounts:
        plan, played = self._learner.plan, self._played(batch)
        if not isinstance(data, Trajectories):
            reports = np.asarray(data)
            return with_reports(plan).release_reports(
                reports, batch.users, secure=self._secure, played=played
            )
        counts = data.counts(plan.shape, self._streams["rounding"], played)
        return with_counts(plan).release(counts, sampler=self._sampler(), played=played)

    def _left(self, data: Trajectories, batch: Batch) -> int:
        """Users who left the policy."""
        return int((~data.followed(self._played(batch))[:, -1]).sum())

    def _sampler(self) -> Sampler:
        return SecureSampler() if self._secure else SimulationSampler(self._streams["noise"])


def _learner(config: dict[str, Any], trust: TrustModel, rng: np.random.Generator) -> BatchLearner:
    shape = Shape(**config["shape"])
    begin = np.zeros(shape.states, np.bool_)
    for state in config["start_states"]:
        if not 0 <= state < shape.states:
            raise StudyError(f"Expected start states from 0 to {shape.states - 1}, got {state}.")
        begin[state] = True
    if not begin.any():
        raise StudyError("Expected at least one start state.")
    problem = Problem(shape, config["episodes"], begin, config["stationary"])
    spec = get_learner(config["learner"])
    check_trust(spec, trust)
    return make_batch_learner(spec, problem, trust, rng, dict(config["settings"]))


def _streams(seed: int, states: dict[str, Any] | None) -> dict[str, np.random.Generator]:
    """Generators for ties, rehearsed noise and the rounding of rewards, continued if saved."""
    seeds = RunSeeds(seed)
    streams = {
        "policy": seeds.generator("policy"),
        "noise": seeds.generator("noise"),
        "rounding": seeds.generator("environment"),
    }
    for name, state in (states or {}).items():
        streams[name].bit_generator.state = state
    return streams
