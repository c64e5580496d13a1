"""What `fit` and `evaluate_policy` leave, return, print and log follows from the release."""

import importlib
import logging
import shutil
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet.cli import app as cli
from discreet.mdp import Shape, Trajectories
from discreet.offline import release as releasing
from discreet.offline.release import Slots
from discreet.privacy import Budget, Ledger
from discreet.privacy import ledger as charging
from helpers.fixed_release import differences

SHAPE = Shape(states=3, actions=2, horizon=3)
POLICY = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 1]])
GAUSSIAN = discreet.Central(1, 1e-6, mechanism="gaussian")
FIT = {"width": 0.1}  # so that something is recommended, and printed
ONE_ACTION = np.array([[True, False], [True, True], [True, False]])
KINDS = {
    "gaussian": (GAUSSIAN, {}),
    "laplace": (discreet.Central(3), {}),
    "several": (replace(GAUSSIAN, participations=2), {}),
    "known": (GAUSSIAN, {"rewards": np.full((3, 2), 0.5)}),
    "starts": (GAUSSIAN, {"start": np.array([True, False, True])}),
    "stationary": (GAUSSIAN, {"stationary": True}),
    "undeclared": (GAUSSIAN, {"support": ONE_ACTION, "behaviour": np.full((3, 2), 0.5)}),
}
OF_FIT = ("stationary", "undeclared")


def episodes(rng, number):
    """Well-formed, whatever else: any states, actions and rewards."""
    states, actions = rng.integers(3, size=(number, 4)), rng.integers(2, size=(number, 3))
    return Trajectories(states, actions, rng.choice([0.0, 1.0, 0.25], (number, 3)))


def joined(*given):
    return Trajectories(*(np.concatenate([getattr(one, name) for one in given]) for name in PARTS))


PARTS = ("states", "actions", "rewards")


def neighbours(count, seed=0, most=1):
    """People with their names, and the same with one who did other things, in other numbers."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        people, one = episodes(rng, 40), int(rng.integers(40))
        names = [f"p{i}" for i in range(40)]
        rest, others = people[np.arange(40) != one], [n for i, n in enumerate(names) if i != one]
        pair = []
        for _ in range(2):
            number = int(rng.integers(1, 2 * most)) if most > 1 else 1
            pair.append((joined(episodes(rng, number), rest), [names[one]] * number + others))
        yield tuple(pair)


def through(door, data, names, trust, **options):
    """All that a caller has of it."""
    given = {"shape": SHAPE, "users": names, "ledger": "people.ledger"} | options
    if door == "fit":
        found = discreet.fit(data, trust, **FIT, **given)
        found.save_policy("policy.json")
        found.save_policy("policy.csv")
    else:
        found = discreet.evaluate_policy(data, POLICY, trust, **given)
    sys.stdout.write(f"{found}{found.in_units(-1, 3)}")
    return [found, found.to_dict()]


def door(tmp_path, name, trust, **options):
    """A place with a ledger that holds some of the people, and what is done in it."""
    charged = tmp_path / "charged.ledger"
    Ledger(charged, budget=Budget(20, 1e-4)).record(0.5, users=["p3", "p7", "somebody"])

    def prepare(place):
        shutil.copyfile(charged, place / "people.ledger")

    def act(place, data):
        return through(name, *data, trust, **options)

    return prepare, act


@pytest.fixture(autouse=True)
def keyed(monkeypatch):
    """All that may differ: digests of the table and of the question, by the ledger's own key."""
    for name in ("_digest", "_digest_of_file"):
        assert hasattr(charging, name)
        monkeypatch.setattr(charging, name, lambda _, key: key.hex()[:32])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["fit", "evaluate"])
def test_neighbours_differ_in_the_release_alone(tmp_path, fixed_release, name, kind):
    if kind in OF_FIT and name == "evaluate":
        pytest.skip("not asked of an evaluation")
    trust, options = KINDS[kind]
    pairs = 60 if kind == "gaussian" else 15
    most = trust.participations
    prepare, act = door(tmp_path, name, trust, **options)
    fixed_release(prepare, act, neighbours(pairs, most=most), least=pairs)


@pytest.mark.parametrize("name", ["fit", "evaluate"])
def test_refusals_say_nothing_of_what_people_did(tmp_path, fixed_release, name):
    """Who has no budget left, a name that is none, or a table without its ledger."""
    prepare, act = door(tmp_path, name, GAUSSIAN)

    def refused(place, given):
        data, kind = given
        if kind == "budget":
            return through(name, *data, discreet.Central(30, 1e-6))
        if kind == "name":
            return through(name, data[0], ["", *data[1][1:]], GAUSSIAN)
        if kind == "many":
            return through(name, data[0], data[1][1:], GAUSSIAN)
        return act(place, data)

    rng, pairs = np.random.default_rng(2), []
    for i, (one, other) in enumerate(neighbours(60, seed=1)):
        kind = rng.choice(["budget", "name", "many"]) if i else None
        pairs.append(((one, kind), (other, kind)))
    fixed_release(prepare, refused, pairs)


