"""From an experiment to tasks, and what one task leaves behind."""

import json
from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet import _registry
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.lab import tasks
from discreet.lab.spec import EnvironmentRow
from discreet.lab.tasks import Task, build_environment, execute, expand, lost, tasks_of
from discreet.learners import registry
from helpers.experiments import experiment
from helpers.registries import forget_afterwards

CENTRAL = {"model": "central", "epsilon": [1.0], "delta": 1e-6}
LOCAL = {"model": "local", "epsilon": [1.0, 2.0]}


def test_nothing_to_run_is_one_sentence():
    with pytest.raises(UnsupportedError, match="'tiny' has nothing to run"):
        expand(experiment("psrl", trusts=[{"model": "shuffle", "epsilon": [1.0]}]))


def test_an_experiment_limits_the_recruitments_of_a_learner(monkeypatch):
    made, learn = [], discreet.learn
    monkeypatch.setattr(
        "discreet.learners.learn.learn", lambda *a, **k: made.append(learn(*a, **k)) or made[-1]
    )
    limited = {"name": "flow-ucb", "settings": {"batches": 4}}
    tiny = experiment("flow-ucb", limited, trusts=[CENTRAL], episodes=[20_000])
    outcomes = [execute(task) for task in tasks_of(tiny)]
    assert [outcome.error for outcome in outcomes] == [None, None]
    assert [outcome.record["settings"]["batches"] for outcome in outcomes] == [None, 4]
    free, few = (len(result.extras["batches"]) for result in made)
    assert few <= 4 < free


def test_cells_come_in_the_order_of_the_file():
    cells = expand(experiment("ucbvi", "dp-ucbvi", trusts=[{"model": "none"}, LOCAL, CENTRAL]))
    found = [(c.learner.name, c.trust_name, getattr(c.trust, "epsilon", None)) for c in cells]
    assert found == [
        ("ucbvi", "none", None),
        ("dp-ucbvi", "none", None),
        ("dp-ucbvi", "local", 1.0),
        ("dp-ucbvi", "local", 2.0),
        ("dp-ucbvi", "central", 1.0),
    ]


def test_a_learner_skips_environments_and_lengths():
    one = experiment()
    row = one.learners[0]
    for change in ({"environments": ("other",)}, {"max_episodes": 19}):
        with pytest.raises(UnsupportedError, match="nothing to run"):
            expand(replace(one, learners=(replace(row, **change),)))
    kept = replace(row, environments=("RandomMDP",), max_episodes=20)
    assert len(expand(replace(one, learners=(kept,)))) == 1


def test_a_learner_that_cannot_use_a_trust_model_is_named():
    with pytest.raises(UnsupportedError, match="'ucbvi' cannot run under 'shuffle'"):
        expand(experiment({"name": "ucbvi", "trusts": ["shuffle"]}))


def test_tasks_are_the_runs_of_every_cell():
    found = tasks_of(experiment(runs=2, episodes=[5, 6]))
    assert [(t.cell.episodes, t.run) for t in found] == [(5, 0), (5, 1), (6, 0), (6, 1)]
    assert [t.name[-5:] for t in found] == ["-0000", "-0001"] * 2
    assert len({t.name for t in found}) == 4


def test_the_fingerprint_knows_what_changes_a_result_and_nothing_else():
    (cell,) = expand(experiment())
    relabelled = replace(cell.learner, label="Another name", max_episodes=10**6)
    assert replace(cell, learner=relabelled).key == cell.key
    different = [
        replace(cell, seed=1),
        replace(cell, episodes=21),
        replace(cell, learner=replace(cell.learner, settings={"prior": 2.0})),
        replace(cell, environment=replace(cell.environment, relabel=False)),
        replace(cell, environment=replace(cell.environment, parameters={"states": 3})),
    ]
    assert len({cell.key, *(one.key for one in different)}) == 6


def test_the_fingerprint_knows_what_was_guaranteed():
    trusts = [
        discreet.NoPrivacy(),
        discreet.Central(1.0, 1e-6),
        discreet.Central(2.0, 1e-6),
        discreet.Central(1.0, 1e-7),
        discreet.Central(1.0, 1e-6, mechanism="laplace"),
        discreet.Central(1.0, 1e-6, calibration="paper"),
        discreet.Shuffle(1.0, 1e-6),
        discreet.Shuffle(1.0, 1e-6, honest=0.9),
    ]
    (cell,) = expand(experiment("flow-ucb"))
    assert len({replace(cell, trust=trust).key for trust in trusts}) == len(trusts)


LEARNER = """
from dataclasses import replace

from discreet.learners import registry


class Mine(registry.get_learner("flow-ucb").make):
    pass


registry.register(replace(registry.get_learner("flow-ucb"), name="mine-{name}", make=Mine))
"""


