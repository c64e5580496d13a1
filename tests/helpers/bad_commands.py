"""Bad input of the command line for studies and what it is met with.

What the library refuses, `bad_input` and the tests of its rooms try; here are what the command line
alone can be told wrongly, and one case of each kind of file.
"""

import contextlib
import pathlib

import discreet
from discreet.study import store
from helpers.studies import rehearsed
from helpers.study_commands import DESIGN, write_table

START = ("study", "start", "new.db", "--design", "design.toml", "--rehearse", "--seed", "1")
FIT = ("fit", "logged.csv", "--design", "design.toml", "--rehearse", "--seed", "1")
TELL = ("study", "tell", "study.db")
HEADER = "patient,visit,state,action,reward"


def _written(name, text):
    return lambda: pathlib.Path(name).write_text(text)


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


BAD = ("study", "start", "new.db", "--design", "bad.toml", "--rehearse")

CASES = {
    "trust as a string in a file": (_design('trust = "central"'), BAD, "a table [trust]"),
    "an epsilon beside no privacy": (
        _nothing,
        (*START, "--trust", "none", "--epsilon", "1"),
        "which guarantees nothing",
    ),
    "a setting without a value": (_nothing, (*START, "--set", "confidence"), "--set name=value"),
    "a seed without a rehearsal": (
        _nothing,
        ("study", "start", "new.db", "--design", "design.toml", "--seed", "1"),
        "give --rehearse",
    ),
    "an unknown option": (_nothing, (*START, "--epsylon", "1"), "--epsylon"),
    "no design file": (_nothing, (*START[:4], "none.toml"), "No such file"),
    "a design that is no TOML": (_design("states = ["), BAD, "it is no TOML"),
    "an unknown key in a design": (_design("state = 3"), BAD, "did you mean 'states'?"),
    "an unknown fact of a table": (
        _redesign("reward_range", "rewards_range"),
        BAD,
        "did you mean 'reward_range'?",
    ),
    "a read-only folder": (_nothing, ("study", "start", "/proc/s.db", *START[3:]), "/proc"),
    "a full disk": (_full_disk, ("study", "tell", "fresh.db", "many.csv"), "disk is full"),
    "an older copy": (_nothing, (*TELL, "week.csv", "--head", "0" * 64), "an older copy"),
    "no table": (_nothing, (*TELL, "none.csv"), "No such file"),
    "a user seen before": (
        _table("patient 0,1,ill,wait,1", *(f"patient 0,{h},ill,wait,1" for h in (2, 3, 4))),
        (*TELL, "bad.csv"),
        "has taken part already",
    ),
    "an unknown state": (_table("x,1,sick,wait,1"), (*TELL, "bad.csv"), "sick"),
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
    "a fit under local trust": (_nothing, (*FIT, "--trust", "local"), "in somebody's hands"),
    "a fit without a table": (_nothing, ("fit", "none.csv", *FIT[2:]), "No such file"),
    "a fit to a missing folder": (_nothing, (*FIT, "--output", "none/p.csv"), "there is no folder"),
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
    study = rehearsed(folder / "study.db", design, 1)
    noisier = {"episodes": 100_000, "trust": discreet.Central(0.02, 1e-6)}
    large = rehearsed(folder / "fresh.db", design, 1, **noisier)
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
        for name in ("bad.csv", "bad.toml"):
            pathlib.Path(name).unlink(missing_ok=True)
