"""Given cut points make states of numbers; what has no bin is refused with its row."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data import Cuts, Discretizer, Vocabulary
from discreet.errors import InvalidInputError

pytestmark = pytest.mark.core
POINTS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5, unique=True).map(sorted)
OUTSIDE = st.sampled_from(["refuse", "clip", "missing"])
MISSING = st.sampled_from(["refuse", "bin"])
CUTS = st.builds(Cuts, st.just("x"), POINTS, outside=OUTSIDE, missing=MISSING, low=st.just(-1e7))
PRESSURE = Cuts("pressure", [90, 140], low=20, high=300)


def by_hand(cuts, value):
    """The definition, one value at a time."""
    unknown = len(cuts.points) + 1 if cuts.missing == "bin" else -1
    if np.isnan(value):
        return unknown
    if np.isinf(value) or value < -1e7:
        if cuts.outside != "clip":
            return unknown if cuts.outside == "missing" else -2
        return 0 if value < 0 else len(cuts.points)
    return sum(value >= point for point in cuts.points)


@given(CUTS, st.lists(st.floats(), max_size=8))
def test_bins_are_those_of_the_definition(cuts, values):
    values = [*values, *cuts.points]
    expected = [by_hand(cuts, value) for value in values]
    assert cuts.bins(np.array(values)).tolist() == expected


@given(CUTS, CUTS.map(lambda c: Cuts("y", c.points, missing=c.missing)))
def test_a_discretizer_survives_json(one, other):
    both = Discretizer(one, other)
    assert Discretizer.from_dict(json.loads(json.dumps(both.to_dict()))) == both


@given(st.lists(POINTS, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_a_state_is_called_after_the_bins_of_its_columns(points, random):
    cuts = [Cuts(f"c{i}", p, missing="bin") for i, p in enumerate(points)]
    rows = [[random.choice([*c.points, -2e6, float("nan")]) for _ in range(4)] for c in cuts]
    made = Discretizer(*cuts)
    states = made.combine([c.bins(np.array(row)) for c, row in zip(cuts, rows, strict=True)])
    for k, state in enumerate(states):
        parts = [c.names[c.bins(np.array(row))[k]] for c, row in zip(cuts, rows, strict=True)]
        assert made.names[state] == ", ".join(parts)


def test_names_of_a_discretizer_make_a_vocabulary():
    made = Discretizer(PRESSURE, Cuts("age", [65], names=["younger", "older"]))
    names = Vocabulary(states=[*made.names, "dead"], actions=2, steps=3)
    assert names.states[1] == "pressure < 90, older"
    assert names.shape.states == 7


@pytest.mark.parametrize(
    ("point", "name"), [(90, "x < 90"), (0.1, "x < 0.1"), (1e300, "x < 1e+300"), (-2.0, "x < -2")]
)
def test_cut_points_are_written_as_people_write_them(point, name):
    assert Cuts("x", [point]).names[0] == name


def test_neighbouring_doubles_have_different_names():
    assert len(set(Cuts("x", [0.1, np.nextafter(0.1, 1)]).names)) == 3


@pytest.mark.parametrize(
    ("arguments", "settings", "sentence"),
    [
        (("x", []), {}, "increasing cut points for 'x', at least one"),
        (("x", [2, 1]), {}, "increasing cut points"),
        (("x", [1, 1]), {}, "increasing cut points"),
        (("x", [float("nan")]), {}, "finite number"),
        (("x", [float("inf")]), {}, "finite number"),
        (("x", ["1"]), {}, "finite number"),
        (("x", "12"), {}, "a list of cut points"),
        (("x", 3), {}, "a list of cut points, got 3"),
        (("", [1]), {}, "the name of a column"),
        ((7, [1]), {}, "the name of a column, got 7"),
        (("x", [1]), {"names": ["a"]}, "Expected 2 names for the bins of 'x'"),
        (("x", [1]), {"names": ["a", "b"], "missing": "bin"}, "and one for missing values"),
        (("x", [1]), {"names": ["a", " a"]}, "which are one"),
        (("x", [1]), {"low": 1}, "low < cut points < high"),
        (("x", [1]), {"high": 0}, "low < cut points < high"),
        (("x", [1]), {"high": float("nan")}, "bound of x to be a finite number"),
        (("x", [1]), {"outside": "drop"}, "outside to be one of 'refuse', 'clip', 'missing'"),
        (("x", [1]), {"missing": "drop"}, "missing to be one of 'refuse', 'bin'"),
    ],
)
def test_cuts_that_are_none_are_one_sentence(arguments, settings, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Cuts(*arguments, **settings)


@pytest.mark.parametrize(
    ("cuts", "sentence"),
    [
        ([], "one Cuts"),
        ([[90]], "one Cuts"),
        ([PRESSURE, PRESSURE], "different columns"),
        ([Cuts(f"c{i}", range(99)) for i in range(4)], "at most 1000000 states, got 100 x 100 x"),
        (
            [Cuts("x", [1], names=["a", "a, b"]), Cuts("y", [1], names=["b, c", "c"])],
            "'a, b, c' and 'a, b, c', which are one",
        ),
    ],
)
def test_columns_that_make_no_states_are_one_sentence(cuts, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Discretizer(*cuts)


@pytest.mark.parametrize(
    ("plain", "sentence"),
    [
        ({}, "a discretizer with cuts"),
        ({"cuts": 3}, "a discretizer with cuts"),
        ({"cuts": [{"column": "x"}]}, "the cuts of a discretizer"),
        ({"cuts": [{"column": "x", "points": [1], "learn": True}]}, "unexpected keyword"),
        ({"cuts": [3]}, "the cuts of a discretizer"),
    ],
)
def test_a_foreign_dictionary_is_refused(plain, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Discretizer.from_dict(plain)
