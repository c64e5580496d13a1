"""Bad input: one sentence with the value, the rule and the remedy, and nothing has changed."""

import re
import time

import pytest

import discreet
from helpers.bad_input import CASES, TOLD, prepared, refusal
from helpers.studies import advance, everything_in


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("bad"))


@pytest.mark.parametrize("case", CASES)
def test_one_sentence_and_nothing_changed(folder, case):
    before = everything_in(folder)
    said = refusal(case, folder)
    assert CASES[case][1] in said
    assert said.endswith((".", "?"))
    assert said.isprintable()
    assert case not in TOLD or said.lower().endswith("nothing was counted.")
    rest = said.removesuffix("Nothing was counted.").removesuffix("Make room, or let this program")
    assert len(re.findall(r"[a-z)'][.?] [A-Z]", rest)) <= 1  # a rule, and at most a remedy
    assert everything_in(folder) == before


def test_a_clock_that_goes_backwards_changes_nothing(folder, monkeypatch):
    study = discreet.open_study(folder / "study.db")
    monkeypatch.setattr(time, "time", lambda: -1e9)
    advance(study, 1)
    assert discreet.open_study(study.path, study.head).batches == 2
    study.verify()