def rows_of(data, names):
    lines = ["user,episode,step,state,action,reward"]
    for i, user in enumerate(names):
        for h in range(data.horizon):
            row = data.states[i, h], data.actions[i, h], data.rewards[i, h]
            lines.append(",".join(map(str, (user, i, h, *row))))
    return "\n".join(lines) + "\n"


DESIGN = """
states = 3
actions = 2
steps = 3
[trust]
model = "central"
epsilon = 2
delta = 1e-6
participations = 2
[table.columns]
user = "user"
episode = "episode"
"""


@pytest.mark.parametrize("name", ["fit", "evaluate"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_the_command_prints_the_same(tmp_path, fixed_release, monkeypatch, name, more):
    charged, _ = door(tmp_path, name, GAUSSIAN)
    pairs = list(neighbours(20, most=2))
    discreet.fit(
        pairs[0][0][0], GAUSSIAN, shape=SHAPE, sampler="simulation", width=0.1
    ).save_policy(tmp_path / "policy.json")
    what = ["--width", "0.1", "--output", "found.csv"]
    if name == "evaluate":
        what = ["--policy", str(tmp_path / "policy.json")]

    def prepare(place):
        charged(place)
        (place / "design.toml").write_text(DESIGN)

    def act(place, data):
        (place.parent / "week.csv").write_text(rows_of(*data))
        asked = ["fit", str(place.parent / "week.csv"), "--design", "design.toml", *what, *more]
        monkeypatch.setattr(sys, "argv", ["discreet", *asked, "--ledger", "people.ledger"])
        cli.main()

    fixed_release(prepare, act, pairs, least=20)


# --- and leaks are found, whatever they hide in


def logs(door, monkeypatch):
    usual = releasing.release

    def release(data, *given, **options):
        logging.getLogger("fit").debug("%d", data.actions.sum())
        return usual(data, *given, **options)

    monkeypatch.setattr(releasing, "release", release)
    return "logged"


def warns(door, monkeypatch):
    usual = releasing.release

    def release(data, *given, **options):
        warnings.warn(f"{data.rewards.mean():.3f} a step", stacklevel=2)
        return usual(data, *given, **options)

    monkeypatch.setattr(releasing, "release", release)
    return "warned of"


def keeps(door, monkeypatch):
    usual = releasing._packed
    seen = []
    moved = Slots.episodes
    monkeypatch.setattr(
        Slots, "episodes", lambda *given, **o: [seen.append(given[1]), moved(*given, **o)][1]
    )
    monkeypatch.setattr(
        releasing, "_packed", lambda made: usual(made) + " " * int(seen[-1].states.sum())
    )
    return "file people.ledger"


def charges(door, monkeypatch):
    """Somebody who is called what people did."""
    usual = releasing.People.given

    def given(users, data, trust):
        people = usual(users, data, trust)
        return people._replace(names=[*people.names, str(data.states.sum())])

    monkeypatch.setattr(releasing.People, "given", given)
    return "file people.ledger"


def returns(door, monkeypatch):
    module = importlib.import_module(f"discreet.offline.{door}")
    usual = module.released

    def released(data, *given, **options):
        made = usual(data, *given, **options)
        return made._replace(account=replace(made.account, known=int(data.rewards.sum())))

    monkeypatch.setattr(module, "released", released)
    return "printed"


def calibrates(door, monkeypatch):
    usual = releasing.release

    def release(data, slots, trust, **options):
        more = replace(trust, epsilon=1 + float(data.rewards.mean()))
        return usual(data, slots, more, **options)

    monkeypatch.setattr(releasing, "release", release)
    return "public facts of the releases"


def refuses(door, monkeypatch):
    usual = Slots.episodes

    def moved(slots, data, **options):
        if data.states[:, 0].sum() % 2:
            raise discreet.errors.InvalidInputError("Somebody begins elsewhere.")
        return usual(slots, data, **options)

    monkeypatch.setattr(Slots, "episodes", moved)
    return "raised"


@pytest.mark.parametrize("name", ["fit", "evaluate"])
@pytest.mark.parametrize("leak", [logs, warns, keeps, charges, returns, calibrates, refuses])
def test_whatever_else_depends_on_people_is_found(tmp_path, monkeypatch, name, leak):
    prepare, act = door(tmp_path, name, GAUSSIAN)
    where = leak(name, monkeypatch)
    found, _ = differences(prepare, act, neighbours(5), tmp_path / "place")
    assert where in found
