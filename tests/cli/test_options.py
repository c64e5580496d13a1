"""Options in groups, as Typer sees them."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from discreet.cli._options import grouped


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
