"""`discreet fit`: a table of logged episodes, one release, a policy that may DEFER."""

import json
import stat
from pathlib import Path

import numpy as np
import pytest

import discreet as library
from discreet.mdp import sample_trajectories, uniform_policy
from discreet.privacy.guarantee import REHEARSED

OPTIONS = ("--states", "2", "--actions", "wait,treat", "--steps", "2")
RATES = np.array([[0.1, 0.9]] * 2)
TRUST = ("--trust", "central", "--epsilon", "1", "--delta", "1e-6")


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """A thousand people: to treat is better, and worth the same everywhere."""
    monkeypatch.chdir(tmp_path)
    moves = np.full((2, 2, 2), 0.5)
    world = library.TabularMDP(transitions=moves, rewards=RATES, horizon=2, initial=[0.5, 0.5])
    people = sample_trajectories(
        world, uniform_policy(world.shape), 2_000, np.random.default_rng(0)
    )
    rows = ["user,step,state,action,reward"]
    for i in range(len(people)):
        for h in range(2):
            action = ("wait", "treat")[people.actions[i, h]]
            rows.append(f"u{i},{h},{people.states[i, h]},{action},{people.rewards[i, h]}")
    (tmp_path / "logged.csv").write_text("\n".join(rows) + "\n")
    return people


def test_it_finds_what_the_library_finds(logged, discreet):
    code, out, _ = discreet(
        "fit", "logged.csv", *OPTIONS, *TRUST, "--rehearse", "--seed", "3", "--json",
        "--output", "policy.json",
    )  # fmt: skip
    assert code == 0
    found = json.loads(out)
    names = library.data.Vocabulary(states=2, actions=["wait", "treat"], steps=2)
    again = library.fit(
        logged, library.Central(1, 1e-6), vocabulary=names, sampler="simulation", seed=3
    )
    assert found["policy"] == again.rows()
    assert {row["action"] for row in found["policy"]} == {"treat"}
    assert found["lower_value"] == again.lower_value
    assert found["simulated"]
    assert found["guarantee"].startswith(REHEARSED)
    with Path("policy.json").open() as file:
        assert json.load(file)["policy"] == found["policy"]


def test_several_episodes_of_a_person_are_one_person(logged, discreet):
    """Every row of the first thousand people stands for a second visit of the others."""
    header, *rows = Path("logged.csv").read_text().splitlines()
    visits = [f"{header},visit"]
    for row in rows:
        number, _, rest = row[1:].partition(",")
        visits.append(f"u{int(number) % 1000},{rest},{int(number) // 1000}")
    Path("visits.csv").write_text("\n".join(visits) + "\n")
    Path("design.toml").write_text('[table.columns]\nepisode = "visit"\n')
    words = ("fit", "visits.csv", "--design", "design.toml", *OPTIONS, *TRUST, "--json")
    for times, unit in ((1, "one user's whole episode"), (2, "one person, up to 2 episodes")):
        code, out, _ = discreet(*words, "--participations", str(times))
        assert code == 0
        found = json.loads(out)
        assert found["users"] == 1000
        assert unit in found["guarantee"]
        assert found["ledger"]["spent"]["epsilon"] == times


def test_a_policy_is_evaluated_as_the_library_does(logged, discreet):
    fitted = ("--rehearse", "--seed", "3", "--output", "policy.json")
    assert discreet("fit", "logged.csv", *OPTIONS, *TRUST, *fitted)[0] == 0
    command = ("fit", "logged.csv", *OPTIONS, *TRUST, "--policy", "policy.json")
    code, out, _ = discreet(*command, "--rehearse", "--seed", "4", "--json")
    assert code == 0
    found = json.loads(out)
    again = library.evaluate_policy(
        logged,
        np.ones((2, 2), int),
        library.Central(1, 1e-6),
        shape=library.mdp.Shape(2, 2, 2),
        sampler="simulation",
        seed=4,
    )
    assert found["value"] == again.value._asdict()
    assert found["value"]["low"] < 1.8 < found["value"]["high"]
    assert found["today"]["low"] < 1.0 < found["today"]["high"]
    code, out, _ = discreet(*command)
    assert code == 0 and "A policy evaluated on the logged episodes of 2,000 people" in out


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ('{"policy": []}', (), "got something else"),
        ('{"policy": [{"step": "0", "state": "0", "action": "x"}]}', (), "wait, treat or DEFER"),
        ('{"policy": []}', ("--output", "x.json"), "got both"),
    ],
)
def test_a_policy_that_cannot_be_evaluated_is_refused(logged, discreet, text, options, said):
    Path("p.json").write_text(text)
    code, _, err = discreet("fit", "logged.csv", *OPTIONS, *TRUST, "--policy", "p.json", *options)
    assert code == 2 and said in " ".join(err.split())
    assert not Path("people.ledger").exists()


def test_a_design_and_start_states(logged, discreet, tmp_path):
    text = 'states = 2\nactions = ["wait", "treat"]\nsteps = 2\nstart_states = [1]\n'
    (tmp_path / "d.toml").write_text(text + '[trust]\nmodel = "central"\nepsilon = 1.0\n')
    code, out, _ = discreet("fit", "logged.csv", "--design", "d.toml", "--rehearse", "--json")
    assert code == 0
    assert json.loads(out)["policy"][0]["action"] == "DEFER"  # nobody counts who begins there


def test_secure_noise_is_the_default(logged, discreet):
    code, out, _ = discreet("fit", "logged.csv", *OPTIONS, *TRUST, "--output", "policy.csv")
    assert code == 0
    assert "Fit on the logged episodes of 2,000 people" in out
    assert "-JDP, one user's whole episode, replace-one" in out
    assert REHEARSED not in out
    assert "Policy: policy.csv" in out


