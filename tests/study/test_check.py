"""`check_study` passes sound studies and catches each of these broken ones."""

import hashlib
import json
import logging

import numpy as np
import pytest

import discreet
from discreet._files import temporary_of
from discreet.errors import StudyError
from discreet.privacy import trust as trust_models
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.study import chain, check_study, names, study_file
from discreet.study.check import _small
from discreet.study.study import Study

SIZE = {"states": 3, "actions": 2, "horizon": 3, "episodes": 400, "start_states": [0]}


def config_of(path, sampler="simulation", trust=None, learner="flow-ucb"):
    seed = 3 if sampler == "simulation" else None
    trust = trust or discreet.Central(1, 1e-6)
    study = discreet.start(path, learner=learner, trust=trust, sampler=sampler, seed=seed, **SIZE)
    return study._content["config"]


@pytest.fixture
def said(tmp_path):
    """What the check says of a class of studies."""

    def report(kind, sampler="simulation"):
        config = config_of(tmp_path / f"{kind.__name__}.json", sampler)
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
    config = config_of(tmp_path / "study.json", trust=trust)
    assert check_study(lambda path: Study.begin(path, config)).problems == ()


@pytest.mark.parametrize("learner", ["pe", "sdp-pe"])
def test_other_learners_pass(tmp_path, learner):
    trust = trust_models.Shuffle(2, 1e-6) if learner == "sdp-pe" else trust_models.NoPrivacy()
    config = config_of(tmp_path / "study.json", trust=trust, learner=learner)
    assert check_study(lambda path: Study.begin(path, config)).ok


def test_a_secure_study_passes_and_is_only_read(tmp_path):
    pytest.importorskip("opendp")
    path = tmp_path / "study.json"
    config_of(path, "secure")
    before = path.read_bytes()
    report = check_study(path)
    assert report.ok
    assert report.to_dict() == {"name": str(path), "problems": []}
    assert check_study(discreet.resume(path)).ok
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == ["study.json"]


def test_throwaway_studies_are_small_and_have_their_own_ties():
    config = {"episodes": 10**7, "sampler": "secure", "seed": 5, "settings": {}}
    assert _small(config)["episodes"] == 2_000
    assert _small(config)["seed"] != 5
    assert _small({**config, "sampler": "simulation"})["seed"] == 5


class LastBatchOnly(Study):
    def _new_users(self, users, expected):
        key, last = bytes.fromhex(self._content["key"]), self._content["told"][-1:]
        seen = self._content["users"][-last[0]["users"] :] if last else []
        return names.digests_of_new(users, seen, key)


class ForgetfulFile(Study):
    def _closed(self, content):
        last = content["told"][-1]["users"] if content["told"] else 0
        return super()._closed({**content, "users": content["users"][-last:]})


def test_users_of_the_last_batch_only(said):
    assert "2 batches before the last can take part again" in said(LastBatchOnly)
    assert "ended early" in said(ForgetfulFile)


class Seeded(Study):
    def _sampler(self):
        return SimulationSampler(self._streams["noise"])


class Posing(SimulationSampler):
    secure = True


class SeededAndPosing(Study):
    def _sampler(self):
        return Posing(self._streams["noise"])


def test_seeded_noise_in_a_secure_study(said):
    pytest.importorskip("opendp")
    assert "says its noise is secure" in said(Seeded, "secure")
    assert "it is seeded" in said(SeededAndPosing, "secure")


class Noiseless(Study):
    def _release(self, data, batch):
        plan = self._learner.plan
        true = data.counts(plan.shape, self._streams["rounding"], self._played(batch))
        noisy = plan.release(true, sampler=self._sampler(), played=true.played)
        for name in ("transitions", "visits", "rewards"):
            if getattr(noisy, f"row_{name}") is not None:
                getattr(noisy, f"row_{name}")[:] = getattr(true, f"row_{name}")
        return noisy


def test_no_noise(said):
    assert "no noise at all" in said(Noiseless)


class RawCounts(Study):
    def _release(self, data, batch):
        counts = data.counts(
            self._learner.plan.shape, np.random.default_rng(0), self._played(batch)
        )
        self._content = {**self._content, "raw": counts.row_transitions.tolist()}
        return super()._release(data, batch)


class RawBeside(Study):
    def _release(self, data, batch):
        self.path.with_suffix(".cache").write_bytes(data.rewards.tobytes())
        return super()._release(data, batch)


class LeftOutStored(Study):
    def _release(self, data, batch):
        left = int((~data.followed(self._played(batch))).any(axis=1).sum())
        self._content = {**self._content, "left_out": left}
        return super()._release(data, batch)


class LeftOutHidden(Study):
    """The number of users who left is how far a stored generator has gone."""

    def _release(self, data, batch):
        self._streams["policy"].random(int((~data.followed(self._played(batch))).sum()))
        return super()._release(data, batch)


class LeftOutLogged(Study):
    def _release(self, data, batch):
        logging.getLogger("study").info("%d steps", data.followed(self._played(batch)).sum())
        return super()._release(data, batch)


class LeftOutReturned(Study):
    def tell(self, data, **options):
        seen = []
        super().tell(data, left_out=seen.append, **options)
        return seen[0]


