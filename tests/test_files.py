"""Atomic writes: the old content or the new, never a part, and nothing left behind."""

import os
import stat

import pytest

from discreet._files import hold_alone, read_file, read_parsed, temporary_of, write_atomically
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
