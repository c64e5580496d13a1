"""Ask and tell: a learner on real people's episodes, for weeks, across restarts and crashes.

A study lives in one JSON file. `ask` names the policy and the size of the next batch, `tell` takes
what those users sent: raw trajectories where the learner is trusted (central), encoded reports
where nobody is (local, shuffle; `encoder` is what their devices run). Each change replaces the
file atomically, so a batch is counted once or not at all. What `tell` refuses is refused in one
sentence and leaves the study as it was.

The file holds released statistics, never a raw episode, and keyed digests of the users' names, so
that a user who comes twice is recognised and the list says nothing to who lacks the key. The key
is in the file: keep it as you keep the list of participants.
"""

import dataclasses
import hashlib
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet.errors import DiscreetError, StudyError
from discreet.learners.base import Batch, BatchLearner, Problem
from discreet.learners.learn import check_trust, make_batch_learner
from discreet.learners.registry import get_learner
from discreet.mdp.policies import Policy
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy import trust as trust_models
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.noise import Sampler, SecureSampler, SimulationSampler
from discreet.privacy.release import Encoder, PrivateCounts
from discreet.privacy.trust import Local, Shuffle, TrustModel
from discreet.study import study_file

SamplerName = Literal["secure", "simulation"]

_OPERATOR = (
    "any well-formed episode has a release: who leaves the policy counts as nothing from there on",
    "the trusted operator may see how many left a batch's policy, on the screen; it is not stored",
)
"""What a central study assumes beyond its mechanism."""


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
    _validate.count(episodes=episodes)
    begin = list(range(states)) if start_states is None else [int(s) for s in start_states]
    config = {
        "learner": learner,
        "trust": {"model": type(trust).__name__, **dataclasses.asdict(trust)},
        "shape": dataclasses.asdict(Shape(states, actions, horizon)),
        "episodes": int(episodes),
        "start_states": begin,
        "stationary": bool(stationary),
        "sampler": sampler,
        "seed": secrets.randbits(63) if seed is None else int(seed),
        "settings": settings,
    }
    where = Path(path)
    if where.exists():
        raise StudyError(f"{str(where)!r} exists; resume() it, or choose another file.")
    fresh = Study(where, {"config": config, "key": secrets.token_hex(32), "users": [], "told": []})
    fresh._save()
    return fresh


def resume(path: str | Path) -> "Study":
    """Go on with a study after a restart or a crash."""
    where = Path(path)
    return Study(where, study_file.read(where))


