"""Is what stands in `dist` ready to be uploaded? Checked on every Python at hand.

    python .ci/check_release.py dist

The wheel and the source archive contain what they must and nothing else. The wheel is installed
into a new environment of every Python from 3.11 on (those on the path and those of pyenv), the
source archive into one of the oldest; there the first example of the README runs, and two commands.
Dependencies have the versions of `constraints.txt`.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
OLDEST = (3, 11)
NEWEST = 20  # minor versions that are looked for
LIMIT = 900  # seconds for one installation or one program
SOURCES = {".py", ".pyi", ".typed", ".toml", ".js", ".html", ".css", ".bib", ".svg"}
REQUIRED = {
    "py.typed",
    "device/web/device.js",
    "lab/experiments/price-of-trust.toml",
    "lab/templates/report.html",
    "papers/references.bib",
    "privacy/certificates/verify.py",
    "service/shuffler/page/index.html",
    "service/templates/shuffler.toml",
    "study/dossier/dossier.html",
}
BESIDE = {  # in the source archive, beside the package
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "LIMITATIONS.md", "MANIFEST.in", "PKG-INFO"),
    *("README.md", "SECURITY.md", "constraints.txt", "pyproject.toml", "setup.cfg"),
}


class NotReadyError(Exception):
    """Something that a user of the release would meet."""


# ------------------------------------------------------------------------------------- contents


def check_contents(wheel: Path, archive: Path) -> int:
    """The number of files of the package; raises if one is missing or does not belong."""
    package = ROOT / "src/discreet"
    wanted = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.suffix in SOURCES and "__pycache__" not in path.parts
    }
    if lost := REQUIRED - wanted:
        raise NotReadyError(f"the clone lacks {sorted(lost)}")
    with zipfile.ZipFile(wheel) as packed:
        names = {PurePosixPath(name) for name in packed.namelist() if not name.endswith("/")}
    about = {name for name in names if name.parts[0].endswith(".dist-info")}
    _compare("the wheel", names - about, {PurePosixPath("discreet", one) for one in wanted})
    if not any(name.name == "LICENSE" for name in about):
        raise NotReadyError("the wheel has no licence")
    with tarfile.open(archive) as packed:
        files = [PurePosixPath(one.name) for one in packed.getmembers() if one.isfile()]
    names = {PurePosixPath(*name.parts[1:]) for name in files}
    names = {name for name in names if "discreet.egg-info" not in name.parts}
    beside = {PurePosixPath(name) for name in BESIDE}
    sources = {PurePosixPath("src/discreet", one) for one in wanted}
    _compare("the source archive", names, sources | beside)
    return len(wanted)


def _compare(where: str, found: set[PurePosixPath], wanted: set[PurePosixPath]) -> None:
    for verb, names in (("lacks", wanted - found), ("should not contain", found - wanted)):
        if names:
            raise NotReadyError(f"{where} {verb} {', '.join(map(str, sorted(names)))}")


# --------------------------------------------------------------------------------- every Python


def pythons() -> Iterator[tuple[str, Path]]:
    """Every Python at hand that is new enough: its version and its program, oldest first."""
    places = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    places += sorted((Path.home() / ".pyenv" / "versions").glob("*/bin"))
    names = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST)]
    found: dict[tuple[int, ...], Path] = {}
    code = "import sys, venv; print(*sys.version_info[:3]); print(sys.executable)"
    for program in (place / name for place in places for name in names):
        if os.access(program, os.X_OK):
            done = subprocess.run(
                [program, "-c", code], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:  # a stub of pyenv may lead nowhere
                version, executable = done.stdout.splitlines()
                found.setdefault(tuple(map(int, version.split())), Path(executable))
    for version, python in sorted(found.items()):
        yield ".".join(map(str, version)), python


def run(*command: str | Path, folder: Path) -> str:
    """What a program prints, run in a folder without the clone in its path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept |= {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        command, cwd=folder, env=kept, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:]
        raise NotReadyError(f"{' '.join(map(str, command))[:200]}\n{said}")
    return done.stdout


def first_example() -> str:
    """The first Python block of the README."""
    text = (ROOT / "README.md").read_text("utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[0]


def check_installed(python: Path, package: Path, version: str) -> None:
    """Install it into a new environment and do what people do first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", "--without-pip", folder / "new", folder=folder)
        programs = folder / "new" / "bin"
        pip = (sys.executable, "-m", "pip", "--python", programs / "python")
        run(*pip, "install", "--quiet", package, folder=folder)
        run(*pip, "check", folder=folder)
        (folder / "example.py").write_text(first_example(), "utf-8")
        said = run(programs / "python", "-W", "error", "example.py", folder=folder)
        if not said:
            raise NotReadyError("the example of the README printed nothing")
        if (said := run(programs / "discreet", "--version", folder=folder)).split()[-1] != version:
            raise NotReadyError(f"`discreet --version` printed {said!r}, not {version}")
        listed = json.loads(run(programs / "discreet", "list", "--json", folder=folder))
        if not all(listed[part] for part in ("environments", "learners", "experiments")):
            raise NotReadyError("`discreet list` lacks environments, learners or experiments")
        run(programs / "discreet", "list", folder=folder)


# ---------------------------------------------------------------------------------------- report


def check_everywhere(wheel: Path, archive: Path) -> bool:
    """Print one line per Python and package; did all pass?"""
    version = wheel.name.split("-")[1]
    tasks = [(name, python, wheel) for name, python in pythons()]
    if not tasks:
        raise NotReadyError("no Python from 3.11 on was found")
    tasks.insert(1, (*tasks[0][:2], archive))
    print(f"  {'Python':<8} {'package':<8} {'result':<8} seconds", flush=True)
    problems = []
    for name, python, package in tasks:
        started, kind = time.monotonic(), "wheel" if package == wheel else "source"
        try:
            check_installed(python, package, version)
            result = "passed"
        except (NotReadyError, subprocess.TimeoutExpired) as error:
            result = "FAILED"
            problems.append(f"Python {name}, {kind}: {error}")
        seconds = time.monotonic() - started
        print(f"  {name:<8} {kind:<8} {result:<8} {seconds:7.0f}", flush=True)
    print(*problems, sep="\n", end="\n" if problems else "")
    return not problems


def main(folder: Path) -> int:
    """Check everything; say what to upload."""
    wheels, archives = list(folder.glob("*.whl")), list(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(archives) != 1:
        print(f"{folder} must hold one wheel and one source archive, no older ones.")
        return 1
    wheel, archive = wheels[0].resolve(), archives[0].resolve()
    try:
        print(f"{check_contents(wheel, archive)} files of the package, in both archives")
        passed = check_everywhere(wheel, archive)
    except NotReadyError as error:
        print(f"Not ready: {error}")
        return 1
    if passed:
        print("Upload to the package index:")
        _say(wheel, archive)
        print("Attach to the release, beside the two:")
        _say(folder / "requirements.txt", folder / "sbom.json")
    return 0 if passed else 1


def _say(*files: Path) -> None:
    for file in files:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        print(f"  {file.name:<32} {file.stat().st_size / 1e3:6.0f} kB  sha256 {digest}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
