"""The wheel: installed into a new environment, without the clone, it does what people do first.

The new environment sees the packages of this one, so nothing is downloaded; discreet itself comes
from the wheel alone.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).parents[1]
PARTS = (
    *("src", "pyproject.toml", "constraints.txt", "MANIFEST.in", "LICENSE", "CITATION.cff"),
    *("README.md", "CHANGELOG.md", "LIMITATIONS.md", "SECURITY.md"),
)
pytest.importorskip("build")


def call(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and source archive, built from a copy of what git tracks: the clone stays as it is."""
    folder = tmp_path_factory.mktemp("dist")
    clone = folder / "clone"
    for name in call("git", "ls-files", *PARTS, cwd=ROOT).splitlines():
        target = clone / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "out", clone)
    return next(folder.glob("out/*.whl")), next(folder.glob("out/*.tar.gz"))


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """A new environment with the wheel in it; its folder."""
    folder = tmp_path_factory.mktemp("environment")
    call(sys.executable, "-m", "venv", "--without-pip", folder)
    packages = next(folder.glob("lib/python*/site-packages"))
    import numpy

    dependencies = Path(numpy.__file__).parents[1]
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    call(
        *(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet"),
        *("--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", built[0]),
    )
    lend_kernels(packages)
    return folder


def lend_kernels(packages):
    """Compiled kernels of the clone serve the wheel as well: its sources are the same bytes.

    numba knows a source by its time and size, so the installed files get the times of the clone's.
    """
    for kernel in (ROOT / "src").glob("discreet/**/__pycache__/*.nb[ci]"):
        target = packages / kernel.relative_to(ROOT / "src")
        target.parent.mkdir(exist_ok=True)
        shutil.copy2(kernel, target)
    for target in packages.glob("discreet/**/*.py"):
        source = ROOT / "src" / target.relative_to(packages)
        times = source.stat()
        assert target.read_bytes() == source.read_bytes()
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture
def inside(installed, tmp_path):
    """Run a program of the new environment in an empty folder, without the clone in its path."""

    def run(program, *arguments):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        return call(installed / "bin" / program, *arguments, cwd=tmp_path, env=environment)

    return run


@pytest.fixture(scope="module")
def release():
    """The check of `make release`."""
    path = ROOT / ".ci" / "check_release.py"
    spec = importlib.util.spec_from_file_location("check_release", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_both_archives_hold_the_package_and_nothing_else(built, release):
    files = call("git", "ls-files", "src/discreet", cwd=ROOT).splitlines()
    assert release.check_contents(*built) == len(files)


def without(name, text):
    return None if name in ("discreet/py.typed", "discreet/device/web/device.js") else text


def edited(name, text):
    return text + b"#" * name.endswith("discreet/errors.py")


@pytest.mark.parametrize("change, more, said", [
    (without, "", "the wheel lacks discreet/"),
    (lambda name, text: text, "tests/test_stray.py", r"should not contain tests/test_stray\.py"),
    (edited, "", r"another src/discreet/errors\.py"),
], ids=["poorer", "fuller", "older"])  # fmt: skip
def test_a_wheel_of_other_files_is_not_ready(built, release, tmp_path, change, more, said):
    other = tmp_path / built[0].name
    with zipfile.ZipFile(built[0]) as old, zipfile.ZipFile(other, "w") as new:
        for one in old.namelist():
            if (text := change(one, old.read(one))) is not None:
                new.writestr(one, text)
        if more:
            new.writestr(more, "")
    with pytest.raises(release.NotReadyError, match=said):
        release.check_contents(other, built[1])


def test_a_clone_with_changes_is_not_ready(release, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "ROOT", tmp_path)
    call("git", "init", "--quiet", tmp_path)
    release.check_tree()
    (tmp_path / "new.py").write_text("")
    with pytest.raises(release.NotReadyError, match=r"not committed:\n\?\? new\.py"):
        release.check_tree()


def test_versions_and_dates_that_differ_are_not_ready(release, tmp_path, monkeypatch):
    for name in ("src/discreet/__init__.py", "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    changelog = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    released = changelog[changelog.index(f"## [{discreet.__version__}]") :]
    (tmp_path / "CHANGELOG.md").write_text(f"## [Unreleased]\n\n{released}")
    with pytest.raises(release.NotReadyError, match=r"versions differ.*Unreleased"):
        release.check_version(discreet.__version__)
    (tmp_path / "CHANGELOG.md").write_text(released)
    release.check_version(discreet.__version__)
    with pytest.raises(release.NotReadyError, match="versions differ"):
        release.check_version("0.0.1")
    text = (tmp_path / "CITATION.cff").read_text("utf-8")
    (tmp_path / "CITATION.cff").write_text(text.replace("date-released: 2", "date-released: 3"))
    with pytest.raises(release.NotReadyError, match="dates differ"):
        release.check_version(discreet.__version__)


def test_every_python_that_is_new_enough_is_found(release):
    found = [tuple(map(int, version.split("."))) for version, _ in release.pythons()]
    assert found == sorted(found)
    assert all(version >= (3, 11) for version in found)
    here = f"python3.{sys.version_info[1]}"
    assert not shutil.which(here) or sys.version_info[:2] in {one[:2] for one in found}


def test_the_version_has_one_place(built):
    assert discreet.__version__ in built[0].name
    assert f"version: {discreet.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert "__version__ =" in (ROOT / "src/discreet/__init__.py").read_text("utf-8")
    assert f'"{discreet.__version__}"' not in (ROOT / "pyproject.toml").read_text("utf-8")


def test_it_is_the_wheel_that_is_imported(inside, installed):
    code = "import discreet, discreet.device; print(discreet.__file__, discreet.device.__file__)"
    for path in inside("python", "-c", code).split():
        assert Path(path).is_relative_to(installed)


def test_the_first_experiment_runs(inside, tmp_path):
    found = json.loads(inside("discreet", "list", "--json"))
    assert "price-of-trust" in [row["name"] for row in found["experiments"]]
    answer = json.loads(inside("discreet", "run", "price-of-trust", "--quick", "--json"))
    assert (answer["failures"], len(answer["results"])) == ([], 12)
    assert (tmp_path / "results/price-of-trust-quick/report.html").is_file()


def test_what_it_requires_is_there_and_agrees(installed):
    said = call(sys.executable, "-m", "pip", "--python", installed / "bin/python", "check")
    assert "No broken requirements found" in said
