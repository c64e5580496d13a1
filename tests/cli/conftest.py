"""The command line in this process."""

import sys

import pytest

from discreet.cli import app as cli
from discreet.lab.runner import run_experiment
from helpers.experiments import experiment


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


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a finished experiment."""
    path = tmp_path_factory.mktemp("finished") / "tiny"
    run_experiment(experiment(runs=2), path, jobs=1)
    return path
