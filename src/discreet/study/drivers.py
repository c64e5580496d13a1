"""What drives a study: what its learner asks, what is released for it, what it then knows.

Two schedules, one form. In a *batch* driver a whole batch runs one policy and is released once. In
a *continual* one, user after user is added to cumulative counters; all of them have noise, whatever
the policy, so who ran an older policy is welcome: many may come at a time.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import BoolArray, JsonObject, Plain
from discreet.errors import InvalidInputError, StudyError, UnsupportedError
from discreet.learners.base import (
    Batch,
    BatchLearner,
    ContinualLearner,
    Problem,
    policy_from_dict,
    policy_to_dict,
)
from discreet.learners.learn import check_trust, make_batch_learner
from discreet.learners.registry import LearnerSpec, get_learner
from discreet.mdp.policies import DeterministicPolicy, Policy
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms.base import (
    BatchMechanism,
    ContinualMechanism,
    ContinualRelease,
    Encoder,
    Seal,
    StoredRelease,
    unflatten,
)
from discreet.privacy.mechanisms.registry import mechanisms
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.simulation.users import no_counts
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import Local, Shuffle, TrustModel, least_noise

Data = Trajectories | ArrayLike
_OPEN_ENDED = "The learners 'flow-ucb' and 'trial' can be extended."


class Driver(ABC):
    """One learner under one trust model.

    Attributes:
        problem: public facts.
        encoded: users send reports, never episodes.
        fixed: exactly as many users as were asked for must come.
    """

    schedule: str

    def __init__(self, problem: Problem, trust: TrustModel) -> None:
        self.problem = problem
        self.encoded = isinstance(trust, Local | Shuffle)
        self.fixed = isinstance(trust, Shuffle)

    @property
    @abstractmethod
    def mechanism(self) -> BatchMechanism | ContinualMechanism:
        """Calibrated, without data."""

    @property
    def min_users(self) -> int:
        """Users of the smallest release."""
        return 1

    @property
    def sealed(self) -> bool:
        """Whether the file holds something that only the study's key opens."""
        return False

    @abstractmethod
    def ask(self) -> Batch:
        """The next policy, and for how many users; the same until they have been told."""

    @abstractmethod
    def encoder(self, users: int) -> Encoder:
        """What runs on each device."""

    @abstractmethod
    def release(
        self, data: Data, users: int, *, sampler: Sampler, rounding: np.random.Generator
    ) -> PrivateCounts:
        """Private statistics of users who ran the pending policy."""

    @abstractmethod
    def learn(self, released: PrivateCounts) -> None:
        """Take a release in."""

    def greedy(self) -> DeterministicPolicy | None:
        """The learner's own greedy policy, where it has one."""
        return None

    @property
    @abstractmethod
    def settings(self) -> dict[str, Plain]:
        """The learner's, resolved."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the learner has to say, in sentences."""
        return ()

    @abstractmethod
    def extend(self, episodes: int, *, pending: bool) -> None:
        """So many users in all; a ``pending`` batch stays as it was asked for.

        Raises:
            UnsupportedError: the learner, or the noise, was made for the number that was planned.
        """

    @abstractmethod
    def state(self) -> dict[str, Plain]:
        """Everything needed to go on, as plain values."""

    @abstractmethod
    def restore(self, state: JsonObject) -> None:
        """Go on from `state`."""

    def support(self) -> BoolArray:
        """What the pending policy can play."""
        return self.ask().policy.support(self.problem.shape, self.problem.start)


class BatchDriver(Driver):
    """Batch after batch, each with one release."""

    schedule = "batch"

    def __init__(
        self,
        spec: LearnerSpec,
        problem: Problem,
        trust: TrustModel,
        rng: np.random.Generator,
        settings: Mapping[str, object],
    ) -> None:
        super().__init__(problem, trust)
        self._name = spec.name
        self.learner: BatchLearner = make_batch_learner(spec, problem, trust, rng, dict(settings))

    @property
    def mechanism(self) -> BatchMechanism:
        return self.learner.mechanism

    @property
    def min_users(self) -> int:
        return self.mechanism.min_users

    def ask(self) -> Batch:
        return self.learner.ask()

    def encoder(self, users: int) -> Encoder:
        return self.mechanism.encoder(users, support=self.support())

    def release(
        self, data: Data, users: int, *, sampler: Sampler, rounding: np.random.Generator
    ) -> PrivateCounts:
        support = self.support()
        if not isinstance(data, Trajectories):
            reports = np.asarray(data)
            return self.mechanism.release_reports(
                reports, users, secure=sampler.secure, support=support
            )
        counts = data.counts(self.mechanism.shape, rounding, support)
        return self.mechanism.release(counts, sampler=sampler, support=support)

    def learn(self, released: PrivateCounts) -> None:
        self.learner.tell(self.learner.reading(released))

    def extend(self, episodes: int, *, pending: bool) -> None:
        if not self.learner.open_ended:
            raise UnsupportedError(
                f"The learner {self._name!r} divides what its widths or its exploration may fail "
                f"by among the {self.problem.episodes:,} users that were planned, and cannot go on "
                f"with {episodes:,}; close this study and start another. {_OPEN_ENDED}"
            )
        self.problem = dataclasses.replace(self.problem, episodes=episodes)
        self.learner.extend(self.problem, pending=pending)

    def greedy(self) -> DeterministicPolicy | None:
        return self.learner.greedy()

    @property
    def settings(self) -> dict[str, Plain]:
        return self.learner.settings

    @property
    def notes(self) -> tuple[str, ...]:
        return self.learner.notes

    def state(self) -> dict[str, Plain]:
        return self.learner.state()

    def restore(self, state: JsonObject) -> None:
        self.learner.restore(dict(state))


