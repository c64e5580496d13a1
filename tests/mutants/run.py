"""Apply one-line privacy bugs to a copy of the source; for each, its tests must fail.

    python tests/mutants/run.py                 all mutants of the catalogue
    python tests/mutants/run.py --sample 6      a sample (seeded by the commit, or --seed)
    python tests/mutants/run.py NAME ...        some of them

A survivor is a bug in the tests. The catalogue is a text beside this file for each room: `# name: bug`,
`! test` for each test of which one must fail, `-` text that stands once in the source, `+` what takes
its place. The file is found by the text, so that mutants survive moves. First the same tests must pass on the unchanged copy, so that a
mutant is killed by what it does and not by a broken test. A table says what killed each mutant.
"""

import argparse
import ast
import concurrent.futures
import functools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
_SECONDS = 900
_DOES_NOT_RUN = ("NameError", "UnboundLocalError", "FrozenInstanceError")
"""What a bug raises whose words are out of date."""


@dataclass(frozen=True)
class Mutant:
    """A bug that costs privacy, and tests of which at least one must fail (a part in brackets: one case)."""

    name: str
    bug: str
    find: str
    replace: str
    tests: tuple[str, ...]


def catalogue() -> list[Mutant]:
    """All mutants, room by room."""
    found = []
    for path in sorted(pathlib.Path(__file__).parent.glob("*.txt")):
        for block in path.read_text(encoding="utf-8").strip("\n").split("\n\n"):
            parts: dict[str, list[str]] = {"#": [], "!": [], "-": [], "+": []}
            for line in block.split("\n"):
                parts[line[0]].append(line[1:])
            name, bug = parts["#"][0].strip().split(": ", 1)
            find, replace = ("\n".join(parts[sign]) for sign in "-+")
            found.append(Mutant(name, bug, find, replace, tuple(t.strip() for t in parts["!"])))
    return found


MUTANTS = catalogue()


@dataclass(frozen=True)
class Outcome:
    """What became of one mutant."""

    mutant: Mutant
    killed: bool
    by: str
    seconds: float


