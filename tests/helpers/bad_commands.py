"""Every bad input of the command line for studies, what it is met with, and the table of both.

python tests/helpers/bad_commands.py     prints the table (markdown)
"""

import contextlib
import io
import os
import pathlib
import sys
import tempfile

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import discreet
from discreet.study import store
from helpers.studies import sql
from helpers.study_commands import DESIGN, write_table

START = ("study", "start", "new.db", "--design", "design.toml", "--rehearse", "--seed", "1")
FIT = ("fit", "logged.csv", "--design", "design.toml", "--rehearse", "--seed", "1")
TELL = ("study", "tell", "study.db")
HEADER = "patient,visit,state,action,reward"


def _written(name, text):
    return lambda: pathlib.Path(name).write_text(text)


def _copy(change=lambda file: file):
    """Another file, made of the study."""
    return lambda: pathlib.Path("other.db").write_bytes(
        change(pathlib.Path("study.db").read_bytes())
    )


def _edited(statement):
    def run():
        _copy()()
        sql("other.db", statement)

    return run


def _table(*rows):
    return _written("bad.csv", "\n".join([HEADER, *rows]) + "\n")


def _design(text):
    return _written("bad.toml", text)


def _redesign(old, new):
    """The design of the study with one place changed."""
    return _design(DESIGN.replace(old, new))


def _nothing():
    pass


@contextlib.contextmanager
def _full_disk():
    kept = store._PRAGMAS
    pages = pathlib.Path("fresh.db").stat().st_size // 4096  # no room in it
    store._PRAGMAS = (*kept, f"PRAGMA max_page_count = {pages}")
    try:
        yield
    finally:
        store._PRAGMAS = kept


OTHER = ("study", "verify", "other.db")
BAD = ("study", "start", "new.db", "--design", "bad.toml", "--rehearse")

