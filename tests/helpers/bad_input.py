"""Every bad input of a study, what it is met with, and the table of both.

python tests/helpers/bad_input.py     prints the table (markdown)
"""

import io
import pathlib
import sys
import tempfile

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np

import discreet
from discreet.data import Vocabulary, read_table
from discreet.errors import DiscreetError
from discreet.mdp.trajectories import Trajectories
from discreet.study import store
from helpers.studies import advance, begin, episodes_of, names, reports_of, sql

NAMES = Vocabulary(states=["ill", "well"], actions=["wait", "treat"], steps=2)


def _start(**changes):
    return lambda folder: begin(folder / "new.db", **changes)


def _at(*parts):
    return lambda folder: begin(folder.joinpath(*parts))


def _tell(user):
    """A batch with this user in it."""

    def run(folder):
        study = discreet.open_study(folder / "study.db")
        study.tell(episodes_of(study, 1), users=[user, *names(study)[1:]])

    return run


def _data(change):
    """A batch whose data or users are changed."""

    def run(folder):
        study = discreet.open_study(folder / "study.db")
        data, users = change(study, episodes_of(study, 1), names(study))
        study.tell(data, users=users)

    return run


def _token(folder):
    study = discreet.open_study(folder / "study.db")
    study.tell(episodes_of(study, 1), users=names(study), token="0" * 32)


def _rows(*rows):
    """A CSV file with these rows."""

    def run(folder):
        header = "user,step,state,action,reward"
        read_table(io.StringIO("\n".join([header, *rows])), NAMES)

    return run


def _resumed(content):
    """A file with this content, resumed."""

    def run(folder):
        place = folder / "other.db"
        place.write_bytes(content((folder / "study.db").read_bytes()))
        try:
            discreet.open_study(place)
        finally:
            place.unlink()

    return run


def _edited(statement):
    """A copy of the study after an edit, resumed."""

    def run(folder):
        place = folder / "other.db"
        place.write_bytes((folder / "study.db").read_bytes())
        try:
            sql(place, statement)
            discreet.open_study(place)
        finally:
            place.unlink()

    return run


def _older(folder):
    study = discreet.open_study(folder / "study.db")
    discreet.open_study(study.path, head=study.ledger[0]["previous"] or "0" * 64)


def _full_disk(folder):
    study = begin(folder / "other.db")
    pages = study.path.stat().st_size // 4096
    kept = store._PRAGMAS
    store._PRAGMAS = (*kept, f"PRAGMA max_page_count = {pages}")
    try:
        for _ in range(20):  # what room there is in a fresh file is soon used up
            advance(study)
    finally:
        store._PRAGMAS = kept
        study.path.unlink()


def _two_at_once(folder):
    place = folder / "other.db"
    place.write_bytes((folder / "study.db").read_bytes())
    try:
        one, two = discreet.open_study(place), discreet.open_study(place)
        advance(one, 1)
        advance(two, 2)
    finally:
        place.unlink()


def _fewer_under_shuffle(folder):
    study = begin(folder / "other.db", discreet.Shuffle(1, 1e-6), episodes=400)
    try:
        data = episodes_of(study, 0)[:-1]
        study.tell(reports_of(study, data), users=names(study)[:-1], token=study.token)
    finally:
        study.path.unlink()


