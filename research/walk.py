"""How plain is the house: files, lines and functions, and the files that five walks go through.

    python -m research.walk                          # this clone
    python -m research.walk --src /path/to/old/src   # another checkout, e.g. a git worktree
    python -m research.walk --no-walks               # only what can be read off the source
    python -m research.walk --files flow-ucb         # the files of one walk

Rules of counting:

- Files are `*.py` below `src/discreet`. A code line is neither blank nor only a comment nor part of
  a docstring; docstrings are those of modules, classes and functions. The length of a function is
  from `def` to its end, without its docstring; nested functions and methods are functions, too.
- A module has one importer if one other module of the package imports it by name, in whatever
  place, `__init__` files included.
- Private uses in tests: `x._name` where x is neither `self` nor `cls`, or an import of a `_name` or
  from a module `_name`; not `__name__`.
- A walk goes through a file if a function of it runs (also a lambda or a comprehension), or if
  Python calls a compiled kernel of it; kernels that kernels call do not count. `__init__` files and
  commands count. All modules are imported before: what runs on import does not count.

Walks:

- `dp-ucbvi` learns under central privacy, from nothing;
- `flow-ucb` learns one batch under shuffle; the same was done once before, unseen, so that
  calibration, which is remembered, does not count;
- `fit` is `discreet fit --stationary` of a small table, with a policy as a file;
- `service` takes the second batch through shuffler, analyser and devices, which are processes; how
  they start does not count;
- `run` is `discreet run lower-bound --quick` with one job: small, with several trust models.

At 43ada0f the last four went through 48, 60, 85 and 106 files. Run it twice after a change: to
compile a kernel goes through one or two files more. That of `service` depends by one file on what
its processes happen to do. Under a minute on a free machine.
"""

import argparse
import ast
import contextlib
import csv
import importlib
import io
import json
import os
import pkgutil
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import discreet
from research import called, free_url, parser

CLONE = Path(__file__).parents[1]
MANY = 16  # files of a folder
SMALL = 60  # lines of a file
OPTIMIZED = 0x1  # of a code object: a function's, not a module's or a class body's
GO = "go"  # the file that says so
Row = tuple[str, object]


