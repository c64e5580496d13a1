"""Stream learners on real data: one policy per user, one user after the other.

What is kept between two users is what was sent or is noisy: sums of local reports, or the nodes of
a tree that get noise when they open and when they close (`privacy.mechanisms.stored_tree`). The
mechanisms with exact sums in their memory are refused.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet._plain import JsonObject, Plain
from discreet._types import FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.learners.base import Batch, Problem, StreamLearner
from discreet.mdp.policies import DeterministicPolicy, Policy, StochasticPolicy
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.choice import least_noise
from discreet.privacy.mechanisms.stored_tree import MECHANISMS, Seal, StoredTree, on_disk
from discreet.privacy.plans import Encoder, ReportStreamPlan, StreamPlan, unflatten, with_reports
from discreet.privacy.releases import ReportRelease
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.statistics import PrivateCounts, flatten
from discreet.privacy.streams.simulation import no_counts
from discreet.privacy.trust import Central, TrustModel
from discreet.study.courses import Course, Data


class _Sums:
    """Exact sums, for studies that promise nothing."""

    def __init__(self, plan: StreamPlan) -> None:
        self.users = 0
        self._sums = np.zeros(plan.cells, np.int64)

    def add(self, vector: IntArray) -> None:
        """Take one user's counters."""
        self.users += 1
        self._sums += vector

    def release(self) -> IntArray:
        """The sums."""
        return self._sums

    def state(self) -> dict[str, IntArray]:
        """The sums."""
        return {"sums": self._sums}

    def restore(self, state: Mapping[str, IntArray], users: int) -> None:
        """Go on."""
        self.users, self._sums = users, np.array(state["sums"], np.int64)


class StreamCourse(Course):
    """A learner of the stream rhythm."""

    rhythm = "stream"

    def __init__(
        self,
        kind: type[StreamLearner],
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
        self._plan = _plan(problem, trust)
        self.learner = kind(problem, self._plan, rng, chosen)
        self._secure = sampler.secure
        self.running: StoredTree | _Sums | None = None
        self._reports: ReportRelease | None = None
        if isinstance(self._plan, ReportStreamPlan):
            self._reports = self._plan.open(sampler)
        elif trust.notion == "none":
            self.running = _Sums(self._plan)
        else:
            self.running = StoredTree(self._plan, sampler, seal if sampler.secure else None)
        self.counts = no_counts(self._plan)
        self._policy: Policy | None = None

    @property
    def plan(self) -> StreamPlan:
        """The calibrated continual release."""
        return self._plan

    @property
    def sealed(self) -> bool:
        """Sums that are not released yet are written down, sealed."""
        return self._secure and isinstance(self.running, StoredTree)

    def ask(self) -> Batch:
        """The policy for the next user."""
        if self._policy is None:
            self._policy = self.learner.next_policy(self.counts)
        return Batch(self._policy, 1)

    def encoder(self, users: int) -> Encoder:
        """The same for every user."""
        return with_reports(self._plan).encoder()

    def release(
        self, data: Data, users: int, *, sampler: Sampler, rounding: np.random.Generator
    ) -> PrivateCounts:
        """Cumulative statistics after these users."""
        if not isinstance(data, Trajectories):
            return self._add_reports(np.asarray(data), users)
        running, plan = self.running, self._plan
        if running is None:
            raise UnsupportedError("A stream of reports takes no episodes; encode them first.")
        for user in range(users):
            counts = data[user : user + 1].counts(plan.shape, rounding)
            running.add(flatten(counts, plan.statistics, stationary=plan.stationary))
        values = running.release().astype(np.float64)
        return unflatten(values, plan, running.users, secure=sampler.secure)

    def _add_reports(self, reports: IntArray, users: int) -> PrivateCounts:
        released = self.counts
        if self._reports is None or reports.ndim != 2 or len(reports) % users:
            raise UnsupportedError(
                f"Expected the reports of {users} users, as many rows each, one below the other, "
                f"got an array of shape {reports.shape}."
            )
        for report in np.split(reports, users):
            released = self._reports.add_report(report)
        return released

    def learn(self, released: PrivateCounts) -> None:
        """The next question follows from all users so far."""
        self.counts = released
        self._policy = None

    def state(self) -> dict[str, Plain]:
        """Sums or nodes, what was released last, the learner's memory, the pending policy."""
        running = self.running.state() if self.running else {}
        sums = self._reports.sums() if self._reports else running
        state: dict[str, Any] = {
            "users": self.counts.users,
            "sums": {name: part.copy() for name, part in sums.items()},
            "released": _values(self.counts),
            "memory": {name: part.copy() for name, part in self.learner.state().items()},
            "policy": None if self._policy is None else _table(self._policy),
        }
        return state

    def restore(self, state: JsonObject) -> None:
        """Go on from `state`."""
        users = int(state["users"])
        if self.running:
            self.running.restore(state["sums"], users)
        if self._reports:
            self._reports.go_on(state["sums"], users)
        values = np.array(state["released"], np.float64)
        plan, secure = self._plan, self._secure
        self.counts = unflatten(values, plan, users, secure=secure) if users else no_counts(plan)
        self.learner.restore(state["memory"])
        self._policy = None if state["policy"] is None else _policy(state["policy"])


def _plan(problem: Problem, trust: TrustModel) -> StreamPlan:
    """Of central streams one whose memory may be written down, the one with the least noise."""
    options: Any = {"rhythm": "stream", "episodes": problem.episodes}
    options["stationary"] = problem.stationary
    if not isinstance(trust, Central):
        plan: StreamPlan = trust.calibrate(problem.shape, **options)
        return plan
    asked = trust.mechanism
    if asked not in ("auto", *MECHANISMS):
        raise UnsupportedError(
            f"A study keeps its stream on a disk, and one of the mechanism {asked!r} holds exact "
            f"sums; use mechanism='auto' or {' or '.join(map(repr, MECHANISMS))}."
        )
    possible = [asked] if asked != "auto" else list(MECHANISMS[trust.delta == 0 :])
    if trust.printed:
        possible = ["tree-laplace"]
    trusts = [dataclasses.replace(trust, mechanism=name) for name in possible]
    plans: list[StreamPlan] = [one.calibrate(problem.shape, **options) for one in trusts]
    return on_disk(least_noise(plans, problem.episodes))


def _values(counts: PrivateCounts) -> FloatArray:
    """All statistics in one vector, as `unflatten` takes them."""
    parts = [counts.transitions, counts.visits, counts.rewards]
    return np.concatenate([part.ravel() for part in parts if part is not None])


def _table(policy: Policy) -> dict[str, Plain]:
    if isinstance(policy, DeterministicPolicy):
        return {"actions": policy.actions.tolist()}
    if isinstance(policy, StochasticPolicy):
        return {"probabilities": policy.probabilities.tolist()}
    raise UnsupportedError("A stream learner asks for one policy, not for a mixture.")


def _policy(table: JsonObject) -> Policy:
    if "actions" in table:
        return DeterministicPolicy(np.array(table["actions"], np.int64))
    return StochasticPolicy(np.array(table["probabilities"], np.float64))
