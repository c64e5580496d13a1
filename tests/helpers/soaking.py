"""Studies under strain: killed while they tell, told by several processes, with many users."""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import time
import warnings
from unittest import mock

import numpy as np

import discreet
from discreet._spelling import digest_of, person
from discreet.errors import StudyError
from discreet.learners import registry
from discreet.learners.base import Batch, BatchLearner
from discreet.learners.registry import LearnerSpec
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.trajectories import Trajectories
from discreet.study.participants import split
from helpers.studies import advance, begin, episodes_of, names, sql

KINDS = {
    "central": {"trust": discreet.Central(1, 1e-6)},
    "local": {"trust": discreet.Local(1)},
    "shuffle": {"trust": discreet.Shuffle(2, 1e-6)},
    "returning": {"trust": discreet.Central(1, 1e-6, participations=3)},
}
_MOST = 12
"""Users per batch: kills shall meet many tells."""


def start(path, kind):
    return begin(path, episodes=2_000, **KINDS[kind])


def step(study):
    """One more batch, the same in every run that is at this point."""
    fixed = study.all_must_come
    if fixed and study.batch_size > _MOST:
        study.reissue(_MOST)
    advance(study, study.batches, users=min(_MOST, study.batch_size))


def killed_while_telling(path, seconds, one=step):
    """Tell in a process of its own, kill it after so long; how many batches it said it counted."""
    reading, writing = os.pipe()
    child = fork()
    if not child:
        _tell_for_ever(path, writing, one)
    os.close(writing)
    os.read(reading, 1)  # it has resumed
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as rest:
        return len(rest.read())


