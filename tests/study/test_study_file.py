"""The file of a study: whole or not there, readable by its owner, one writer at a time."""

import json
import os
import pathlib
import stat
import sys

import pytest

from discreet._files import temporary_of
from discreet.errors import StudyError
from discreet.study import study_file

CONTENT = {"format": study_file.FORMAT, "users": ["a"], "told": []}


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "study.json"
    study_file.write(path, CONTENT)
    assert study_file.read(path) == CONTENT


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_only_the_owner_reads_it_also_after_it_was_replaced(tmp_path, monkeypatch, open_umask):
    """Nor can others read the temporary file, for the moment that it is there."""
    path, modes, fsync = tmp_path / "study.json", [], os.fsync

    def watched(descriptor):
        modes.extend(p.stat().st_mode for p in tmp_path.iterdir())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    for _ in range(2):
        study_file.write(path, CONTENT)
        modes.append(path.stat().st_mode)
    assert len(modes) == 7  # the temporary file, the study after it; then both, the study twice
    assert {stat.S_IMODE(mode) for mode in modes} == {0o600}


@pytest.fixture
def open_umask():
    """A umask under which a file is readable by all unless somebody asks for less."""
    before = os.umask(0o000)
    yield
    os.umask(before)


def test_leftovers_of_this_study_go_before_a_write_and_nothing_else_does(tmp_path):
    path = tmp_path / "s.json"
    foreign = [
        ".s.json.tmp", ".s.json.1x.tmp", "s.json.1.tmp", ".s.json.1.2.tmp", ".t.json.1.tmp",
        ".s.json.1.tmp~", ".sxjson.1.tmp", ".s.json.swp",
    ]  # fmt: skip
    for name in foreign:
        (tmp_path / name).write_text("of another program")
    temporary_of(path, 4_000_000).write_text("a release")
    study_file.write(path, CONTENT)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*foreign, "s.json"])


def test_leftovers_go_only_if_nobody_is_at_work(tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "s.json"
    left = temporary_of(path, 7)
    left.write_text("perhaps being written")
    with study_file.locked(path):
        study_file.remove_leftovers(path)
        assert left.exists()
    study_file.remove_leftovers(path)
    assert not left.exists()


def test_without_leftovers_nothing_is_written_not_even_a_lock(tmp_path):
    study_file.remove_leftovers(tmp_path / "s.json")
    assert list(tmp_path.iterdir()) == []


def test_leftovers_that_cannot_be_removed_are_named(tmp_path, monkeypatch):
    path = tmp_path / "s.json"
    left = temporary_of(path, 7)
    left.write_text("a release")

    def refused(self, missing_ok=False):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(pathlib.Path, "unlink", refused)
    with pytest.raises(StudyError, match=r"7\.tmp.*Permission denied; remove it"):
        study_file.remove_leftovers(path)


def test_a_temporary_file_is_no_study(tmp_path):
    left = temporary_of(tmp_path / "s.json", 7)
    left.write_text(json.dumps(CONTENT))
    with pytest.raises(StudyError, match="name of a temporary file"):
        study_file.read(left)
    with pytest.raises(StudyError, match="name of a temporary file"):
        study_file.check_new(tmp_path / ".new.8.tmp")


def test_paths_at_which_no_study_can_be(tmp_path):
    with pytest.raises(StudyError, match="is a folder; name a file in it"):
        study_file.check_new(tmp_path)
    with pytest.raises(StudyError, match=r"There is no folder .*missing.* make it first"):
        study_file.check_new(tmp_path / "missing" / "s.json")
    with pytest.raises(StudyError, match="Cannot read"):
        study_file.read(tmp_path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "study.json"
    study_file.write(path, CONTENT)
    with pytest.raises(TypeError):
        study_file.write(path, {"users": object()})
    assert study_file.read(path) == CONTENT
    assert [file.name for file in tmp_path.iterdir()] == ["study.json"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a study file"),
        ("{", "is not a study file"),
        ("[]", "of format 'discreet-study-2'"),
        ('{"format": "discreet-study-1"}', "of format 'discreet-study-2'"),
        ("{}", "of format 'discreet-study-2'"),
    ],
)
def test_what_is_no_study_is_refused(tmp_path, text, said):
    path = tmp_path / "study.json"
    path.write_text(text)
    with pytest.raises(StudyError, match=said):
        study_file.read(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "study.json"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(StudyError, match="is not a study file"):
        study_file.read(path)


def test_a_missing_file_says_how_to_begin(tmp_path):
    with pytest.raises(StudyError, match=r"begin one with start\(\)"):
        study_file.read(tmp_path / "none.json")


def test_nothing_is_overwritten(tmp_path):
    path = tmp_path / "study.json"
    study_file.check_new(path)
    path.write_text(json.dumps(CONTENT))
    with pytest.raises(StudyError, match="exists; resume"):
        study_file.check_new(path)


def test_one_process_at_a_time(tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "study.json"
    with (
        study_file.locked(path),
        pytest.raises(StudyError, match="nothing was counted, try again"),
        study_file.locked(path),
    ):
        pass
    with study_file.locked(path):  # and the lock ends with its owner
        pass
