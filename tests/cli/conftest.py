"""The command line in this process."""

import sys

import pytest

from discreet.cli import app as cli


@pytest.fixture
def discreet(monkeypatch, capsys):
    """Run the command line in this process; returns (exit code, output, errors)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        captured = capsys.readouterr()
        return caught.value.code, captured.out, captured.err

    return run
