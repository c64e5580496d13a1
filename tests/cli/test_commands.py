"""The commands as Typer sees them: listed without being loaded, loaded once, known by name."""

import importlib
import subprocess
import sys

import pytest
import typer

from discreet.cli import _commands
from discreet.errors import DiscreetError

SCRIPT = """
import sys
from discreet.cli import _commands
sys.argv = ["discreet", "--help"]
try:
    _commands.call()
except SystemExit:
    pass
print([name for name in sys.modules if name.startswith("discreet.cli.") and "._" not in name])
"""


@pytest.mark.parametrize("name", _commands.COMMANDS)
def test_every_command_has_a_file_with_something_to_call(name):
    module, sentence = _commands.COMMANDS[name]
    part = importlib.import_module(f"discreet.cli.{module}")
    assert isinstance(getattr(part, "app", None), typer.Typer) or callable(part.command)
    assert sentence.endswith(".")
    assert _commands._load(name) is _commands._load(name)


def test_help_loads_no_command():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[-1] == "[]"
    named = [line.split()[0] for line in lines if line.startswith("  ") and line[2] not in " -"]
    assert named[-len(_commands.COMMANDS) :] == list(_commands.COMMANDS)


@pytest.mark.parametrize("words", [["lsit"], ["list", "--jsno"], ["run", "--set"]])
def test_words_that_no_command_understands_are_one_sentence(monkeypatch, words):
    monkeypatch.setattr(sys, "argv", ["discreet", *words])
    with pytest.raises(DiscreetError) as caught:
        _commands.call()
    assert "\n" not in str(caught.value)


def test_who_gives_up_at_a_question_interrupts(monkeypatch):
    def aborted(**_):
        raise typer.Abort

    monkeypatch.setattr(_commands, "app", aborted)
    with pytest.raises(KeyboardInterrupt):
        _commands.call()
