"""People who return to a study: as often as is guaranteed for, once in a batch."""

import pytest

import discreet
from discreet.errors import StudyError
from helpers.studies import begin, episodes_of, names, sql

TWICE = discreet.Central(epsilon=1, delta=1e-6, participations=2)


def tell(study, *people):
    """A batch with these people, and strangers."""
    users = names(study)
    data = episodes_of(study, study.batches, len(users))
    study.tell(data, users=[*people, *users[len(people) :]])


def test_a_person_comes_twice_and_not_a_third_time(tmp_path):
    study = begin(tmp_path / "study.db", TWICE)
    assert "one person, up to 2 episodes" in str(study.guarantee)
    tell(study, "ann", "bob")
    tell(study, "ann")
    study = discreet.open_study(study.path)
    before = study.users
    for name in ("ann", " ann\u200b"):
        with pytest.raises(StudyError, match="2 times, as often as is guaranteed for"):
            tell(study, "carl", name)
    assert study.users == before
    tell(study, "bob", "carl")
    study.verify()
    with pytest.raises(StudyError, match="2 times"):
        tell(study, "bob")
    tell(study, "carl")


def test_nobody_is_in_a_batch_twice(tmp_path):
    study = begin(tmp_path / "study.db", TWICE)
    with pytest.raises(StudyError, match="in a batch once"):
        tell(study, "ann", "ann")
    assert study.users == 0


def test_how_far_apart_is_not_counted(tmp_path):
    apart = discreet.Central(epsilon=1, delta=1e-6, participations=2, separation=9)
    with pytest.raises(StudyError, match="how far apart"):
        begin(tmp_path / "apart.db", apart)


def test_verify_finds_somebody_who_was_counted_too_often(tmp_path):
    study = begin(tmp_path / "study.db", TWICE)
    for _ in range(3):
        tell(study)
    ((first,),) = sql(study.path, "SELECT digests FROM users ORDER BY id LIMIT 1")
    sql(study.path, "UPDATE users SET digests = ?", first)
    with pytest.raises(StudyError):
        study.verify()
