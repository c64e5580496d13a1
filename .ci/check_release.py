"""Is what stands in `dist` ready to be uploaded? Checked on every Python at hand.

    python .ci/check_release.py dist

Nothing is changed and nothing untracked in the clone; version and date are the same everywhere. The
wheel and the source archive hold the files that git tracks, byte for byte, and nothing else. On
one Python of every minor version from 3.11 on (of those on the path and those of pyenv):

- wheel: it is installed into a new environment; the first example of the README runs, and two
  commands. On the oldest Python the source archive as well.
- extras: the wheel is installed with the extras that people are told to install, and each of them
  is used once.
- pins: ``pip install --require-hashes`` accepts requirements.txt (`--dry-run`).

Dependencies have the versions of `constraints.txt`.
"""

import contextlib
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
EXTRAS = ("lab", "service")
USES = {  # one command for each extra
    "lab": ("run", "price-of-trust", "--quick", "--jobs", "1", "--json"),
    "service": ("service", "demo", "--users", "200", "--runs", "2", "--json"),
}
SIZES = ("--trust", "central", "--epsilon", "1", "--states", "2", "--actions", "2", "--steps", "2")
CORE = (("study", "start", "study.db", *SIZES, "--episodes", "99"), ("study", "bundle", "study.db"))
"""What needs no extra: noise for real people, its proof, and a dossier."""
REQUIRED = {
    "py.typed",
    "device/web/device.js",
    "lab/experiments/price-of-trust.toml",
    "lab/templates/report.html",
    "papers/references.bib",
    "privacy/certificates/verify.py",
    "service/shuffler/page/index.html",
    "service/templates/shuffler.toml",
}
BESIDE = {  # in the source archive, beside the package
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "LIMITATIONS.md", "MANIFEST.in", "PKG-INFO"),
    *("README.md", "SECURITY.md", "constraints.txt", "pyproject.toml", "setup.cfg"),
}


WRITTEN = {"PKG-INFO", "setup.cfg"}
"""Of these, what the build writes itself."""


class NotReadyError(Exception):
    """Something that a user of the release would meet."""


# ------------------------------------------------------------------------------------- contents


