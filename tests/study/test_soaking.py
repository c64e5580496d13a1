"""Kills, races and crowds, small; `make soak` runs the same at full size."""

import itertools
import os
import sys

import pytest

import discreet
from helpers.soaking import KINDS, check_close, check_kills, check_returning, crowd, race, steady

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_moment_every_batch_counts_once(tmp_path, kind):
    """Two kills each, eight together."""
    assert check_kills(tmp_path, kind, kills=2)["kills"] == 2


def test_nobody_is_counted_more_often_than_is_guaranteed_for_whatever_is_killed(tmp_path):
    found = check_returning(tmp_path, kills=4)
    assert found["most"] == found["returning"] == 3


@pytest.mark.parametrize("kind", ["central", "local"])
def test_killed_before_any_statement_of_close_it_ends_once_or_not_at_all(tmp_path, kind):
    found = check_close(tmp_path, kind)
    assert found["kills"] > 10
    assert found["after the commit"] >= 1


def test_killed_before_any_statement_of_extend_it_goes_on_once_or_not_at_all(tmp_path):
    assert check_close(tmp_path, "central", extended=9_000)["kills"] > 10


def test_two_processes_at_once_both_make_progress(tmp_path):
    path = tmp_path / "study.db"
    assert race(path, "central", batches=20) == [20, 20]
    study = discreet.open_study(path)
    study.verify()
    assert study.users == study.batches == 40  # nothing lost, whoever was faster


def test_a_crowd_costs_as_much_at_the_end_as_at_the_beginning(tmp_path):
    """A hundred thousand users; what a batch adds to the file does not depend on the others."""
    with steady(10_000):
        study, sizes, _ = crowd(tmp_path / "study.db", 100_000)
        again = discreet.open_study(study.path, study.head)
    assert (study.users, study.batches) == (100_000, 10)
    grown = [after - before for before, after in itertools.pairwise(sizes)]
    assert max(grown[1:]) <= 1.1 * min(grown[1:])
    assert sizes[-1] / study.users < 20
    assert len(again._participants) == 100_000
    assert sys.getsizeof(study._saved) < 10_000