def test_a_release_is_not_lost_with_the_file_of_its_policy(logged, discreet, monkeypatch):
    def full(*_):
        raise library.errors.InvalidInputError("Cannot write 'p.csv': No space left on device.")

    command = ["fit", "logged.csv", *OPTIONS, *TRUST, "--output", "p.json", "--budget", "1"]
    with monkeypatch.context() as broken:
        broken.setattr(library.offline.fit, "write_rows", full)
        code, out, err = discreet(*command)
    assert (code, out) == (2, "")
    assert "No space left on device. Nothing is lost: what was released is in the ledger" in err
    code, out, err = discreet(*command, "--json")
    assert (code, json.loads(out)["ledger"]["charged"]) == (0, False)
    assert "epsilon 1, delta 0 spent before, nothing with this release, which was made" in err
    with Path("p.json").open() as file:
        assert json.load(file)["policy"] == json.loads(out)["policy"]


def test_a_large_delta_is_remarked_on(logged, discreet):
    code, _, err = discreet("fit", "logged.csv", *OPTIONS, *TRUST[:-1], "0.5", "--rehearse")
    assert code == 0
    assert "delta = 0.5 lets the guarantee fail" in err


SECURE = ("fit", "logged.csv", *OPTIONS, *TRUST)


def ledger_of(out):
    return json.loads(out)["ledger"]


def test_the_ledger_beside_the_table_is_named_and_speaks_before_the_release(
    logged, discreet, monkeypatch
):
    order = []
    real = library.offline.release.release
    monkeypatch.setattr("discreet.cli.fit.warn", order.append)
    monkeypatch.setattr(
        "discreet.offline.release.release",
        lambda *a, **k: order.append("released") or real(*a, **k),
    )
    code, out, _ = discreet(*SECURE, "--budget", "3,1e-5")
    assert code == 0
    said, released = order
    assert released == "released"
    for text in (said, out):
        assert "epsilon 0, delta 0 spent before, epsilon 1, delta 0 with this release" in text
        assert "epsilon 2, delta 1e-05 left of epsilon 3, delta 1e-05" in text
        assert "0 of 2,000 people were in an earlier release of 'people.ledger'" in text
    assert stat.S_IMODE(Path("people.ledger").stat().st_mode) == 0o600


def twice(text):
    """The same table."""
    return text


def one_row_changed(text):
    return text.replace(",0,0,wait,0.0\n", ",0,0,wait,1.0\n", 1)


def half_of_the_people(text):
    return "\n".join(text.splitlines()[: 1 + 2 * 1_000]) + "\n"


@pytest.mark.parametrize("change", [twice, one_row_changed, half_of_the_people])
@pytest.mark.parametrize("name", ["logged.csv", "renamed.csv"])
def test_people_are_recognised_whatever_becomes_of_their_table(logged, discreet, change, name):
    code, out, _ = discreet(*SECURE, "--json", "--budget", "2")
    assert (code, ledger_of(out)["spent"], ledger_of(out)["left"]["epsilon"]) == (
        0, {"epsilon": 1.0, "delta": 0.0}, 1.0,
    )  # fmt: skip
    text = Path("logged.csv").read_text()
    assert change is twice or change(text) != text
    Path(name).write_text(change(text))
    again = ("fit", name, *OPTIONS, *TRUST, "--json", "--delta")
    code, out, _ = discreet(*again, "2e-6")
    assert (code, ledger_of(out)["spent"]["epsilon"], ledger_of(out)["left"]["epsilon"]) == (
        0,
        2,
        0,
    )
    code, out, err = discreet(*again, "3e-6")
    assert (code, err) == (2, "")
    assert "The privacy budget does not cover this release; nothing was released" in out
    assert "people were in an earlier release of 'people.ledger'" in out


@pytest.mark.parametrize("budget", ["", "x", "1,x", "0", "-1", "nan", "inf", "1,2", "1,1e-6,3"])
def test_a_budget_that_is_none(logged, discreet, budget):
    code, _, err = discreet(*SECURE, "--budget", budget)
    assert code == 2
    assert "Expected --budget as EPSILON or EPSILON,DELTA" in err
    assert "with epsilon > 0 and 0 <= delta < 1" in err


def test_a_rehearsal_is_not_charged_and_says_so(logged, discreet):
    code, out, _ = discreet(*SECURE, "--rehearse", "--budget", "0.1")
    assert code == 0
    assert "Ledger: people.ledger is not charged, this is a rehearsal." in out
    _, out, _ = discreet(*SECURE, "--rehearse", "--json")
    assert ledger_of(out) == {"path": "people.ledger", "charged": False}
    assert not Path("people.ledger").exists()


def test_exact_sums_are_covered_by_no_budget(logged, discreet):
    code, _, err = discreet("fit", "logged.csv", *OPTIONS, "--trust", "none")
    assert code == 2
    assert "No budget covers exact sums" in err
    assert discreet("fit", "logged.csv", *OPTIONS, "--trust", "none", "--rehearse")[0] == 0


def test_an_epsilon_above_ten_is_said_in_odds(logged, discreet):
    for epsilon, odds in (("500", "e^500 < 10^218"), ("10.5", "e^10.5 < 10^5")):
        words = ("fit", "logged.csv", *OPTIONS, "--trust", "central", "--epsilon", epsilon)
        code, _, err = discreet(*words)
        assert code == 0
        assert err.count(f"odds about one person may change by a factor of up to {odds}") == 1
    assert "odds" not in discreet(*SECURE)[2]
