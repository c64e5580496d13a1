"""The table of an audit: rows for every path, false guarantees called false."""

import dataclasses
import json
import math

import pytest

from discreet.auditing.additive import Additive
from discreet.auditing.examine import TOLERANCE
from discreet.auditing.run import audit
from discreet.errors import InvalidInputError, UnknownNameError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local
from helpers.auditing import Enumerated, exact_view
from helpers.audits import audit_row as row
from helpers.mutations import HalvedInTheCode, LouderWithData, as_type

SMALL = Shape(states=1, actions=2, horizon=2)


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, True),
        ({"exact_epsilon": 1 + TOLERANCE / 2}, True),
        ({"exact_epsilon": 1 + 3 * TOLERANCE}, False),
        ({"exact_epsilon": math.inf}, False),
        ({"empirical_epsilon_low": 1.01}, False),
        ({"problems": ("Something depends on data.",)}, False),
        ({"exact_epsilon": 0.1, "exact_delta": math.nan}, True),
    ],
)
def test_when_a_guarantee_holds(changes, holds):
    assert row(**changes).holds is holds


def test_rows_as_json():
    data = row(exact_epsilon=math.inf, exact_delta=math.nan, problems=("one", "two")).to_dict()
    assert data == {
        "mechanism": "central/laplace",
        "path": "release",
        "kind": "batch",
        "calibration": "exact",
        "notion": "JDP",
        "claimed": {"epsilon": 1.0, "delta": 0.0},
        "exact_epsilon": None,
        "exact_delta": None,
        "empirical_epsilon_low": 0.5,
        "holds": False,
        "problems": ["one", "two"],
    }
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_one_row_per_path_and_its_progress():
    told = []
    found = audit(["central/laplace"], quick=True, epsilon=0.5, progress=told.append)
    assert [(r.path, r.kind, r.notion) for r in found] == [
        ("release", "batch", "JDP"),
        ("simulate", "batch", "JDP"),
        ("Trajectories.counts, release (70,000 users)", "batch", "JDP"),
        ("release (2 batches)", "returning", "JDP"),
        ("fit", "batch", "JDP"),
        ("fit (2 episodes of one person)", "returning", "JDP"),
    ]
    assert told == [
        "central/laplace: release (batch, exact)",
        "central/laplace: simulate (batch, exact)",
        "central/laplace: Trajectories.counts, release (70,000 users) (batch, exact)",
        "central/laplace: release (2 batches) (returning, exact)",
        "central/laplace: fit (batch, exact)",
        "central/laplace: fit (2 episodes of one person) (returning, exact)",
    ]
    assert all(r.exact_epsilon == pytest.approx(0.5) and r.holds for r in found)
    assert all(r.epsilon == 0.5 and r.delta == 0.0 for r in found)


def test_the_seed_decides_the_attack():
    """A name that is given twice is audited once."""
    names = ["central/laplace", "central/laplace"]
    low = [audit(names, quick=True, epsilon=5.0, seed=seed) for seed in (0, 0, 1)]
    found = [[r.empirical_epsilon_low for r in rows] for rows in low]
    assert found[0] == found[1] != found[2]
    assert len(found[0]) == 6


def test_printed_constants_are_called_out():
    found = audit(["local/laplace"], quick=True)
    [printed] = [row for row in found if row.calibration == "paper"]
    assert all(row.holds for row in found if row is not printed) and not printed.holds
    assert printed.exact_epsilon == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon > 0"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 1.0}, "delta"),
    ],
)
def test_numbers_out_of_range_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        audit(["central/laplace"], **options)


def test_an_unknown_name_is_refused_before_anything_runs():
    told = []
    with pytest.raises(UnknownNameError, match="central/laplace"):
        audit(["central/laplace", "central/laplac"], progress=told.append)
    assert told == []


def test_half_the_noise_in_the_code_is_a_false_row(monkeypatch):
    from discreet.privacy.mechanisms import registry
    from discreet.privacy.mechanisms.one_shot import laplace

    load, halved = registry._load, dataclasses.replace(laplace, kind=HalvedInTheCode)
    monkeypatch.setattr(
        registry, "_load", lambda home: halved if home == ".one_shot:laplace" else load(home)
    )
    # An epsilon of its own: a fit keeps the calibrations of others.
    for found in audit(["central/laplace"], epsilon=0.8125, quick=True):
        assert found.exact_epsilon == pytest.approx(1.625)
        assert not found.holds


def test_the_exact_view_of_a_plan():
    assert isinstance(exact_view(Central(1).calibrate(SMALL)), Additive)
    split = Local(1).calibrate(SMALL, statistics=("rewards",))
    assert isinstance(exact_view(split), Enumerated)


def test_a_central_plan_that_cannot_be_read_is_not_listed_as_reports():
    class Louder(LouderWithData):
        few = 2

    broken = as_type(Central(1).calibrate(Shape(2, 2, 3)), Louder)
    with pytest.raises(UnsupportedError, match="depends on the data"):
        exact_view(broken)
