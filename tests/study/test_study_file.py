"""The file of a study: whole or not there, readable by its owner, one writer at a time."""

import json
import stat
import sys

import pytest

from discreet.errors import StudyError
from discreet.study import study_file

CONTENT = {"format": study_file.FORMAT, "users": ["a"], "told": []}


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "study.json"
    study_file.write(path, CONTENT)
    assert study_file.read(path) == CONTENT


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_only_the_owner_reads_it_also_after_it_was_replaced(tmp_path):
    path = tmp_path / "study.json"
    for _ in range(2):
        study_file.write(path, CONTENT)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


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
