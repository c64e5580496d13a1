"""What every command answers as JSON: did a change of the code lose a key or change a number?

    python -m research.commands --record     # writes commands.json beside this file
    python -m research.commands --compare    # prints what is missing, new or changed; exit code 1

Commands run in this process, in a temporary folder, with seeds. Of an answer the paths of its keys
are kept, list indices left out, each with all its values, or their number and a digest where that
is long; of a long list also one line per row: what it is called, and a digest of its numbers. What
was renamed shows as missing and new, with the same value. Files that commands write are kept
likewise, of a page its headings. Numbers are compared to ten digits, and to 1e-14.

To record takes two passes: what differs between them (secure noise, tickets, keys) is written as
"varies" and matches everything. Times are left out, and of `bench` all but the keys. One and a half
minutes per pass.

Mechanisms, schedules and sections are those that `discreet list` names. A chapter that can no
longer be read (a command or file is gone) says so and the others go on.
"""

import contextlib
import csv
import hashlib
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from research import asked_to_record, called, free_url

FILE = Path(__file__).with_suffix(".json")
CLONE = Path(__file__).parents[1]
LONG = 80  # characters of values that are kept as they are
ROWS = 6  # rows of a list from which on each has a line
VARIES = "varies"
TIMES = re.compile(r"(?:^|_)(?:seconds?|minutes|time|at|date|when|created|written_on|deadline)$")
CLOCK = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?")
PORT = re.compile(r"(127\.0\.0\.1|localhost):\d+")
TINY = ("--states", "2", "--actions", "2", "--horizon", "2", "--users", "1000")
SIZE = ("--states", "3", "--actions", "2", "--horizon", "4", "--users", "5000")
STUDY = """
episodes = 400
states = ["ill", "better", "well"]
actions = ["wait", "treat"]
steps = [1, 2, 3, 4]
start_states = ["ill"]

[settings]
mixing = false

[table]
columns = {user = "patient", step = "visit"}
reward_range = [0, 10]
"""
Outline = dict[str, Any]


def main() -> int:
    """Record, or compare."""
    record = asked_to_record("research.commands", __doc__)
    found = one_pass()
    if not record:
        return compare(json.loads(FILE.read_text(encoding="utf-8")), found)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        again = fresh.submit(one_pass).result()
    for command, outline in found.items():
        for path, value in outline.items():
            if again[command].get(path) != value:
                outline[path] = VARIES
    text = json.dumps(found, ensure_ascii=False, indent=0, separators=(",", ":"))
    FILE.write_text(text + "\n", encoding="utf-8")
    unsure = sum(value == VARIES for outline in found.values() for value in outline.values())
    print(f"{len(found)} commands, {sum(map(len, found.values()))} lines, {unsure} of them vary")
    return 0


# ------------------------------------------------------------------------------------- commands


def one_pass() -> dict[str, Outline]:
    """The outline of every command's answer."""
    os.environ |= {"COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1"}
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        book = Book(Path(folder))
        for chapter in CHAPTERS:
            try:
                chapter(book)
            except Exception as error:  # the others go on
                book.kept[f"chapter {chapter.__name__} stopped"] = {"error": repr(error)}
    return book.kept