def make_driver(
    name: str,
    problem: Problem,
    trust: TrustModel,
    rng: np.random.Generator,
    settings: Mapping[str, object],
    *,
    sampler: Sampler,
    seal: Seal,
) -> Driver:
    """The driver of a registered learner.

    Args:
        name: of the learner.
        problem: public facts.
        trust: who sees raw episodes.
        rng: breaks ties.
        settings: the learner's own.
        sampler: of the study; a central stream draws from it before the first user comes.
        seal: encrypts what a central stream has not released yet.
    """
    spec = get_learner(name)
    check_trust(spec, trust)
    if spec.make is not None and spec.schedule == "batch":
        return BatchDriver(spec, problem, trust, rng, settings)
    if spec.make is not None and issubclass(spec.make, ContinualLearner):
        return ContinualDriver(spec.make, problem, trust, rng, settings, sampler=sampler, seal=seal)
    raise UnsupportedError(
        f"Learner {name!r} runs only in simulations (its losses come from an adversary); use "
        f"'flow-ucb', for instance."
    )


def check_first_release(driver: Driver) -> None:
    """Refuse a study that has fewer users than a release."""
    if driver.problem.episodes < driver.min_users:
        raise InvalidInputError(
            f"Expected episodes >= {driver.min_users}, the smallest release of this guarantee, got "
            f"episodes={driver.problem.episodes}."
        )


def how_it_ended(users: int, episodes: int, *, closed: bool, over: bool = False) -> str:
    """What became of a study of ``episodes`` users that takes nobody any more.

    >>> how_it_ended(59, 60, closed=False)
    'has counted 59 of 60 users, and no batch has only 1'
    """
    if closed:
        return f"was closed after {users} users"
    if over and users < episodes:
        return (
            f"has counted {users} of {episodes} users: its last batch asked for all who were left, "
            f"and who does not come is not replaced"
        )
    if users < episodes:
        return f"has counted {users} of {episodes} users, and no batch has only {episodes - users}"
    return f"has counted all its {users} users"


def check_reports_or_episodes(driver: Driver, data: Data, users: int) -> None:
    """Refuse what is no data of these users. Well-formed episodes pass, whatever they hold."""
    if driver.encoded:
        if isinstance(data, Trajectories):
            raise StudyError(
                "This study takes encoded reports (see encoder()), never raw trajectories; nothing "
                "was counted."
            )
        return
    if not isinstance(data, Trajectories):
        raise StudyError(
            f"A central study takes Trajectories, got {type(data).__name__}; nothing was counted."
        )
    if len(data) != users:
        raise StudyError(
            f"Expected one trajectory for each of the {users} users, got {len(data)} trajectories; "
            f"nothing was counted."
        )
    data.check(driver.mechanism.shape)