class Copy:
    """A copy of the source tree in a folder of its own, with its own compiled code."""

    def __init__(self, folder: pathlib.Path, origin: "Copy | None" = None) -> None:
        self.folder = folder
        self.origin = origin
        # Times are copied too: compiled code stays valid from mutant to mutant, and from an unchanged
        # copy, which compiles for all. The checkout's own may be older than its kernels.
        stale = origin is None and not compiled_since_the_last_change()
        left_out = shutil.ignore_patterns("__pycache__") if stale else None
        source = ROOT if origin is None else origin.folder
        shutil.copytree(source / "src", folder / "src", ignore=left_out)

    def apply(self, mutant: Mutant) -> pathlib.Path:
        """Change the one place; returns the changed file."""
        where = self.folder / place(mutant).relative_to(ROOT)
        where.write_text(changed(where, mutant), encoding="utf-8")
        if _is_compiled(where):  # compiled callers of a changed kernel do not notice by themselves
            self._forget_compiled(where)
        return where

    def restore(self, where: pathlib.Path) -> None:
        """The original again."""
        shutil.copy2(ROOT / where.relative_to(self.folder), where)
        if _is_compiled(where):
            self._forget_compiled(where)
            self._take_compiled()

    def _forget_compiled(self, changed: pathlib.Path) -> None:
        for module in affected(str(changed.relative_to(self.folder))):
            home = self.folder / module
            for cached in (home.parent / "__pycache__").glob(f"{home.stem}.*.nb[ic]"):
                cached.unlink()

    def _take_compiled(self) -> None:
        if self.origin is not None:
            for cached in self.origin.folder.rglob("*.nb[ic]"):
                here = self.folder / cached.relative_to(self.origin.folder)
                here.parent.mkdir(exist_ok=True)
                shutil.copy2(cached, here)

    def run(self, tests: tuple[str, ...]) -> tuple[bool, str]:
        """Do the tests pass? If not, the first one that fails."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line"]
        command += ["-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(ROOT)]
        command += [str(path) for path in files_of(tests)]
        command += ["-k", " or ".join(tests)]
        environment = os.environ | {
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "400",  # errors are named in full
        }
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            return False, f"over {_SECONDS} s"
        if done.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        failed = re.search(r"^FAILED (?:\S*::)?(\S+)(?: - (\S+):)?", done.stdout, re.MULTILINE)
        if done.returncode == 1 and not failed:  # an error before any test said anything
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        if failed and str(failed.group(2)).rpartition(".")[2] in _DOES_NOT_RUN:
            raise SystemExit(f"This is no bug, it does not run: {failed.group()}.\n{done.stdout}")
        return done.returncode == 0, failed.group(1) if failed else ""


@functools.cache
def texts(pattern: str) -> dict[pathlib.Path, str]:
    """Files of the checkout, read once: mutants change copies."""
    return {path: path.read_text("utf-8") for path in sorted(ROOT.glob(pattern))}


def compiled_since_the_last_change() -> bool:
    """Whether all compiled code of the checkout is younger than all its sources."""
    compiled = [path.stat().st_mtime for path in ROOT.glob("src/**/*.nb[ic]")]
    changed = [path.stat().st_mtime for path in texts("src/**/*.py")]
    return bool(compiled) and min(compiled) > max(changed)


@functools.cache
def affected(changed: str) -> frozenset[str]:
    """Files whose compiled code may hold that of a changed one.

    Those that import it, or one that does; and what these import: it may compile for them, around
    functions of theirs.
    """
    found, new = {changed}, {changed}
    while new:
        names = {_module(file) for file in new}
        new = {file for file, imported in imports().items() if imported & names} - found
        found |= new
    used = set().union(*(imports()[file] for file in found))
    return frozenset(found | {file for file in imports() if _module(file) in used})


def _module(file: str) -> str:
    name = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


@functools.cache
def imports() -> dict[str, set[str]]:
    """What each file of the source imports: modules, and names in them, which may be modules."""
    found: dict[str, set[str]] = {}
    for path, text in texts("src/**/*.py").items():
        seen = found[str(path.relative_to(ROOT))] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                seen |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                seen |= {node.module} | {f"{node.module}.{name.name}" for name in node.names}
    return found


def _is_compiled(where: pathlib.Path) -> bool:
    return "_jit" in where.read_text(encoding="utf-8") or "kernels" in where.name


def place(mutant: Mutant) -> pathlib.Path:
    """The one file of the checkout that holds the text to change, once."""
    sources = texts("src/**/*.py") | texts("src/**/*.js") | texts("src/**/*.html")
    found = [path for path, text in sources.items() if mutant.find in text]
    if len(found) != 1 or sources[found[0]].count(mutant.find) != 1:
        raise SystemExit(
            f"Mutant {mutant.name!r}: expected its text once in the source, found it in "
            f"{[str(p.relative_to(ROOT)) for p in found]}; bring the catalogue up to date."
        )
    return found[0]


def changed(where: pathlib.Path, mutant: Mutant) -> str:
    """The source with the bug in it; what was Python must still be Python."""
    after = where.read_text(encoding="utf-8").replace(mutant.find, mutant.replace)
    if where.suffix == ".py":
        ast.parse(after)
    return after


def files_of(tests: tuple[str, ...]) -> list[pathlib.Path]:
    """Where test functions of these names are."""
    found = []
    for name in tests:
        function = name.partition("[")[0]
        homes = [p for p, text in texts("tests/**/test_*.py").items() if f"def {function}(" in text]
        if not homes:
            raise SystemExit(f"No test is called {name!r}; bring the catalogue up to date.")
        found += homes
    return list(dict.fromkeys(found))


def attack(mutants: list[Mutant], copy: Copy) -> list[Outcome]:
    """Run these mutants one after the other in one copy."""
    outcomes = []
    for mutant in mutants:
        started = time.monotonic()
        where = copy.apply(mutant)
        passed, by = copy.run(mutant.tests)
        copy.restore(where)
        outcomes.append(Outcome(mutant, not passed, by, time.monotonic() - started))
        sign = "SURVIVED" if passed else f"killed by {by}"
        print(f"  {mutant.name:<44} {sign} ({outcomes[-1].seconds:.0f} s)", flush=True)
    return outcomes


def baseline(mutants: list[Mutant], folder: pathlib.Path, jobs: int) -> Copy:
    """All their tests pass without a mutant; the copy in which they did."""
    copy = Copy(folder)
    tests = list(dict.fromkeys(name for mutant in mutants for name in mutant.tests))
    shares = [tuple(tests[i::jobs]) for i in range(jobs) if tests[i::jobs]]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for passed, by in pool.map(copy.run, shares):
            if not passed:
                raise SystemExit(f"{by} fails without any mutant: mend it first.")
    return copy


def chosen(names: list[str], sample: int | None, seed: int) -> list[Mutant]:
    """The mutants to run."""
    known = {mutant.name: mutant for mutant in MUTANTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"No mutant is called {unknown[0]!r}; there are: {', '.join(known)}.")
    mutants = [known[name] for name in names] if names else list(MUTANTS)
    if sample is not None:
        mutants = random.Random(seed).sample(mutants, min(sample, len(mutants)))
    return mutants


def commit_seed() -> int:
    """Another sample with every commit, the same one for everybody who has it."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return int(done.stdout[:8], 16) if done.returncode == 0 else 0


def main() -> int:
    """Run mutants; the exit code says whether all were killed."""
    parser = argparse.ArgumentParser(description="Privacy mutants: each must be killed.")
    parser.add_argument("names", nargs="*", help="of mutants; all by default")
    parser.add_argument("--sample", type=int, help="run only so many, chosen by the seed")
    parser.add_argument("--seed", type=int, default=None, help="of the sample")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="the outcomes as JSON, at the end")
    options = parser.parse_args()
    seed = commit_seed() if options.seed is None else options.seed
    mutants = chosen(options.names, options.sample, seed)
    print(f"{len(mutants)} of {len(MUTANTS)} mutants (seed {seed}):", flush=True)
    with tempfile.TemporaryDirectory(prefix="discreet-mutants-") as name:
        folders = [pathlib.Path(name) / str(i) for i in range(options.jobs + 1)]
        shares = [mutants[i :: options.jobs] for i in range(options.jobs)]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            unchanged = baseline(mutants, folders[-1], options.jobs)
            parts = list(pool.map(attack, shares, [Copy(f, unchanged) for f in folders[:-1]]))
    outcomes = [outcome for part in parts for outcome in part]
    survivors = [outcome.mutant.name for outcome in outcomes if not outcome.killed]
    if options.json:
        rows = [
            {"mutant": o.mutant.name, "bug": o.mutant.bug, "killed": o.killed, "by": o.by}
            for o in outcomes
        ]
        print(json.dumps({"mutants": rows}, indent=1))
    print(f"{len(outcomes) - len(survivors)} killed, {len(survivors)} survived.")
    if survivors:
        print(f"Survivors, each a bug in the tests: {', '.join(survivors)}.")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
