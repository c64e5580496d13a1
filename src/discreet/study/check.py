"""`check_study`: does a study keep its guarantee on the disk, across restarts, and in its noise?

All checks run on throwaway studies of the same configuration, in a temporary folder, with made-up
users. The strongest asks what the file may depend on: copies of one study are told different data
while the release is held fixed. Then everything stored must agree byte for byte, for what is stored
is to be a function of the release, of the names and of public facts. Raw counts, rewards or the
number of users who left the policy would show, in whatever form they are kept.
"""

import contextlib
import copy
import dataclasses
import hashlib
import itertools
import json
import logging
import math
import secrets
import shutil
import sqlite3
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet._files import temporary_of
from discreet._types import BoolArray, Checked, FloatArray, IntArray, JsonObject, Plain
from discreet.errors import DiscreetError, InvalidInputError, MissingExtraError
from discreet.mdp.counts import Counts
from discreet.mdp.simulation import sample_trajectories
from discreet.mdp.tabular import TabularMDP
from discreet.mdp.trajectories import Trajectories
from discreet.privacy import trust as trust_models
from discreet.privacy.guarantee import REHEARSED
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.statistics import PrivateCounts
from discreet.study.store import Store
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
        return self.make(self._new_folder() / "study.db")

    def twin(self, study: Study) -> Study:
        """The same study once more, from a copy of its file."""
        where = self._new_folder() / study.path.name
        shutil.copyfile(study.path, where)
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
    """Sees what a mechanism releases, and can replace it by a ``frozen`` release of before."""

    def __init__(self, frozen: PrivateCounts | None = None) -> None:
        self._frozen = frozen
        self.counts: Counts | None = None
        self.released: PrivateCounts | None = None
        self.secure: bool | None = None

    def over(self, mechanism: BatchMechanism) -> BatchMechanism:
        """The same mechanism, of the same class and capabilities, under watch."""

        def release(counts: Counts, **options: Any) -> PrivateCounts:
            self.counts, self.secure = counts, options["sampler"].secure
            self.released = self._frozen or mechanism.release(counts, **options)
            return self.released

        def release_reports(reports: IntArray, users: int, **options: Any) -> PrivateCounts:
            self.secure, made = options["secure"], mechanism
            self.released = self._frozen or made.release_reports(reports, users, **options)
            return self.released

        watched = copy.copy(mechanism)  # mechanisms are frozen, and this copy of one is ours
        if mechanism.takes_counts:
            object.__setattr__(watched, "release", release)
        if mechanism.takes_reports:
            object.__setattr__(watched, "release_reports", release_reports)
        return watched


def watch(study: Study, frozen: PrivateCounts | None = None) -> Watch:
    """Put the mechanism of a running study under watch."""
    seen = Watch(frozen)
    study.learner.mechanism = seen.over(study.learner.mechanism)
    return seen


def episodes(study: Study, seed: int) -> Trajectories:
    """Made-up users of the pending batch, who follow its policy in a world of pure chance."""
    problem = study.problem
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
    support = support_of(study)
    for user in range(min(users, len(data))):
        step = user % data.horizon
        away = np.argwhere(~support[step])
        if len(away):
            states[user, step], actions[user, step] = away[user % len(away)]
    return Trajectories(states, actions, data.rewards)


def support_of(study: Study) -> BoolArray:
    """What the pending policy can play."""
    problem = study.problem
    return study.ask().support(problem.shape, problem.start)


def told_data(study: Study, data: Trajectories, seed: int = 0) -> Data:
    """What `tell` takes: the episodes, or the reports that devices make of them."""
    if not study.encoded:
        return data
    device = SimulationSampler(np.random.default_rng(seed))
    encoder = study.encoder()
    reports = np.concatenate(
        [
            encoder.encode(data.states[i], data.actions[i], data.rewards[i], device)
            for i in range(len(data))
        ]
    )
    mixed = study.guarantee.notion == "SDP"
    return reports[device.permutation(len(reports))] if mixed else reports


def names(study: Study, first: str | None = None) -> list[str]:
    """New names for the pending batch, the first of which can be given."""
    fresh = [f"person-{study.users + i}-of-the-trial" for i in range(study.batch_size)]
    return fresh if first is None else [first, *fresh[1:]]


