"""Estimates: extrapolated from rehearsals that are bounded."""

import math

import pytest

from discreet.lab import forecast as module
from discreet.lab.forecast import Forecast, available_memory, forecast
from discreet.lab.tasks import Outcome, tasks_of
from helpers.experiments import experiment


@pytest.fixture
def rehearsals(monkeypatch):
    """Runs that take a microsecond per user; returns what was rehearsed.

    The clock of everything else stands still.
    """
    seen = []

    def run(cell, users):
        seen.append((cell.learner.name, users))
        return 1e-6 * users

    def executed(cell, users):
        return Outcome(None, run(cell, users))

    monkeypatch.setattr(module, "_run", run)
    monkeypatch.setattr(module, "_executed", executed)
    monkeypatch.setattr(module, "_resident", lambda: 2e8)
    monkeypatch.setattr(module.time, "monotonic", lambda: 0.0)
    return seen


def test_time_and_memory_grow_with_users_and_runs(rehearsals):
    tasks = tasks_of(experiment("psrl", runs=4, episodes=[10_000_000]))
    alone = forecast(tasks, jobs=1)
    assert alone.seconds == pytest.approx(40.0)
    pictures = alone.bytes - (2e8 + 6e8)
    assert 5e7 < pictures < 5e8
    both = forecast(tasks, jobs=2)
    assert 0 < both.seconds - 20.0 < 5  # workers start
    assert both.bytes == pytest.approx(3 * 8e8 + pictures)
    assert max(users for _, users in rehearsals) < 10**6


def test_batches_take_the_memory_of_no_user(rehearsals):
    few, many = (forecast(tasks_of(experiment("flow-ucb", episodes=[n]))) for n in (10**3, 10**9))
    assert few.bytes == many.bytes


def test_every_kind_is_rehearsed_once_at_its_largest(rehearsals):
    trusts = [{"model": "none"}, {"model": "local", "epsilon": [0.5, 1.0, 2.0]}]
    tasks = tasks_of(experiment("dp-ucbvi", runs=2, episodes=[100, 150], trusts=trusts))
    assert len(tasks) == 16
    expected = forecast(tasks)
    assert rehearsals == [("dp-ucbvi", 75)] * 4  # one run of each of two kinds to compile it
    assert expected.seconds == pytest.approx(8 * 250e-6)


@pytest.mark.parametrize("learner", ["psrl", "flow-ucb"])
def test_a_rehearsal_is_at_most_half_of_a_run(rehearsals, learner):
    for episodes in (300, 3_000, 300_000):
        rehearsals.clear()
        forecast(tasks_of(experiment(learner, episodes=[episodes])))
        assert len(rehearsals) == 2 and rehearsals[1][1] <= episodes / 2


def test_a_batch_learner_pays_per_batch(rehearsals):
    """Batches grow with the logarithm of the users: by five of the first ones for each decade."""
    expected = forecast(tasks_of(experiment("flow-ucb", episodes=[2_000_000])))
    assert expected.seconds == pytest.approx(20_000e-6 * 11)


def test_the_time_of_compiling_and_rehearsing_is_part_of_the_estimate(rehearsals, monkeypatch):
    clock = iter([0.0, 11.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    expected = forecast(tasks_of(experiment("psrl", runs=4, episodes=[10_000_000])))
    assert expected.rehearsal == 11.0
    assert expected.seconds == pytest.approx(11.0 + 40.0)


def test_patience_ends(rehearsals, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", -1.0)
    tasks = tasks_of(experiment("psrl", "ucbvi", episodes=[100]))
    assert forecast(tasks).seconds == pytest.approx(2 * 100e-6)
    assert {name for name, _ in rehearsals} == {"psrl"}


def test_a_rehearsal_is_a_real_run():
    (task,) = tasks_of(experiment("psrl", episodes=[50]))
    expected = forecast([task])
    assert expected.runs == 1
    assert 0 < expected.seconds < 3600  # a number of seconds, on however busy a machine
    assert 5e7 < expected.bytes < available_memory() + 1e11


def test_a_rehearsal_that_fails_is_left_to_the_run(monkeypatch):
    monkeypatch.setattr(module, "execute", lambda task: Outcome(task, 0.0, error="no"))
    expected = forecast(tasks_of(experiment("psrl", runs=2)))
    assert expected.seconds == expected.rehearsal
    assert expected.problems == ("no",)


@pytest.mark.parametrize(
    ("runs", "text"), [(1, "1 run: about a second"), (2000, "2,000 runs: about a second")]
)
def test_a_forecast_is_a_sentence(runs, text):
    assert str(Forecast(runs, 0.2, 3e8)) == f"{text}, 0.3 GB of memory"


def test_a_system_that_says_nothing_has_no_limit(monkeypatch):
    import os

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", unknown, raising=False)
    assert available_memory() == math.inf
