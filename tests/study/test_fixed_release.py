"""What `tell` leaves, returns, prints and logs follows from the release, whoever people were."""

import copy
import logging
import shutil
import sys

import numpy as np
import pytest

import discreet
from discreet.cli import app as cli
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms.noise import Gaussian
from discreet.study.study import Study
from helpers.fixed_release import differences
from helpers.studies import advance, begin, episodes_of, names, reports_of

TRUSTS = {
    "central": discreet.Central(1, 1e-6),
    "laplace": discreet.Central(1),
    "returning": discreet.Central(1, 1e-6, participations=3),
    "split": discreet.Local(2),
    "shuffle": discreet.Shuffle(2, 1e-6),
    "none": discreet.NoPrivacy(),
}


def anybody(rng, horizon=4):
    """One well-formed episode, whatever the policy says and wherever it begins."""
    rewards = rng.choice([0.0, 0.5, 1.0, rng.random()], (1, horizon))
    return (rng.integers(3, size=(1, horizon + 1)), rng.integers(2, size=(1, horizon)), rewards)


def replaced(data, user, episode):
    """The same people, one of whom did something else."""
    parts = [data.states.copy(), data.actions.copy(), data.rewards.copy()]
    for part, new in zip(parts, episode, strict=True):
        part[user] = new[0]
    return Trajectories(*parts)


def neighbours(study, count, seed=0):
    """Random people of the pending batch, and the same with one of them replaced."""
    rng = np.random.default_rng(seed)
    for pair in range(count):
        data = episodes_of(study, seed + pair)
        for _ in range(pair % 3 * 5):  # some who left the policy before
            data = replaced(data, rng.integers(len(data)), anybody(rng))
        yield data, replaced(data, rng.integers(len(data)), anybody(rng))


def ready(path, kind, trust):
    """A study before its first batch, before a later one, or before its last."""
    study = begin(path, trust, episodes=300 if kind == "last" else 2_000)
    if kind != "first":
        advance(study, 50)
    if kind == "extended":
        study.extend(3_000)
    if kind == "again":
        study.reissue(study.batch_size - 3)
    while kind == "last" and study.users + study.batch_size < study.episodes:
        advance(study, study.batches)
    return study


def public(study):
    """All that a study shows of itself; its policy and value are parts of its answer."""
    shown = [n for n, part in vars(type(study)).items() if isinstance(part, property)]
    over = ("batch_size", "token") if study.finished else ()
    left_out = {"problem", "mechanism", "expected", "policy", "value", *over}
    facts = {n: getattr(study, n) for n in shown if n[0] != "_" and n not in left_out}
    return {**facts, "said": str(study), "state": str(study._saved)}


def told(study, data):
    """All that a study shows after these data."""
    token = study.token if study.encoded else None
    sent = reports_of(study, data) if study.encoded else data
    return [study.tell(sent, users=names(study), token=token), public(study)]


def door(tmp_path, stage, trust, kind=Study):
    """A place with a study that is ready, what tells it, and the study."""
    study = ready(tmp_path / "ready.db", stage, trust)
    prepare = lambda place: shutil.copyfile(study.path, place / "study.db")  # noqa: E731
    act = lambda place, data: told(kind.resume(place / "study.db"), data)  # noqa: E731
    return prepare, act, study


@pytest.mark.parametrize("name", TRUSTS)
def test_neighbours_differ_in_the_release_alone(tmp_path, fixed_release, name):
    prepare, act, study = door(tmp_path, "first", TRUSTS[name])
    pairs = 60 if name == "central" else 15
    fixed_release(prepare, act, neighbours(study, pairs), least=pairs)


@pytest.mark.parametrize("stage", ["later", "extended", "again", "last"])
def test_so_do_those_of_later_batches(tmp_path, fixed_release, stage):
    prepare, act, study = door(tmp_path, stage, TRUSTS["central"])
    fixed_release(prepare, act, neighbours(study, 15), least=15)


def test_a_secure_study_draws_for_nothing_but_its_release(tmp_path, fixed_release):
    study = begin(tmp_path / "ready.db", sampler="secure", seed=None)
    prepare = lambda place: shutil.copyfile(study.path, place / "study.db")  # noqa: E731
    act = lambda place, data: told(discreet.open_study(place / "study.db"), data)  # noqa: E731
    fixed_release(prepare, act, neighbours(study, 20), least=20)


