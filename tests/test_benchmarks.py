"""The benchmarks' own arithmetic: medians of ratios, both in turns, what a row says."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def measure(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.measure")


def test_a_row_says_what_was_measured_and_against_what(measure):
    pairs = [(1.0, 2.0), (2.0, 8.0), (1.0, 3.0)]
    found = measure.row("t", pairs, measure.Peer("p", "1.2"), "ms")
    assert found["ratio"] == 3.0  # the median of 2, 4 and 3, not the ratio of medians
    assert found["ours"] == 1.0 and found["peer"] == 3.0
    assert 2.0 < found["low"] < 3.0 < found["high"] < 4.0


def test_both_take_turns_and_the_first_turn_does_not_count(measure, monkeypatch):
    clock, order = [0.0], []
    monkeypatch.setattr(measure, "processor_seconds", lambda: clock[0])
    first = {"ours": 100.0, "peer": 100.0}  # compilation

    def call(name, seconds):
        order.append(name)
        clock[0] += first.pop(name, seconds)

    ours, peer = (lambda: call("ours", 1.0)), (lambda: call("peer", 4.0))
    found = measure.compare("t", ours, peer, measure.Peer("p"), "ms", repeats=3, per=(10.0, 1000.0))
    assert order[-6:] == ["ours", "peer", "peer", "ours", "ours", "peer"]
    assert (found["ours"], found["peer"], found["ratio"]) == (10.0, 4000.0, 400.0)


@pytest.mark.parametrize("name", ["privacy", "continual", "flow"])
def test_a_benchmark_runs(measure, monkeypatch, name):
    """Every call of both sides, once and without a clock."""
    calls = []

    def once(ours, peer, repeats):
        calls.append((ours(), peer()))
        return [(1.0, 2.0)]

    monkeypatch.setattr(measure, "turns", once)
    rows = importlib.import_module(f"benchmarks.bench_{name}").run(quick=True)
    assert len({row["task"] for row in rows}) == len(rows) == len(calls) >= 3
