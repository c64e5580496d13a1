"""Studies and the disk: folders that take none, and processes that are killed while they write."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import discreet
from discreet.errors import InvalidInputError, StudyError
from discreet.mdp.trajectories import Trajectories


def begin(path, **changes):
    arguments = {
        "learner": "flow-ucb",
        "trust": discreet.Central(epsilon=1, delta=1e-6),
        "states": 3,
        "actions": 2,
        "horizon": 4,
        "episodes": 2_000,
        "start_states": [0],
        "sampler": "simulation",
        "seed": 5,
    }
    return discreet.start(path, **(arguments | changes))


def advance(study):
    """Users who stay in state 0 and follow the policy."""
    actions = np.tile(study.ask().actions[:, 0], (study.batch_size, 1))
    data = Trajectories(np.zeros((len(actions), 5), int), actions, np.zeros((len(actions), 4)))
    study.tell(data, users=range(study.users, study.users + len(actions)))


def test_nothing_is_created_where_no_study_can_be(tmp_path, monkeypatch):
    with pytest.raises(StudyError, match="There is no folder"):
        begin(tmp_path / "missing" / "study.json")
    with pytest.raises(StudyError, match="is a folder"):
        begin(tmp_path)
    assert list(tmp_path.iterdir()) == []

    def refused(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(type(tmp_path), "open", refused)
    with pytest.raises(StudyError, match=r"Cannot write in the folder .*: Permission denied"):
        begin(tmp_path / "study.json")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"trust": "central"}, "got trust='central'; write trust=Central"),
        ({"trust": discreet.Local}, "got the class Local; write trust=Local"),
        ({"trust": None}, "got trust=None"),
        ({"stationary": "yes"}, "stationary to be True or False"),
        ({"states": "three", "start_states": None}, "states to be an integer"),
    ],
)
def test_what_no_study_can_be_about(tmp_path, changes, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        begin(tmp_path / "study.json", **changes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="who owns all may write all")
def test_a_read_only_folder_is_refused(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(StudyError, match="Cannot write in the folder"):
        begin(folder / "study.json")
    assert list(folder.iterdir()) == []


DEADLY = """
import os, pathlib, signal, sys
import numpy as np
import discreet
from discreet.mdp.trajectories import Trajectories

study = discreet.resume(sys.argv[1])
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
actions = np.tile(study.ask().actions[:, 0], (study.batch_size, 1))
data = Trajectories(np.zeros((len(actions), 5), int), actions, np.zeros((len(actions), 4)))
study.tell(data, users=range(len(actions)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@pytest.mark.parametrize("goes_on", ["resume", "tell"])
def test_a_killed_tell_leaves_no_second_release(tmp_path, goes_on):
    """Killed after the content is on the disk and before it has its name."""
    path = tmp_path / "study.json"
    study = begin(path)
    done = subprocess.run([sys.executable, "-c", DEADLY, str(path)], check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.glob("*.tmp")
    assert json.loads(left.read_text())["told"]  # a whole release
    with pytest.raises(StudyError, match="name of a temporary file"):
        discreet.resume(left)
    if goes_on == "resume":
        assert discreet.resume(path, study.head).batches == 0
    else:
        advance(study)
    assert not left.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".study.json.lock", "study.json"]