class Book:
    """Runs commands and keeps outlines of what they answer."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, dict[str, Outline]()

    def run(self, *words: object, label: str = "", values: bool = True) -> Any:
        """Run one with `--json`, keep its answer, and return it."""
        said = [str(word) for word in words]
        code, text = called(*said, "--json")
        try:
            answer = json.loads(text)
        except json.JSONDecodeError:
            answer = {"no JSON": text[-200:]}
        name = label or " ".join(said).replace(" ".join(SIZE), "(size)")
        self.kept[name] = outline({"exit code": code, **answer} if code else answer, values)
        return answer

    def file(self, command: str, path: str) -> None:
        """Keep what a command wrote: JSON, or the headings of a page."""
        text = Path(path).read_text(encoding="utf-8") if Path(path).exists() else '"no file"'
        if path.endswith(".html"):
            heads = re.findall(r"<h[1-3][^>]*>(.*?)</h[1-3]>", text, re.DOTALL)
            self.kept[f"{command}: page"] = {"headings": [clean(head) for head in heads]}
        else:
            self.kept[f"{command}: {path}"] = outline(json.loads(text))


def helps(book: Book) -> None:
    """The options of every command."""
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        words = waiting.pop(0)
        text = called(*words, "-h")[1]
        names = sorted(set(re.findall(r"(?<!\w)--[a-z][a-z-]*", text)))
        book.kept[" ".join((*words, "-h"))] = dict.fromkeys(names, 1)
        below = re.findall(r"^  ([a-z]+)  ", text.partition("\nCommands:")[2], re.MULTILINE)
        waiting += [(*words, name) for name in below]


def lists(book: Book) -> None:
    """All that is listed."""
    sections = list(json.loads(called("list", "--json")[1]))
    book.kept["list"] = dict.fromkeys(sections, 1)
    for section in sections:
        book.run("list", section)


def calibrations(book: Book) -> None:
    """Every trust model, mechanism and schedule."""
    book.run("calibrate")
    for trust in ("central", "local", "shuffle"):  # the last has no pure epsilon
        book.run("calibrate", "--trust", trust, *SIZE, "--delta", 0, "--epsilon", 4)
    for row in json.loads(called("list", "mechanisms", "--json")[1])["mechanisms"]:
        mechanism = ("--trust", row["trust"], "--mechanism", row["name"])
        for schedule in row["schedules"]:
            words = (*mechanism, "--schedule", schedule, *SIZE)
            book.run("calibrate", *words)
            book.run("calibrate", *words, "--calibration", "paper", "--epsilon", 4)
            if schedule != "batch":
                book.run("calibrate", *words, "--stationary")
    book.run("calibrate", "--trust", "shuffle", "--honest", 0.5, "--epsilon", 0.3)
    book.run("calibrate", "--trust", "central", "--statistics", "transitions,rewards")
    book.run("calibrate", "--trust", "central", *SIZE, "--verify")
    book.run("calibrate", "--trust", "shuffle", *SIZE, "--learner", "flow-ucb")
    book.run("calibrate", "--trust", "nobody")
    book.run("calibrate", "--epsilon", -1)


def certificates(book: Book) -> None:
    """Proofs of every mechanism, the first one checked again."""
    for row in json.loads(called("list", "mechanisms", "--json")[1])["mechanisms"]:
        mechanism = ("--trust", row["trust"], "--mechanism", row["name"])
        streamed = () if "batch" in row["schedules"] else ("--episodes", 1000)
        book.run("certify", *mechanism, *streamed, *TINY)
    for trust in ("central", "local", "shuffle"):
        command = ("certify", "--trust", trust, *SIZE, "--output", f"{trust}.json")
        book.run(*command)
        book.file("certify", f"{trust}.json")
        book.run("certify", "--verify", f"{trust}.json")
    book.run("certify", "--verify", "central.json", "--trust", "central", *SIZE)
    book.run("certify", "--verify", "central.json", "--trust", "central", "--epsilon", 0.5, *SIZE)


def checks(book: Book) -> None:
    """Conformance."""
    book.run("check", "mdp", "--all")
    book.run("check", "mdp", "RiverSwim", "--states", 5, "--horizon", 7, "--relabel", 3)
    book.run("check", "mdp", "RandomMDP", "--set", "concentration=0.5", "--actions", 3)
    for name in ("ucbvi", "sdp-pe", "pucb"):
        book.run("check", "learner", name)
    for name in ("central/gaussian", "central/tree-laplace", "local/one-step", "local/split"):
        book.run("check", "mechanism", name)
    book.run("check", "learner", "nobody")


def audits(book: Book) -> None:
    """All of them, the quick form."""
    book.run("audit", "--quick")
    book.run("audit", "--quick", "central/gaussian", "--epsilon", 0.5, "--delta", 1e-5)


def experiments(book: Book) -> None:
    """A shipped one, one learner, one paper; tables, pictures and pages."""
    where = ("--jobs", 1, "--output")
    book.run("run", "dp-ucbvi", "--dry-run")
    book.run("run", "dp-ucbvi", "--quick", *where, "shipped")
    book.run("plot", "shipped")
    book.run("report", "shipped")
    book.file("report shipped", "shipped/report.html")
    one = ("--learner", "flow-ucb", "--trust", "shuffle", "--epsilon", 1, "--delta", 1e-6)
    book.run("run", *one, "--episodes", "2e4", "--runs", 2, "--seed", 5, *where, "one")
    paper = ("--paper", "003-jdp", "--episodes", 500, "--runs", 2)
    book.run("run", *paper, *where, "paper")


def fits(book: Book) -> None:
    """Logged episodes of a small clinic."""
    moves = np.random.default_rng(0).dirichlet(np.ones(2), (2, 2))
    rewards, halves = np.array([[0.1, 0.9], [0.2, 0.8]]), [0.5, 0.5]
    world = discreet.TabularMDP(transitions=moves, rewards=rewards, horizon=3, initial=halves)
    policy = discreet.mdp.uniform_policy(world.shape)
    people = discreet.mdp.sample_trajectories(world, policy, 2000, np.random.default_rng(1))
    rows = [
        [f"u{i}", h, people.states[i, h], ("wait", "treat")[people.actions[i, h]], reward]
        for i in range(len(people))
        for h, reward in enumerate(people.rewards[i])
    ]
    write_csv("logged.csv", [["user", "step", "state", "action", "reward"], *rows])
    names = ("--states", 2, "--actions", "wait,treat", "--steps", 3)
    private = ("--trust", "central", "--epsilon", 1, "--delta", 1e-6)
    for trust in (("--trust", "none"), private, (*private, "--mechanism", "laplace")):
        for how in ((), ("--stationary",), ("--start", "0,1", "--width", 3)):
            book.run("fit", "logged.csv", *names, *trust, *how, "--rehearse", "--seed", 3)
    words = ("--rehearse", "--seed", 4, "--output", "fitted.json")
    book.run("fit", "logged.csv", *names, *private, *words)
    book.file("fit", "fitted.json")
    for trust in ("shuffle", "local"):  # refused
        book.run("fit", "logged.csv", *names, "--trust", trust, "--epsilon", 1, "--delta", 1e-6)
    secure = ("fit", "logged.csv", *names, *private, "--budget", "1.5,1e-5")
    facts = ("--states", 2, "--actions", "wait,treat", "--steps", 3, "--reward-range", "0,1")
    book.run("design", "logged.csv", *facts, "--output", "logged.toml")
    book.run("check", "table", "logged.csv", "--design", "logged.toml")
    book.run(*secure, label="fit, secure noise")
    book.run(*secure, label="fit, the budget is used up")


def studies(book: Book) -> None:
    """A rehearsal under every trust model from start to close, and what is refused."""
    Path("design.toml").write_text(STUDY, encoding="utf-8")
    for trust in ("central", "shuffle", "local"):
        file, encodes = f"{trust}.db", trust != "central"
        budget = ("--trust", trust, "--epsilon", 4, "--delta", 1e-4)
        book.run(
            "study", "start", file, "--design", "design.toml", *budget, "--rehearse", "--seed", 1
        )
        for week in (1, 2, 3):
            kept = ("--encoder", f"{trust}-encoder.json") if encodes else ()
            ask = ("study", "ask", file, "--policy", f"{trust}-asked.json", *kept)
            book.run(*ask, "--force", label=f"{' '.join(ask)} (week {week})")
            book.file(f"study ask, week {week}", f"{trust}-asked.json")
            told = reports(file, week) if encodes else [table(file, week)]
            book.run("study", "tell", file, *told, label=f"study tell {file} (week {week})")
        book.run("study", "tell", file, *told, label=f"study tell {file} (week 3 again)")
        book.run("study", "show", file)
        book.run("study", "verify", file)
        book.run("study", "policy", file, "--output", f"{trust}-policy.json")
        book.file("study policy", f"{trust}-policy.json")
        book.run("study", "bundle", file, "--output", f"{trust}.zip")
        book.run("study", "extend", file, "--episodes", 10**6)
        book.run("study", "reissue", file, "--users", 3)
        book.run("study", "reissue", file, "--returning", "seen")
        book.run("study", "close", file)
        book.run("study", "ask", file)
        book.run("study", "show", file, "--head", "0" * 64)
    continual = ("--learner", "dp-ucbvi", "--trust", "central", "--epsilon", 4, "--delta", 0)
    names = ("--states", 3, "--actions", 2, "--steps", 4, "--start", "0", "--episodes", 100)
    book.run("plan", "design.toml", "--runs", 10, "--seed", 1)
    book.run(
        "study", "start", "stream.db", *continual, *names, "--rehearse", "--seed", 2
    )  # refused
    secure = ("--trust", "shuffle", "--epsilon", 4, "--delta", 1e-4)
    book.run("study", "start", "secure.db", *secure, *names)
    book.run("study", "verify", "secure.db")
    book.run("certify", "--verify", "shuffle.json", "--for", "secure.db")


def table(file: str, seed: int) -> str:
    """What a clinic exports of the pending batch."""
    study = discreet.open_study(file)
    week, names = simulated(study, seed), study.names
    rows = [
        [
            f"patient {study.users + i}",
            step,
            names.states[week.states[i, h]],
            names.actions[week.actions[i, h]],
            10 * week.rewards[i, h],
        ]
        for i in range(len(week))
        for h, step in enumerate(names.steps)
    ]
    path = f"{file}-{seed}.csv"
    write_csv(path, [["patient", "visit", "state", "action", "reward"], *rows])
    return path


def reports(file: str, seed: int) -> list[str]:
    """A folder of what devices of the pending batch send, with its options."""
    study = discreet.open_study(file)
    week = simulated(study, seed)
    draws = discreet.device.ByteDraws(random.Random(seed).randbytes)
    phone = discreet.device.load(study.encoder().to_dict())
    folder = Path(f"{file}-{seed}")
    folder.mkdir()
    for i in range(len(week)):
        fields = ("states", "actions", "rewards")
        episode = {name: getattr(week, name)[i].tolist() for name in fields}
        (folder / f"{i:05}").write_bytes(phone.to_bytes(phone.encode(episode, draws)))
    users = Path(f"{file}-{seed}.txt")
    users.write_text("".join(f"user {study.users + i}\n" for i in range(len(week))))
    return [str(folder), "--users", str(users), "--token", study.token]


def simulated(study: Any, seed: int) -> Any:
    """Episodes of those who are asked."""
    world = discreet.make("RiverSwim", states=3, horizon=4)
    rng = np.random.default_rng(seed)
    return discreet.mdp.sample_trajectories(world, study.ask(), study.batch_size, rng)


def service(book: Book) -> None:
    """The files of all roles, a shuffler that answers, and a whole demonstration."""
    url = free_url()
    small = ("--states", 2, "--actions", 2, "--steps", 2, "--start", "0", "--episodes", 40)
    budget = ("--epsilon", 4, "--delta", 1e-4, "--rehearsal", "--url", url)
    book.run("service", "init", "roles", *small, *budget, label="service init")
    files = sorted(str(path.relative_to("roles")) for path in Path("roles").rglob("*"))
    book.kept["service init: files"] = dict.fromkeys(files, 1)
    charter = next(Path("roles").rglob("charter.json"))
    book.file("service init", str(charter))
    book.run("service", "tickets", "roles", "--count", 5)
    book.run("service", "verify", str(charter))
    with shuffler(url):
        book.run("service", "status", "--url", url, label="service status")
    book.run("service", "status", "--url", url, label="service status (nobody answers)")
    demo = ("service", "demo", "--users", 100, "--runs", 2, "--output", "demo")
    book.run(*demo)
    where = next(Path("demo").rglob("charter.json"))
    found = next(Path("demo").rglob("analyser"))
    words = ("--manifests", found / "manifests", "--study", found / "study.db")
    book.run("service", "verify", where, *words, label="service verify (demo)")


@contextlib.contextmanager
def shuffler(url: str) -> Iterator[None]:
    """The shuffler as a process, once it answers."""
    config = next(Path("roles").rglob("shuffler.toml"))
    words = [sys.executable, "-m", "discreet", "service", "shuffler", "--rehearsal"]
    with subprocess.Popen(
        [*words, "--config", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            for _ in range(300):
                if called("service", "status", "--url", url, "--json")[0] == 0:
                    break
                time.sleep(0.2)
            yield
        finally:
            process.terminate()


def benchmarks(book: Book) -> None:
    """One of them, for the keys of its rows."""
    with contextlib.chdir(CLONE):
        book.run("bench", "flow_scale", "--quick", values=False)


CHAPTERS = (
    *(helps, lists, calibrations, certificates, checks, audits),
    *(experiments, fits, studies, service, benchmarks),
)


def write_csv(path: str, rows: list[list[Any]]) -> None:
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


# ------------------------------------------------------------------------------------- outlines


def outline(answer: Any, values: bool = True) -> Outline:
    """Paths with their values, and a line per row of long lists."""
    columns: dict[str, list[Any]] = {}
    kept: Outline = {}
    for path, leaf in leaves(answer, ""):
        columns.setdefault(path, []).append(leaf)
    for path, column in columns.items():
        kept[path] = short(column) if values else sorted({type(one).__name__ for one in column})
    if values:
        for path, rows in long_lists(answer, ""):
            numbers = [
                sorted(str(x) for _, x in leaves(row, "") if isinstance(x, int | float))
                for row in rows
            ]
            if min(map(len, numbers)) < 2:  # they tell no more than their columns
                continue
            for row, own in zip(rows, numbers, strict=True):
                words = [clean(value) for value in row.values() if isinstance(value, str)]
                name = f"{path}[{', '.join(word for word in words if 0 < len(word) <= 60)}]"
                while name in kept:
                    name += "'"
                kept[name] = digest(own)
    return kept


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every leaf with its path, list indices left out."""
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from leaves(part, f"{path}.{clean(key)}" if path else clean(key))
    elif isinstance(value, list) and value:
        for part in value:
            yield from leaves(part, f"{path}[]")
    elif any(TIMES.search(word) for word in path.split(".")):
        yield path, "time"
    elif isinstance(value, float):
        yield path, round(float(f"{value:.10g}"), 14) + 0.0
    else:
        yield path, clean(value) if isinstance(value, str) else value


