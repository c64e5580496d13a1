"""Registries: plug-ins everywhere that names are taken, and source files read without running."""

import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import _registry
from discreet.errors import InvalidInputError
from discreet.privacy.mechanisms.registry import everything

PLUGIN = Path(__file__).parents[1] / "examples" / "plugin"
RUN = ["--learner", "explore-once", "--environment", "Corridor", "--trust", "central"]
SMALL = ["--epsilon", "1", "--delta", "1e-6", "--episodes", "200", "--runs", "2", "--json"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the package of examples/plugin installed into it, and nothing else."""
    folder = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(PLUGIN, folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation"]
    target = folder / "installed"
    subprocess.run([*pip, *offline, "--target", target, source], check=True, capture_output=True)
    return folder


@pytest.fixture
def shell(place, tmp_path):
    """Run Python in a process of its own that sees the plug-in; returns (code, output, errors)."""

    def call(*arguments):
        paths = [str(place / "installed"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=900,
        )
        return done.returncode, done.stdout, done.stderr

    return call


def test_everything_is_listed(shell):
    code, out, err = shell("-m", "discreet", "list", "--json")
    assert code == 0, err
    found = {kind: [row["name"] for row in rows] for kind, rows in json.loads(out).items()}
    assert "explore-once" in found["learners"]
    assert "Corridor" in found["environments"]
    assert "double-laplace" in found["mechanisms"]


def test_its_environment_is_checked(shell):
    code, out, err = shell(
        "-m", "discreet", "check", "mdp", "corridor", "--set", "slip=0", "--relabel", "1", "--json"
    )
    assert code == 0, err
    report = json.loads(out)
    assert (report["states"], report["optimal_value"]) == (3, 2.0)


def test_its_mechanism_is_checked(shell):
    code, out, err = shell(
        "-m", "discreet", "check", "mechanism", "central/double-laplace", "--json"
    )
    assert code == 0, err + out
    assert json.loads(out)["problems"] == []


def test_the_command_line_two_processes_and_a_file(shell, tmp_path):
    code, out, err = shell("-m", "discreet", "run", *RUN, *SMALL, "--jobs", "2")
    assert code == 0, err + out
    row = json.loads(out)["results"][0]
    assert (row["learner"], row["environment"]) == ("explore-once", "Corridor")
    code, out, err = shell(
        *("-m", "discreet", "run", str(PLUGIN / "corridor.toml"), "--jobs", "1", "--runs", "1"),
        *("--episodes", "100", "--json"),
    )
    assert code == 0, err + out
    assert [r["mechanism"] for r in json.loads(out)["results"]] == [
        "none",
        "gaussian",
        "double-laplace",
    ]
    source = json.loads((tmp_path / "results/corridor/guarantees.json").read_text())[0]["source"]
    assert len(source["learner"].split("-")) == 2  # discreet's logic, and the plug-in's files


def test_a_ray_worker_knows_it(shell, long_run):
    pytest.importorskip("ray")
    if not long_run:
        pytest.skip("A Ray cluster is started in the long run only.")
    code, out, err = shell("-m", "discreet", "run", *RUN, *SMALL, "--engine", "ray", "--jobs", "1")
    assert code == 0, err + out
    assert json.loads(out)["failures"] == []


def test_a_study_runs_it_and_resumes(shell, tmp_path):
    script = """
import discreet
mdp = discreet.make("Corridor")
shape = mdp.shape
study = discreet.start_study(
    "study.db", learner="explore-once", trust=discreet.Central(1, 1e-6),
    states=shape.states, actions=shape.actions, horizon=shape.horizon,
    episodes=100, sampler="simulation", seed=1,
)
rng = np.random.default_rng(0)
study.tell(discreet.mdp.sample_trajectories(mdp, study.ask(), study.batch_size, rng),
           users=range(study.batch_size))
"""
    code, _, err = shell("-c", "import numpy as np\n" + script)
    assert code == 0, err
    code, out, err = shell(
        "-c", "import discreet; print(discreet.open_study('study.db').batch_size)"
    )
    assert (code, out) == (0, "90\n"), err


MODULE = """
from discreet.learners import LearnerSpec, register
from discreet.mdp.environments.registry import get_environment, register as register_environment
from discreet_plugin.environment import Corridor
from discreet_plugin.learner import ExploreOnce

def Passage(*, length: int = 2):
    "A short corridor."
    return Corridor(length=length, horizon=2)

register_environment("Passage", Passage)
register(LearnerSpec(name="mine", summary="mine", paper="", schedule="batch", trusts=("none",),
                     make=ExploreOnce))
"""


def test_a_module_of_ones_own_in_two_processes(shell, tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    options = ["--learner", "mine", "--environment", "Passage", "--import", "mine"]
    code, out, err = shell(
        *("-m", "discreet", "run", *options, "--episodes", "50", "--runs", "2", "--jobs", "2"),
        "--json",
    )
    assert code == 0, err + out
    resolved = tmp_path / "results/mine-passage-none/spec.toml"
    assert 'imports = ["mine"]' in resolved.read_text()
    code, out, err = shell("-m", "discreet", "run", str(resolved), "--output", "again", "--json")
    assert code == 0, err + out


@pytest.mark.core
def test_a_module_that_is_not_there_gets_one_sentence():
    command = [sys.executable, "-m", "discreet", "list", "--import", "no_such_module"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Cannot import 'no_such_module'" in done.stderr
    assert "no_such_module.py in the current folder" in done.stderr


@pytest.mark.core
def test_a_module_that_fails_gets_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for number, (line, said) in enumerate(
        {"1 / 0": "ZeroDivisionError", "import sys; sys.exit(0)": "SystemExit: 0"}.items()
    ):
        (tmp_path / f"failing_module_{number}.py").write_text(line)
        with pytest.raises(InvalidInputError, match=said):
            _registry.import_modules([f"failing_module_{number}"])
        assert f"failing_module_{number}" not in _registry.imported()


class Point:
    """An entry point that cannot be loaded."""

    name = value = module = "broken"
    dist = None

    def __init__(self, error):
        self.error = error

    def load(self):
        raise self.error


FAILURES = [ImportError("No module named 'broken'"), ZeroDivisionError("1 / 0"), SystemExit(0)]


@pytest.mark.core
@pytest.mark.parametrize("error", FAILURES)
@pytest.mark.parametrize("kind", ["learners", "environments"])
def test_a_broken_plug_in_is_named_and_hides_no_other(monkeypatch, kind, error):
    from discreet.learners import registry as learners
    from discreet.mdp.environments import registry as environments

    monkeypatch.setattr(_registry, "entry_points", lambda kind: {"broken": Point(error)})
    get, listing = {
        "learners": (learners.get_learner, learners.listing),
        "environments": (environments.get_environment, environments.listing),
    }[kind]
    with pytest.raises(InvalidInputError, match=r"The plug-in 'broken' of package 'broken' cannot"):
        get("broken")
    assert listing("broken").summary == "(not available)"


@pytest.mark.core
@pytest.mark.parametrize("line", ["1 / 0", "import sys; sys.exit(0)", "import no_such_module"])
def test_a_broken_mechanism_is_named_and_hides_no_other(tmp_path, monkeypatch, line):
    from discreet.privacy.mechanisms.registry import MechanismSpec

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_noise.py").write_text(line)
    broken = MechanismSpec("central", "batch", "broken", "broken_noise:Broken")
    with pytest.raises(InvalidInputError, match=r"'broken' cannot be loaded from 'broken_noise:B"):
        broken.load()
    assert broken.summary == "(not available)"


@pytest.mark.core
@pytest.mark.parametrize("name", ["mine", "central.mine", "nobody.batch.mine", "central.batch."])
def test_an_entry_point_of_a_mechanism_says_who_uses_it_when(name):
    from discreet.privacy.mechanisms.registry import _of_plugin

    with pytest.raises(InvalidInputError, match=r"named trust\.schedule\.name"):
        _of_plugin(name, "somewhere:Mine")
    with pytest.raises(InvalidInputError, match="takes the name of one that discreet ships"):
        _of_plugin("central.batch.gaussian", "somewhere:Mine")


@pytest.mark.parametrize(
    "mechanism", everything(), ids=lambda m: f"{m.trust}-{m.schedule}-{m.name}"
)
def test_mechanisms_say_the_same_whether_they_are_read_or_run(mechanism):
    calibrator = mechanism.load()
    if isinstance(calibrator, type):
        assert mechanism.summary == (inspect.getdoc(calibrator) or "").split("\n")[0]
    else:  # a value, with its docstring below the assignment
        assert mechanism.summary.endswith(".")
        assert mechanism.summary != (inspect.getdoc(calibrator) or "").split("\n")[0]


def test_what_is_not_there_has_no_line():
    assert _registry.first_line("discreet.errors", "Nothing") == ""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make, import and forget packages; returns a function that gives a class of one."""
    monkeypatch.syspath_prepend(tmp_path)

    def made(**files):
        for name, text in files.items():
            path = tmp_path / (name.replace("__", "/") + ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for name in [n for n in sys.modules if n.partition(".")[0] in ("alone", "several")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module(next(iter(files)).replace("__", ".")).Thing

    yield made
    for name in [n for n in sys.modules if n.partition(".")[0] in ("alone", "several")]:
        del sys.modules[name]


def test_every_room_that_a_run_can_load_is_in_its_fingerprint():
    root = _registry._PACKAGE
    files = [path for part in _registry._LOGIC for path in (root / part).rglob("*.py")]
    found = {name for path in files for name in re.findall(r"discreet\.(\w+)", path.read_text())}
    rooms = {name for name in found if (root / name / "__init__.py").is_file()}
    assert rooms == {part for part in _registry._LOGIC if "." not in part}


def test_one_edited_line_changes_the_fingerprint_of_a_module(package):
    first = _registry.of_object(package(alone="class Thing:\n    x = 1\n"))
    same = _registry.of_object(package(alone="class Thing:\n    x = 1\n"))
    other = _registry.of_object(package(alone="class Thing:\n    x = 22\n"))
    assert first == same != other


def test_a_helper_beside_the_learner_counts(package):
    files = {"several__thing": "class Thing: ...\n", "several__helper": "x = 1\n"}
    first = _registry.of_object(package(**files))
    other = _registry.of_object(package(**files | {"several__helper": "x = 2\n"}))
    assert first != other


def test_ours_is_the_logic_and_what_has_no_file_its_name():
    assert _registry.of_object(_registry.first_line) == _registry.logic()
    assert _registry.of_object(int) == "builtins.int"