def git(*arguments: str) -> str:
    """What git says about the clone."""
    command = ("git", "-C", str(ROOT), *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def tracked() -> set[PurePosixPath]:
    """The files of the package that git tracks, without `src`."""
    names = git("ls-files", "-z", "src/discreet").split("\0")
    return {PurePosixPath(name).relative_to("src") for name in names if name}


def check_tree() -> None:
    """Raises if the clone is not exactly a commit."""
    if changed := git("status", "--porcelain"):
        raise NotReadyError(f"the clone has changes that are not committed:\n{changed.rstrip()}")


def check_version(version: str) -> None:
    """Raises unless the package, the citation and the changelog have one version and one date."""
    texts = {
        name: (ROOT / name).read_text("utf-8")
        for name in ("src/discreet/__init__.py", "CITATION.cff", "CHANGELOG.md")
    }
    package, citation, changelog = texts.values()
    date = _first(r"^date-released: (\S+)$", citation)
    found = {
        "the name of the wheel": version,
        "src/discreet/__init__.py": _first(r'^__version__ = "(.+)"$', package),
        "CITATION.cff": _first(r"^version: (\S+)$", citation),
        "CHANGELOG.md": _first(r"^## \[([^\]]+)\]", changelog),
    }
    if len(set(found.values())) > 1:
        raise NotReadyError(f"versions differ: {found}")
    if date != (written := _first(r"^## \[[^\]]+\] - (\S+)$", changelog)):
        raise NotReadyError(f"dates differ: CITATION.cff has {date}, CHANGELOG.md {written}")


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else None


def check_contents(wheel: Path, archive: Path) -> int:
    """The number of files of the package; raises if one is missing, differs or does not belong."""
    wanted = tracked()
    if lost := {PurePosixPath("discreet", one) for one in REQUIRED} - wanted:
        raise NotReadyError(f"the clone lacks {', '.join(map(str, sorted(lost)))}")
    with zipfile.ZipFile(wheel) as packed:
        held = {
            PurePosixPath(name): packed.read(name)
            for name in packed.namelist()
            if not name.endswith("/")
        }
    about = {name for name in held if name.parts[0].endswith(".dist-info")}
    _compare("the wheel", held.keys() - about, wanted)
    _same("the wheel", {PurePosixPath("src", name): held[name] for name in wanted})
    if not any(name.name == "LICENSE" for name in about):
        raise NotReadyError("the wheel has no licence")
    for name in about:
        if name.name == "METADATA" and re.search(r"\]\((?!https?://)", held[name].decode("utf-8")):
            raise NotReadyError("the text for the package index has links that lead nowhere there")
    with tarfile.open(archive) as packed:
        held = {
            PurePosixPath(*PurePosixPath(one.name).parts[1:]): packed.extractfile(one).read()
            for one in packed.getmembers()
            if one.isfile() and "discreet.egg-info" not in PurePosixPath(one.name).parts
        }
    beside = {PurePosixPath(name) for name in BESIDE}
    sources = {PurePosixPath("src", one) for one in wanted}
    _compare("the source archive", set(held), sources | beside)
    kept = held.keys() - {PurePosixPath(name) for name in WRITTEN}
    _same("the source archive", {name: held[name] for name in kept})
    return len(wanted)


def _same(where: str, held: dict[PurePosixPath, bytes]) -> None:
    for name, content in sorted(held.items()):
        if (ROOT / name).read_bytes() != content:
            raise NotReadyError(f"{where} has another {name} than the clone")


def _compare(where: str, found: set[PurePosixPath], wanted: set[PurePosixPath]) -> None:
    for verb, names in (("lacks", wanted - found), ("should not contain", found - wanted)):
        if names:
            raise NotReadyError(f"{where} {verb} {', '.join(map(str, sorted(names)))}")


# --------------------------------------------------------------------------------- every Python


def pythons() -> Iterator[tuple[str, Path]]:
    """A Python of every minor version at hand that is new enough: version and program, sorted."""
    places = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    places += sorted((Path.home() / ".pyenv" / "versions").glob("*/bin"))
    names = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST)]
    found: dict[int, tuple[str, Path]] = {}
    code = "import sys, venv; print(*sys.version_info[:3]); print(sys.executable)"
    for program in (place / name for place in places for name in names):
        if os.access(program, os.X_OK):
            done = subprocess.run(
                [program, "-c", code], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:  # a stub of pyenv may lead nowhere
                version, executable = done.stdout.splitlines()
                name = ".".join(version.split())
                found.setdefault(int(version.split()[1]), (name, Path(executable)))
    for minor in sorted(found):
        yield found[minor]


def run(*command: str | Path, folder: Path, constrained: bool = True) -> str:
    """What a program prints, run in a folder without the clone in its path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if constrained:
        kept |= {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
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


@contextlib.contextmanager
def environment(python: Path) -> Iterator[tuple[Path, tuple[str | Path, ...]]]:
    """A new environment: its folder of programs, and the pip that installs into it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", "--without-pip", folder / "new", folder=folder)
        programs = folder / "new" / "bin"
        yield programs, (sys.executable, "-m", "pip", "--python", programs / "python")


def check_installed(python: Path, package: Path) -> None:
    """Install it into a new environment and do what people do first."""
    with environment(python) as (programs, pip):
        folder = programs.parents[1]
        run(*pip, "install", "--quiet", package, folder=folder)
        run(*pip, "check", folder=folder)
        (folder / "example.py").write_text(first_example(), "utf-8")
        said = run(programs / "python", "-W", "error", "example.py", folder=folder)
        if not said:
            raise NotReadyError("the example of the README printed nothing")
        version = package.name.removesuffix(".tar.gz").split("-")[1]
        if (said := run(programs / "discreet", "--version", folder=folder)).split()[-1] != version:
            raise NotReadyError(f"`discreet --version` printed {said!r}, not {version}")
        listed = json.loads(run(programs / "discreet", "list", "--json", folder=folder))
        if not all(listed[part] for part in ("environments", "learners", "experiments")):
            raise NotReadyError("`discreet list` lacks environments, learners or experiments")
        run(programs / "discreet", "list", folder=folder)
        for command in CORE:
            run(programs / "discreet", *command, folder=folder)


def check_extras(python: Path, package: Path) -> None:
    """Install it with the extras that pages name, and use each of them."""
    with environment(python) as (programs, pip):
        folder = programs.parents[1]
        run(*pip, "install", "--quiet", f"{package}[{','.join(EXTRAS)}]", folder=folder)
        run(*pip, "check", folder=folder)
        for extra in EXTRAS:
            run(programs / "discreet", *USES[extra], folder=folder)


def check_pins(python: Path, pins: Path) -> None:
    """Would they all be installed, each with a hash that stands there?"""
    with environment(python) as (programs, pip):
        options = ("--dry-run", "--quiet", "--require-hashes", "--only-binary", ":all:")
        folder = programs.parents[1]
        run(*pip, "install", *options, "--requirement", pins, folder=folder, constrained=False)


# ---------------------------------------------------------------------------------------- report


def check_everywhere(wheel: Path, archive: Path, pins: Path) -> bool:
    """Print one line per Python and check; did all pass?"""
    found = list(pythons())
    if not found:
        raise NotReadyError("no Python from 3.11 on was found")
    checks = [("wheel", check_installed, wheel), ("extras", check_extras, wheel)]
    checks += [("pins", check_pins, pins), ("source", check_installed, archive)]
    print(f"  {'Python':<8} {'check':<8} {'result':<8} seconds", flush=True)
    problems = []
    for name, python in found:
        for kind, check, file in checks if name == found[0][0] else checks[:3]:
            started = time.monotonic()
            try:
                check(python, file)
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
    pins = (folder / "requirements.txt").resolve()
    if len(wheels) != 1 or len(archives) != 1 or not pins.is_file():
        print(f"{folder} must hold one wheel, one source archive, and requirements.txt.")
        return 1
    wheel, archive = wheels[0].resolve(), archives[0].resolve()
    try:
        check_tree()
        check_version(wheel.name.split("-")[1])
        print(f"{check_contents(wheel, archive)} files of the package, in both archives")
        passed = check_everywhere(wheel, archive, pins)
    except NotReadyError as error:
        print(f"Not ready: {error}")
        return 1
    if passed:
        print("Upload to the package index:")
        _say(wheel, archive)
        print("Attach to the release, beside the two:")
        _say(pins, folder / "sbom.json")
    return 0 if passed else 1


def _say(*files: Path) -> None:
    for file in files:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        print(f"  {file.name:<32} {file.stat().st_size / 1e3:6.0f} kB  sha256 {digest}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