def long_lists(value: Any, path: str) -> Iterator[tuple[str, list[Any]]]:
    """Every list of many objects with its path."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from long_lists(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        if len(value) >= ROWS and all(isinstance(row, Mapping) for row in value):
            yield path, value
        for part in value:
            yield from long_lists(part, f"{path}[]")


def short(column: list[Any]) -> Any:
    """One value, or all; a digest with the beginning if that is long."""
    kept = column[0] if len(column) == 1 else column
    text = json.dumps(kept, ensure_ascii=False)
    if len(text) <= LONG:
        return kept
    number = "" if len(column) == 1 else f"{len(column)} values "
    return f"{text[: LONG // 2]}... {number}{digest(kept)}"


def clean(text: str) -> str:
    """Without what belongs to this machine and moment."""
    folders = sorted({str(Path.cwd()), tempfile.gettempdir(), str(CLONE)}, key=len, reverse=True)
    for folder in folders:
        text = re.sub(re.escape(folder) + r"(/discreet-\w+|/tmp\w+)*", "FOLDER", text)
    return PORT.sub(r"\1:PORT", CLOCK.sub("DATE", text))


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:10]


# ------------------------------------------------------------------------------------- compare


def compare(known: dict[str, Outline], found: dict[str, Outline]) -> int:
    """Prints what differs, each difference once with the commands that have it; 1 if any does."""
    said: dict[str, list[str]] = {}
    for command in dict.fromkeys([*known, *found]):
        if command not in known or command not in found:
            said[f"{'new' if command in found else 'missing'} command: {command}"] = []
            continue
        old, new = known[command], found[command]
        for path in dict.fromkeys([*old, *new]):
            one, other = (json.dumps(x.get(path), ensure_ascii=False) for x in (old, new))
            if path not in new:
                line = f"missing  {path} = {one}"
            elif path not in old:
                line = f"new      {path} = {other}"
            elif old[path] not in (VARIES, new[path]):
                line = f"changed  {path}: {one} -> {other}"
            else:
                continue
            said.setdefault(line, []).append(command)
    for line, commands in said.items():
        more = f" and {len(commands) - 1} more" if len(commands) > 1 else ""
        print(line, f"\n    in: {commands[0]}{more}" if commands else "")
    differ = {command for commands in said.values() for command in commands}
    print(f"{len(known.keys() & found.keys() - differ)} of {len(known)} commands answer the same")
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main())