CASES = {
    "trust given as a string": (_start(trust="central"), "write trust=Central"),
    "trust given as a class": (_start(trust=discreet.Local), "write trust=Local"),
    "no trust model": (lambda folder: begin(folder / "n", **{"trust": 1.0}), "got trust=1.0"),
    "a fractional number of states": (_start(states=2.5), "as a number or as a list of names"),
    "a huge number of states": (_start(states=10**30), "Expected 1 to 1000000 states"),
    "a huge problem": (_start(states=10**6), "merge states"),
    "a word as the horizon": (_start(horizon="four"), "as a number or as a list of names"),
    "a fractional number of users": (_start(episodes=1e3), "episodes to be an integer"),
    "no users": (_start(episodes=0), "episodes to be an integer >= 1"),
    "more users than people": (_start(episodes=10**20), "not so many people"),
    "a misspelt learner": (_start(learner="flow-ucbb"), "did you mean 'flow-ucb'?"),
    "a learner that is no name": (_start(learner=None), "name of a learner"),
    "a misspelt setting": (_start(confidense=1.0), "did you mean 'confidence'?"),
    "a setting out of range": (_start(confidence=-7.0), "confidence"),
    "a setting that no file can keep": (_start(confidence=object()), "which a file can keep"),
    "a learner of simulations": (
        _start(learner="private-uc-o-reps", trust=discreet.Central(1)),
        "runs in simulations only",
    ),
    "a learner that releases after every user": (
        _start(learner="dp-ucbvi"),
        "Its learners under trust 'central' are explore-then-commit, flow-ucb, pe, sdp-pe, "
        "trial; whoever wants a new policy after few people tells few at a time.",
    ),
    "a seeded study for real people": (_start(sampler="secure"), "cannot be seeded"),
    "a negative seed": (_start(seed=-1), "seed to be an integer >= 0"),
    "an unknown sampler": (_start(sampler="fast"), "sampler to be one of"),
    "a word for true": (_start(stationary="yes"), "stationary to be True or False"),
    "an unknown start state": (_start(start_states=[3]), "among the 3 states, got 3"),
    "no start state": (_start(start_states=[]), "at least one start state"),
    "two states of one name": (_start(states=["a", "b", " a"]), "which are one; rename"),
    "None as a user": (_tell(None), "named by text or by integers, got None"),
    "a fraction as a user": (_tell(0.5), "named by text or by integers, got 0.5"),
    "an empty name": (_tell(" "), "it is empty"),
    "half a character": (_tell("\ud800"), "lone surrogate"),
    "a user seen before": (_tell("user-0"), "has taken part already"),
    "a user named twice": (_data(lambda s, d, u: (d, [u[1], *u[1:]])), "has taken part already"),
    "the token of another batch": (_token, "another batch or under another policy"),
    "one name instead of a list": (_data(lambda s, d, u: (d, "ann")), "list of users' names"),
    "more users than asked for": (_data(lambda s, d, u: (d, [*u, "x"])), "takes 1 to"),
    "nobody": (_data(lambda s, d, u: (d[:0], [])), "takes 1 to"),
    "fewer episodes than users": (_data(lambda s, d, u: (d[:-1], u)), "one trajectory for each"),
    "reports in a central study": (_data(lambda s, d, u: (np.zeros((3, 3)), u)), "Trajectories"),
    "states out of range": (
        _data(lambda s, d, u: (Trajectories(d.states + 7, d.actions, d.rewards), u)),
        "Expected states from 0 to 2",
    ),
    "fewer reports under shuffle": (_fewer_under_shuffle, "reissue(users="),
    "a missing folder": (_at("missing", "study.db"), "make it first"),
    "a folder as path": (_at(), "is a folder; name a file in it"),
    "a path that is none": (lambda folder: begin(None), "the path of a study's file, got None"),
    "a name with a zero in it": (_at("a\0b.db"), "a path that a file can have"),
    "a name that is too long": (_at("a" * 999), "a path that a file can have"),
    "half a character as a path": (_at("\ud800.db"), "a path that a file can have"),
    "a file as folder": (_at("study.db", "study.db"), "a path that a file can have"),
    "a file that exists": (_at("study.db"), "exists; open_study() it"),
    "no file": (
        lambda folder: discreet.open_study(folder / "none.db"),
        "begin one with start_study()",
    ),
    "a folder resumed": (discreet.open_study, "a folder or no ordinary file"),
    "an empty file": (_resumed(lambda file: b""), "is not a study file"),
    "a JSON file": (_resumed(lambda file: b'{"format": 1}'), "is not a study file"),
    "half a file": (_resumed(lambda file: file[: len(file) // 2]), "edited or damaged"),
    "a file without its beginning": (_resumed(lambda file: file[5_000:]), "beginning is lost"),
    "an edited epsilon": (
        _edited("UPDATE config SET config = replace(config, '\"epsilon\":1', '\"epsilon\":9')"),
        "edited or damaged",
    ),
    "forgotten users": (_edited("DELETE FROM users"), "edited or damaged"),
    "a database of another program": (_edited("PRAGMA application_id = 7"), "another program"),
    "a study of another version": (_edited("PRAGMA user_version = 9"), "of format 9"),
    "an older copy": (_older, "an older copy or another study"),
    "a full disk": (_full_disk, "disk is full"),
    "two processes with one batch": (_two_at_once, "changed by another process"),
    "duplicate rows in a CSV": (_rows("a,0,ill,wait,1", "a,0,ill,wait,1"), "line"),
    "missing steps in a CSV": (_rows("a,0,ill,wait,1"), "step"),
    "an unknown state in a CSV": (_rows("a,0,sick,wait,1"), "sick"),
    "a reward that is no number": (_rows("a,0,ill,wait,nan"), "got no reward"),
}


TOLD = [
    "a user seen before",
    "a user named twice",
    "the token of another batch",
    "one name instead of a list",
    "more users than asked for",
    "nobody",
    "fewer episodes than users",
    "reports in a central study",
    "states out of range",
]
"""Cases whose refusal must say that nothing was counted."""


def prepared(folder):
    """A folder with a study of one batch."""
    advance(begin(folder / "study.db"))
    return folder


def refusal(case, folder):
    """The sentence with which a case is met."""
    run, _ = CASES[case]
    try:
        run(folder)
    except DiscreetError as error:
        return str(error)
    return "(accepted)"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        where = prepared(pathlib.Path(name))
        sys.stdout.write("| input | answer |\n|---|---|\n")
        for case in CASES:
            said = refusal(case, where).replace(name, "DIR")
            sys.stdout.write(f"| {case} | {said} |\n")
