"""`check_study` passes sound studies and catches each of these broken ones."""

import hashlib
import logging

import numpy as np
import pytest

import discreet
from discreet._files import temporary_of
from discreet.errors import StudyError
from discreet.privacy import trust as trust_models
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.study import check_study, ledger, participants, store
from discreet.study.check import _small
from discreet.study.participants import split
from discreet.study.study import Study
from helpers.studies import sql

SIZE = {"states": 3, "actions": 2, "horizon": 3, "episodes": 400, "start_states": [0]}


def config_of(path, sampler="simulation", trust=None, learner="flow-ucb"):
    seed = 3 if sampler == "simulation" else None
    trust = trust or discreet.Central(1, 1e-6)
    study = discreet.start(path, learner=learner, trust=trust, sampler=sampler, seed=seed, **SIZE)
    return study.config


@pytest.fixture
def said(tmp_path):
    """What the check says of a class of studies."""

    def report(kind, sampler="simulation"):
        config = config_of(tmp_path / f"{kind.__name__}.db", sampler)
        return " ".join(check_study(lambda path: kind.begin(path, config)).problems)

    return report


@pytest.mark.parametrize(
    "trust",
    [
        discreet.Central(1, 1e-6),
        discreet.Central(1),
        discreet.Local(1),
        discreet.Local(1, mechanism="one-step"),
        discreet.Shuffle(2, 1e-6),
        discreet.NoPrivacy(),
        discreet.Central(1e6),  # hardly any noise: nothing to judge by, nothing to complain about
    ],
    ids=str,
)
def test_sound_studies_pass(tmp_path, trust):
    config = config_of(tmp_path / "study.db", trust=trust)
    assert check_study(lambda path: Study.begin(path, config)).problems == ()


@pytest.mark.parametrize(
    ("learner", "trust"),
    [
        ("pe", trust_models.NoPrivacy()),
        ("sdp-pe", trust_models.Shuffle(2, 1e-6)),
    ],
)
def test_other_learners_pass(tmp_path, learner, trust):
    config = config_of(tmp_path / "study.db", trust=trust, learner=learner)
    assert check_study(lambda path: Study.begin(path, config)).ok


def test_a_secure_study_passes_and_is_only_read(tmp_path):
    pytest.importorskip("opendp")
    path = tmp_path / "study.db"
    config_of(path, "secure")
    before = path.read_bytes()
    report = check_study(path)
    assert report.ok
    guarantee = "(1, 1e-06)-JDP, one user's whole episode, replace-one"
    assert report.to_dict() == {"name": str(path), "problems": [], "guarantee": guarantee}
    assert check_study(discreet.resume(path)).ok
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == ["study.db"]


def test_throwaway_studies_are_small_and_have_their_own_ties():
    config = {"episodes": 10**7, "sampler": "secure", "seed": 5, "settings": {}}
    assert _small(config)["episodes"] == 2_000
    assert _small(config)["seed"] != 5
    assert _small({**config, "sampler": "simulation"})["seed"] == 5


class LastBatchOnly(Study):
    def _check_new(self, people, change):
        last = sql(self.path, "SELECT digests FROM users ORDER BY id DESC LIMIT 1")
        for digest in split(last[0][0] if last else b""):
            if digest in people:
                raise participants.seen_before(people[digest])


class ForgetfulFile(Study):
    def _count(self, released, people, batch, change, note):
        super()._count(released, people, batch, change, note)
        change._connection.execute("DELETE FROM users WHERE number < ?", (change.tail.number,))


def test_users_of_the_last_batch_only(said):
    assert "2 batches before the last can take part again" in said(LastBatchOnly)
    assert "ended early" in said(ForgetfulFile)


class Seeded(Study):
    def _sampler(self):
        return SimulationSampler(self._generators["noise"])


class Posing(SimulationSampler):
    secure = True


class SeededAndPosing(Study):
    def _sampler(self):
        return Posing(self._generators["noise"])