def fork():
    """Newer Pythons warn of threads; the child uses none and ends without cleaning up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _tell_for_ever(path, writing, one):
    """Never returns."""
    try:
        study = discreet.open_study(path)
        os.write(writing, b"r")
        while not study.finished:
            one(study)
            os.write(writing, b"t")
        time.sleep(60)
    finally:
        os._exit(1)


def check_kills(folder, kind, kills, seed=0):
    """Kill a study again and again: every batch is counted once, and the same as without kills."""
    draw = random.Random(f"{kind}{seed}")
    path = folder / "killed.db"
    pace = _pace(folder, kind)
    start(path, kind)
    counted = met = 0
    for _ in range(kills):
        said = killed_while_telling(path, draw.uniform(0.0, 3 * pace))
        met += any(p.name != path.name for p in folder.iterdir())
        study = discreet.open_study(path)
        study.verify()
        assert [p.name for p in folder.iterdir()] == [path.name]  # no stray files
        assert counted + said <= study.batches <= counted + said + 1
        assert study.users == sum(entry.get("users", 0) for entry in study.ledger)
        counted = study.batches
    whole = start(folder / "whole.db", kind)
    while whole.batches < counted:
        step(whole)
    assert whole.users == study.users
    assert whole.ask().key == study.ask().key
    assert str(whole.value) == str(study.value)
    (folder / "whole.db").unlink()
    return {"kind": kind, "kills": kills, "batches": counted, "inside a change": met}


ALWAYS = ("mallory", " mallory\u200b")
"""A person who wants to be counted in every batch, by another spelling if need be."""


def step_with_somebody_who_returns(study):
    """One more batch: with her if she is let in, and without her if not."""
    for spelling in ALWAYS:
        users = min(_MOST, study.batch_size)
        data, people = episodes_of(study, study.batches, users), names(study, users)
        with contextlib.suppress(StudyError):
            return study.tell(data, users=[spelling, *people[1:]])
    return step(study)


def check_returning(folder, kills, seed=0):
    """Whatever is killed when: a person is in as many batches as is guaranteed for, and no more."""
    path, draw, trust = folder / "returning.db", random.Random(seed), KINDS["returning"]["trust"]
    pace = _pace(folder, "returning")
    fresh, most = 0, 0
    for kill in range(kills + 1):
        if not path.exists():
            start(path, "returning")
            fresh += 1
        if kill < kills:
            killed_while_telling(path, draw.uniform(0.0, 4 * pace), step_with_somebody_who_returns)
        study = discreet.open_study(path)
        for _ in range(0 if kill < kills else trust.participations + 1):  # let in so often
            step_with_somebody_who_returns(study)
        study.verify()
        digest = digest_of(person(ALWAYS[0]), study._key)
        counted = [split(part).count(digest) for (part,) in sql(path, "SELECT digests FROM users")]
        assert max(counted, default=0) <= 1  # in a batch once
        assert sum(counted) <= trust.participations
        most = max(most, sum(counted))
        if study.finished or study.batches > 3 * trust.participations:
            path.unlink()  # another study: the first batches are what she is after
    return {"returning": trust.participations, "kills": kills, "studies": fresh, "most": most}


def _pace(folder, kind):
    """Seconds of a tell, once everything that it needs is compiled: before any process forks."""
    study = start(folder / "pace.db", kind)
    step(study)
    begun = time.monotonic()
    for _ in range(3):
        step(study)
    study.path.unlink()
    return (time.monotonic() - begun) / 3


def killed_at(path, statement, act):
    """Do ``act(study)`` in a process of its own, killed as so many statements have run.

    Returns whether it was killed (else it had fewer), and the statement that was about to run.
    """
    reading, writing = os.pipe()
    child = fork()
    if not child:
        _act_until(path, statement, act, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        last = file.read().decode()
    _, status = os.waitpid(child, 0)
    if not (os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0):
        raise RuntimeError(f"the process failed at statement {statement}")
    return os.WIFSIGNALED(status), last


def _act_until(path, statement, act, writing):
    """Never returns."""
    connect, left = sqlite3.connect, [statement]

    def count(text):
        if not left[0]:
            os.write(writing, text.encode())
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def traced(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.set_trace_callback(count)
        return connection

    code = 1
    try:
        study = discreet.open_study(path)
        sqlite3.connect = traced
        act(study)
        code = 0
    finally:
        os._exit(code)


def check_close(folder, kind, *, extended=0):
    """Kill `close` before each of its statements: it has happened from the commit on, once.

    Or `extend` to so many users.
    """
    path, fresh = folder / "closed.db", folder.with_name(f"{folder.name}-{kind}.db")
    word = "extend" if extended else "close"

    def act(study):
        study.extend(extended) if extended else study.close()

    def acted(study):
        return study.episodes == extended if extended else study.finished

    study = start(fresh, kind)
    step(study)
    before, users, committed = study.head, study.users, False
    said, kills, closed = [], 0, None
    while True:
        shutil.copy(fresh, path)
        was_killed, statement = killed_at(path, kills, act)
        if not was_killed:
            break
        committed = bool(said) and (committed or said[-1] == "COMMIT")
        said.append(statement)
        kills += 1
        study = discreet.open_study(path, before)
        study.verify()
        assert [p.name for p in folder.iterdir()] == [path.name]  # no stray files
        assert acted(study) == committed, said
        assert (study.head == before) == (not committed)
        if not committed:
            act(study)
        assert [entry["kind"] for entry in study.ledger].count(word) == 1
        assert acted(study) and study.users == users
        closed = closed or study.head
        assert study.head == closed  # the same end, whoever wrote it
        path.unlink()
    assert "COMMIT" in said and said[-1] != "COMMIT"
    path.unlink()
    fresh.unlink()
    return {word: kind, "kills": kills, "after the commit": len(said) - 1 - said.index("COMMIT")}


class Steady(BatchLearner):
    """Asks for batches of one size and one policy: what a batch costs is what the study costs."""

    statistics = ("transitions", "rewards")
    size = 10_000

    def __init__(self, problem, plan, rng, **settings):
        super().__init__(problem, plan, rng)
        self.told = 0

    def ask(self):
        shape = self.problem.shape
        policy = DeterministicPolicy(np.zeros((shape.horizon, shape.states), np.int64))
        return Batch(policy, min(self.size, self.problem.episodes - self.told))

    def tell(self, counts):
        self.told += counts.users

    def state(self):
        return {"told": self.told}

    def restore(self, state):
        self.told = state["told"]


@contextlib.contextmanager
def steady(size):
    """Batches of one size, while this lasts: tests of the registry must not meet the learner."""
    Steady.size = size
    spec = LearnerSpec(
        name="steady",
        summary="for tests",
        paper="none",
        schedule="batch",
        trusts=("central",),
        make=Steady,
    )
    with mock.patch.dict(registry._REGISTERED, steady=spec):
        yield


def crowd(path, users, report=lambda *_: None):
    """Tell so many users in `steady` batches; bytes of the file after each, and seconds.

    The users of a batch are drawn before the clock of the processor is read.
    """
    study = begin(path, learner="steady", episodes=users)
    bytes_, seconds = [path.stat().st_size], []
    while not study.finished:
        first, number = study.users, study.batch_size
        states = np.zeros((number, 5), np.int64)
        data = Trajectories(states, np.zeros((number, 4), np.int64), np.zeros((number, 4)))
        people = range(first, first + number)
        begun = time.process_time()
        study.tell(data, users=people)
        seconds.append(time.process_time() - begun)
        bytes_.append(path.stat().st_size)
        report(study.batches, seconds[-1])
    return study, bytes_, seconds


def race(path, kind, batches, processes=2):
    """Several processes tell one study until each of them got so many batches in; how many did."""
    start(path, kind)
    pipes = []
    for number in range(processes):
        reading, writing = os.pipe()
        if not fork():
            _run(path, number, batches, writing)
        os.close(writing)
        pipes.append(reading)
    told = []
    for reading in pipes:
        with os.fdopen(reading, "rb") as file:
            told.append(len(file.read()))
    for _ in pipes:
        os.wait()
    return told


def _run(path, number, batches, writing):
    """Never returns: asks, and tells new users of its own, until it told so many."""
    try:
        study, own = discreet.open_study(path), 0
        while own < batches and not study.finished:
            with contextlib.suppress(StudyError):  # the other was first: ask again
                study.refresh()
                data = _one_user(study)
                study.tell(data, users=[f"{number}-{own}"])
                own += 1
                os.write(writing, b"t")
    finally:
        os._exit(0)


def _one_user(study):
    actions = study.ask().support(study.names.shape).argmax(axis=2)[:, :1].T
    return Trajectories(np.zeros((1, 5), np.int64), actions, np.zeros((1, 4)))
