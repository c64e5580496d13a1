"""People who are not always available, or come late: tables, masks, `fit` and a study together."""

import json

import numpy as np
import pytest

import discreet
from discreet import Central, Local
from discreet.data import Layout
from discreet.data.tables import read_by
from discreet.mdp import DeterministicPolicy, MixturePolicy
from discreet.mdp.policies import check_policy
from discreet.study.design import design_of
from discreet.study.dossier.bundle import members
from helpers.studies import rehearsed

HEARTSTEPS = {
    "states": ["still", "active", "unavailable"],
    "actions": ["message", "nothing"],
    "steps": ["morning", "noon", "evening"],
    "episodes": 3000,
    "trust": {"model": "central", "epsilon": 5.0, "delta": 1e-6},
    "allowed": [{"states": ["unavailable"], "actions": ["nothing"]}],
}
STAR = {
    "states": ["low", "high", "not yet here"],
    "actions": ["regular class", "small class"],
    "steps": ["kindergarten", "grade 1", "grade 2"],
    "episodes": 3000,
    "trust": {"model": "central", "epsilon": 5.0, "delta": 1e-6},
    "table": {"late": {"state": "not yet here"}},
    "allowed": [{"states": ["not yet here"], "actions": ["regular class"]}],
}


def table(path, design, users, policy=None, *, seed=0, visits=1):
    """Rows of people: the second action (of two) is the better one; a third state has no choice."""
    rng, mask = np.random.default_rng(seed), design.vocabulary.shape.mask
    late = "late" in design.table
    lines = ["user,episode,step,state,action,reward"]
    for user, visit in np.ndindex(users, visits):
        first = int(rng.integers(3)) * int(rng.random() < 0.3) if late else 0
        for h in range(first, 3):
            state = int(rng.integers(2 if late else 3))
            chances = mask[h, state] / mask[h, state].sum()
            if policy is not None:
                chances = policy.distribution(design.vocabulary.shape)[h, state]
            action = int(rng.choice(2, p=chances))
            better = action == (1 if late else 0) and mask[h, state].all()
            reward = int(rng.random() < (0.9 if better else 0.3))
            names = design.vocabulary
            cells = names.steps[h], names.states[state], names.actions[action], str(reward)
            lines.append(",".join([f"p{seed}-{user}", str(visit), *cells]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("plain", [HEARTSTEPS, STAR], ids=["availability", "late entry"])
def test_a_study_never_asks_for_what_is_not_possible(plain, tmp_path):
    design = design_of({**plain, "learner": "trial", "settings": {"batches": 3}})
    names, shape = design.vocabulary, design.vocabulary.shape
    study = rehearsed(tmp_path / "study.db", design, 1)
    while not study.finished:
        asked = study.ask()
        assert not isinstance(asked, MixturePolicy)
        check_policy(asked, shape)
        request = tmp_path / "request.json"
        study.save_request(request)
        assert all(possible(row, names) for row in json.loads(request.read_text())["policy"])
        file = table(tmp_path / "t.csv", design, study.batch_size, asked, seed=1 + study.batches)
        data, users = study.read_table(file)
        study.tell(data, users=users)
        study = discreet.open_study(study.path)
    check_policy(study.policy, shape)
    chosen = study.policy.actions[:, :2]
    assert (chosen == (0 if plain is HEARTSTEPS else 1)).all()
    assert (study.policy.actions[:, 2] == shape.first[:, 2]).all() and study.answer.defer[
        :, 2
    ].all()
    study.save_policy(tmp_path / "policy.json")
    rows = json.loads((tmp_path / "policy.json").read_text())["policy"]
    assert all(possible(row, names) for row in rows)
    lone = [row for row in rows if row["state"] == names.states[2]]
    assert [row["alternative"] for row in lone] == [None] * 3 == [row["difference"] for row in lone]


def possible(row, names):
    h, s = names.steps.index(row["step"]), names.states.index(row["state"])
    return names.shape.mask[h, s, names.actions.index(row["action"])]


@pytest.mark.parametrize("plain", [HEARTSTEPS, STAR], ids=["availability", "late entry"])
def test_fit_recommends_possible_actions_alone(plain, tmp_path):
    columns = {"columns": {"episode": "episode"}}
    design = design_of({**plain, "table": {**plain.get("table", {}), **columns}})
    names = design.vocabulary
    path = table(tmp_path / "t.csv", design, 2000, visits=2)
    data, users = read_by(path, Layout(names, design.format))
    trust = Central(5, 1e-6, participations=2)
    options = {"vocabulary": names, "sampler": "simulation", "seed": 0, "users": users}
    found = discreet.fit(data, trust, **options, ledger=tmp_path / "people.ledger")
    acts = ~found.policy.defers
    assert acts[:, :2].any() and not acts[:, 2].any()
    assert (found.policy.actions[acts] == (0 if plain is HEARTSTEPS else 1)).all()
    assert found.declared[:, 2].sum(axis=-1).tolist() == [1, 1, 1]
    assert not found.coverage.actions[~names.shape.mask].any()
    worth = discreet.evaluate_policy(
        data, found.policy, trust, **options, ledger=tmp_path / "again.ledger"
    )
    assert worth.value.value > worth.today.value
    with pytest.raises(discreet.errors.InvalidInputError, match="possible actions only"):
        bad = DeterministicPolicy(1 - names.shape.first)
        discreet.evaluate_policy(data, bad, trust, vocabulary=names, sampler="simulation")


def test_who_does_what_is_not_possible_takes_an_undeclared_action():
    names = design_of(HEARTSTEPS).vocabulary
    states, rewards = np.array([[0, 2, 0, 0]]), np.ones((1, 3))
    one = discreet.mdp.Trajectories(states, np.array([[0, 0, 0]]), rewards)
    found = discreet.fit(one, discreet.NoPrivacy(), vocabulary=names, sampler="simulation")
    assert found.coverage.visits.sum(axis=1).tolist() == [1, 1, 1]
    assert (found.coverage.other, found.behaviour_value) == (pytest.approx(1 / 3), 3)


def test_devices_of_a_masked_study_are_described_in_plain_values(tmp_path):
    design = {**HEARTSTEPS, "trust": {"model": "local", "epsilon": 5.0}}
    study = rehearsed(tmp_path / "study.db", design_of(design), 0)
    assert isinstance(design_of(design).trust_model, Local)
    assert "allowed" not in json.loads(json.dumps(study.encoder().to_dict()))


def test_a_dossier_says_what_is_possible(tmp_path):
    study = rehearsed(tmp_path / "study.db", design_of(HEARTSTEPS), 0)
    page = members(study, [], None)["dossier.html"].decode()
    assert "in unavailable at every step: nothing" in page