def test_refusals_say_nothing_of_what_people_did(tmp_path, fixed_release):
    """Whoever is refused is refused for a name, a number or a token."""
    study = ready(tmp_path / "ready.db", "later", TRUSTS["central"])
    wrong = [
        {"users": ["user-0", *names(study)[1:]]},  # came before
        {"users": ["one", *names(study)[2:], "one"]},
        {"users": names(study)[1:]},
        {"users": ["", *names(study)[1:]]},
        {"users": names(study), "token": "of another batch"},
        {"users": names(study), "note": {"a": {1, 2}}},  # after the release, by the ledger
    ]
    rng = np.random.default_rng(1)

    def prepare(place):
        shutil.copyfile(study.path, place / "study.db")

    def act(place, told_data):
        data, kind = told_data
        again = discreet.open_study(place / "study.db")
        if kind is None:
            return told(again, data)
        try:
            return again.tell(data, **wrong[kind])
        finally:
            assert again.users == study.users

    pairs = [((one, None), (other, None)) for one, other in neighbours(study, 1)]
    for one, other in neighbours(study, 60, seed=9):
        kind = int(rng.integers(len(wrong)))
        pairs.append(((one, kind), (other, kind)))
    fixed_release(prepare, act, pairs)


def rows_of(data, people):
    """A table of episodes."""
    lines = ["user,step,state,action,reward"]
    for i, user in enumerate(people):
        for h in range(data.horizon):
            lines.append(
                f"{user},{h},{data.states[i, h]},{data.actions[i, h]},{data.rewards[i, h]}"
            )
    return "\n".join(lines) + "\n"


def commanded(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["discreet", "study", *map(str, arguments)])
    cli.main()


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_the_command_prints_the_same(tmp_path, fixed_release, monkeypatch, more):
    form = {"columns": {"user": "user"}}
    study = begin(tmp_path / "ready.db", table=form)
    people = names(study)

    def prepare(place):
        shutil.copyfile(study.path, place / "study.db")

    def act(place, data):
        (place.parent / "week.csv").write_text(rows_of(data, people))
        commanded(monkeypatch, "tell", "study.db", place.parent / "week.csv", *more)

    fixed_release(prepare, act, neighbours(study, 30), least=30)


class Logs(Study):
    """Logs one number of the data."""

    def _release(self, data, users):
        logging.getLogger("study").debug("%d", data.actions.sum())
        return super()._release(data, users)


class Prints(Study):
    def _release(self, data, users):
        sys.stdout.write(str(data.rewards.sum()))
        return super()._release(data, users)


class Caches(Study):
    """A file whose size is a fact about people."""

    def _release(self, data, users):
        self.path.with_suffix(".cache").write_bytes(bytes(int(data.states.sum())))
        return super()._release(data, users)


class Refuses(Study):
    def _release(self, data, users):
        if not data.followed(self._support()).all():
            raise discreet.errors.StudyError("Somebody left the policy; nothing was counted.")
        return super()._release(data, users)


class Draws(Study):
    """How many left the policy is how far a stored generator has gone."""

    def _release(self, data, users):
        self._generators["policy"].random(int((~data.followed(self._support())).sum()))
        return super()._release(data, users)


class Calibrates(Study):
    """The noise is chosen by looking at the data."""

    def _release(self, data, users):
        learner = self.learner
        learner.mechanism = copy.copy(learner.mechanism)
        wider = Gaussian(float(1 + data.rewards.sum()))
        object.__setattr__(learner.mechanism, "noise", wider)
        return super()._release(data, users)


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (Logs, "logged"),
        (Prints, "printed"),
        (Caches, "file study.cache"),
        (Refuses, "raised"),
        (Draws, "file study.db"),
        (Calibrates, "public facts of the releases"),
    ],
)
def test_whatever_else_depends_on_people_is_found(tmp_path, kind, where):
    prepare, act, study = door(tmp_path, "first", TRUSTS["central"], kind)
    found, _ = differences(prepare, act, neighbours(study, 5), tmp_path / "place")
    assert where in found