def main() -> int:
    """Print the table."""
    arguments = parser("research.walk", __doc__)
    arguments.add_argument(
        "--src", type=Path, default=CLONE / "src", help="the folder of `discreet`"
    )
    arguments.add_argument("--no-walks", action="store_true", help="read only, run nothing")
    arguments.add_argument("--files", choices=WALKS, help="print the files of one walk")
    arguments.add_argument("--inside", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    wanted = arguments.parse_args()
    if wanted.inside:
        return inside(*wanted.inside)
    source = wanted.src.resolve()
    if wanted.files:
        print(*walked(wanted.files, source), sep="\n")
        return 0
    rows = static(source)
    if not wanted.no_walks:
        rows += [(f"walk {name}: files", len(walked(name, source))) for name in WALKS]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        said = f"{value:,}" if isinstance(value, int) else value
        print(f"{name:<{width}}  {said:>8}")
    return 0


# ------------------------------------------------------------------------------------- the source


def static(source: Path) -> list[Row]:
    """What can be read off the files."""
    paths = sorted((source / "discreet").rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lengths = {path: len(text.splitlines()) for path, text in texts.items()}
    docs = {path: docstrings(tree) for path, tree in trees.items()}
    code = {path: code_lines(texts[path]) - covered(docs[path]) for path in paths}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    imports = sum(len(covered(all_imports(tree)) & code[path]) for path, tree in trees.items())
    functions = sorted(length(node) for node in nodes if is_function(node))
    small = [path for path in paths if lengths[path] < SMALL]
    crowds = {folder: n for folder, n in Counter(path.parent for path in paths).items() if n > MANY}
    total = sum(map(len, code.values()))
    return [
        ("source files", len(paths)),
        ("lines", sum(lengths.values())),
        ("code lines", total),
        ("docstring lines", sum(len(covered(each)) for each in docs.values())),
        (
            "one-line docstrings of functions",
            sum(one_line(node) for node in nodes if is_function(node)),
        ),
        ("classes", sum(isinstance(node, ast.ClassDef) for node in nodes)),
        ("functions", len(functions)),
        ("function lines, median", int(statistics.median(functions))),
        ("function lines, 90%", functions[int(0.9 * len(functions))]),
        ("function lines, longest", functions[-1]),
        ("imports in code lines", f"{imports / total:.1%}"),
        (f"files under {SMALL} lines", sum(path.name != "__init__.py" for path in small)),
        (f"files under {SMALL} lines, with __init__", len(small)),
        (f"folders with more than {MANY} files", len(crowds)),
        *((f"  {folder.relative_to(source)}", n) for folder, n in crowds.items()),
        ("modules with one importer", single(trees, source)),
        ("private uses in tests", private_uses(source.parent / "tests")),
    ]


def docstrings(tree: ast.AST) -> list[ast.stmt]:
    """Those of modules, classes and functions."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    having = [node for node in ast.walk(tree) if isinstance(node, owners)]
    return [node.body[0] for node in having if ast.get_docstring(node) is not None]


def one_line(node: Any) -> bool:
    """Whether a function has a docstring of one line."""
    doc = node.body[0]
    return ast.get_docstring(node) is not None and doc.lineno == doc.end_lineno


def all_imports(tree: ast.AST) -> list[ast.stmt]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def covered(statements: list[ast.stmt]) -> set[int]:
    """The lines of statements."""
    return {n for one in statements for n in range(one.lineno, (one.end_lineno or 0) + 1)}


def code_lines(text: str) -> set[int]:
    """Lines that are not blank and not only a comment."""
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
    nothing |= {tokenize.INDENT, tokenize.DEDENT}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kept = [token for token in tokens if token.type not in nothing]
    return {n for token in kept for n in range(token.start[0], token.end[0] + 1)}


def is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def length(node: Any) -> int:
    """Of a function, without its docstring."""
    doc = covered(node.body[:1]) if ast.get_docstring(node) is not None else set()
    return node.end_lineno - node.lineno + 1 - len(doc)


def single(trees: dict[Path, ast.Module], source: Path) -> int:
    """How many modules have one importer."""
    names = {path: module_name(path, source) for path in trees}
    known, importers = set(names.values()), Counter[str]()
    for path, tree in trees.items():
        taken = set[str]()
        for node in all_imports(tree):
            if isinstance(node, ast.Import):
                taken |= {alias.name for alias in node.names}
                continue
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                taken.add(full if full in known else str(node.module))
        importers.update(taken - {names[path]})
    return sum(importers[name] == 1 for name in known)


def module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def private_uses(tests: Path) -> int:
    """How often tests reach for what is private."""
    found = 0
    for path in tests.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                found += is_private(node.attr) and not own
            elif isinstance(node, ast.ImportFrom):
                inside_private = any(map(is_private, (node.module or "").split(".")))
                found += sum(inside_private or is_private(alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                found += sum(any(map(is_private, a.name.split("."))) for a in node.names)
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


# ------------------------------------------------------------------------------------- the walks


def walked(name: str, source: Path) -> list[str]:
    """The files that a walk goes through, relative to the package."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([str(source), str(CLONE)])
        environment = os.environ | {
            "PYTHONPATH": path,
            "OPENBLAS_NUM_THREADS": "1",
            "WALK_FOLDER": folder,
        }
        words = [sys.executable, "-W", "ignore", "-m", "research.walk", "--inside", name]
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"The walk {name} failed:\n{done.stdout}\n{done.stderr}")
        files = set[str]()
        for part in Path(folder).glob("*.walk"):
            files |= set(part.read_text(encoding="utf-8").splitlines())
    package = source / "discreet"
    return sorted(
        str(Path(f).relative_to(package)) for f in files if Path(f).is_relative_to(package)
    )


def inside(name: str, *words: str) -> int:
    """One walk in this process, or one role of it."""
    import_all()
    PREPARED.get(name, lambda: None)()
    with recorded():
        if name not in ("role", "service"):
            begin()
        if name == "role":
            command(*words)
        else:
            WALKS[name]()
    return 0


def import_all() -> None:
    """So that nothing is imported on the way."""
    package = importlib.import_module("discreet")
    for module in pkgutil.walk_packages(package.__path__, "discreet."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)


def begin() -> None:
    """From now on functions count, in all processes."""
    (Path(os.environ["WALK_FOLDER"]) / GO).touch()


@contextlib.contextmanager
def recorded() -> Iterator[None]:
    """Writes the files of all functions that run, those of other threads too."""
    files, seen = set[str](), set[CodeType]()
    path = Path(os.environ["WALK_FOLDER"]) / f"{os.getpid()}.walk"
    go = path.with_name(GO)

    def add(file: str) -> None:
        if file not in files:  # written at once: a server may end without a last word
            files.add(file)
            with path.open("a", encoding="utf-8") as lines:
                lines.write(file + "\n")

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code in seen or not go.exists():
            return
        if code.co_name == "_compile_for_args":  # the first call of a kernel by Python
            kernel = frame.f_locals.get("self")
            add(getattr(kernel, "py_func", look).__code__.co_filename)
            return
        seen.add(code)
        if code.co_flags & OPTIMIZED:
            add(code.co_filename)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def command(*words: str) -> str:
    """What `discreet` prints in this process."""
    code, text = called(*words)
    if code:
        raise SystemExit(f"{words} ended with {code}: {text}")
    return text


def walk_dp_ucbvi() -> None:
    """One stream learner."""
    mdp = discreet.make("RiverSwim", states=3, horizon=4)
    discreet.learn(mdp, learner="dp-ucbvi", trust=discreet.Central(1.0, 1e-6), episodes=200, seed=0)


def walk_flow_ucb() -> None:
    """Two users: one batch (five of them go through the same files)."""
    mdp = discreet.make("RiverSwim", states=3, horizon=4)
    discreet.learn(mdp, learner="flow-ucb", trust=discreet.Shuffle(1.0, 1e-6), episodes=2, seed=0)


def write_table() -> None:
    """Logged episodes of 500 people."""
    rng = random.Random(0)
    with Path("logged.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "step", "state", "action", "reward"])
        for user in range(500):
            for step in range(2):
                state, action = rng.randrange(2), rng.randrange(2)
                reward = int(rng.random() < 0.3 + 0.4 * action)
                rows.writerow([f"u{user}", step, state, action, reward])


def walk_fit() -> None:
    """The table, read and fitted."""
    names = ["--states", "2", "--actions", "2", "--steps", "2", "--stationary"]
    budget = ["--trust", "central", "--epsilon", "1", "--delta", "1e-6"]
    command("fit", "logged.csv", *names, *budget, "--output", "policy.json")


def set_up_service() -> None:
    """The files of all roles; not part of the batch."""
    url = free_url()
    small = ["--states", "2", "--actions", "2", "--steps", "2", "--start", "0", "--episodes", "40"]
    budget = ["--epsilon", "4", "--delta", "1e-4", "--rehearsal", "--url", url]
    command("service", "init", "all", *small, *budget)
    command("service", "tickets", "all", "--count", "40")
    Path("episode.json").write_text('{"states": [0, 0, 0], "actions": [0, 0], "rewards": [0, 1]}')
    device = Path("all/device/device.toml")
    device.write_text(device.read_text().replace("delay = 60.0", "delay = 0.0"))
    Path("url").write_text(url)


def walk_service() -> None:
    """Shuffler and analyser as processes, devices here, until two batches are counted."""
    tickets = iter(Path("all/enroller/tickets.txt").read_text().split())
    words = ["service", "device", "--config", "all/device/device.toml", "--rehearsal"]
    words += ["--episode", "episode.json", "--ticket"]
    with role("shuffler"), role("analyser"):
        ended, ticket = time.monotonic() + 120, next(tickets)
        while time.monotonic() < ended and (done := batches_done()) < 2:
            if done:
                begin()
            try:
                command(*words, ticket)
                ticket = next(tickets)
            except SystemExit:  # not there yet, or the batch is full
                time.sleep(0.5)
        if batches_done() < 2:
            raise SystemExit("two batches were not counted")


@contextlib.contextmanager
def role(name: str) -> Iterator[None]:
    """A process that walks, too, until it is told to end."""
    words = [sys.executable, "-m", "research.walk", "--inside", "role", "service", name]
    config = ["--config", f"all/{name}/{name}.toml", "--rehearsal"]
    with subprocess.Popen([*words, *config]) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)


def batches_done() -> int:
    """What the shuffler says, if it answers."""
    _, said = called("service", "status", "--url", Path("url").read_text(), "--json")
    return json.loads(said).get("totals", {}).get("batches_done", 0)


def walk_run() -> None:
    """A small shipped experiment."""
    command("run", "lower-bound", "--quick", "--jobs", "1", "--output", "found", "--json")


WALKS = {
    "dp-ucbvi": walk_dp_ucbvi,
    "flow-ucb": walk_flow_ucb,
    "fit": walk_fit,
    "service": walk_service,
    "run": walk_run,
}
PREPARED = {"flow-ucb": walk_flow_ucb, "fit": write_table, "service": set_up_service}


if __name__ == "__main__":
    sys.exit(main())
