"""Studies on the command line: a folder with a design, and a rehearsal in it."""

import json

import pytest

from helpers.study_commands import DESIGN


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder with a design, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "design.toml").write_text(DESIGN)
    return tmp_path


@pytest.fixture
def rehearsed(place, discreet):
    """The same, with a rehearsal in it."""
    code, _, _ = discreet(
        "study", "start", "study.db", "--design", "design.toml", "--rehearse", "--seed", "1"
    )
    assert code == 0
    return place


@pytest.fixture
def run(discreet):
    """A study command that must work; its JSON."""

    def call(*arguments):
        code, out, err = discreet("study", *map(str, arguments), "--json")
        assert (code, err) == (0, ""), err
        return json.loads(out)

    return call
