"""Throwaway studies for `check_study`: made-up users, copies of files, a watch on the releases."""

import contextlib
import copy
import itertools
import logging
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import BoolArray, IntArray
from discreet.mdp.counts import Counts
from discreet.mdp.simulation import sample_trajectories
from discreet.mdp.tabular import TabularMDP
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms.shuffle import shuffle
from discreet.privacy.mechanisms.stored_tree import StoredTree
from discreet.privacy.plans import BatchPlan, CountsPlan, ReportPlan
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.statistics import PrivateCounts
from discreet.study.courses import BatchCourse
from discreet.study.streams import StreamCourse
from discreet.study.study import Study

Data = Trajectories | ArrayLike


@dataclass
class Trial:
    """A folder in which studies of one configuration are made, each in a folder of its own."""

    folder: Path
    make: Callable[[Path], Study]
    _keys: list[Path] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def fresh(self) -> Study:
        """A new study."""
        study = self.make(self._new_folder() / "study.db")
        if study.key_file:
            self._keys.append(study.key_file)
        return study

    def remove_keys(self) -> None:
        """Of studies that are thrown away: they may stand in the operator's folder of keys."""
        for key in self._keys:
            key.unlink(missing_ok=True)

    def twin(self, study: Study) -> Study:
        """The same study once more, from a copy of its file."""
        where = self._new_folder() / study.path.name
        shutil.copyfile(study.path, where)
        if study.key_file:
            shutil.copyfile(study.key_file, where.with_name(study.key_file.name))
        return type(study).resume(where)

    def crashed(self, file: bytes, log: bytes) -> Path:
        """A study's file and its log, as a crash leaves them, in a folder of their own."""
        where = self._new_folder() / "study.db"
        where.write_bytes(file)
        log_of(where).write_bytes(log)
        return where

    def _new_folder(self) -> Path:
        folder = self.folder / str(next(self._numbers))
        folder.mkdir()
        return folder


class Watch:
    """Sees what a plan releases, and can replace it by a release of before."""

    def __init__(self, frozen: PrivateCounts | None = None) -> None:
        self._frozen = frozen
        self.counts: Counts | None = None
        self.released: PrivateCounts | None = None
        self.secure: bool | None = None

    def over(self, plan: BatchPlan) -> BatchPlan:
        """The same plan, of the same class and capabilities, under watch."""
        watched = copy.copy(plan)
        if isinstance(plan, CountsPlan):
            _replace(watched, "release", self._counts(plan.release))
        if isinstance(plan, ReportPlan):
            _replace(watched, "release_reports", self._reports(plan.release_reports))
        return watched

    def _counts(self, release: Callable[..., PrivateCounts]) -> Callable[..., PrivateCounts]:
        def seen(counts: Counts, **options: Any) -> PrivateCounts:
            self.counts, self.secure = counts, options["sampler"].secure
            self.released = self._frozen or release(counts, **options)
            return self.released

        return seen

    def _reports(self, release: Callable[..., PrivateCounts]) -> Callable[..., PrivateCounts]:
        def seen(reports: IntArray, users: int, **options: Any) -> PrivateCounts:
            self.secure = options["secure"]
            self.released = self._frozen or release(reports, users, **options)
            return self.released

        return seen


def _replace(plan: BatchPlan, method: str, by: Callable[..., PrivateCounts]) -> None:
    """In this one object; plans are frozen, and this copy of one is ours."""
    object.__setattr__(plan, method, by)


def watch(study: Study, frozen: PrivateCounts | None = None) -> Watch:
    """Put the plan of a running study under watch."""
    seen = Watch(frozen)
    course = study._course
    if isinstance(course, BatchCourse):
        course.learner.plan = seen.over(course.learner.plan)
    return seen


def episodes(study: Study, seed: int) -> Trajectories:
    """Made-up users of the pending batch, who follow its policy in a world of pure chance."""
    problem = study._course.problem
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
    problem = study._course.problem
    return study.ask().played(problem.shape, problem.start)


def told_data(study: Study, data: Trajectories, seed: int = 0) -> Data:
    """What `tell` takes: the episodes, or the reports that devices make of them."""
    if not study._course.encoded:
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
    token = study.token if study._course.encoded else None
    call: Callable[..., object] = study.tell
    return call(told_data(study, data), users=names(study) if users is None else users, token=token)


def log_of(path: Path) -> Path:
    """Where SQLite keeps the write-ahead log of a file."""
    return path.with_name(f"{path.name}-wal")


def log_of_a_tell(study: Study) -> bytes:
    """Tell a batch, and what the log of it holds before it is taken into the file."""
    with contextlib.closing(sqlite3.connect(study.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM ledger").fetchone()  # holds the log back
        tell(study, episodes(study, 1))
        return log_of(study.path).read_bytes()


def tree_of(study: Study) -> StoredTree | None:
    """The nodes that a central stream keeps."""
    course = study._course
    nodes = course.running if isinstance(course, StreamCourse) else None
    return nodes if isinstance(nodes, StoredTree) else None


def edits_of(file: bytes, path: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every table of a study with one thing changed: name, and what changes it at ``path``."""
    path.write_bytes(file)
    tables = ("config", "ledger", "users", "evidence")
    for table in tables:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(f"SELECT * FROM {table}")
            columns = [column[0] for column in rows.description]
            first = rows.fetchone()
        for column, value in zip(columns, first, strict=True):
            change = f"UPDATE {table} SET {column} = ? WHERE {columns[0]} = ?"
            yield f"{table}.{column}", _edit(path, change, _other(value), first[0])
        gone = f"DELETE FROM {table} WHERE {columns[0]} = ?"
        yield f"{table}, a row less", _edit(path, gone, first[0])
    yield "a new table", _edit(path, "CREATE TABLE note (text TEXT)")


def _edit(path: Path, statement: str, *values: object) -> Callable[[], None]:
    def run() -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(statement, values)

    return run


def _other(value: Any) -> Any:
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"0"
    return value + 1_000 if isinstance(value, int) else f"{value}0"


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
