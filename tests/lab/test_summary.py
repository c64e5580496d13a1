"""Rows of the table, warnings that a reader must see, who wins."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.lab.summary import summarise, warnings_of, winners
from helpers.experiments import series


def of(*group, guarantees=()):
    """Results without files."""
    return SimpleNamespace(series=lambda: list(group), guarantees=guarantees)


def test_a_row_has_mean_spread_and_limits():
    (row,) = summarise(of(series(scale=2.0)))
    final = 2.0 * np.sqrt(1000)
    assert row.mean == pytest.approx(1.5 * final)
    assert row.std == pytest.approx(final / np.sqrt(2))
    assert 0 < row.low < row.mean < row.high
    assert row.runs == 2
    assert row.uniform == 2000.0
    assert row.share == pytest.approx(row.mean / 2000)


def test_one_run_has_no_spread():
    one = series()
    (row,) = summarise(of(replace(one, regret=one.regret[:1])))
    assert (row.runs, row.std) == (1, 0.0)
    assert row.low == row.mean == row.high


def test_a_share_never_rounds_to_a_bare_zero():
    (row,) = summarise(of(series()))
    assert replace(row, mean=0.5, uniform=100.0).share_text == "0.50%"
    assert replace(row, mean=1e-4, uniform=100.0).share_text == "0.0001%"
    assert replace(row, uniform=0.0).share_text == "nan%"


def test_json_has_null_for_what_is_not_promised():
    (row,) = summarise(of(series()))
    plain = row.to_dict()
    assert plain["epsilon"] is None
    assert plain["guarantee"]["notion"] == "none"
    json.dumps(plain, allow_nan=False)
    assert replace(row, seconds=0.0).to_dict()["episodes_per_second"] is None


def test_json_says_what_made_the_numbers():
    (row,) = summarise(of(series("local", 2.0)))
    plain = row.to_dict()
    assert (plain["mechanism"], plain["requested_mechanism"]) == ("laplace", "auto")
    assert plain["noise_std"] == {"transitions": 5.0, "rewards": 99.0}
    assert plain["version"] == "9.9"
    assert plain["episodes_per_second"] == pytest.approx(10_000)


def entry(**promise):
    defaults = {"notion": "LDP", "epsilon": 1.0, "delta": 0.0, "simulated": False, "claimed": None}
    asked = {"label": "L", "trust": "local", "epsilon": 0.5, "delta": 0.0}
    return {**asked, "guarantee": {**defaults, **promise}}


def test_simulated_noise_warns_once_and_no_privacy_of_nothing():
    assert warnings_of(of(guarantees=[entry()])) == []
    assert warnings_of(of(guarantees=[entry(notion="none", simulated=True)])) == []
    (text,) = warnings_of(of(guarantees=[entry(simulated=True)] * 3))
    assert "not a protection of real people" in text


def test_printed_constants_warn_of_what_they_deliver():
    (text,) = warnings_of(of(guarantees=[entry(claimed="(0.5, 0)-LDP")]))
    assert text.startswith("L (local)")
    assert "claim (0.5, 0)-LDP but deliver (1, 0)-LDP" in text
    (text,) = warnings_of(of(guarantees=[entry(claimed="(0.5, 0)-LDP", epsilon=0.5)]))
    assert "claim (0.5, 0)-LDP and deliver (0.5, 0)-LDP" in text
    (text,) = warnings_of(of(guarantees=[entry(claimed="(0.5, 0)-LDP", epsilon=None)]))
    assert text.endswith("claim (0.5, 0)-LDP but nothing is promised.")
    known = entry(claimed="(0.5, 0)-LDP", epsilon=None, assumptions=["all are honest", "why"])
    (text,) = warnings_of(of(guarantees=[known]))
    assert text.endswith("but nothing is promised; why.")


def test_winners_are_found_per_environment_at_the_largest_k():
    group = [
        series(label="short", episodes=10, scale=0.01),  # would win, but is another K
        series(label="good"),
        series(label="bad", scale=3.0),
        series(label="alone", environment="F"),
    ]
    ((environment, (comparison,)),) = winners(of(*group))
    assert environment == "E"
    assert comparison.first == "good, no privacy"
    assert comparison.second == "bad, no privacy"
    assert comparison.difference < 0
