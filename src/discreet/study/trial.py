"""Throwaway studies for `check_study`: made-up users, copies of files, a watch on the releases."""

import itertools
import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import BoolArray, IntArray
from discreet.mdp.counts import Counts
from discreet.mdp.simulation import sample_trajectories
from discreet.mdp.tabular import TabularMDP
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms.shuffle import shuffle
from discreet.privacy.plans import BatchPlan
from discreet.privacy.sampling.samplers import Sampler, SimulationSampler
from discreet.privacy.statistics import PrivateCounts
from discreet.study.study import Study

Data = Trajectories | ArrayLike


@dataclass
class Trial:
    """A folder in which studies of one configuration are made, each in a folder of its own."""

    folder: Path
    make: Callable[[Path], Study]
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def fresh(self) -> Study:
        """A new study."""
        return self.make(self._new_folder() / "study.json")

    def twin(self, study: Study) -> Study:
        """The same study once more, from a copy of its file."""
        where = self._new_folder() / study.path.name
        shutil.copyfile(study.path, where)
        return type(study).resume(where)

    def _new_folder(self) -> Path:
        folder = self.folder / str(next(self._numbers))
        folder.mkdir()
        return folder


class Watch:
    """Stands before a plan: sees what is released, and can replace it by a release of before."""

    def __init__(self, plan: BatchPlan, frozen: PrivateCounts | None = None) -> None:
        self._plan, self._frozen = plan, frozen
        self.counts: Counts | None = None
        self.released: PrivateCounts | None = None
        self.secure: bool | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    def release(
        self, counts: Counts, *, sampler: Sampler, played: BoolArray | None = None
    ) -> PrivateCounts:
        """As `BatchPlan.release`."""
        self.counts, self.secure = counts, sampler.secure
        self.released = self._frozen or self._plan.release(counts, sampler=sampler, played=played)
        return self.released

    def release_reports(
        self,
        reports: IntArray,
        users: int,
        *,
        secure: bool = True,
        played: BoolArray | None = None,
    ) -> PrivateCounts:
        """As `BatchPlan.release_reports`."""
        self.secure = secure
        self.released = self._frozen or self._plan.release_reports(
            reports, users, secure=secure, played=played
        )
        return self.released


def watch(study: Study, frozen: PrivateCounts | None = None) -> Watch:
    """Put a `Watch` before the plan of a running study."""
    seen = Watch(study._learner.plan, frozen)
    study._learner.plan = cast(BatchPlan, seen)
    return seen


def episodes(study: Study, seed: int) -> Trajectories:
    """Made-up users of the pending batch, who follow its policy in a world of pure chance."""
    problem = study._learner.problem
    shape = problem.shape
    world = TabularMDP(
        transitions=np.full(shape.transitions, 1 / shape.states),
        rewards=np.full(shape.visits, 0.5),
        initial=problem.start / problem.start.sum(),
    )
    rng = np.random.default_rng(seed)
    return sample_trajectories(world, study.ask(), study.batch_size, rng)


def strayed(study: Study, data: Trajectories, users: int) -> Trajectories:
    """The same, the first ``users`` of whom leave the policy, at step 0, 1, ..., if they can."""
    states, actions = data.states.copy(), data.actions.copy()
    played = played_of(study)
    for user in range(min(users, len(data))):
        step = user % data.horizon
        away = np.argwhere(~played[step])
        if len(away):
            states[user, step], actions[user, step] = away[user % len(away)]
    return Trajectories(states, actions, data.rewards)


def played_of(study: Study) -> BoolArray:
    """What the pending policy can play."""
    problem = study._learner.problem
    return study.ask().played(problem.shape, problem.start)


def told_data(study: Study, data: Trajectories, seed: int = 0) -> Data:
    """What `tell` takes: the episodes, or the reports that devices make of them."""
    if not study._encoded:
        return data
    device = SimulationSampler(np.random.default_rng(seed))
    encoder = study.encoder()
    reports = np.concatenate(
        [
            encoder.encode(data.states[i], data.actions[i], data.rewards[i], device)
            for i in range(len(data))
        ]
    )
    return shuffle(reports, device) if study.guarantee.notion == "SDP" else reports


def names(study: Study, first: str | None = None) -> list[str]:
    """New names for the pending batch, the first of which can be given."""
    fresh = [f"person-{study.users + i}-of-the-trial" for i in range(study.batch_size)]
    return fresh if first is None else [first, *fresh[1:]]


def tell(study: Study, data: Trajectories, users: list[Any] | None = None) -> object:
    """Tell made-up data; what `tell` returns."""
    token = study.token if study._encoded else None
    call: Callable[..., object] = study.tell
    return call(told_data(study, data), users=names(study) if users is None else users, token=token)


def files_of(study: Study) -> dict[str, bytes]:
    """Everything on the disk in the study's folder."""
    return {p.name: p.read_bytes() for p in study.path.parent.rglob("*") if p.is_file()}


class Log(logging.Handler):
    """Collects what is logged while it is open."""

    def __init__(self) -> None:
        super().__init__(0)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        self.lines.append(record.getMessage())

    def __enter__(self) -> "Log":
        root = logging.getLogger()
        self._level = root.level
        root.addHandler(self)
        root.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_: object) -> None:
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._level)