class ContinualDriver(Driver):
    """One policy per user, one user after the other, and cumulative releases.

    What is kept between two users is what was sent or is noisy: sums of local reports, or the nodes
    of a tree that get noise when they open and when they close (`privacy.mechanisms.tree`).
    Mechanisms with exact sums in their memory are refused.
    """

    schedule = "continual"

    def __init__(
        self,
        kind: type[ContinualLearner],
        problem: Problem,
        trust: TrustModel,
        rng: np.random.Generator,
        settings: Mapping[str, object],
        *,
        sampler: Sampler,
        seal: Seal,
    ) -> None:
        super().__init__(problem, trust)
        chosen = kind.settings_type.choose(
            {"stationary": problem.stationary, **settings}, learner=kind.name
        )
        if not chosen.last_transitions:
            raise UnsupportedError(
                f"Expected literal=False in a study, got literal=True: learner {kind.name!r} "
                f"leaves out the last transition in simulated runs only."
            )
        self._mechanism = _mechanism(problem, trust)
        self.learner = kind(problem, self._mechanism, rng, chosen)
        self._secure = sampler.secure
        self.running: StoredRelease | None = None
        self._reports: ContinualRelease | None = None
        if self._mechanism.takes_reports:
            self._reports = self._mechanism.open(sampler)
        else:
            self.running = self._mechanism.open_stored(sampler, seal if sampler.secure else None)
        self.counts = no_counts(self._mechanism)
        self._policy: Policy | None = None

    @property
    def mechanism(self) -> ContinualMechanism:
        return self._mechanism

    @property
    def settings(self) -> dict[str, Plain]:
        return self.learner.settings.to_dict()

    @property
    def sealed(self) -> bool:
        return self.running is not None and self.running.sealed

    def ask(self) -> Batch:
        if self._policy is None:
            self._policy = self.learner.next_policy(self.counts)
        return Batch(self._policy, 1)

    def encoder(self, users: int) -> Encoder:
        return self._mechanism.encoder()

    def release(
        self, data: Data, users: int, *, sampler: Sampler, rounding: np.random.Generator
    ) -> PrivateCounts:
        if not isinstance(data, Trajectories):
            reports, released = np.asarray(data), self.counts
            if self._reports is None or reports.ndim != 2 or len(reports) % users:
                raise UnsupportedError(
                    f"Expected the reports of {users} users, as many rows each, one below the "
                    f"other, got an array of shape {reports.shape}."
                )
            for report in np.split(reports, users):
                released = self._reports.add_report(report)
            return released
        running, mechanism = self.running, self._mechanism
        if running is None:
            raise UnsupportedError(
                "A continual study of reports takes no episodes; encode them first."
            )
        for user in range(users):
            counts = data[user : user + 1].counts(mechanism.shape, rounding)
            running.add(mechanism.flat(counts))
        values = running.release().astype(np.float64)
        return unflatten(values, mechanism, running.users, secure=sampler.secure)

    def learn(self, released: PrivateCounts) -> None:
        self.counts = released
        self._policy = None

    def extend(self, episodes: int, *, pending: bool) -> None:
        raise UnsupportedError(
            f"The noise and the widths of this continual study were made for "
            f"{self.problem.episodes:,} users, and no more can be released, got {episodes:,}; "
            f"close it and start another. {_OPEN_ENDED}"
        )

    def state(self) -> dict[str, Plain]:
        running = self.running.state() if self.running else {}
        sums = self._reports.sums() if self._reports else running
        counts = self.counts
        parts = [counts.transitions, counts.visits, counts.rewards]  # as `unflatten` takes them
        state: dict[str, Any] = {
            "users": counts.users,
            "sums": {name: part.copy() for name, part in sums.items()},
            "released": np.concatenate([part.ravel() for part in parts if part is not None]),
            "memory": {name: part.copy() for name, part in self.learner.state().items()},
            "policy": None if self._policy is None else policy_to_dict(self._policy),
        }
        return state

    def restore(self, state: JsonObject) -> None:
        users = int(state["users"])
        if self.running:
            self.running.restore(state["sums"], users)
        if self._reports:
            self._reports.restore(state["sums"], users)
        values = np.array(state["released"], np.float64)
        mechanism, secure = self._mechanism, self._secure
        self.counts = (
            unflatten(values, mechanism, users, secure=secure) if users else no_counts(mechanism)
        )
        self.learner.restore(state["memory"])
        self._policy = None if state["policy"] is None else policy_from_dict(state["policy"])


def _mechanism(problem: Problem, trust: TrustModel) -> ContinualMechanism:
    """Of central streams one whose memory may be written down, the one with the least noise."""
    options: Any = {"schedule": "continual", "episodes": problem.episodes}
    options["stationary"] = problem.stationary
    if all(one.spec("continual").storable for one in trust.candidates("continual")):
        mechanism: ContinualMechanism = trust.calibrate(problem.shape, **options)
        return mechanism.stored()
    known = [s for s in mechanisms(trust.name, "continual").values() if s.storable]
    asked, delta = getattr(trust, "mechanism", "auto"), getattr(trust, "delta", 0.0)
    if asked != "auto":
        raise UnsupportedError(
            f"A continual study keeps its sums on a disk, and the mechanism {asked!r} holds exact "
            f"sums; use mechanism='auto' or {' or '.join(repr(spec.name) for spec in known)}."
        )
    found: list[ContinualMechanism] = []
    for spec in known:
        if (delta or spec.pure) and (spec.ours or spec.auto):  # others are chosen by name only
            named: Any = {"mechanism": spec.name}
            found.append(dataclasses.replace(trust, **named).calibrate(problem.shape, **options))
    return least_noise(found, problem.episodes).stored()
