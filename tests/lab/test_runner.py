"""The runner: the same results for any number of workers, any engine, and after a kill."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.errors import DiscreetError
from discreet.lab.runner import run_experiment
from helpers.experiments import experiment, same_files

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


def test_a_ray_cluster_gives_the_same_files(small, uninterrupted, tmp_path):
    pytest.importorskip("ray")
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
        (["missing.toml"], "no such file"),
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
