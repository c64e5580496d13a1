"""Studies and the disk: folders that take none, and a commit that was cut off on its way."""

import os

import pytest

import discreet
from discreet.errors import StudyError
from discreet.study import check
from helpers.studies import advance, begin


def test_nothing_is_created_where_no_study_can_be(tmp_path, monkeypatch):
    with pytest.raises(StudyError, match="There is no folder"):
        begin(tmp_path / "missing" / "study.db")
    with pytest.raises(StudyError, match="is a folder"):
        begin(tmp_path)
    assert list(tmp_path.iterdir()) == []

    def refused(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StudyError, match=r"Cannot write in the folder .*: Permission denied"):
        begin(tmp_path / "study.db")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="who owns all may write all")
def test_a_read_only_folder_is_refused(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(StudyError, match="Cannot write in the folder"):
        begin(folder / "study.db")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("cut", [1, 100, 3_000, 9_000, 30_000])
@pytest.mark.parametrize("goes_on", ["resume", "tell"])
def test_a_log_that_was_cut_off_leaves_no_second_release(tmp_path, goes_on, cut):
    """Killed while the log was being written: the batch is told again, its first noise is gone."""
    place = check.Trial(tmp_path, begin)
    study = place.fresh()
    before, log = study.path.read_bytes(), check.log_of_a_tell(study)
    path = place.crashed(before, log[:-cut])
    again = discreet.resume(path)
    assert again.batches == 0
    if goes_on == "tell":
        check.log_of(path).write_bytes(log[:-cut])
        advance(again)
        assert again.batches == 1
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_commit_that_reached_the_log_is_kept(tmp_path):
    place = check.Trial(tmp_path, begin)
    study = place.fresh()
    before, log = study.path.read_bytes(), check.log_of_a_tell(study)
    path = place.crashed(before, log)
    again = discreet.resume(path, study.head)
    assert (again.batches, again.users) == (1, study.users)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
