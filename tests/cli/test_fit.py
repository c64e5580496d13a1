"""`discreet fit`: a table of logged episodes, one release, a policy that may DEFER."""

import json
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
    names = library.mdp.Vocabulary(states=2, actions=["wait", "treat"], steps=2)
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


@pytest.mark.parametrize("as_json", [True, False])
def test_a_release_is_not_lost_with_the_file_of_its_policy(logged, discreet, monkeypatch, as_json):
    """Who had to repeat it would have made two releases of the same people."""

    def full(*_):
        raise library.errors.InvalidInputError("Cannot write 'p.csv': No space left on device.")

    monkeypatch.setattr(library.offline.result, "write_rows", full)
    command = ["fit", "logged.csv", *OPTIONS, *TRUST, "--rehearse", "--seed", "3"]
    code, out, err = discreet(*command, "--output", "p.csv", *["--json"] * as_json)
    assert (code, err) == (2, "")
    assert "No space left on device. The release was made" in out
    assert "treat" in out
    if as_json:
        found = json.loads(out)
        assert (found["output"], len(found["policy"])) == (None, 4)


def test_a_large_delta_is_remarked_on(logged, discreet):
    code, _, err = discreet("fit", "logged.csv", *OPTIONS, *TRUST[:-1], "0.5", "--rehearse")
    assert code == 0
    assert "delta = 0.5 lets the promise fail" in err