CASES = {
    "an unknown trust model": (_nothing, (*START, "--trust", "centrall"), "did you mean 'cent"),
    "trust as a string in a file": (_design('trust = "central"'), BAD, "a table [trust]"),
    "an epsilon that is none": (_nothing, (*START, "--epsilon", "0"), "epsilon"),
    "an epsilon beside no privacy": (
        _nothing,
        (*START, "--trust", "none", "--epsilon", "1"),
        "which guarantees nothing",
    ),
    "a fractional number of states": (_nothing, (*START, "--states", "2.5"), "as a number or as"),
    "a huge number of states": (_nothing, (*START, "--states", "9" * 30), "1 to 1000000 states"),
    "a huge problem": (_nothing, (*START, "--states", "1000000"), "merge states"),
    "a fractional number of users": (_nothing, (*START, "--episodes", "2.5"), "an integer >= 1"),
    "a word as the number of users": (_nothing, (*START, "--episodes", "many"), "an integer >= 1"),
    "more users than people": (_nothing, (*START, "--episodes", "1e20"), "not so many people"),
    "a misspelt learner": (_nothing, (*START, "--learner", "flow-ucbb"), "did you mean 'flow"),
    "a misspelt setting": (_nothing, (*START, "--set", "confidense=1"), "did you mean 'conf"),
    "a setting without a value": (_nothing, (*START, "--set", "confidence"), "--set name=value"),
    "a seed without a rehearsal": (
        _nothing,
        ("study", "start", "new.db", "--design", "design.toml", "--seed", "1"),
        "give --rehearse",
    ),
    "an unknown start state": (_nothing, (*START, "--start", "sick"), "among the 3 states"),
    "an unknown option": (_nothing, (*START, "--epsylon", "1"), "--epsylon"),
    "no design file": (_nothing, (*START[:4], "none.toml"), "No such file"),
    "a design that is no TOML": (_design("states = ["), BAD, "it is no TOML"),
    "an unknown key in a design": (_design("state = 3"), BAD, "did you mean 'states'?"),
    "an unknown fact of a table": (
        _redesign("reward_range", "rewards_range"),
        BAD,
        "did you mean 'reward_range'?",
    ),
    "a reward range upside down": (_redesign("[0, 10]", "[10, 0]"), BAD, "low < high"),
    "a delimiter that is none": (
        _redesign("reward_range", 'delimiter = ";;"\nreward_range'),
        BAD,
        "of one character",
    ),
    "a name with a control character": (
        _redesign('"ill"', '"ill\\u001b[2J"'),
        BAD,
        "printed on one line",
    ),
    "a design without a bottom": (_design("x = " + "[" * 3_000), BAD, "it is no TOML"),
    "a setting in the wrong place": (
        _redesign("mixing = false", "episodes = 3"),
        BAD,
        "belongs outside",
    ),
    "a missing folder": (_nothing, ("study", "start", "none/s.db", *START[3:]), "make it first"),
    "a folder as path": (_nothing, ("study", "start", ".", *START[3:]), "is a folder"),
    "a read-only folder": (_nothing, ("study", "start", "/proc/s.db", *START[3:]), "/proc"),
    "a file that exists": (_nothing, ("study", "start", "study.db", *START[3:]), "exists"),
    "a full disk": (_full_disk, ("study", "tell", "fresh.db", "many.csv"), "disk is full"),
    "no study": (_nothing, ("study", "show", "none.db"), "There is no study"),
    "a folder as a study": (_nothing, ("study", "show", "."), "a folder or no ordinary file"),
    "an empty file": (_copy(lambda file: b""), OTHER, "it is empty"),
    "a JSON file": (_copy(lambda file: b'{"a": 1}'), OTHER, "is not a study file"),
    "a truncated file": (_copy(lambda file: file[: len(file) // 2]), OTHER, "edited or damaged"),
    "an edited epsilon": (
        _edited("UPDATE config SET config = replace(config, '\"epsilon\":1', '\"epsilon\":9')"),
        OTHER,
        "edited or damaged",
    ),
    "forgotten users": (_edited("DELETE FROM users"), OTHER, "edited or damaged"),
    "a foreign database": (_edited("PRAGMA application_id = 7"), OTHER, "another program"),
    "an older copy": (_nothing, (*TELL, "week.csv", "--head", "0" * 64), "an older copy"),
    "no table": (_nothing, (*TELL, "none.csv"), "No such file"),
    "a user seen before": (
        _table("patient 0,1,ill,wait,1", *(f"patient 0,{h},ill,wait,1" for h in (2, 3, 4))),
        (*TELL, "bad.csv"),
        "has taken part already",
    ),
    "duplicate rows": (
        _table("x,1,ill,wait,1", "x,1,ill,wait,1"),
        (*TELL, "bad.csv"),
        "line",
    ),
    "missing steps": (_table("x,1,ill,wait,1"), (*TELL, "bad.csv"), "step"),
    "an unknown state": (_table("x,1,sick,wait,1"), (*TELL, "bad.csv"), "sick"),
    "a NaN reward": (_table("x,1,ill,wait,nan"), (*TELL, "bad.csv"), "got no reward"),
    "a reward out of range": (_table("x,1,ill,wait,11"), (*TELL, "bad.csv"), "11"),
    "no user": (_table(",1,ill,wait,1"), (*TELL, "bad.csv"), "user"),
    "a column that is missing": (_written("bad.csv", "patient\nx\n"), (*TELL, "bad.csv"), "column"),
    "another encoding": (
        lambda: pathlib.Path("bad.csv").write_bytes(b"patient,\xff\n"),
        (*TELL, "bad.csv"),
        "encoding",
    ),
    "a token in a central study": (
        _nothing,
        (*TELL, "week.csv", "--token", "0"),
        "another batch",
    ),
    "a policy of another kind": (
        _nothing,
        ("study", "ask", "study.db", "--policy", "policy.xlsx"),
        ".json or .csv",
    ),
    "a policy in a missing folder": (
        _nothing,
        ("study", "policy", "study.db", "--output", "none/policy.csv"),
        "there is no folder",
    ),
    "more users than asked for": (_nothing, (*TELL, "logged.csv"), "takes 1 to"),
    "a fit under local trust": (_nothing, (*FIT, "--trust", "local"), "in somebody's hands"),
    "a fit without a table": (_nothing, ("fit", "none.csv", *FIT[2:]), "No such file"),
    "a fit without names": (
        _nothing,
        ("fit", "logged.csv", "--trust", "central", "--epsilon", "1"),
        "never read off the data",
    ),
    "a fit with an unknown state": (
        _table("x,1,sick,wait,1"),
        ("fit", "bad.csv", *FIT[2:]),
        "sick",
    ),
    "a fit to a missing folder": (_nothing, (*FIT, "--output", "none/p.csv"), "there is no folder"),
    "a fit with another ending": (_nothing, (*FIT, "--output", "p.txt"), ".json or .csv"),
    "a fit with a negative width": (_nothing, (*FIT, "--width", "-1"), "width >= 0"),
    "a seeded fit for real people": (
        _nothing,
        (*FIT[:4], "--seed", "1"),
        "give --rehearse",
    ),
}  # fmt: skip


def prepared(folder):
    """A folder with a design, a study of one batch, the table of its next batch, and a log."""
    (folder / "design.toml").write_text(DESIGN)
    design = discreet.study.read_design(folder / "design.toml")
    rehearsal = {"sampler": "simulation", "seed": 1, **design.arguments()}
    study = discreet.start(folder / "study.db", **rehearsal)
    noisier = {"episodes": 100_000, "trust": discreet.Central(0.02, 1e-6)}
    large = discreet.start(folder / "fresh.db", **rehearsal | noisier)
    write_table(folder / "many.csv", large)
    write_table(folder / "first.csv", study)
    episodes, users = study.read_table(folder / "first.csv")
    study.tell(episodes, users=users)
    write_table(folder / "week.csv", study, seed=1, first=1_000)
    write_table(folder / "logged.csv", study, seed=2, users=study.batch_size + 50, first=5_000)
    return folder


def refused(case, call):
    """Exit code, output and errors of a case; ``call`` runs the command line."""
    prepare, arguments, _ = CASES[case]
    made = prepare()
    try:
        with made if hasattr(made, "__enter__") else contextlib.nullcontext():
            return call(*arguments)
    finally:
        for name in ("other.db", "bad.csv", "bad.toml"):
            pathlib.Path(name).unlink(missing_ok=True)


def _call(*arguments):
    from discreet.cli import app

    sys.argv = ["discreet", *arguments]
    out, err = io.StringIO(), io.StringIO()
    code = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app.main()
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        os.chdir(prepared(pathlib.Path(name)))
        sys.stdout.write("| input | exit | answer |\n|---|---|---|\n")
        for case in CASES:
            code, _, said = refused(case, _call)
            sys.stdout.write(f"| {case} | {code} | {said.strip()} |\n")
        os.chdir("/")