@pytest.fixture
def twins(tmp_path, monkeypatch):
    """Writes a module twice, with another name and nothing else; these names."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text, *names):
        for name in names:
            (tmp_path / f"{name}.py").write_text(text.format(name=name), "utf-8")
        return names

    return write


def all_different(sources):
    """Every source is known by more than the package that is installed."""
    known = all(source.startswith(f"{_registry.logic()}-") for source in sources)
    return known and len(set(sources)) == len(sources)


def test_an_edited_learner_of_another_package_reuses_nothing(twins, monkeypatch):
    forget_afterwards(monkeypatch)
    sources = []
    for name in twins(LEARNER, "first_learner", "second_learner"):
        (cell,) = expand(replace(experiment(f"mine-{name}"), imports=(name,)))
        sources.append(cell.origin["learner"])
    assert all_different(sources)


def test_an_edited_model_reuses_nothing(tmp_path):
    keys, (cell,) = set(), expand(experiment())
    row = EnvironmentRow(name=str(tmp_path / "model.npz"))
    for reward in (0.5, 1.0):
        np.savez(row.name, transitions=np.ones((1, 1, 1)), rewards=[[reward]], horizon=2)
        keys.add(replace(cell, environment=row).key)
    assert len(keys) == 2


def test_an_edited_gymnasium_environment_reuses_nothing(tmp_path, monkeypatch):
    gymnasium = pytest.importorskip("gymnasium")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", {})
    (cell,) = expand(experiment())
    sources = []
    for number in (1, 2):
        (tmp_path / f"lake_{number}.py").write_text(f"class Lake:\n    size = {number}\n", "utf-8")
        gymnasium.register(f"Lake-v{number}", f"lake_{number}:Lake")
        row = EnvironmentRow(name=f"Lake-v{number}")
        sources.append(replace(cell, environment=row).origin["environment"])
    assert all_different(sources)
    unknown = replace(cell, environment=EnvironmentRow(name="NoSuchLake-v1"))
    assert unknown.origin["environment"] == _registry.logic()  # building it says what is wrong


NOISE = """
from discreet.privacy.mechanisms.additive import AddedOnce
from discreet.privacy.mechanisms.one_shot import laplace_noise
from discreet.privacy.mechanisms.registry import MechanismSpec, register


def mine(trust, sensitivity):
    return laplace_noise(trust, sensitivity)


register(MechanismSpec("central", "batch", "mine-{name}", AddedOnce(mine)))
"""


def test_an_edited_mechanism_of_another_package_reuses_nothing(twins, monkeypatch):
    """Trust models name what the modules register."""
    forget_afterwards(monkeypatch)
    sources = []
    for name in twins(NOISE, "first_noise", "second_noise"):
        trust = {**CENTRAL, "mechanism": f"mine-{name}"}
        one = replace(experiment("flow-ucb", trusts=[trust]), imports=(name,))
        (cell,) = expand(one)
        assert cell.origin["learner"] == _registry.logic()
        sources.append(cell.origin["mechanism"])
    assert all_different(sources)
    assert cell.key != replace(cell, trust=discreet.Central(1.0, 1e-6)).key


def broken(*_, **__):
    raise ZeroDivisionError("by nothing")


def test_a_bug_in_a_learner_is_named_with_its_place(monkeypatch):
    spec = replace(registry.get_learner("psrl"), name="broken", run=broken)
    forget_afterwards(monkeypatch)
    registry.register(spec)
    outcome = execute(tasks_of(experiment("broken"))[0])
    assert outcome.record is None
    assert outcome.error.startswith(
        "ZeroDivisionError: by nothing (in broken, test_tasks.py, line "
    )


def test_an_error_raised_on_purpose_is_its_sentence():
    outcome = execute(tasks_of(experiment(environment={"parameters": {"states": 0}}))[0])
    assert outcome.error.startswith("Expected states to be an integer >= 1")
    assert "line" not in outcome.error


def test_a_lost_task_says_why():
    task = tasks_of(experiment())[0]
    outcome = lost(task, "gone")
    assert (outcome.task, outcome.error, outcome.record) == (task, "gone", None)


@pytest.fixture(scope="module")
def record():
    outcome = execute(tasks_of(experiment("flow-ucb", trusts=[CENTRAL]))[0])
    assert outcome.error is None
    return outcome.record


def test_a_record_says_what_made_it(record):
    assert record["version"] == discreet.__version__
    assert record["mechanism"] != "auto"
    assert record["guarantee"]["notion"] == "JDP"
    assert set(record["noise"]) == {"transitions", "rewards", "visits"}  # what flow-ucb releases
    assert "confidence" in record["settings"]  # defaults included


def test_a_record_is_plain(record):
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_record_has_regret_signal_and_policy(record):
    assert record["episodes"][-1] == 20
    assert len(record["regret"]) == len(record["episodes"])
    assert record["signal"] == sorted(record["signal"], reverse=True)
    assert record["uniform_regret_per_episode"] > 0
    assert sum(record["signal"]) == pytest.approx(20 * 2)  # every user visits a state per step


def test_a_policy_too_large_for_a_picture_is_left_out(record, monkeypatch):
    monkeypatch.setattr(tasks, "_POLICY_LIMIT", 1)
    outcome = execute(tasks_of(experiment())[0])
    assert outcome.record["policy"] is None
    monkeypatch.setattr(tasks, "_POLICY_LIMIT", 4)
    outcome = execute(tasks_of(experiment())[0])
    assert np.shape(outcome.record["policy"]) == (2, 2)


def test_the_result_depends_on_the_task_alone():
    task = Task(expand(experiment())[0], 3)
    first, second = (execute(task).record for _ in range(2))
    assert first == second


def test_what_varies_from_run_to_run():
    fixed = EnvironmentRow(name="RandomMDP", relabel=False)
    varied = replace(fixed, vary="seed")
    relabelled = EnvironmentRow(name="RiverSwim")

    def transitions(row, run):
        return build_environment(row, 5, run).transitions

    assert (transitions(fixed, 0) == transitions(fixed, 1)).all()
    assert (transitions(varied, 0) != transitions(varied, 1)).any()
    assert (transitions(relabelled, 0) != transitions(relabelled, 1)).any()
    with pytest.raises(InvalidInputError):
        build_environment(replace(fixed, vary="states"), 0, 0)