def tell(study: Study, data: Trajectories, users: list[Any] | None = None) -> object:
    """Tell made-up data; what `tell` returns."""
    token = study.token if study.encoded else None
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
            other: Any = value + 1_000 if isinstance(value, int) else f"{value}0"
            if isinstance(value, bytes):
                other = bytes([value[0] ^ 1]) + value[1:] if value else b"0"
            yield f"{table}.{column}", _edit(path, change, other, first[0])
        gone = f"DELETE FROM {table} WHERE {columns[0]} = ?"
        yield f"{table}, a row less", _edit(path, gone, first[0])
    yield "a new table", _edit(path, "CREATE TABLE note (text TEXT)")


def _edit(path: Path, statement: str, *values: object) -> Callable[[], None]:
    def run() -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(statement, values)

    return run


def files_of(study: Study) -> dict[str, bytes]:
    """Everything on the disk in the study's folder."""
    return {p.name: p.read_bytes() for p in study.path.parent.rglob("*") if p.is_file()}


class Log(logging.Handler):
    """Collects what is logged while it is open."""

    def __init__(self) -> None:
        super().__init__(0)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
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


_EPISODES = 2_000
"""Throwaway studies have no more users, for speed."""
_SURE = 30.0
"""Noise that is zero everywhere, or twice the same, by chance: less likely than exp(-30)."""
_MARKER = "Zo\u00eb Marker-93751"


