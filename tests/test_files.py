"""Files: written whole or not at all, locked, and in forms for people."""

import csv
import io
import json
import os
import stat

import pytest

from discreet._files import (
    check_output,
    hold_alone,
    read_file,
    read_parsed,
    temporary_of,
    write_atomically,
    write_rows,
    write_text,
)
from discreet.data import Vocabulary, read_table
from discreet.errors import InvalidInputError


@pytest.mark.core
def test_writes_and_replaces(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.core
@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_failure_leaves_the_old_content_and_no_litter(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def broken(*_):
        raise OSError("no space left")

    if step == "open":
        monkeypatch.setattr(os, "open", broken)
    elif step == "fsync":
        monkeypatch.setattr(os, "fsync", broken)
    else:
        monkeypatch.setattr(type(path), "replace", broken)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="file modes are those of POSIX")
def test_a_private_file_is_its_owners_alone(tmp_path):
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "secret", b"", private=True)
        write_atomically(tmp_path / "open", b"")
    finally:
        os.umask(before)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert modes == {"secret": 0o600, "open": 0o644}


@pytest.mark.skipif(os.name == "nt", reason="file modes are those of POSIX")
def test_what_somebody_put_in_the_place_of_the_temporary_file_is_not_used(tmp_path):
    """In a folder that others may write to, a link or a file of theirs can lie in wait."""
    path = tmp_path / "study.db"
    for lie in ("link", "file"):
        temporary = temporary_of(path, os.getpid())
        (tmp_path / "other").write_bytes(b"mine")
        if lie == "link":
            temporary.symlink_to(tmp_path / "other")
        else:
            temporary.write_bytes(b"")
            temporary.chmod(0o666)
        write_atomically(path, b"secret", private=True)
        assert path.read_bytes() == b"secret"
        assert not path.is_symlink()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (tmp_path / "other").read_bytes() == b"mine"


def test_a_temporary_file_that_comes_back_is_not_written_to(tmp_path, monkeypatch):
    path = tmp_path / "study.db"
    temporary_of(path, os.getpid()).write_bytes(b"")
    monkeypatch.setattr(type(path), "unlink", lambda *_, **__: None)
    with pytest.raises(FileExistsError):
        write_atomically(path, b"secret", private=True)
    assert not path.exists()


def test_the_folder_must_exist(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "missing" / "file", b"")


def test_an_interrupted_write_leaves_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"file": b"old"}


def test_content_reaches_the_disk_before_its_name(tmp_path, monkeypatch):
    order = []
    fsync, replace = os.fsync, type(tmp_path).replace

    def watched_fsync(descriptor):
        order.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "content")
        fsync(descriptor)

    def watched_replace(self, target):
        order.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(type(tmp_path), "replace", watched_replace)
    write_atomically(tmp_path / "file", b"x" * 10**5)
    assert order == ["content", "name", "folder"]


@pytest.mark.core
def test_one_holds_a_file_alone_until_it_lets_go(tmp_path):
    path = tmp_path / "study.db"
    held = hold_alone(path)
    with pytest.raises(BlockingIOError):
        hold_alone(path)
    os.close(held)
    os.close(hold_alone(path))
    assert not path.exists()


@pytest.mark.core
def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "there").write_bytes(b"x")
    assert read_file(tmp_path / "there") == b"x"
    with pytest.raises(InvalidInputError, match=r"Cannot read '.*nothing': No such file"):
        read_file(tmp_path / "nothing")
    with pytest.raises(InvalidInputError, match=r"Cannot read the key '.*': Is a directory"):
        read_file(tmp_path, "the key")
    assert read_parsed(tmp_path / "there", bytes.decode) == "x"
    (tmp_path / "there").write_bytes(b"\xff")
    with pytest.raises(InvalidInputError, match=r"Cannot read '.*there': .*can't decode"):
        read_parsed(tmp_path / "there", bytes.decode)


pytestmark = pytest.mark.core

ROWS = [{"step": "1", "action": "wait, please"}, {"step": "2", "action": "Zoë"}]
ABOUT = {"guarantee": "(1, 0)-LDP", "head": "abc"}


def test_both_forms(tmp_path):
    write_rows(tmp_path / "a.JSON", ROWS, ABOUT)
    assert json.loads((tmp_path / "a.JSON").read_text("utf-8")) == {**ABOUT, "policy": ROWS}
    write_rows(tmp_path / "a.csv", ROWS, ABOUT)
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == [{**row, "guarantee": "(1, 0)-LDP"} for row in ROWS]


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(InvalidInputError, match="nothing was written"):
        write_rows(tmp_path / "a.txt", ROWS, ABOUT)
    with pytest.raises(InvalidInputError, match=r"Cannot write .*: No such file"):
        write_text(tmp_path / "none" / "a.txt", "text")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_known_before_the_work(tmp_path, monkeypatch):
    check_output(tmp_path / "a.CSV", ".json", ".csv")
    check_output(tmp_path / "a")
    for path, problem in (
        (tmp_path / "a.txt", r"ends in \.json or \.csv, got .*a\.txt"),
        (tmp_path / "none" / "a.csv", "there is no folder .*none'; make it first"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            check_output(path, ".json", ".csv")
    with pytest.raises(InvalidInputError, match="is a folder; name a file in it"):
        check_output(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInputError, match="you may not write in"):
        check_output(tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


NAMES = Vocabulary(
    states=["=HYPERLINK(1)", "-5", "@home", "+", "ill"], actions=["-take", "wait"], steps=["=1"]
)


def test_a_spreadsheet_runs_no_name(tmp_path):
    rows = [{"state": state, "share": -0.5} for state in NAMES.states]
    write_rows(tmp_path / "a.csv", rows, ABOUT)
    lines = (tmp_path / "a.csv").read_text("utf-8").splitlines()[1:]
    states = [line.partition(",")[0] for line in lines]
    assert states == ["'=HYPERLINK(1)", "-5", "'@home", "'+", "ill"]
    assert all(",-0.5," in line for line in lines)
    write_rows(tmp_path / "a.json", rows, ABOUT)
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["policy"] == rows


def test_names_come_back_from_a_spreadsheet(tmp_path):
    """A table that quotes the names of a file of ours is read as if it had the names themselves."""
    rows = [
        {"user": str(i), "step": "=1", "state": state, "action": "-take", "reward": 0}
        for i, state in enumerate(NAMES.states)
    ]
    plain = io.StringIO(newline="")
    writer = csv.DictWriter(plain, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    plain.seek(0)
    write_rows(tmp_path / "a.csv", rows, ABOUT)
    ours, _ = read_table(tmp_path / "a.csv", NAMES)
    theirs, _ = read_table(plain, NAMES)
    assert ours.states[:, 0].tolist() == theirs.states[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert ours.actions.tolist() == theirs.actions.tolist() == [[0]] * 5


def test_a_name_and_the_same_with_an_apostrophe_are_one():
    with pytest.raises(InvalidInputError, match="which are one; rename one"):
        Vocabulary(states=["=a", "'=a"], actions=1, steps=1)
    assert Vocabulary(states=["'=a", "'tis", "'-5"], actions=1, steps=1).states == (
        "=a",
        "'tis",
        "'-5",
    )
