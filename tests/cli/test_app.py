"""The command line as a whole: help, version, errors, interruptions."""

import json
import os
import subprocess
import sys

import pytest
import typer

from discreet.cli import _commands, run
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
        (
            PermissionError(13, "Permission denied", "folder/key"),
            "Error: Cannot use 'folder/key': Permission denied; check path and permissions.\n",
        ),
    ],
)
def test_errors_on_purpose_are_one_sentence_and_exit_code_two(discreet, monkeypatch, error, words):
    def failing(**options):
        raise error

    monkeypatch.setattr(_commands, "app", failing)
    code, out, err = discreet("run")
    assert (code, out) == (2, "")
    assert words in err


def test_a_bug_is_not_hidden(monkeypatch):
    def failing(**options):
        raise ZeroDivisionError

    monkeypatch.setattr(_commands, "app", failing)
    monkeypatch.setattr(sys, "argv", ["discreet", "run"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


@pytest.mark.parametrize("command", _commands.COMMANDS)
def test_every_command_has_help_with_a_sentence(discreet, command):
    code, out, _ = discreet(command, "--help")
    assert code == 0
    assert f"discreet {command}" in out.replace("\n", " ")
    assert command in ("check", "service", "study") or (
        "--json" in out and "--import MODULE" in out
    )
    assert discreet(command, "-h") == (0, out, "")


def test_every_command_is_one_file():
    from pathlib import Path

    found = Path(cli.__file__).parent.glob("[a-z]*")  # a group of commands is a folder
    files = {path.stem for path in found} - {"app"}
    modules = {module for module, _ in _commands.COMMANDS.values()}
    assert files == modules


HEAVY = ("numpy", "scipy", "numba", "gymnasium", "rich", "discreet.cli.run")


def loaded(words, folder, modules=HEAVY):
    """Those of ``modules`` that a process has loaded when it has answered; and its answer."""
    code = (
        f"import sys; sys.argv = ['discreet', *{words!r}]\n"
        "from discreet.cli.app import main\n"
        "try: main()\n"
        "except SystemExit as exit: assert exit.code == 0\n"
        f"print([m for m in {modules!r} if m in sys.modules])"
    )
    environment = {**os.environ, "DISCREET_CACHE": str(folder)}
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    *answer, modules = out.stdout.splitlines()
    return modules, answer


@pytest.mark.core
def test_help_loads_no_command_and_nothing_heavy(tmp_path):
    modules, answer = loaded(["--help"], tmp_path)
    assert "calibrate" in " ".join(answer)
    assert modules == "[]"
    assert loaded(["--help"], tmp_path, (*HEAVY, "typer")) == ("[]", answer)


@pytest.mark.core
def test_the_list_loads_nothing_heavy_and_no_parser(tmp_path):
    modules, answer = loaded(["list"], tmp_path, (*HEAVY, "typer", "fractions"))
    assert "RiverSwim" in " ".join(answer)
    assert modules == "[]"


def test_a_known_answer_loads_no_parser_and_nothing_heavy(tmp_path):
    words = ["calibrate", "--trust", "central", "--states", "2", "--json"]
    first = loaded(words, tmp_path, ("typer", "numpy"))
    assert first[0] == "['typer', 'numpy']"
    assert loaded(words, tmp_path, (*HEAVY, "typer")) == ("[]", first[1])


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