@dataclasses.dataclass(frozen=True)
class StudyReport(Checked):
    """What `check_study` found; no problems means fit for real people (if the study is secure).

    Attributes:
        study: its name.
        problems: in sentences.
        guarantee: of the study; a rehearsal's says that it protects nobody.
    """

    study: str
    problems: tuple[str, ...]
    guarantee: str = ""

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON."""
        return {"name": self.study, "problems": list(self.problems), "guarantee": self.guarantee}


def check_study(
    study: Study | str | Path | Callable[[Path], Study],
    head: str | None = None,
    *,
    progress: Callable[[str], object] = lambda _: None,
) -> StudyReport:
    """Check a study for the ways in which its guarantee is lost in practice.

    It rejects seeded or missing noise in a secure study, noise that a copy of the file takes away,
    raw data or names on the disk, users who are forgotten (after the next batch or a restart) or
    who come again in another spelling, older copies and edited files that are accepted, releases
    that a killed process left behind, reads that write, and a batch that is refused because
    somebody left the policy.

    Args:
        study: a running study, the path of one, the name of a learner (a small secure study is
            made), or a function that starts a study at a path. The study itself is only read: what
            is checked are throwaway studies of its configuration, with at most 2,000 users.
        head: the `Study.head` that you noted last; an older copy of the file is refused.
        progress: called with what is being checked.

    >>> check_study(lambda path: _named("flow-ucb", path, sampler="simulation", seed=0)).ok
    True
    """
    name, make = _factory(study, head)
    with tempfile.TemporaryDirectory() as folder:
        place = Trial(Path(folder), make)
        # What cannot be started is an error of the caller, not a problem of a study.
        guarantee = str(place.fresh().guarantee)
        problems = list[str]()
        for check in _CHECKS:
            progress(check.__name__.strip("_"))
            try:
                problems += check(place)
            except MissingExtraError:
                raise
            except DiscreetError as error:
                problems.append(
                    f"A check ended early, with a refusal that nothing justifies: {error}"
                )
    return StudyReport(name, tuple(dict.fromkeys(problems)), guarantee)


def _factory(
    study: Study | str | Path | Callable[[Path], Study], head: str | None
) -> tuple[str, Any]:
    if isinstance(study, str | Path) and _is_file_name(study):
        study = Study.read(study, head)
    if isinstance(study, Study):
        Store(study.path).read(head)
        kind, config = type(study), _small(study._config)
        return str(study.path), lambda path: kind.begin(path, config)
    if head is not None:
        raise InvalidInputError(
            f"Expected the file of a study with head={head!r}; only a study that was begun has a "
            f"head."
        )
    if isinstance(study, str | Path):
        return str(study), lambda path: _named(str(study), path)
    return getattr(study, "__name__", "study"), study


def _is_file_name(name: str | Path) -> bool:
    """Whether it is meant for a file, which may be missing, and not for a learner."""
    path = Path(name)
    return isinstance(name, Path) or path.exists() or bool(path.suffix) or len(path.parts) > 1


def _small(config: JsonObject) -> dict[str, Plain]:
    """The same configuration with fewer users, and ties of its own in a secure study."""
    secure = config["sampler"] == "secure"
    config = dict(config)
    seed = secrets.randbits(63) if secure else config["seed"]
    return {**config, "episodes": min(config["episodes"], _EPISODES), "seed": seed}


def _named(learner: str, path: Path, **options: object) -> Study:
    """A small study of a learner, under the first trust model that it takes."""
    from discreet.learners.registry import get_learner
    from discreet.study.study import start

    trusts = {
        "central": trust_models.Central(1, 1e-6),
        "shuffle": trust_models.Shuffle(1, 1e-6),
        "local": trust_models.Local(1),
        "none": trust_models.NoPrivacy(),
    }
    trust = next(made for kind, made in trusts.items() if kind in get_learner(learner).trusts)
    size = {"states": 3, "actions": 2, "horizon": 3, "episodes": _EPISODES}
    given: dict[str, Any] = {**size, "start_states": [0], "trust": trust, **options}
    return start(path, learner=learner, **given)


def _noise(place: Trial) -> Iterator[str]:
    """The sampler in use: two releases of one batch differ, and neither is the raw counts."""
    study = place.fresh()
    data, secure = episodes(study, 1), not study.guarantee.simulated
    if not secure and study.guarantee.notion != "none" and REHEARSED not in str(study.guarantee):
        yield f"A rehearsal's guarantee does not say {REHEARSED!r}."
    releases, watches = [], []
    for twin in (place.twin(study), place.twin(study)):
        watched = watch(twin)
        tell(twin, data)
        watches.append(watched)
        parts = [] if watched.released is None else _parts(watched.released)
        releases.append(np.concatenate([np.zeros(0), *parts]))
    if secure != bool(watches[0].secure):
        said, drawn = ("secure", "simulated") if secure else ("simulated", "secure")
        yield f"The study says its noise is {said}, the release was drawn with {drawn} randomness."
    released, counts = watches[0].released, watches[0].counts
    if released is None or counts is None or _certainty(released) < _SURE:
        return  # made from reports, or too little noise to judge by
    if secure and np.array_equal(releases[0], releases[1]):
        yield "Two copies of a secure study release one batch with the same noise: it is seeded."
    raw = [getattr(counts.at(released.support), f"row_{name}") for name in _statistics(released)]
    if np.array_equal(np.concatenate([part.ravel() for part in raw]), releases[0]):
        yield "The released counts carry no noise at all."


def _statistics(released: PrivateCounts) -> list[str]:
    names = ("transitions", "visits", "rewards")
    return [name for name in names if getattr(released, f"row_{name}") is not None]


def _parts(released: PrivateCounts) -> list[FloatArray]:
    return [getattr(released, f"row_{name}").ravel() for name in _statistics(released)]


def _certainty(released: PrivateCounts) -> float:
    """About -log of the chance that all noise is zero, or twice the same.

    The mode of discrete Laplace and Gaussian noise has probability at most 1/sqrt(2·variance), and
    about 1 - variance where that is small.
    """
    total = 0.0
    for name in _statistics(released):
        variance = released.noise_variance[name]
        surprise = max(min(variance, 0.3), math.log(2 * max(variance, 0.5)) / 2)
        total += surprise * getattr(released, f"row_{name}").size
    return float(total)


def _stored(place: Trial) -> Iterator[str]:
    """With the release held fixed, nothing that stays depends on the data."""
    study = place.fresh()
    first = place.twin(study)
    watched = watch(first)
    tell(first, episodes(study, 1))
    crowd = study.batch_size
    traces = []
    told = [(1, 0, None), (2, 0, None), (2, 1, None), (2, crowd, None), (2, 0, 0.0), (2, 0, 0.5)]
    for seed, away, reward in told:
        twin = place.twin(study)
        watch(twin, watched.released)
        data = strayed(twin, episodes(twin, seed), away)
        if reward is not None:  # one needs rounding, the other does not
            data = Trajectories(data.states, data.actions, np.full_like(data.rewards, reward))
        try:
            traces.append(_trace(twin, data))
        except DiscreetError as refusal:
            yield (
                f"A batch is refused for what its episodes hold ({away} users left the policy): "
                f"{refusal}"
            )
    yield from dict.fromkeys(
        f"What stays after `tell` depends on raw data, not on the release alone: {part}."
        for trace in traces[1:]
        for part in trace
        if trace[part] != traces[0].get(part)
    )


def _trace(study: Study, data: Trajectories) -> dict[str, object]:
    with Log() as log:
        returned = tell(study, data)
    files = {f"file {name}": content for name, content in files_of(study).items()}
    public = [name for name in dir(type(study)) if not name.startswith("_")]
    over = ("batch_size", "token") if study.finished else ()  # there is no pending batch
    values = {
        f"attribute {name}": str(getattr(study, name))
        for name in public
        if isinstance(getattr(type(study), name), property) and name not in over
    }
    return {**files, **values, "returned value": returned, "log": tuple(log.lines)}


def _strays(place: Trial) -> Iterator[str]:
    """Who left the policy counts up to that step and not after it."""
    study = place.fresh()
    if study.encoded:
        return
    data = strayed(study, episodes(study, 3), study.batch_size)
    support, watched = support_of(study), watch(study)
    try:
        tell(study, data)
    except DiscreetError:
        return  # reported by `_stored`
    expected = np.zeros(support.shape, np.int64)
    for states, actions in zip(data.states, data.actions, strict=True):
        for step in range(data.horizon):
            if not support[step, states[step], actions[step]]:
                break
            expected[step, states[step], actions[step]] += 1
    if watched.counts is None or not np.array_equal(watched.counts.at(support).visits, expected):
        yield "Users who left the policy are not counted up to that step and as nothing after it."


def _users(place: Trial) -> Iterator[str]:
    """Users are remembered for ever: after other batches and after a restart."""
    yield from _returning(place)
    study, seen = place.fresh(), list[str]()
    if study.guarantee.participations > 1:
        return
    for batch in range(3):
        if study.finished:
            break
        seen.append(names(study)[0])
        tell(study, episodes(study, batch))
        study = type(study).resume(study.path)
    for age, user in enumerate(reversed(seen)):
        if not study.finished and _accepted(place.twin(study), user):
            yield f"A user of {age} batches before the last can take part again."


def _returning(place: Trial) -> Iterator[str]:
    """A person takes part as often as is guaranteed for: no less, and no more."""
    study = place.fresh()
    most = study.guarantee.participations
    for batch in range(most if most > 1 else 0):
        if study.finished:
            return
        if not _accepted(place.twin(study), _MARKER):
            yield f"A user is refused after {batch} of {most} participations."
            return
        tell(study, episodes(study, batch), names(study, _MARKER))
        study = type(study).resume(study.path)
    if most > 1 and not study.finished and _accepted(place.twin(study), _MARKER):
        yield f"A user can take part more than {most} times."


def _names(place: Trial) -> Iterator[str]:
    """One person has one name, and every name is one."""
    study = place.fresh()
    for batch in range(study.guarantee.participations):
        if study.finished:
            return
        tell(study, episodes(study, 1 + batch), names(study, _MARKER))
    yield from _named_on_disk(study)
    if study.finished:
        return
    for what, again in {
        "as it was": _MARKER,
        "with white space around it": f" {_MARKER}\n",
        "in another Unicode form": unicodedata.normalize("NFD", _MARKER),
        "with an invisible mark in it": f"\ufeff{_MARKER}\u200b",
        "with a variation selector behind it": f"{_MARKER}\ufe0f",
        "in wide letters": _MARKER.translate({n: n + 0xFEE0 for n in range(0x21, 0x7F)}),
    }.items():
        if _accepted(place.twin(study), again):
            yield f"A user can take part again under the same name {what}."
    for nobody in (None, "", " ", "\u200b", "\ud800", f"{_MARKER}\0"):
        if _accepted(place.twin(study), nobody):
            yield f"A user without a name is accepted: {nobody!a}."


def _named_on_disk(study: Study) -> Iterator[str]:
    name = _MARKER.encode()
    plain = [name, _MARKER.encode("utf-16-le"), json.dumps(_MARKER)[1:-1].encode()]
    made = [hashlib.new(kind, name).digest() for kind in ("md5", "sha1", "sha256")]
    made += [hashlib.blake2b(name, digest_size=n).digest() for n in (16, 32, 64)]
    digests = [form for one in made for form in (one, one.hex().encode())]
    for file, content in files_of(study).items():
        if any(form in content for form in (*plain, name.hex().encode())):
            yield f"The name of a user stands in {file}."
        if any(form in content for form in digests):
            yield f"A digest of a user's name without a key stands in {file}: it can be guessed."


def _accepted(study: Study, user: object) -> bool:
    try:
        tell(study, episodes(study, 9), [user, *names(study)[1:]])
    except (DiscreetError, UnicodeError):
        return False
    return True


def _copies(place: Trial) -> Iterator[str]:
    """An older copy is refused when the head is known, and so is an edited file."""
    study = place.fresh()
    old, first = study.path.read_bytes(), study.head
    tell(study, episodes(study, 1))
    if study.head == first:
        yield "The head does not change when a batch is told."
    if not _resumes(study, study.head):
        yield "The newest file is refused although its head is given."
    whole = study.path.read_bytes()
    study.path.write_bytes(old)
    if _resumes(study, study.head):
        yield "An older copy is accepted although the head is known: its users can be told twice."
    for part, edit in edits_of(whole, study.path):
        study.path.write_bytes(whole)
        edit()
        if _resumes(study):
            yield f"An edit of {part!r} in the file is not noticed."
    study.path.write_bytes(whole[: len(whole) // 2])
    if _resumes(study):
        yield "A file of which half is lost is accepted."


def _resumes(study: Study, head: str | None = None, path: Path | None = None) -> bool:
    """Whether the file gets past the refusals; if it then breaks something is another matter."""
    try:
        type(study).resume(path or study.path, head)
    except DiscreetError:
        return False
    except Exception:  # an edited value that nobody refused can raise anything
        return True
    return True


def _killed(place: Trial) -> Iterator[str]:
    """What a process that was killed leaves is gone when the study goes on."""
    study = place.fresh()
    left = temporary_of(study.path, 0)  # no process of ours has this number
    left.write_bytes(study.path.read_bytes())
    if _resumes(study, path=left):
        yield "A temporary file of a start that was cut short can be resumed."
    type(study).resume(study.path)
    if left.exists():
        yield "The temporary file of a start that was cut short outlives `resume`."
    before, log = study.path.read_bytes(), log_of_a_tell(study)
    for name, kept, counted in (("cut short", len(log) - 100, 0), ("whole", len(log), 1)):
        copy = place.crashed(before, log[:kept])
        again = type(study).resume(copy)
        if again.batches != counted:
            yield f"A study whose last change is {name} in its log goes on with the other state."
        if any(p.name != copy.name for p in copy.parent.iterdir()):
            yield "The release in the log of a killed process outlives `resume`."


def _reads(place: Trial) -> Iterator[str]:
    """Reading a study writes nothing."""
    study = place.fresh()
    before = _state_of_disk(study)
    read = ("batch_size", "token", "users", "finished", "guarantee", "head", "answer", "ledger")
    for name in read:
        for one in (study, type(study).resume(study.path)):
            getattr(one, name)
            one.ask()
            if one.encoded:
                one.encoder()
        if _state_of_disk(study) != before:
            yield f"Reading a study ({name}, ask, resume) writes to the disk."
            return


def _state_of_disk(study: Study) -> dict[str, tuple[int, bytes]]:
    files = [p for p in study.path.parent.rglob("*") if p.is_file()]
    return {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in files}


_CHECKS: tuple[Callable[[Trial], Iterator[str]], ...] = (
    _noise,
    _stored,
    _strays,
    _users,
    _names,
    _copies,
    _killed,
    _reads,
)
