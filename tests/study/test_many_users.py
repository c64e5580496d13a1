"""Batches of more users than 16 bits count, and noise that no file determines."""

import shutil

import pytest

import discreet
from discreet.errors import StudyError
from discreet.privacy.sampling import samplers
from discreet.study.participants import digests_of
from helpers.studies import begin, episodes_of, names, sql

USERS = 70_000


def test_the_last_of_many_users_are_remembered(tmp_path):
    """In memory and in the file, where they are sorted by their digests."""
    options = {"learner": "explore-then-commit", "exploration": "uniform", "length": USERS}
    study = begin(tmp_path / "many", discreet.Central(8, 1e-2), episodes=2 * USERS, **options)
    assert study.batch_size == USERS
    people = names(study)
    study.tell(episodes_of(study, 0), users=people)
    parts = sql(tmp_path / "many", "SELECT length(digests) FROM users")
    assert sum(size for (size,) in parts) == 16 * USERS
    resumed = discreet.open_study(tmp_path / "many")
    assert study.users == resumed.users == USERS
    fresh, in_the_file = episodes_of(resumed, 1, 1), list(digests_of(people, study._key).values())
    for again in (people[65_535], people[-1], *(in_the_file[i] for i in (0, 65_535, 65_536, -1))):
        for asked in (study, resumed):
            with pytest.raises(StudyError, match="has taken part"):
                asked.tell(fresh, users=[again])


def copies(tmp_path, trust, **options):
    """One study in two files."""
    begin(tmp_path / "one", trust, sampler="secure", seed=None, **options)
    shutil.copy(tmp_path / "one", tmp_path / "two")
    return [discreet.open_study(tmp_path / name) for name in ("one", "two")]


def test_no_file_determines_the_noise(tmp_path, monkeypatch):
    """Whoever holds the file from before a batch cannot draw its noise again, nor can a backup."""
    monkeypatch.setattr(samplers.SimulationSampler, "__init__", _nobody)
    one, two = copies(tmp_path, discreet.Central(1, 1e-6))
    data, people = episodes_of(one, 0), names(one)
    for study in (one, two):
        study.tell(data, users=people)
    files = [sql(tmp_path / name, "SELECT * FROM evidence") for name in ("one", "two")]
    assert one.users == two.users > 0
    assert files[0] != files[1]


def _nobody(*_):
    raise AssertionError("Real people are protected by seeded noise.")