class LeftOutShown(Study):
    left = 0

    @property
    def left_out(self):
        return self.left

    def tell(self, data, **options):
        super().tell(data, left_out=lambda count: setattr(self, "left", count), **options)


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (RawCounts, "file study.json"),
        (RawBeside, "file study.cache"),
        (LeftOutStored, "file study.json"),
        (LeftOutHidden, "file study.json"),
        (LeftOutLogged, "log"),
        (LeftOutReturned, "returned value"),
        (LeftOutShown, "attribute left_out"),
    ],
)
def test_raw_data_that_stays(said, kind, where):
    assert f"depends on raw data, not on the release alone: {where}." in said(kind)


class Refusing(Study):
    def _check_data(self, data, batch):
        super()._check_data(data, batch)
        if not data.followed(self._played(batch)).all():
            raise StudyError("A trajectory does not follow the policy; nothing was counted.")


class CountsOn(Study):
    """Who left the policy counts again as soon as a step is on it."""

    def _release(self, data, batch):
        counts = data.counts(self._learner.plan.shape, self._streams["rounding"])
        return self._learner.plan.release(
            counts, sampler=self._sampler(), played=self._played(batch)
        )


def test_who_left_the_policy(said):
    assert "refused for what its episodes hold (1 users left" in said(Refusing)
    assert "as nothing after it" in said(CountsOn)


def test_names_in_two_spellings(said, monkeypatch):
    monkeypatch.setattr(names, "canonical", str)
    found = said(Study)
    assert "white space around it" in found
    assert "another Unicode form" in found
    assert "an invisible mark in it" in found
    assert "without a name is accepted: None" in found


class NamesWithoutKey(Study):
    def _new_users(self, users, expected):
        super()._new_users(users, expected)
        return [hashlib.sha256(names.canonical(user).encode()).hexdigest() for user in users]


class NamesKept(Study):
    def _new_users(self, users, expected):
        self._content = {**self._content, "names": [names.canonical(user) for user in users]}
        return super()._new_users(users, expected)


def test_names_on_the_disk(said):
    assert "without a key stands in study.json" in said(NamesWithoutKey)
    assert "The name of a user stands in study.json" in said(NamesKept)


class AnyCopy(Study):
    @classmethod
    def resume(cls, path, head=None):
        return super().resume(path)


class AnyEdit(Study):
    @classmethod
    def resume(cls, path, head=None):
        content = study_file.read(path)
        chain.check_head(content, head, str(path))
        return cls(path, content)


class NoHead(Study):
    @property
    def head(self):
        return self._content["told"][0]["before"] if self.batches else self._content["head"]


def test_older_copies_and_edits(said):
    assert "older copy is accepted although the head is known" in said(AnyCopy)
    assert "An edit of 'users' in the file is not noticed" in said(AnyEdit)
    assert "head does not change" in said(NoHead)


class WritesWhenRead(Study):
    @property
    def batch_size(self):
        study_file.write(self.path, self._content)
        return super().batch_size


def test_reads_that_write(said):
    assert "Reading a study (batch_size" in said(WritesWhenRead)


def test_releases_that_a_killed_process_left(said, monkeypatch):
    monkeypatch.setattr(study_file, "remove_leftovers", lambda path: None)
    assert "killed process outlives `resume`" in said(Study)
    monkeypatch.setattr(study_file, "_remove", lambda path: None)
    monkeypatch.setattr(study_file, "_check_name", lambda path: None)
    found = said(type("StrayStudy", (Study,), {}))
    assert "killed process outlives `tell`" in found
    assert "holds a release that was not counted, can be resumed" in found


class RoundsOnlyWhatNeedsIt(Study):
    """How many rewards lie strictly between 0 and 1 is how far a stored generator has gone."""

    def _release(self, data, batch):
        self._streams["rounding"].random(int(((data.rewards > 0) & (data.rewards < 1)).sum()))
        return super()._release(data, batch)


def test_a_generator_that_follows_the_rewards(said):
    assert "depends on raw data" in said(RoundsOnlyWhatNeedsIt)


class LooksProtected(Study):
    @property
    def guarantee(self):
        return self._learner.plan.guarantee


def test_a_rehearsal_that_does_not_say_so(said):
    assert "does not say 'SIMULATED, protects nobody'" in said(LooksProtected)


def test_an_edited_file_is_not_checked_but_refused(tmp_path):
    path = tmp_path / "study.json"
    config_of(path)
    content = json.loads(path.read_text())
    content["config"]["trust"]["epsilon"] = 5
    path.write_text(json.dumps(content))
    with pytest.raises(StudyError, match="edited or damaged"):
        check_study(str(path))


def test_a_check_removes_nothing_beside_the_study(tmp_path):
    """Leftovers of a killed process go when the study is resumed, not when it is looked at."""
    path = tmp_path / "study.json"
    config_of(path)
    left = temporary_of(path, 7)
    left.write_bytes(path.read_bytes())
    steps = []
    assert check_study(path, progress=steps.append).ok
    assert left.exists()
    assert {"noise", "stored", "killed"} <= set(steps)
    with pytest.raises(StudyError, match="is an older copy or another study"):
        check_study(discreet.resume(path), head="0" * 64)