def test_seeded_noise_in_a_secure_study(said):
    pytest.importorskip("opendp")
    assert "says its noise is secure" in said(Seeded, "secure")
    assert "it is seeded" in said(SeededAndPosing, "secure")


class Noiseless(Study):
    def _release(self, data, users):
        plan = self.mechanism
        true = data.counts(plan.shape, self._generators["rounding"], self._support())
        noisy = plan.release(true, sampler=self._sampler(), support=true.support)
        for name in ("transitions", "visits", "rewards"):
            if getattr(noisy, f"row_{name}") is not None:
                getattr(noisy, f"row_{name}")[:] = getattr(true, f"row_{name}")
        return noisy


def test_no_noise(said):
    assert "no noise at all" in said(Noiseless)


class Keeps(Study):
    """Writes something more into the file."""

    more = 0

    def _state(self):
        return {**super()._state(), "more": self.more}


class RawCounts(Keeps):
    def _release(self, data, users):
        counts = data.counts(self.mechanism.shape, np.random.default_rng(0), self._support())
        self.more = counts.row_transitions.tolist()
        return super()._release(data, users)


class RawBeside(Study):
    def _release(self, data, users):
        self.path.with_suffix(".cache").write_bytes(data.rewards.tobytes())
        return super()._release(data, users)


class DroppedOutStored(Keeps):
    def _release(self, data, users):
        self.more = int((~data.followed(self._support())).any(axis=1).sum())
        return super()._release(data, users)


class DroppedOutHidden(Study):
    """The number of users who left is how far a stored generator has gone."""

    def _release(self, data, users):
        self._generators["policy"].random(int((~data.followed(self._support())).sum()))
        return super()._release(data, users)


class DroppedOutLogged(Study):
    def _release(self, data, users):
        logging.getLogger("study").info("%d steps", data.followed(self._support()).sum())
        return super()._release(data, users)


class DroppedOutReturned(Study):
    def tell(self, data, **options):
        seen = []
        super().tell(data, dropped_out=seen.append, **options)
        return seen[0]


class DroppedOutShown(Study):
    left = 0

    @property
    def dropped_out(self):
        return self.left

    def tell(self, data, **options):
        super().tell(data, dropped_out=lambda count: setattr(self, "left", count), **options)


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (RawCounts, "file study.db"),
        (RawBeside, "file study.cache"),
        (DroppedOutStored, "file study.db"),
        (DroppedOutHidden, "file study.db"),
        (DroppedOutLogged, "log"),
        (DroppedOutReturned, "returned value"),
        (DroppedOutShown, "attribute dropped_out"),
    ],
)
def test_raw_data_that_stays(said, kind, where):
    assert f"depends on raw data, not on the release alone: {where}." in said(kind)


class Refusing(Study):
    def _release(self, data, users):
        if not data.followed(self._support()).all():
            raise StudyError("A trajectory does not follow the policy; nothing was counted.")
        return super()._release(data, users)


class CountsOn(Study):
    """Who left the policy counts again as soon as a step is on it."""

    def _release(self, data, users):
        plan = self.mechanism
        counts = data.counts(plan.shape, self._generators["rounding"])
        return plan.release(counts, sampler=self._sampler(), support=self._support())


def test_who_left_the_policy(said):
    assert "refused for what its episodes hold (1 users left" in said(Refusing)
    assert "as nothing after it" in said(CountsOn)


def test_names_in_two_spellings(said, monkeypatch):
    monkeypatch.setattr(participants, "person", str)
    found = said(Study)
    assert "white space around it" in found
    assert "another Unicode form" in found
    assert "an invisible mark in it" in found
    assert "a variation selector behind it" in found
    assert "in wide letters" in found
    assert "without a name is accepted: None" in found


class NamesWithoutKey(Study):
    def _people(self, users, batch):
        people = super()._people(users, batch).values()
        return dict(sorted((hashlib.md5(name.encode()).digest(), name) for name in people))


