"""Bad input on the command line: one sentence, exit code 2, nothing changed."""

import re

import pytest

from helpers.bad_commands import CASES, prepared, refused
from helpers.studies import everything_in


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("bad"))


@pytest.mark.parametrize("case", CASES)
def test_one_sentence_exit_code_two_and_nothing_changed(folder, monkeypatch, discreet, case):
    monkeypatch.chdir(folder)
    before = everything_in(folder)
    code, out, err = refused(case, discreet)
    said = [line for line in err.splitlines() if not line.endswith(" ...")]  # progress
    assert code == 2
    assert out == ""
    assert len(said) == 1
    assert said[0].startswith("Error: ")
    assert CASES[case][2] in said[0]
    assert len(re.findall(r"[a-z)'][.?] [A-Z]", said[0])) <= 2
    assert everything_in(folder) == before
