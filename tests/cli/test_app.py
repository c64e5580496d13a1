"""The command line as a whole: help, version, errors, interruptions."""

import sys

import pytest
import typer

from discreet.cli import app as cli
from discreet.cli import run
from discreet.errors import InvalidInputError


def test_no_arguments_show_the_help(discreet):
    code, out, err = discreet()
    assert code == 2
    assert "check" in out + err
    assert "Error" not in err


@pytest.mark.core
def test_version(discreet):
    from discreet import __version__

    assert discreet("--version") == (0, f"discreet {__version__}\n", "")


@pytest.mark.parametrize("error", [KeyboardInterrupt, typer.Abort])
def test_an_interruption_is_quiet(discreet, monkeypatch, error):
    def interrupted():
        raise error

    monkeypatch.setattr(run, "_offer", interrupted)
    assert discreet("run") == (130, "", "")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InvalidInputError("Expected a, got b."), "Error: Expected a, got b.\n"),
        (MemoryError(), "Error: Not enough memory for a problem of this size; ask for fewer"),
        (typer.BadParameter("not so"), "not so"),
    ],
)
def test_errors_on_purpose_are_one_sentence_and_exit_code_two(discreet, monkeypatch, error, words):
    def failing(**options):
        raise error

    monkeypatch.setattr(cli, "app", failing)
    code, out, err = discreet("list")
    assert (code, out) == (2, "")
    assert words in err


def test_a_bug_is_not_hidden(monkeypatch):
    def failing(**options):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "app", failing)
    monkeypatch.setattr(sys, "argv", ["discreet", "list"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


@pytest.mark.parametrize("command", cli._COMMANDS)
def test_every_command_has_help_with_a_sentence(discreet, command):
    code, out, _ = discreet(command, "--help")
    assert code == 0
    assert f"discreet {command}" in out.replace("\n", " ")
    assert "--json" in out or command in ("check", "service", "study")


def test_every_command_is_one_file():
    from pathlib import Path

    found = Path(cli.__file__).parent.glob("[a-z]*")  # a group of commands is a folder
    files = {path.stem for path in found} - {"app"}
    assert files == {module.rpartition(".")[2] for module in cli._COMMANDS.values()}