class NamesKept(Keeps):
    def _people(self, users, batch):
        self.more = [participants.person(user) for user in users]
        return super()._people(users, batch)


def test_names_on_the_disk(said):
    assert "without a key stands in study.db" in said(NamesWithoutKey)
    assert "The name of a user stands in study.db" in said(NamesKept)


class AnyCopy(Study):
    @classmethod
    def resume(cls, path, head=None):
        return super().resume(path)


class NoHead(Study):
    @property
    def head(self):
        self._kept = getattr(self, "_kept", super().head)
        return self._kept


def test_older_copies_and_edits(said, monkeypatch):
    assert "older copy is accepted although the head is known" in said(AnyCopy)
    assert "head does not change" in said(NoHead)
    monkeypatch.setattr(ledger, "hash_of_rows", lambda rows: "")
    assert "An edit of 'evidence.shape' in the file is not noticed" in said(Study)


class WritesWhenRead(Study):
    @property
    def batch_size(self):
        sql(self.path, "UPDATE config SET id = 1")
        return super().batch_size


def test_reads_that_write(said):
    assert "Reading a study (batch_size" in said(WritesWhenRead)


class LeavesTheLog(Study):
    """A log that a crash left is copied away and comes back, as if nobody had removed it."""

    @classmethod
    def resume(cls, path, head=None):
        log = path.with_name(f"{path.name}-wal")
        left = log.read_bytes() if log.exists() else None
        study = super().resume(path, head)
        if left is not None:
            log.write_bytes(left)
        return study


class BelievesTheFileAlone(Study):
    @classmethod
    def resume(cls, path, head=None):
        if not path.with_name(f"{path.name}-shm").exists():  # nobody is at work on it
            path.with_name(f"{path.name}-wal").unlink(missing_ok=True)
        return super().resume(path, head)


def test_what_a_killed_process_left(said, monkeypatch):
    assert "log of a killed process outlives `resume`" in said(LeavesTheLog)
    assert "goes on with the other state" in said(BelievesTheFileAlone)
    monkeypatch.setattr(store, "remove_leftovers", lambda path: None)
    monkeypatch.setattr(store, "_check_name", lambda path: None)
    found = said(type("StrayStudy", (Study,), {}))
    assert "a start that was cut short outlives `resume`" in found
    assert "a start that was cut short can be resumed" in found


class RoundsOnlyWhatNeedsIt(Study):
    """How many rewards lie strictly between 0 and 1 is how far a stored generator has gone."""

    def _release(self, data, users):
        self._generators["rounding"].random(int(((data.rewards > 0) & (data.rewards < 1)).sum()))
        return super()._release(data, users)


def test_a_generator_that_follows_the_rewards(said):
    assert "depends on raw data" in said(RoundsOnlyWhatNeedsIt)


class LooksProtected(Study):
    @property
    def guarantee(self):
        return self.mechanism.guarantee


def test_a_rehearsal_that_does_not_say_so(said):
    assert "does not say 'SIMULATED, protects nobody'" in said(LooksProtected)


def test_an_edited_file_is_not_checked_but_refused(tmp_path):
    path = tmp_path / "study.db"
    config_of(path)
    sql(path, "UPDATE config SET config = replace(config, '\"epsilon\":1', '\"epsilon\":5')")
    with pytest.raises(StudyError, match="edited or damaged"):
        check_study(str(path))


def test_a_check_removes_nothing_beside_the_study(tmp_path):
    """Leftovers of a killed process go when the study is resumed, not when it is looked at."""
    path = tmp_path / "study.db"
    config_of(path)
    left = temporary_of(path, 7)
    left.write_bytes(path.read_bytes())
    steps = []
    assert check_study(path, progress=steps.append).ok
    assert left.exists()
    assert {"noise", "stored", "killed"} <= set(steps)
    with pytest.raises(StudyError, match="is an older copy or another study"):
        check_study(discreet.resume(path), head="0" * 64)
