"""The course of a study: what its learner asks, what is released for it, what it then knows.

Two rhythms, one form. In a *batch* course a whole batch runs one policy and is released once. In a
*stream* course one user after the other is added to cumulative counters; all of them have noise,
whatever policy was played, so who ran an older policy is welcome: many may come at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from discreet._plain import JsonObject, Plain
from discreet._types import BoolArray
from discreet.errors import InvalidInputError, StudyError, UnsupportedError
from discreet.learners.base import Batch, BatchLearner, Problem, StreamLearner
from discreet.learners.learn import check_trust, make_batch_learner
from discreet.learners.registry import LearnerSpec, get_learner
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms.stored_tree import Seal
from discreet.privacy.plans import BatchPlan, Encoder, StreamPlan, with_counts, with_reports
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import Local, Shuffle, TrustModel

Data = Trajectories | ArrayLike


class Course(ABC):
    """One learner under one trust model.

    Attributes:
        problem: public facts.
        encoded: users send reports, never episodes.
        fixed: exactly as many users as were asked for must come.
    """

    rhythm: str

    def __init__(self, problem: Problem, trust: TrustModel) -> None:
        self.problem = problem
        self.encoded = isinstance(trust, Local | Shuffle)
        self.fixed = isinstance(trust, Shuffle)

    @property
    @abstractmethod
    def plan(self) -> BatchPlan | StreamPlan:
        """The calibrated release."""

    @property
    def fewest(self) -> int:
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

    @abstractmethod
    def state(self) -> dict[str, Plain]:
        """Everything needed to go on, as plain values."""

    @abstractmethod
    def restore(self, state: JsonObject) -> None:
        """Go on from `state`."""

    def played(self) -> BoolArray:
        """What the pending policy can play."""
        return self.ask().policy.played(self.problem.shape, self.problem.start)


class BatchCourse(Course):
    """A learner of the batch rhythm."""

    rhythm = "batch"

    def __init__(
        self,
        spec: LearnerSpec,
        problem: Problem,
        trust: TrustModel,
        rng: np.random.Generator,
        settings: Mapping[str, object],
    ) -> None:
        super().__init__(problem, trust)
        self.learner: BatchLearner = make_batch_learner(spec, problem, trust, rng, dict(settings))

    @property
    def plan(self) -> BatchPlan:
        """The calibrated release of one batch."""
        return self.learner.plan

    @property
    def fewest(self) -> int:
        """Users of the smallest batch that can be released."""
        return self.plan.least_users

    def ask(self) -> Batch:
        """The learner's next batch."""
        return self.learner.ask()

    def encoder(self, users: int) -> Encoder:
        """For the devices of a batch of so many users."""
        return with_reports(self.plan).encoder(users, played=self.played())

    def release(
        self, data: Data, users: int, *, sampler: Sampler, rounding: np.random.Generator
    ) -> PrivateCounts:
        """One release of the whole batch."""
        played = self.played()
        if not isinstance(data, Trajectories):
            reports = np.asarray(data)
            return with_reports(self.plan).release_reports(
                reports, users, secure=sampler.secure, played=played
            )
        counts = data.counts(self.plan.shape, rounding, played)
        return with_counts(self.plan).release(counts, sampler=sampler, played=played)

    def learn(self, released: PrivateCounts) -> None:
        """Tell the learner."""
        self.learner.tell(self.learner.reading(released))

    def greedy(self) -> DeterministicPolicy | None:
        """The learner's own."""
        return self.learner.greedy()

    def state(self) -> dict[str, Plain]:
        """The learner's own."""
        return self.learner.state()

    def restore(self, state: JsonObject) -> None:
        """The learner's own."""
        self.learner.restore(dict(state))


def make_course(
    name: str,
    problem: Problem,
    trust: TrustModel,
    rng: np.random.Generator,
    settings: Mapping[str, object],
    *,
    sampler: Sampler,
    seal: Seal,
) -> Course:
    """The course of a learner of the roster.

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
    if spec.make is not None and issubclass(spec.make, BatchLearner):
        return BatchCourse(spec, problem, trust, rng, settings)
    if spec.make is not None and issubclass(spec.make, StreamLearner):
        from discreet.study.streams import StreamCourse

        return StreamCourse(spec.make, problem, trust, rng, settings, sampler=sampler, seal=seal)
    raise UnsupportedError(
        f"Learner {name!r} runs only in simulations (its losses come from an adversary); use "
        f"'flow-ucb', for instance."
    )


def check_first_release(course: Course) -> None:
    """Refuse a study that has fewer users than a release."""
    if course.problem.episodes < course.fewest:
        raise InvalidInputError(
            f"Expected episodes >= {course.fewest}, the smallest release of this promise, got "
            f"episodes={course.problem.episodes}."
        )


def how_it_ended(users: int, episodes: int, *, closed: bool) -> str:
    """What became of a study of ``episodes`` users that takes nobody any more.

    >>> how_it_ended(59, 60, closed=False)
    'has counted 59 of 60 users, and no batch has only 1'
    """
    if closed:
        return f"was closed after {users} users"
    if users < episodes:
        return f"has counted {users} of {episodes} users, and no batch has only {episodes - users}"
    return f"has counted all its {users} users"


def check_reports_or_episodes(course: Course, data: Data, users: int) -> None:
    """Refuse what is no data of these users. Well-formed episodes pass, whatever they hold."""
    if course.encoded:
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
    data.check(course.plan.shape)
