"""The runner: everything is checked first; the same results for any workers, and after a kill."""

import errno
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.errors import DiscreetError, MissingExtraError
from discreet.lab.runner import check, environment_of, run_experiment
from discreet.lab.tasks import expand
from helpers.experiments import experiment, same_files
from helpers.registries import forget_afterwards

SMALL = experiment(
    "ucbvi",
    {"name": "dp-ucbvi", "trusts": ["central"]},
    name="small",
    title="Small",
    plots=["regret", "cost"],
    runs=3,
    episodes=[40, 80],
    environment={"vary": "seed"},
    trusts=[{"model": "none"}, {"model": "central", "epsilon": [1.0]}],
)


@pytest.fixture(scope="module")
def small():
    return SMALL


@pytest.fixture(scope="module")
def uninterrupted(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab") / "one"
    report = run_experiment(small, folder, jobs=1)
    assert (report.executed, report.kept, report.failures) == (12, 0, [])
    return folder


def test_two_workers_give_the_same_files(small, uninterrupted, tmp_path):
    run_experiment(small, tmp_path / "two", jobs=2)
    assert same_files(uninterrupted, tmp_path / "two")


def test_a_ray_cluster_gives_the_same_files(small, uninterrupted, tmp_path, long_run):
    pytest.importorskip("ray")
    if not long_run:
        pytest.skip("A Ray cluster is started in the long run only.")
    script = (
        "import sys; from discreet.lab.runner import run_experiment\n"
        "from discreet.lab.spec import load_experiment\n"
        "run_experiment(load_experiment(sys.argv[1]), sys.argv[2], jobs=2, engine='ray')\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, uninterrupted / "spec.toml", tmp_path / "ray"],
        check=True,
        timeout=900,
        capture_output=True,
    )
    assert same_files(uninterrupted, tmp_path / "ray")


def test_killed_and_started_again(small, uninterrupted, tmp_path):
    script = (
        "import sys; from discreet.lab.runner import run_experiment\n"
        "from discreet.lab.spec import load_experiment\n"
        "run_experiment(load_experiment(sys.argv[1]), sys.argv[2], jobs=1)\n"
    )
    folder = tmp_path / "killed"
    command = [sys.executable, "-c", script, uninterrupted / "spec.toml", folder]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 600
        while len(list(folder.glob("parts/*.json"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
    finished = len(list(folder.glob("parts/*.json")))
    report = run_experiment(small, folder, jobs=1)
    assert report.kept == finished >= 2
    assert same_files(uninterrupted, folder)


def test_a_damaged_part_is_run_again(small, uninterrupted, tmp_path):
    folder = tmp_path / "damaged"
    run_experiment(small, folder, jobs=1)
    part = next(folder.glob("parts/*.json"))
    part.write_text(part.read_text()[:50])
    assert run_experiment(small, folder, jobs=1).executed == 1
    assert same_files(uninterrupted, folder)


def test_one_failing_run_does_not_take_the_others(tmp_path):
    row = replace(SMALL.environments[0], vary="states", parameters={"actions": 2, "horizon": 2})
    changed = replace(SMALL, environments=(row,))
    report = run_experiment(changed, tmp_path / "failing", jobs=1)
    assert len(report.failures) == 4  # run 0 asks for zero states, in each of four cells
    assert all("states" in outcome.error for outcome in report.failures)
    assert [len(s.final) for s in report.results.series()] == [2, 2, 2, 2]


def test_all_failing_is_an_error(small, tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.lab.runner.check", lambda experiment, engine: None)
    broken = replace(small.environments[0], parameters={"states": 0})
    with pytest.raises(DiscreetError, match="Every run failed"):
        run_experiment(replace(small, environments=(broken,)), tmp_path / "broken", jobs=1)


def test_full_disk_keeps_finished_runs(small, tmp_path, monkeypatch):
    folder = tmp_path / "full"
    real, written = os.fsync, []

    def fsync(descriptor):
        written.append(descriptor)
        if len(written) > 8:  # the two files of the start and two parts, each and its folder
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(DiscreetError, match=r"No space left on device.*Finished runs are kept"):
        run_experiment(small, folder, jobs=1)
    monkeypatch.undo()
    assert run_experiment(small, folder, jobs=1).kept == 2


def test_command_line_json(uninterrupted, tmp_path):
    command = [sys.executable, "-m", "discreet", "run", str(uninterrupted / "spec.toml"), "--json"]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "out"), "--jobs", "1"],
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert set(answer) >= {"experiment", "output", "results"}
    row = answer["results"][0]
    assert set(row["regret"]) == {"mean", "std", "low", "high"}
    assert row["guarantee"]["neighbours"] == "replace-one"
    assert Path(answer["output"], "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing-like-it"], "Unknown experiment"),
        (["missing.toml"], "No such file"),
        ([], "Shipped experiments"),
        (["--learner", "ucbv"], "did you mean 'ucbvi'"),
        (["--learner", "ucbvi", "--episodes", "many"], "whole numbers"),
        (["--learner", "ucbvi", "--trust", "central"], "at least one epsilon"),
        (["--learner", "ucbvi", "--set", "bonus"], "name=value"),
    ],
)
def test_bad_input_is_one_sentence(arguments, words, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "discreet", "run", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


CENTRAL = {"model": "central", "epsilon": [1.0], "delta": 1e-6}


@pytest.mark.parametrize(
    ("learner", "keys", "words"),
    [
        ("psrl", {"plots": ["regert"]}, "did you mean 'regret'"),
        ({"name": "ucbvi", "settings": {"bonuses": 1}}, {}, "Unknown setting"),
        ({"name": "flow-ucb", "settings": {"nothing": 1}}, {}, "nothing"),
        ({"name": "flow-ucb", "settings": {"stationary": "yes"}}, {}, "True or False"),
        ({"name": "private-uc-o-reps", "settings": {"losses": "none"}}, {}, "losses"),
        ("psrl", {"episodes": [10**16]}, r"episodes <= 1e\+15"),
        ("psrl", {"environment": {"parameters": {"states": 0}}}, "states=0"),
        ("flow-ucb", {"trusts": [CENTRAL | {"mechanism": "laplac"}]}, "did you mean 'laplace'"),
        ("flow-ucb", {"trusts": [{"model": "shuffle", "epsilon": [1.0]}]}, "delta"),
    ],
)
def test_mistakes_are_found_before_anybody_is_simulated(tmp_path, learner, keys, words):
    wrong = experiment(learner, **keys)
    with pytest.raises(DiscreetError, match=words):
        run_experiment(wrong, tmp_path / "out", jobs=1, progress=pytest.fail)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("engine", "package"), [("local", "pyarrow"), ("local", "matplotlib"), ("ray", "ray")]
)
def test_a_missing_extra_is_named(monkeypatch, engine, package):
    real = importlib.util.find_spec
    missing = lambda name: None if name == package else real(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", missing)
    with pytest.raises(MissingExtraError, match=package):
        check(experiment(), engine=engine)


def test_a_keyword_that_a_plain_learner_does_not_take_is_one_sentence(monkeypatch):
    from discreet.learners.registry import LearnerSpec, get_learner, register

    class Plain(get_learner("flow-ucb").make):
        def __init__(self, problem, plan, rng):
            super().__init__(problem, plan, rng)

    spec = LearnerSpec("plain", "", "", "batch", ("none",), make=Plain)
    forget_afterwards(monkeypatch)
    register(spec)
    with pytest.raises(DiscreetError, match=r"'plain' cannot be made: .*unexpected keyword"):
        check(experiment({"name": "plain", "settings": {"explore": 1}}))


def test_what_varies_may_fail_in_some_runs_but_not_in_all():
    varied = experiment(environment={"vary": "states", "parameters": {"horizon": 2}}, runs=3)
    cell = expand(varied)[0]
    assert environment_of(cell, 3).shape.states == 1  # run 0 asks for no state at all
    with pytest.raises(DiscreetError, match="states=0"):
        environment_of(cell, 1)


def test_what_is_right_passes():
    check(experiment("psrl", "flow-ucb", "private-uc-o-reps", trusts=[{"model": "none"}, CENTRAL]))
    check(replace(experiment(), plots=()))
