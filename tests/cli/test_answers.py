"""Answers that are kept: the same words, the same code, the same text."""

import sys

import pytest

from discreet.cli import _answers, calibrate

WORDS = ["calibrate", "--trust", "central", "--states", "3", "--users", "100", "--json"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_CACHE", str(tmp_path / "answers"))
    return tmp_path / "answers"


def test_the_second_time_nothing_is_computed(discreet, place, monkeypatch):
    first = discreet(*WORDS)
    assert first[0] == 0
    monkeypatch.setattr(calibrate, "_cost", lambda *a, **k: pytest.fail("computed again"))
    assert discreet(*WORDS) == first
    assert len(list(place.iterdir())) == 1


def test_an_edited_file_another_version_or_width_asks_again(monkeypatch, tmp_path):
    import discreet

    monkeypatch.setattr(_answers, "_PACKAGE", tmp_path)
    (tmp_path / "a.py").write_text("1")
    first = _answers._key(WORDS)
    assert _answers._key(WORDS) == first != _answers._key([*WORDS, "-h"])
    (tmp_path / "a.py").write_text("12")
    edited = _answers._key(WORDS)
    monkeypatch.setattr(discreet, "__version__", "99")
    assert len({first, edited, _answers._key(WORDS)}) == 3


def test_failures_and_notes_are_not_kept(discreet, place):
    assert discreet("calibrate", "--trust", "nobody")[0] == 2
    with _answers.kept(["x"]) as known:
        assert not known
        sys.stdout.write("answer")
        sys.stderr.write("a note")
    assert not place.exists()


def test_it_can_be_switched_off_and_never_stands_in_the_way(place, monkeypatch, tmp_path):
    place.write_text("a file where the folder should be")
    with _answers.kept(["x"]):
        sys.stdout.write("answer")
    monkeypatch.setenv("DISCREET_CACHE", "off")
    assert _answers.folder() is None
    monkeypatch.setenv("DISCREET_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _answers.folder() == tmp_path / "discreet"


def test_the_oldest_make_room(place, monkeypatch):
    monkeypatch.setattr(_answers, "_MOST", 3)
    for number in range(6):
        _answers._write(place / f"{number}.txt", "text")
    assert len(list(place.iterdir())) == 3
