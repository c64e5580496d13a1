"""The benchmarks' own arithmetic: turns, processor time, medians of ratios, and what a row says."""

import importlib
import importlib.metadata
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def measure():
    sys.path.insert(0, str(Path(__file__).parents[1]))
    try:
        from benchmarks import measure
    finally:
        sys.path.pop(0)
    return measure


def test_a_row_says_what_was_measured_and_against_what(measure):
    pairs = [(1.0, 2.0), (2.0, 8.0), (1.0, 3.0)]
    found = measure.row("t", pairs, measure.Peer("p", "1.2"), "ms")
    assert found["ratio"] == 3.0  # the median of 2, 4 and 3, not the ratio of medians
    assert found["ours"] == 1.0 and found["peer"] == 3.0
    assert 2.0 < found["low"] < 3.0 < found["high"] < 4.0
    assert (found["clock"], found["unit"]) == ("processor", "ms")
    assert (found["peer_name"], found["peer_version"], found["peer_is"]) == ("p", "1.2", "original")


def test_a_package_has_its_installed_version(measure):
    peer = measure.package("numpy", "a loop")
    assert peer == ("a loop", importlib.metadata.version("numpy"), "original", "")


def test_waiting_costs_no_processor_time_and_children_count(measure):
    assert measure.spent(lambda: time.sleep(0.3)) < 0.2
    work = "sum(i * i for i in range(3_000_000))"
    child = measure.spent(lambda: subprocess.run([sys.executable, "-c", work], check=True))
    nothing = measure.spent(lambda: subprocess.run([sys.executable, "-c", ""], check=True))
    assert child > nothing


def test_both_take_turns_and_the_first_turn_does_not_count(measure, monkeypatch):
    clock, order = [0.0], []
    monkeypatch.setattr(measure, "processor_seconds", lambda: clock[0])

    def call(name, seconds):
        order.append(name)
        clock[0] += seconds

    first = {"ours": 100.0, "peer": 100.0}  # compilation

    def ours():
        call("ours", first.pop("ours", 1.0))

    def peer():
        call("peer", first.pop("peer", 4.0))

    found = measure.compare("t", ours, peer, measure.Peer("p"), "ms", repeats=3, per=(10.0, 1000.0))
    assert order[-6:] == ["ours", "peer", "peer", "ours", "ours", "peer"]
    assert (found["ours"], found["peer"]) == (10.0, 4000.0)
    assert found["low"] == found["high"] == found["ratio"] == 400.0


def test_what_the_clock_hardly_sees_is_repeated(measure, monkeypatch):
    clock, calls = [0.0], []
    monkeypatch.setattr(measure, "processor_seconds", lambda: clock[0])

    def tick():
        calls.append(1)
        clock[0] += 0.001

    assert measure.turns(tick, tick, 1)[0] == pytest.approx((0.001, 0.001))
    assert len(calls) > 40  # twenty milliseconds of each


@pytest.mark.parametrize("seconds, pairs", [(0.021, 20), (0.11, 5), (0.4, 2)])
def test_short_pairs_are_measured_more_often(measure, monkeypatch, seconds, pairs):
    """Up to ten times as often as asked for, in half a second for each that was."""
    clock = [0.0]
    monkeypatch.setattr(measure, "processor_seconds", lambda: clock[0])

    def call():
        clock[0] += seconds

    found = measure.turns(call, call, 2)
    assert len(found) == pairs
    assert found[-1] == pytest.approx((seconds, seconds))


def test_every_benchmark_states_rows():
    """Found by their names, as `discreet bench` finds them."""
    files = sorted(Path(__file__).parents[1].glob("benchmarks/bench_*.py"))
    texts = {path.stem: path.read_text("utf-8") for path in files}
    assert not [name for name, text in texts.items() if "def run(quick" not in text]
    assert not [name for name, text in texts.items() if "perf_counter" in text]


@pytest.mark.parametrize("name", ["privacy", "continual", "flow"])
def test_a_benchmark_runs(measure, monkeypatch, name):
    """Every call of both sides, once and without a clock."""
    calls = []

    def once(ours, peer, repeats):
        calls.append((ours(), peer()))
        return [(1.0, 2.0)]

    monkeypatch.setattr(measure, "turns", once)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    rows = importlib.import_module(f"benchmarks.bench_{name}").run(quick=True)
    assert len(rows) == len(calls) >= 3
    assert len({row["task"] for row in rows}) == len(rows)
