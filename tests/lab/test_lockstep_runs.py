"""Runs side by side: the same files for any bundle, any number of workers, and after a kill."""

import json
from dataclasses import replace

import pytest

from discreet._seeds import RunSeeds
from discreet.errors import DiscreetError, UnsupportedError
from discreet.lab import tasks
from discreet.lab.runner import run_experiment
from discreet.lab.tasks import bundles, execute, tasks_of
from discreet.learners.streams.ldp_obi import LdpObi
from discreet.learners.streams.lockstep import run_lockstep
from discreet.mdp import RandomMDP
from discreet.privacy.trust import Local
from helpers.experiments import experiment as small
from helpers.experiments import same_files


@pytest.fixture(scope="module")
def experiment():
    return small(
        {"name": "ldp-obi", "lockstep": True},
        name="side-by-side",
        seed=3,
        runs=12,
        episodes=[300],
        environment={"relabel": False, "vary": "seed"},
        trusts=[{"model": "none"}, {"model": "local", "epsilon": [2.0], "mechanism": "laplace"}],
    )


@pytest.fixture(scope="module")
def uninterrupted(experiment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lockstep") / "one"
    report = run_experiment(experiment, folder, jobs=1)
    assert (report.executed, report.failures) == (24, [])
    return folder


def plain(experiment):
    return replace(experiment, learners=(replace(experiment.learners[0], lockstep=False),))


def test_runs_of_a_cell_share_a_bundle_and_others_do_not(experiment):
    work = bundles(tasks_of(experiment))
    assert [len(bundle) for bundle in work] == [10, 2, 10, 2]
    assert all(len({task.cell.key for task in bundle}) == 1 for bundle in work)
    assert [len(bundle) for bundle in bundles(tasks_of(plain(experiment)))] == [1] * 24


def test_lockstep_is_part_of_the_fingerprint(experiment):
    keys = {task.cell.key for task in tasks_of(experiment)}
    assert keys.isdisjoint(task.cell.key for task in tasks_of(plain(experiment)))


def test_the_numbers_are_those_of_the_learner(experiment):
    bundle = bundles(tasks_of(experiment))[3]
    outcomes = execute(bundle)
    mdps = [RandomMDP(states=2, actions=2, horizon=2, seed=3 + task.run) for task in bundle]
    seeds = [RunSeeds(3, task.run) for task in bundle]
    direct = run_lockstep(LdpObi, mdps, Local(2.0, mechanism="laplace"), 300, seeds)
    for outcome, result in zip(outcomes, direct, strict=True):
        assert outcome.record["regret"] == result.regret.values.tolist()


def test_two_workers_give_the_same_files(experiment, uninterrupted, tmp_path):
    run_experiment(experiment, tmp_path / "two", jobs=2)
    assert same_files(uninterrupted, tmp_path / "two")


@pytest.mark.parametrize("width", [1, 7])
def test_any_bundle_gives_the_same_files(experiment, uninterrupted, tmp_path, monkeypatch, width):
    monkeypatch.setattr(tasks, "_LANES", width)
    run_experiment(experiment, tmp_path / "other", jobs=1)
    assert same_files(uninterrupted, tmp_path / "other")


def test_stopped_in_the_middle_of_a_bundle(experiment, uninterrupted, tmp_path):
    folder = tmp_path / "stopped"
    run_experiment(experiment, folder, jobs=1)
    parts = sorted(folder.glob("parts/*.json"))
    for part in parts[3:17]:
        part.unlink()
    report = run_experiment(experiment, folder, jobs=1)
    assert (report.kept, report.executed) == (10, 14)
    assert same_files(uninterrupted, folder)


def test_more_runs_keep_the_first_ones(experiment, tmp_path):
    folder = tmp_path / "more"
    run_experiment(replace(experiment, runs=2), folder, jobs=1)
    before = {path.name: json.loads(path.read_text()) for path in folder.glob("parts/*.json")}
    report = run_experiment(replace(experiment, runs=3), folder, jobs=1)
    assert (report.kept, report.executed) == (4, 2)
    after = {path.name: json.loads(path.read_text()) for path in folder.glob("parts/*.json")}
    assert before.items() <= after.items()


def test_one_failing_run_of_a_bundle_does_not_take_the_others(experiment, tmp_path):
    varied = replace(experiment.environments[0], vary="states", parameters={"horizon": 1})
    changed = replace(experiment, environments=(varied,), seed=0, runs=3)
    report = run_experiment(changed, tmp_path / "failing", jobs=1)
    assert [outcome.task.run for outcome in report.failures] == [0, 0]  # zero states
    assert [len(series.final) for series in report.results.series()] == [2, 2]


def test_a_learner_without_a_lockstep_form_is_named(experiment):
    row = replace(experiment.learners[0], name="dp-ucbvi")
    with pytest.raises(UnsupportedError, match="'dp-ucbvi' has no lockstep form; remove lockstep"):
        tasks_of(replace(experiment, learners=(row,)))


def test_what_lockstep_cannot_do_is_one_sentence(experiment, tmp_path):
    other = replace(experiment.trusts[1], model="central", mechanism="tree-laplace")
    with pytest.raises(DiscreetError, match=r"Every run failed.*on pooled counters or no privacy"):
        run_experiment(replace(experiment, trusts=(other,), runs=2), tmp_path / "no", jobs=1)
