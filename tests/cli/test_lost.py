"""Nothing is lost: outputs that are full, closed or narrow, and files that were there before."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import Local
from discreet.cli import app as cli
from helpers.studies import everything_in, rehearsed

DESIGN = """
states = ["ill", "wéll→"]
actions = ["wait", "treat"]
steps = ["a", "b"]
episodes = 40
learner = "trial"

[trust]
model = "central"
epsilon = 1.0
delta = 1e-6

[table]
reward_range = [0, 1]
"""


def rows(first, people):
    lines = [
        f"p{i},{step},{'ill' if (i + j) % 2 else 'wéll→'},wait,{i % 2}"
        for i in range(first, first + people)
        for j, step in enumerate("ab")
    ]
    return "\n".join(["user,step,state,action,reward", *lines]) + "\n"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, finished):
    """Files of every kind that commands take."""
    from discreet.study.design import read_design
    from discreet.study.study import start_study

    folder = tmp_path_factory.mktemp("prepared")
    (folder / "design.toml").write_text(DESIGN, "utf-8")
    (folder / "logged.csv").write_text(rows(0, 40), "utf-8")
    (folder / "batch.csv").write_text(rows(0, 20), "utf-8")
    rehearsed(folder / "study.db", read_design(folder / "design.toml"), 0)
    start_study(
        folder / "phones.db", states=2, actions=2, horizon=2, episodes=40, learner="flow-ucb",
        trust=Local(1), sampler="simulation", seed=0,
    )  # fmt: skip
    shutil.copytree(finished, folder / "results")
    return folder


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def leaves():
    for name in cli.COMMANDS:
        inner = getattr(cli._load(name), "commands", {"": None})
        yield from (f"{name} {one}".strip() for one in inner)


LEAVES = list(leaves())
FIT = "fit logged.csv --design design.toml --rehearse --seed 1"
SMALL = "--states 2 --actions 2 --horizon 2"
WORDS = {
    "list": ["list", "list papers --json"],
    "run": ["run --learner flow-ucb --episodes 50 --runs 1 --jobs 1"],
    "plot": ["plot results --format svg"],
    "report": ["report results --csv"],
    "cite": ["cite flow-ucb"],
    "audit": ["audit central/laplace --quick"],
    "calibrate": [f"calibrate --trust central {SMALL}"],
    "certify": [f"certify --trust central {SMALL} --output made.json"],
    "design": ["design logged.csv --output made.toml"],
    "plan": ["plan design.toml --runs 1 --people 40 --epsilon 1 --trust central "
             "--problem RiverSwim --set states=2 --set horizon=2"],
    "fit": [FIT, f"{FIT} --output made.csv", f"{FIT} --json"],
    "check learner": ["check learner flow-ucb"],
    "check mdp": ["check mdp RiverSwim"],
    "check mechanism": ["check mechanism central/laplace"],
    "check table": ["check table logged.csv --design design.toml"],
    "study start": ["study start made.db --design design.toml --rehearse --seed 1"],
    "study ask": ["study ask study.db", "study ask phones.db --encoder made.json"],
    "study tell": ["study tell study.db batch.csv"],
    "study show": ["study show study.db"],
    "study policy": ["study policy study.db"],
    "study bundle": ["study bundle study.db"],
    "study verify": ["study verify study.db"],
    "study reissue": ["study reissue study.db"],
    "study extend": ["study extend study.db --episodes 5e1"],
    "study close": ["study close study.db"],
}  # fmt: skip
HELP_ONLY = {"bench", "service", "check study"}
"""What takes long, or needs a shuffler that runs; help is printed by every command."""


def test_every_command_is_tried_here():
    assert {one for one in LEAVES if one.split()[0] not in HELP_ONLY} - HELP_ONLY == set(WORDS)


def full(_):
    return Path("/dev/full").open("w", encoding="utf-8")


def closed_pipe(_):
    reads, writes = os.pipe()
    os.close(reads)
    return os.fdopen(writes, "w", encoding="utf-8")


def narrow(encoding):
    return lambda folder: (folder.parent / encoding).open("w", encoding=encoding)


OUTPUTS = {
    "full": full,
    "closed pipe": closed_pipe,
    "ascii": narrow("ascii"),
    "latin-1": narrow("latin-1"),
}


@pytest.fixture
def said(folder, monkeypatch):
    """Exit code and standard error of a command whose standard output is of a kind."""

    def run(words, kind):
        monkeypatch.setattr(sys, "argv", ["discreet", *words.split()])
        with monkeypatch.context() as patched, OUTPUTS[kind](folder) as output:
            patched.setattr(sys, "stdout", output)
            patched.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), "utf-8"))
            errors = sys.stderr
            with pytest.raises(SystemExit) as ended:
                cli.main()
            errors.flush()
        return ended.value.code, errors.buffer.getvalue().decode()

    return run


ALL = [*(f"{one} -h" for one in LEAVES), *(words for each in WORDS.values() for words in each)]


def names_in(folder):
    return {path for path in everything_in(folder) if not path.endswith((".lock", "-log"))}


@pytest.mark.parametrize("words", ALL)
def test_no_output_loses_anything(words, said, prepared, folder, tmp_path, monkeypatch):
    """A full device, a closed pipe and letters that the encoding lacks: one sentence at most."""
    there = []
    for kind in OUTPUTS:
        shutil.rmtree(folder)
        shutil.copytree(prepared, folder)
        monkeypatch.chdir(folder)
        code, errors = said(words, kind)
        last = [line for line in errors.splitlines() if line.startswith("Error: ")]
        if kind in ("full", "closed pipe"):
            assert code == 1
            assert len(last) == (kind == "full")
            assert "takes no more: No space left on device" in errors or kind != "full"
        else:
            assert code == 0
            assert not last
            printed = (tmp_path / kind).read_text(kind)
            escaped = "--json" not in words and re.search(r"\\(x|u..)[0-9a-f]{2}", printed)
            assert bool(escaped) == ("by their code" in errors)
        assert "Traceback" not in errors
        there.append(names_in(folder))
    assert there == there[-1:] * len(there)  # whatever the output, the same was done


def test_a_closed_output_is_an_error_and_a_closed_error_output_is_nothing(folder):
    """No file gets the number of an output that is closed: what is printed would stand in it."""
    command = f"exec {sys.executable} -m discreet study show study.db --json"
    for streams, code, words in (
        (">&-", 1, "Error: standard output takes no more: Bad file descriptor."),
        ("<&- >&- 2>&-", 1, ""),
        ("2>&- >/dev/null", 0, ""),
        ("2>/dev/full >/dev/null", 0, ""),
    ):
        before = everything_in(folder)
        done = subprocess.run(
            ["/bin/sh", "-c", f"{command} {streams}"], capture_output=True, text=True
        )
        assert done.returncode == code
        assert words in done.stderr and done.stderr.count("\n") == bool(words)
        assert everything_in(folder) == before
    code = "import os; from discreet.cli.output import open_streams; open_streams(); "
    code += "raise SystemExit(os.open('made', os.O_CREAT))"
    closed = ["/bin/sh", "-c", f'exec {sys.executable} -c "{code}" <&- >&- 2>&-']
    assert subprocess.run(closed).returncode > 2


def test_what_was_released_and_could_not_be_shown_is_shown_again_at_no_cost(folder, said, discreet):
    words = "fit logged.csv --design design.toml --json"
    assert said(words, "full")[0] == 1
    code, out, _err = discreet(*words.split())
    found = json.loads(out)
    assert code == 0 and not found["ledger"]["charged"]


# Files that are there.


WRITERS = {
    ("fit", "output"): (f"{FIT} --output", ".csv", "logged.csv"),
    ("study ask", "policy"): ("study ask study.db --policy", ".csv", "study.db"),
    ("study ask", "encoder"): ("study ask phones.db --encoder", ".json", "phones.db"),
    ("study policy", "output"): ("study policy study.db --output", ".json", "study.db"),
    ("study bundle", "output"): ("study bundle study.db --output", ".zip", "study.db"),
    ("certify", "output"): (f"{WORDS['certify'][0].split(' --output')[0]} --output", ".json", ""),
    ("design", "output"): ("design logged.csv --output", ".toml", "logged.csv"),
    ("plan", "plot"): (f"{WORDS['plan'][0]} --plot", ".svg", "design.toml"),
}
"""The options that name a file to write: words, an ending, and an input of the command."""


def test_every_option_that_writes_a_file_is_tried_here():
    found = set()
    for leaf in LEAVES:
        group, _, inner = leaf.partition(" ")
        command = cli._load(group)
        command = command.commands[inner] if inner else command
        for option in command.params:
            texts = (getattr(option, "help", None) or "").lower()
            if option.opts[0].startswith("--") and (" write" in f" {texts}" or "picture" in texts):
                found.add((leaf, option.name))
    options = {(leaf, name) for leaf, name in found if name not in ("latex", "as_csv", "force")}
    assert options == set(WRITERS)


def hard_link(path, other):
    path.hardlink_to(other)


def sym_link(path, other):
    path.symlink_to(other)


def foreign(path, other):
    path.write_text("what somebody has\n")


def a_folder(path, other):
    path.mkdir()


def dangling(path, other):
    path.symlink_to("nowhere")


def fifo(path, other):
    os.mkfifo(path)


THERE = [hard_link, sym_link, foreign, a_folder, dangling, fifo]


@pytest.mark.parametrize("there", THERE, ids=lambda one: one.__name__)
@pytest.mark.parametrize("writer", WRITERS, ids=" ".join)
def test_no_file_that_is_there_is_written_over(writer, there, folder, discreet):
    words, ending, other = WRITERS[writer]
    there(path := folder / f"there{ending}", folder / (other or "logged.csv"))
    before = everything_in(folder), path.lstat().st_ino
    code, out, err = discreet(*words.split(), str(path))
    errors = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert (code, out, len(errors)) == (2, "", 1)
    assert "Nothing was written." in errors[0]
    assert (everything_in(folder), path.lstat().st_ino) == before
    if there is foreign:
        code, _, err = discreet(*words.split(), str(path), "--force")
        assert code == 0, err
        assert path.read_bytes() != b"what somebody has\n"
    elif other and there is not a_folder:  # an input is never one, nor what is no file
        assert (there is dangling) or discreet(*words.split(), str(path), "--force")[0] == 2
        assert (everything_in(folder), path.lstat().st_ino) == before or there is dangling


@pytest.mark.parametrize("writer", WRITERS, ids=" ".join)
def test_what_the_command_wrote_before_is_there_too(writer, folder, discreet):
    words, ending, _ = WRITERS[writer]
    path = folder / f"own{ending}"
    assert discreet(*words.split(), str(path))[0] == 0
    looks = "discreet-fit-1 discreet-policy-1 discreet-batch-request-1 discreet-certificate/1"
    for like in (path.read_bytes(), f'a,guarantee\n"encoder": " {looks}'.encode()):
        path.write_bytes(like)
        before = everything_in(folder)
        code, out, err = discreet(*words.split(), str(path))
        assert (code, out) == (2, "") and "which is there already" in err
        assert everything_in(folder) == before
    assert discreet(*words.split(), str(path), "--force")[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        "fit logged.csv --design design.toml --rehearse --output x/../logged.csv --force",
        "fit logged.csv --design design.toml --rehearse --output LOGGED.csv --ledger logged.CSV",
        "study ask phones.db --policy both.json --encoder both.json",
        "study ask phones.db --policy both.json --encoder BOTH.json",
    ],
)
def test_an_input_or_another_output_is_no_output(words, folder, discreet):
    """By another path, and where letters of either case name one file."""
    (folder / "x").mkdir()
    before = everything_in(folder)
    code, out, err = discreet(*words.split())
    assert (code, out) == (2, "") and "an output that is no input" in err
    assert everything_in(folder) == before


def test_a_table_is_no_ledger_and_no_study(folder, discreet):
    before = everything_in(folder)
    for words in (
        "fit logged.csv --design design.toml --ledger logged.csv",
        "fit logged.csv --design design.toml --ledger design.toml",
        "study start logged.csv --design design.toml --rehearse",
    ):
        code, out, _err = discreet(*words.split())
        assert (code, out) == (2, ""), words
        assert {k: v for k, v in everything_in(folder).items() if not k.endswith(".lock")} == before


@pytest.mark.parametrize("name", ["results.parquet", "spec.toml", "report.html", "table.csv"])
def test_a_run_writes_into_no_folder_that_holds_something_of_its_names(name, folder, discreet):
    (folder / "mine").mkdir()
    (folder / "mine" / name).write_text("what somebody has")
    before = everything_in(folder)
    code, out, _err = discreet(*WORDS["run"][0].split(), "--output", "mine", "--json")
    assert code == 2 and "which no run of discreet wrote" in json.loads(out)["error"]
    assert everything_in(folder) == before


# And a few sentences.


@pytest.mark.parametrize(
    "options",
    ["--states a,a", "--states 0", "--actions x,,x", "--steps -1", "--steps 1,01.0,1",
     "--reward-range 5,1", "--reward-range nan,1", "--reward-range 0,inf"],
)  # fmt: skip
def test_a_design_that_nobody_can_read_is_not_written(options, folder, discreet):
    before = everything_in(folder)
    code, out, err = discreet("design", "logged.csv", "--output", "new.toml", *options.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert everything_in(folder) == before


def test_an_empty_design_says_what_is_missing(folder, discreet):
    (folder / "empty.toml").write_text("")
    named = ["--states", "a,b", "--actions", "x,y", "--steps", "2"]
    for words in (
        "fit logged.csv --design empty.toml",
        "study start new.db --design empty.toml --episodes 10",
    ):
        for more in ([], named):
            code, _, err = discreet(*words.split(), *more)
            assert code == 2 and "got no" in err and "None" not in err


@pytest.mark.parametrize("depth", [50, 900, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"policy":', '{"policy":[', '{"steps":['])
def test_a_policy_that_is_nested_too_deep_is_one_sentence(depth, opening, folder, discreet):
    closing = "".join({"[": "]", "{": "}"}.get(letter, "") for letter in opening)[::-1]
    (folder / "deep.json").write_text(opening * depth + "1" + closing * depth)
    code, out, err = discreet(*FIT.split(), "--policy", "deep.json")
    assert (code, out) == (2, "") and err.count("Error: ") == 1 and "deep.json" in err


def test_who_are_too_few_to_say_anything_are_said_to_be(folder, discreet):
    (folder / "one.csv").write_text(rows(0, 1), "utf-8")
    words = ["fit", "one.csv", *FIT.split()[2:]]
    code, out, _ = discreet(*words)
    assert code == 0 and "today           not known: so few people leave a standard error of" in out
    assert "+-" not in out
    assert discreet(*words, "--output", "p.json")[0] == 0
    code, out, _ = discreet(*words, "--policy", "p.json")
    assert code == 0 and "today           not known from so few people" in out


def test_a_study_goes_on_after_its_last_batch(folder, discreet):
    for first in (0, 20):
        (folder / "batch.csv").write_text(rows(first, 20), "utf-8")
        assert discreet("study", "tell", "study.db", "batch.csv")[0] == 0
    learnt = json.loads(discreet("study", "policy", "study.db", "--json")[1])
    assert json.loads(discreet("study", "show", "study.db", "--json")[1])["finished"]
    code, out, err = discreet("study", "extend", "study.db", "--episodes", "8e1", "--json")
    found = json.loads(out)
    assert code == 0, err
    assert (found["episodes"], found["users"], found["next_batch"]) == (80, 40, 40)
    again = json.loads(discreet("study", "policy", "study.db", "--json")[1])
    assert {**again, "head": ""} == {**learnt, "head": ""}
    (folder / "batch.csv").write_text(rows(40, 40), "utf-8")
    assert discreet("study", "tell", "study.db", "batch.csv")[0] == 0
    assert discreet("study", "verify", "study.db")[0] == 0
    assert discreet("study", "extend", "study.db", "--episodes", "80.5")[0] == 2


def test_a_table_without_problems_is_raw_data_too(folder, discreet):
    words = ["check", "table", "logged.csv", "--design", "design.toml"]
    code, out, _ = discreet(*words)
    assert code == 0 and "Every row can be read" in out and "This is raw data" in out
    assert "number of rows, too" in out
    code, out, _ = discreet(*words, "--json")
    assert code == 0 and json.loads(out)["note"].startswith("This is raw data")
