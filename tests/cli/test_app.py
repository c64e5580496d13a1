"""The command line as a whole: help, version, errors, interruptions."""

import json
import os
import subprocess
import sys

import pytest
import typer

from discreet.cli import app as cli
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


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("4", "4")])
def test_one_thread_for_matrices_unless_somebody_says_otherwise(discreet, monkeypatch, given, used):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", given or "")
    if given is None:
        monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    discreet("--version")
    assert os.environ["OPENBLAS_NUM_THREADS"] == used


@pytest.mark.parametrize("error", [KeyboardInterrupt, typer.Abort])
def test_an_interruption_is_quiet(discreet, monkeypatch, error):
    def interrupted(**options):
        raise error

    monkeypatch.setattr(cli, "make_app", lambda: interrupted)
    assert discreet("run") == (130, "", "")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InvalidInputError("Expected a, got b."), "Error: Expected a, got b.\n"),
        (MemoryError(), "Error: Not enough memory for a problem of this size; ask for fewer"),
        (typer.BadParameter("not so"), "not so"),
        (
            PermissionError(13, "Permission denied", "folder/key"),
            "Error: Cannot use 'folder/key': Permission denied; check path and permissions.\n",
        ),
    ],
)
def test_errors_on_purpose_are_one_sentence_and_exit_code_two(discreet, monkeypatch, error, words):
    def failing(**options):
        raise error

    monkeypatch.setattr(cli, "make_app", lambda: failing)
    code, out, err = discreet("run")
    assert (code, out) == (2, "")
    assert words in err


def test_a_bug_is_not_hidden(monkeypatch):
    def failing(**options):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "make_app", lambda: failing)
    monkeypatch.setattr(sys, "argv", ["discreet", "run"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help_with_a_sentence(discreet, command):
    code, out, _ = discreet(command, "--help")
    assert code == 0
    assert f"discreet {command}" in out.replace("\n", " ")
    assert command in ("check", "service", "study") or (
        "--json" in out and "--import MODULE" in out
    )
    assert discreet(command, "-h") == (0, out, "")


def test_the_help_names_every_command_in_order(discreet):
    lines = discreet("--help")[1].splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ") and line[2] not in " -"]
    assert named[-len(cli.COMMANDS) :] == list(cli.COMMANDS)


@pytest.mark.parametrize("words", [["lsit"], ["list", "--jsno"], ["run", "--set"]])
def test_words_that_no_command_understands_are_one_sentence(discreet, words):
    code, out, err = discreet(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)


HEAVY = ("numpy", "scipy", "numba", "gymnasium", "matplotlib", "discreet.cli.run")


def loaded(words):
    """Those of `HEAVY` that a process has loaded when it has answered; and its answer."""
    code = (
        f"import sys; sys.argv = ['discreet', *{words!r}]\n"
        "from discreet.cli.app import main\n"
        "try: main()\n"
        "except SystemExit as exit: assert exit.code == 0\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    *answer, modules = out.stdout.splitlines()
    return modules, answer


@pytest.mark.core
def test_help_loads_no_command_and_nothing_heavy():
    modules, answer = loaded(["--help"])
    assert "calibrate" in " ".join(answer)
    assert modules == "[]"


def test_who_has_read_enough_gets_no_traceback():
    command = [sys.executable, "-c", "from discreet.cli.app import main; main()", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.parametrize("words", [["run", "nothing"], ["list", "nothing"], ["run", "--wrong"]])
def test_a_script_gets_its_error_as_json(discreet, words):
    code, out, err = discreet(*words, "--json")
    assert (code, err) == (2, "")
    assert list(json.loads(out)) == ["error"]


def test_a_command_that_is_nearly_one_gets_a_suggestion(discreet):
    assert discreet("lst") == (2, "", "Error: No such command 'lst'. Did you mean 'list'?\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell):
    def completed(words):
        variables = {
            "_DISCREET_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        command = [
            sys.executable,
            "-c",
            "import sys; sys.argv = ['discreet']\nfrom discreet.cli.app import main; main()",
        ]
        environment = {**os.environ, **variables}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        return done.stdout

    assert "calibrate" in completed("discreet cal")
    assert "--quick" in completed("discreet run --q")
    assert "price-of-trust" in completed("discreet run price-of-t")
    assert "flow-ucb" in completed("discreet run --learner flow")
    assert "RiverSwim" in completed("discreet check mdp Riv")
