"""Errors: one tree, suggestions, and sentences that survive KeyError's quoting."""

import inspect
import pickle

import numpy as np
import pytest

from discreet import errors
from discreet.errors import DiscreetError, MissingExtraError, UnknownNameError, sentence_of
from helpers.properties import given, st

pytestmark = pytest.mark.core
CLASSES = [
    c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__
]


def test_every_error_can_be_caught_by_one_name():
    raised = [c for c in CLASSES if c is not errors.DiscreetWarning]
    assert all(issubclass(c, DiscreetError) for c in raised)
    assert sorted(c.__name__ for c in CLASSES) == sorted(errors.__all__)


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidInputError("Expected users > 0, got 0."),
        MissingExtraError("ray", "ray"),
        UnknownNameError("learner", "flow-ubc", ["flow-ucb", "explore-then-commit"]),
        UnknownNameError("experiment", "price", ["price-of-trust"], begin=["price-of-trust"]),
    ],
)
def test_an_error_of_a_worker_process_says_what_it_said_there(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error) and str(copy) == str(error)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InvalidInputError, ValueError),
        (errors.UnsupportedError, ValueError),
        (errors.CalibrationError, ValueError),
        (errors.SolverError, RuntimeError),
        (errors.MissingExtraError, ImportError),
        (errors.UnknownNameError, KeyError),
    ],
)
def test_each_is_also_what_python_would_raise(error, builtin):
    assert issubclass(error, builtin)


def test_warnings_are_no_errors():
    assert issubclass(errors.DiscreetWarning, UserWarning)
    assert not issubclass(errors.DiscreetWarning, DiscreetError)


def test_a_missing_extra_says_how_to_get_it():
    assert str(MissingExtraError("ray", "ray")) == (
        "'ray' is not installed; it belongs to the extra 'ray': pip install 'discreet[ray]'."
    )


def test_a_near_miss_is_suggested_in_its_proper_case():
    assert str(UnknownNameError("environment", "riverswin", ["RiverSwim", "SixArms"])) == (
        "Unknown environment 'riverswin'; did you mean 'RiverSwim'?"
    )


def test_without_a_near_miss_all_names_are_listed():
    assert str(UnknownNameError("plot", "xyz", ["b", "a"])) == "Unknown plot 'xyz'; known: a, b."


@given(st.text(max_size=20), st.lists(st.text(min_size=1, max_size=8), max_size=5))
def test_any_name_gives_one_sentence(name, known):
    text = str(UnknownNameError("thing", name, known))
    assert text.startswith(f"Unknown thing {name!r}; ")
    assert text.endswith((".", "?"))


def test_a_mistake_that_shows_in_a_numerical_library_is_placed_where_it_was_made():
    def stacked():
        return np.stack([np.zeros(2), np.zeros(3)])

    with pytest.raises(ValueError, match="same shape") as caught:
        stacked()
    assert sentence_of(caught.value).startswith("ValueError: all input arrays must have the same")
    assert "(in stacked, test_errors.py, line " in sentence_of(caught.value)


def test_an_error_without_a_place_is_its_sentence():
    assert sentence_of(ValueError("odd")) == "odd"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("flwo-ucb", "did you mean 'flow-ucb'?"),
        ("FLOW", "did you mean 'flow-ucb'?"),  # how one name begins
        ("private", "known: "),  # how two begin
        ("fish", "known: "),
        ("p", "known: "),
    ],
)
def test_a_suggestion_is_near_for_its_length(name, hint):
    known = ["flow-ucb", "private-ucb-po", "private-ucb-vi", "psrl", "pe"]
    assert hint in str(UnknownNameError("learner", name, known))