class Study:
    """A running study; make one with `start` or `resume`."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.path = path
        self._load(content)

    def ask(self) -> Policy:
        """The policy for the next `batch_size` users; the same until they have been told."""
        return self._batch().policy

    @property
    def batch_size(self) -> int:
        """How many users the next batch takes."""
        return self._batch().users

    @property
    def token(self) -> str:
        """Names the pending batch and its policy; reports made for it carry this name."""
        batch = self._batch()
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
        promised = self._learner.plan.guarantee.stamped(secure=self._secure)
        if promised.notion != "JDP":
            return promised
        return dataclasses.replace(promised, assumptions=(*promised.assumptions, *_OPERATOR))

    def encoder(self) -> Encoder:
        """What runs on each device of the pending batch (local and shuffle studies)."""
        batch = self._batch()
        return self._learner.plan.encoder(batch.users, played=self._played(batch))

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
                counted. It is raw data of the trusted operator of a central study, for the eyes
                only: the study keeps it nowhere, and neither should the callback.

        Raises:
            StudyError: refused, with the reason; nothing was counted.
        """
        batch = self._batch()
        digests = self._new_users(users, batch.users)
        if token is not None or self._encoded:
            self._check_token(token)
        try:
            released = self._release(data, batch)
        except StudyError:
            raise
        except DiscreetError as error:
            raise StudyError(f"{error} Nothing was counted.") from error
        self._count(released, digests, batch)
        if left_out is not None:
            left_out(self._left(data, batch))

    def _count(self, released: PrivateCounts, digests: list[str], batch: Batch) -> None:
        before = self._snapshot()
        try:
            self._learner.tell(released)
            told = {"users": batch.users, "token": self.token_of(batch)}
            self._content["users"] = [*before["users"], *digests]
            self._content["told"] = [*before["told"], told]
            self._save()
        except BaseException:
            self._load(before)
            raise

    def token_of(self, batch: Batch) -> str:
        """The name of a batch's policy, for the record."""
        return hashlib.blake2b(batch.policy.key, digest_size=16).hexdigest()

    def _load(self, content: dict[str, Any]) -> None:
        config = content["config"]
        self._content = {**content, "users": list(content["users"]), "told": list(content["told"])}
        self._secure = config["sampler"] == "secure"
        fields = dict(config["trust"])
        trust: TrustModel = getattr(trust_models, fields.pop("model"))(**fields)
        self._encoded = isinstance(trust, Local | Shuffle)
        self._streams = _streams(config["seed"], content.get("streams"))
        self._learner = _learner(config, trust, self._streams["policy"])
        if "learner" in content:
            self._learner.restore(content["learner"])

    def _snapshot(self) -> dict[str, Any]:
        return {
            **self._content,
            "format": study_file.FORMAT,
            "learner": self._learner.state(),
            "streams": {k: v.bit_generator.state for k, v in self._streams.items()},
            "guarantee": str(self.guarantee),
        }

    def _save(self) -> None:
        with study_file.locked(self.path):
            if self.path.exists():
                on_disk = len(study_file.read(self.path)["told"])
                if on_disk not in {self.batches, self.batches - 1} or (
                    on_disk == self.batches and self._content.get("saved") != on_disk
                ):
                    raise StudyError(
                        f"{str(self.path)!r} was changed by another process; resume() it. "
                        f"Nothing was counted."
                    )
            self._content["saved"] = self.batches
            study_file.write(self.path, self._snapshot())

    def _batch(self) -> Batch:
        if self.finished:
            raise StudyError(f"All {self.users} users of this study have been counted.")
        pending = self._learner.state().get("request")
        batch = self._learner.ask()
        if pending is None:
            self._save()
        return batch

    def _played(self, batch: Batch) -> NDArray[np.bool_]:
        problem = self._learner.problem
        return batch.policy.played(problem.shape, problem.start)

    def _new_users(self, users: Sequence[str | int], expected: int) -> list[str]:
        if len(users) != expected:
            raise StudyError(
                f"This batch takes {expected} users, got {len(users)}; nothing was counted."
            )
        key = bytes.fromhex(self._content["key"])
        digests = [
            hashlib.blake2b(str(user).encode(), key=key, digest_size=16).hexdigest()
            for user in users
        ]
        seen = set(self._content["users"])
        for user, digest in zip(users, digests, strict=True):
            if digest in seen:
                raise StudyError(
                    f"User {user!r} has taken part already; a user takes part once, nothing was "
                    f"counted."
                )
            seen.add(digest)
        return digests

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

    def _release(self, data: Trajectories | ArrayLike, batch: Batch) -> PrivateCounts:
        plan, played = self._learner.plan, self._played(batch)
        if self._encoded:
            if isinstance(data, Trajectories):
                raise StudyError(
                    "This study takes encoded reports (see encoder()), never raw trajectories; "
                    "nothing was counted."
                )
            reports = np.asarray(data)
            return plan.release_reports(reports, batch.users, secure=self._secure, played=played)
        if not isinstance(data, Trajectories):
            raise StudyError(
                f"A central study takes Trajectories, got {type(data).__name__}; nothing was "
                f"counted."
            )
        _check_trajectories(data, batch, plan.shape)
        counts = data.counts(plan.shape, self._streams["rounding"], played)
        return plan.release(counts, sampler=self._sampler(), played=played)

    def _left(self, data: Trajectories | ArrayLike, batch: Batch) -> int:
        """Users who left the policy; unknown, hence none, where only reports arrive."""
        if not isinstance(data, Trajectories):
            return 0
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


def _check_trajectories(data: Trajectories, batch: Batch, shape: Shape) -> None:
    """Refuse what is no data set of this batch. Well-formed episodes pass, whatever they hold."""
    if len(data) != batch.users:
        raise StudyError(
            f"This batch takes {batch.users} trajectories, got {len(data)}; nothing was counted."
        )
    data.check(shape)
