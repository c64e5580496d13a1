"""Whatever door a name comes in by, its spellings are one person or are refused."""

import sys

import numpy as np
import pytest

import discreet
from discreet.cli import app
from discreet.data import Vocabulary, read_table
from discreet.errors import BudgetError, DiscreetError, DiscreetWarning
from discreet.mdp import Trajectories
from discreet.privacy import Budget, Ledger
from discreet.study.files import read_names
from helpers.studies import begin, episodes_of, names

SPELLINGS = {
    "variation selector": "ann lee\ufe0f",
    "another one": "ann\U000e0100 lee",
    "grapheme joiner": "an\u034fn lee",
    "filler behind it": "ann lee\u3164",
    "filler for a space": "ann\u3164lee",
    "NUL": "ann lee\0",
    "DEL": "ann\x7f lee",
    "no-break space": "ann\u00a0lee",
    "two spaces": "ann  lee",
    "tab": "ann\tlee",
    "fullwidth": "\uff41\uff4e\uff4e\u3000\uff4c\uff45\uff45",
    "outer space": " ann lee\n",
}
NUMBERS = {
    "digits": ("7", 7),
    "wide digits": (7, "\uff17"),
    "a float": ("7", "7.0"),
    "thousands": (100_000, "1e+05"),
    "numpy's text": ("7", f"7.{'0' * 18}e+00"),
    "a decimal of SQL": (7, "7.0000000000"),
}
CASES = {name: ("ann lee", text) for name, text in SPELLINGS.items()} | NUMBERS
TABLE = Vocabulary(states=2, actions=2, steps=1)
EPISODES = Trajectories(np.zeros((2, 2), int), np.zeros((2, 1), int), np.zeros((2, 1)))


def columns(users):
    """The one step of each: of one person it would be there twice."""
    return {"user": users, "step": [0, 0], "state": [0, 0], "action": [0, 1], "reward": [0, 1]}


def one_batch(folder, one, other):
    study = begin(folder / "s.db")
    study.tell(episodes_of(study, 0, 2), users=[one, other])
    return study.users


def two_batches(folder, one, other):
    study = begin(folder / "s.db")
    study.tell(episodes_of(study, 0), users=[one, *names(study)[1:]])
    study.tell(episodes_of(study, 1), users=[other, *names(study)[1:]])
    return 2


def after_a_restart(folder, one, other):
    study = begin(folder / "s.db")
    study.tell(episodes_of(study, 0, 1), users=[one])
    study = discreet.open_study(study.path)
    study.tell(episodes_of(study, 1, 1), users=[other])
    return study.users


def file_of_names(folder, one, other):
    (folder / "users.txt").write_text(f"{one}\n{other}\n", "utf-8")
    study = begin(folder / "s.db")
    study.tell(episodes_of(study, 0, 2), users=read_names(folder / "users.txt"))
    return study.users


def frame(folder, one, other):
    return len(read_table(columns([one, other]), TABLE)[1])


def csv_file(folder, one, other):
    (folder / "t.csv").write_text(
        f'user,step,state,action,reward\n"{one}",0,0,0,0\n"{other}",0,0,1,1\n', "utf-8"
    )
    return len(read_table(folder / "t.csv", TABLE)[1])


def parquet_file(folder, one, other):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns([str(one), str(other)])), folder / "t.parquet")
    return len(read_table(folder / "t.parquet", TABLE)[1])


def ledger_in_memory(folder, one, other):
    ledger = Ledger(budget=Budget(1))
    ledger.record(1, users=[one])
    ledger.record(1, users=[other])
    return 2


def one_release(folder, one, other):
    Ledger().record(1, users=[one, other])
    return 2


def ledger_in_a_file(folder, one, other):
    for user in (one, other):
        ledger = Ledger(folder / "people.ledger", budget=Budget(1))
        ledger.record(1, users=[user])
    return 2


def fitted(folder, one, other):
    options = {"vocabulary": TABLE, "sampler": "simulation", "seed": 0}
    return discreet.fit(EPISODES, discreet.Central(1), users=[one, other], **options).users


def fit_command(folder, one, other):
    words = ["--states", "2", "--actions", "2", "--steps", "2", "--trust", "central"]
    words += ["--epsilon", "1", "--budget", "1"]
    for i, user in enumerate((one, other)):
        text = f'user,step,state,action,reward\n"{user}",0,{i},0,0\n"{user}",1,0,1,1\n'
        (folder / f"{i}.csv").write_text(text, "utf-8")
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
            patch.setattr(sys, "argv", ["discreet", "fit", str(folder / f"{i}.csv"), *words])
            app.main()
        if ended.value.code:
            return i
    return 2


DOORS = [
    one_batch,
    two_batches,
    after_a_restart,
    file_of_names,
    frame,
    csv_file,
    parquet_file,
    ledger_in_memory,
    one_release,
    ledger_in_a_file,
    fitted,
    fit_command,
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_spellings_of_one_name_are_one_person_or_refused(tmp_path, door, case):
    try:
        people = door(tmp_path, *CASES[case])
    except DiscreetError:
        people = 1
    assert people == 1


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_two_names_are_two_people(tmp_path, door):
    """A door that refuses everybody would pass above."""
    assert door(tmp_path, "ann lee", "bob lee") == 2


@pytest.mark.filterwarnings("always::discreet.errors.DiscreetWarning")
def test_the_command_line_says_once_that_a_name_mixes_alphabets(tmp_path, capsys):
    assert fit_command(tmp_path, "\u0430nn", "bob") == 2
    assert capsys.readouterr().err.count("Note: One name mixes letters of several alphabets") == 1


def test_look_alike_letters_are_remarked_on_where_names_are_kept(tmp_path):
    with pytest.warns(DiscreetWarning, match="Cyrillic and Latin"):
        assert ledger_in_memory(tmp_path, "ann", "\u0430nn") == 2
    with pytest.warns(DiscreetWarning, match="upper and lower case alone"):
        assert one_batch(tmp_path, "ann", "Ann") == 2
    with pytest.raises(BudgetError):
        ledger_in_memory(tmp_path, "ann", "ann")
