"""Options: in groups, as name=value, of a guarantee and a release, and names that are completed."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from discreet.cli import options
from discreet.cli.options import (
    GuaranteeOptions,
    ReleaseOptions,
    grouped,
    parse_settings,
    parse_value,
)
from discreet.errors import DiscreetError, InvalidInputError
from discreet.mdp.shape import Shape
from helpers.properties import given, st


@dataclass(frozen=True)
class Size:
    states: Annotated[int, typer.Option(help="How many.")] = 4
    names: Annotated[list[str] | None, typer.Option("--name")] = None


@dataclass(frozen=True)
class Place:
    city: Annotated[str, typer.Option()]


SEEN = []


def command(size: Size, place: Place, file: Annotated[str, typer.Argument()] = "-") -> None:
    """Do it."""
    SEEN.append((size, place, file))


@pytest.fixture
def call():
    app = typer.Typer()
    app.command()(grouped(command))
    SEEN.clear()
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_fields_are_options_and_arguments_stay(call):
    done = call("--city", "x", "--states", "7", "--name", "a", "--name", "b", "data.csv")
    assert done.exit_code == 0
    assert [(Size(7, ["a", "b"]), Place("x"), "data.csv")] == SEEN


def test_defaults_are_those_of_the_dataclass(call):
    call("--city", "x")
    ((size, _, file),) = SEEN
    assert (size.states, file) == (4, "-")
    assert not size.names


def test_a_field_without_a_default_is_required(call):
    done = call()
    assert done.exit_code == 2
    assert SEEN == []


def test_help_and_name_are_the_commands(call):
    shown = call("--help").output
    assert "Do it." in shown
    assert "How many." in shown
    assert grouped(command).__name__ == "command"


def test_the_order_is_that_of_the_parameters():
    assert list(inspect.signature(grouped(command)).parameters) == [
        "states",
        "names",
        "city",
        "file",
    ]


@pytest.mark.parametrize("trust", ["central", "local", "shuffle"])
def test_a_guarantee_becomes_a_trust_model(trust):
    model = GuaranteeOptions(epsilon=0.5, delta=1e-7, honest=0.25).model(trust)
    assert (model.name, model.epsilon, model.delta) == (trust, 0.5, 1e-7)
    assert model.mechanism == "auto"
    assert model.calibration == "exact"
    if trust == "shuffle":
        assert model.honest == 0.25


@pytest.mark.parametrize("trust", ["central", "local", "none"])
def test_honest_users_belong_to_shuffle(trust):
    with pytest.raises(DiscreetError, match=f"--honest belongs to --trust shuffle.*{trust}"):
        GuaranteeOptions(trust=trust, honest=0.5).model(trust)


def test_a_release_knows_its_size_and_its_counters():
    release = ReleaseOptions(states=3, actions=4, horizon=5, statistics=" visits, rewards")
    assert release.shape == Shape(states=3, actions=4, horizon=5)
    assert release.counters == ("visits", "rewards")
    assert ReleaseOptions().counters is None
    with pytest.raises(DiscreetError, match="states"):
        _ = ReleaseOptions(states=0).shape


@pytest.mark.parametrize(
    ("complete", "begun", "found"),
    [
        (options.learners, "flow", ["flow-ucb"]),
        (options.learners, "PRIVATE-ucb-p", ["private-ucb-po"]),
        (options.environments, "river", ["RiverSwim"]),
        (options.environments, "icu", ["ICU-Sepsis"]),
        (options.experiments, "shuffle-r", ["shuffle-riverswim"]),
        (options.trusts, "", ["none", "central", "local", "shuffle"]),
        (options.trusts, "Sh", ["shuffle"]),
        (options.trusts, "huffle", []),
    ],
)
def test_what_begins_so_is_offered(complete, begun, found):
    assert complete(begun) == found


def test_everything_that_is_offered_can_be_asked_for():
    from discreet.learners.registry import get_learner

    names = options.learners("")
    assert len(names) > 10
    assert [get_learner(name).name for name in names] == names


def test_settings_read_as_literals():
    assert parse_settings(["a=1", "b = 0.5", "c=S|G", "d=(1, 2)", "e=None"]) == {
        "a": 1,
        "b": 0.5,
        "c": "S|G",
        "d": (1, 2),
        "e": None,
    }
    assert parse_value("1.5e1") == 15


@given(st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_back(number):
    assert parse_value(repr(number)) == number


@given(st.text(max_size=30))
def test_any_text_is_some_setting(text):
    value = parse_value(text)
    assert value is None or isinstance(value, bool | int | float | str | list | tuple | dict)


@pytest.mark.parametrize("text", ["1j", "b'x'", "{1, 2}", "(" * 5000, "1 +", "S..G", "a b"])
def test_what_nobody_can_mean_is_text(text):
    assert parse_value(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [("TRUE", True), ("False", False), ("none", None), ("1e400", float("inf")), ("2.5e0", 2.5)],
)
def test_words_and_powers_of_ten(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_the_last_of_two_equal_names_counts():
    assert parse_settings(["a=1", "a=2", "b=x=y"]) == {"a": 2, "b": "x=y"}


@pytest.mark.parametrize("text", ["a", "=1", " =1", ""])
def test_a_setting_needs_a_name_and_a_value(text):
    with pytest.raises(InvalidInputError, match="name=value, got --set"):
        parse_settings([text])
