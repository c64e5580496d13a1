"""Result folders: files that outlive the code. No pickles; a schema version; plots read only these.

``spec.toml`` (resolved experiment), ``results.parquet`` (tidy, one row per recorded episode),
``guarantees.json``, ``timings.json``, ``policies.json``, ``environment.json`` (versions), and
``parts/`` (one small file per finished run, which makes a run resumable).

What a file says about how it came about (version, source, mechanism, noise, settings) was said by
the run that made it. Reading, plotting and reporting change none of it. A folder only ever grows:
it is refused to an experiment that would leave out a run that it holds, be it of other settings, of
another version of discreet, or of code (learner, environment, mechanism) edited since.
"""

import json
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

import numpy as np

import discreet
from discreet._files import write_atomically
from discreet._types import FloatArray, IntArray, Plain
from discreet.errors import DiscreetError, InvalidInputError, MissingExtraError
from discreet.lab.spec import Experiment, parse_experiment
from discreet.lab.tasks import SCHEMA_VERSION, GuaranteeDict, Origin, Outcome, Record, Task

if TYPE_CHECKING:
    from types import ModuleType

    import pandas
    import pyarrow

_DEPENDENCIES = ("numpy", "scipy", "numba", "gymnasium", "pyarrow", "matplotlib", "jinja2")
_Value = TypeVar("_Value")


class Facts(TypedDict):
    """What tells one cell from another; ``requested`` is the mechanism that was asked for."""

    environment: str
    learner: str
    label: str
    constants: str
    trust: str
    mechanism: str
    requested: str
    calibration: str
    epsilon: float
    delta: float
    episodes: int


class Entry(Facts):
    """One cell in ``guarantees.json``, as its first run stated it."""

    cell: str
    version: str
    source: Origin
    settings: dict[str, Plain]
    guarantee: GuaranteeDict
    noise: dict[str, float]
    signal: list[float]
    notes: list[str]


class FinishedRun(Record):
    """One finished run in ``parts/``."""

    schema: int
    seconds: float
    compile_seconds: float


def _arrow() -> "ModuleType":
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "lab") from None
    arrow: ModuleType = pyarrow
    return arrow


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; a full disk or a read-only folder is one clear sentence."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except OSError as error:
        raise DiscreetError(
            f"Cannot write {str(path)!r}: {error.strerror or error}. Finished runs are kept; make "
            f"room or choose another folder with --output, and run the same command again."
        ) from None


def _write_json(path: Path, value: object) -> None:
    write_file(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())


_WRITTEN = (
    *("environment.json", "spec.toml", "results.parquet", "guarantees.json", "timings.json"),
    *("policies.json", "report.html", "table.csv", "table.tex", "figures", "parts"),
)
"""What runs and their reports write into their folder."""


class ResultFolder:
    """The folder of one experiment while it runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parts = path / "parts"

    def begin(self, experiment: Experiment, tasks: Sequence[Task]) -> None:
        """Write the resolved experiment and the versions; proves that the folder is writable.

        Raises:
            InvalidInputError: the folder holds results that this experiment would leave out.
        """
        reason = self.refusal(tasks)
        if reason:
            raise InvalidInputError(
                f"{str(self.path)!r} holds {reason}, which would be lost. Choose another folder "
                f"with --output, or remove this one."
            )
        _write_json(self.path / "environment.json", _stamped(self._stamp()))
        write_file(self.path / "spec.toml", experiment.to_toml().encode())

    def refusal(self, tasks: Sequence[Task]) -> str:
        """Why the folder is not for these tasks: what it holds besides. Empty if it is."""
        mine = {task.name: task for task in tasks}
        parts = {path.stem: _part(path) for path in sorted(self.parts.glob("*.json"))}
        others = [part for name, part in parts.items() if name not in mine and part is not None]
        versions = {str(part.get("version")) for part in parts.values() if part is not None}
        stamp = self._stamp()
        if stamp is None and not versions:
            there = [name for name in _WRITTEN if os.path.lexists(self.path / name)]
            return f"{there[0]!r}, which no run of discreet wrote" if there else ""
        if stamp is not None:
            versions.add(str(stamp["packages"]["discreet"]))
            if stamp.get("schema_version") != SCHEMA_VERSION:
                versions.add("another schema")
        if wrong := sorted(versions - {discreet.__version__}):
            return (
                f"results of discreet {wrong[0]}, and this is discreet {discreet.__version__} "
                f"(results of two versions are never mixed)"
            )
        if not others:
            return ""
        origins = [task.cell.origin for task in tasks]
        if others[0].get("source") not in origins:
            return f"{len(others)} runs of a learner or environment or mechanism edited since"
        return f"{len(others)} runs of other settings"

    def _stamp(self) -> "Stamp | None":
        return cast("Stamp | None", _json_or_none(self.path / "environment.json", "packages"))

    def finished(self, task: Task) -> FinishedRun | None:
        """The record of a finished task, or None. A damaged part counts as not finished."""
        part = _part(self.parts / f"{task.name}.json")
        return part if part is not None and part["schema"] == SCHEMA_VERSION else None

    def keep(self, outcome: Outcome) -> None:
        """Store the record of one finished task."""
        record = {
            "schema": SCHEMA_VERSION,
            "seconds": outcome.seconds,
            "compile_seconds": outcome.compile_seconds,
            **(outcome.record or {}),
        }
        write_file(
            self.parts / f"{outcome.task.name}.json", json.dumps(record, sort_keys=True).encode()
        )

    def complete(self, experiment: Experiment, tasks: Sequence[Task]) -> "Results":
        """Merge the finished parts, in the experiment's order, into the files that people read."""
        pairs = [(task, self.finished(task)) for task in tasks]
        done = [(task, part) for task, part in pairs if part is not None]
        arrow = _arrow()
        sink = arrow.BufferOutputStream()
        arrow.parquet.write_table(_table(experiment, done), sink, compression="zstd")
        write_file(self.path / "results.parquet", sink.getvalue().to_pybytes())
        entries: dict[str, Entry] = {}
        for task, part in done:
            if task.cell.key not in entries:
                entries[task.cell.key] = {
                    **facts_of(task, part),
                    "cell": task.cell.key,
                    "version": part["version"],
                    "source": part["source"],
                    "settings": part["settings"],
                    "guarantee": part["guarantee"],
                    "noise": part["noise"],
                    "signal": part["signal"],
                    "notes": part["notes"],
                }
        _write_json(self.path / "guarantees.json", list(entries.values()))
        timings = {
            task.name: {"seconds": part["seconds"], "compile_seconds": part["compile_seconds"]}
            for task, part in done
        }
        _write_json(self.path / "timings.json", timings)
        policies = {task.name: part["policy"] for task, part in done if task.run == 0}
        _write_json(self.path / "policies.json", policies)
        return load_results(self.path)


def _part(path: Path) -> FinishedRun | None:
    return cast("FinishedRun | None", _json_or_none(path, "schema"))


def _json_or_none(path: Path, key: str) -> object | None:
    """A JSON table that has ``key``; None if the file is missing, damaged or something else."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and key in found else None


def facts_of(task: Task, record: Record) -> Facts:
    """The identifying columns of a task's cell."""
    cell = task.cell
    return {
        "environment": cell.environment.title,
        "learner": cell.learner.name,
        "label": cell.learner.title,
        "constants": str(record["settings"].get("constants", "")),
        "trust": cell.trust_name,
        "mechanism": record["mechanism"],
        "requested": "none" if cell.trust.notion == "none" else cell.trust.mechanism,
        "calibration": cell.trust.calibration,
        "epsilon": float(getattr(cell.trust, "epsilon", np.inf)),
        "delta": float(getattr(cell.trust, "delta", 0.0)),
        "episodes": cell.episodes,
    }


_COLUMNS: dict[str, type] = {
    "experiment": str,
    "version": str,
    "cell": str,
    **Facts.__annotations__,
    "run": int,
    "episode": int,
    "regret": float,
    "uniform_regret": float,
    "return": float,
    "return_error": float,
    "uniform_return": float,
}
"""The columns of ``results.parquet``."""
_CURVES = ("episode", "regret", "uniform_regret", "return", "return_error", "uniform_return")


def _table(experiment: Experiment, done: Sequence[tuple[Task, FinishedRun]]) -> "pyarrow.Table":
    arrow = _arrow()
    columns: dict[str, list[object]] = {name: [] for name in _COLUMNS}
    for task, record in done:
        episodes = record["episodes"]
        gap = record["uniform_regret_per_episode"]
        same = {
            "experiment": experiment.name,
            "version": record["version"],
            "cell": task.cell.key,
            **facts_of(task, record),
            "run": task.run,
        }
        for name, value in same.items():
            columns[name] += [value] * len(episodes)
        columns["episode"] += episodes
        missing = [math.nan] * len(episodes)
        returns = record["returns"]
        columns["regret"] += missing if returns else record["regret"]
        columns["uniform_regret"] += missing if returns else [gap * k for k in episodes]
        columns["return"] += returns["values"] if returns else missing
        columns["return_error"] += returns["errors"] if returns else missing
        columns["uniform_return"] += [gap if returns else math.nan] * len(episodes)
    kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    schema = arrow.schema(
        [(name, kinds[kind]) for name, kind in _COLUMNS.items()],
        metadata={"schema_version": str(SCHEMA_VERSION)},
    )
    return arrow.table(columns, schema=schema)


class Stamp(TypedDict, total=False):
    """``environment.json``: what the first run of a folder was made with.

    ``resumed_with`` lists the dependencies of later runs where they were others.
    """

    schema_version: int
    python: str
    system: str
    packages: dict[str, str]
    resumed_with: list[dict[str, str]]


def _stamped(stamp: Stamp | None) -> Stamp:
    """The stamp of a folder that goes on: as it was, and what has changed since."""
    packages = {"discreet": discreet.__version__}
    for name in _DEPENDENCIES:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = "not installed"
    if stamp is None:
        return {
            "schema_version": SCHEMA_VERSION,
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "packages": packages,
        }
    later = {"python": platform.python_version(), **packages}
    known = [{"python": stamp.get("python", ""), **stamp["packages"]}]
    known += stamp.get("resumed_with", [])
    if later in known:
        return stamp
    return {**stamp, "resumed_with": [*stamp.get("resumed_with", []), later]}


@dataclass(frozen=True, eq=False)
class Series:
    """All runs of one cell; see also `Record`.

    Attributes:
        facts: what its first run stated.
        episodes: recorded episodes, ``[points]``.
        regret: cumulative expected regret, ``[runs, points]``.
        uniform: the uniform policy's cumulative regret (mean over runs), ``[points]``.
        returns: without a model, in place of regret: mean returns so far, ``[runs, points]``; then
            ``uniform`` is random play's return.
        errors: their standard errors.
        seconds: median time per run, without compilation.
        compile_seconds: of all runs together, in which kernels were compiled or read from disk.
    """

    facts: Entry
    episodes: IntArray
    regret: FloatArray
    uniform: FloatArray
    seconds: float
    compile_seconds: float = 0.0
    returns: FloatArray | None = None
    errors: FloatArray | None = None

    @property
    def final(self) -> FloatArray:
        """Regret after all episodes, per run; without a model, the return of an episode."""
        return self.regret[:, -1] if self.returns is None else self.returns[:, -1]

    @property
    def count_noise(self) -> float:
        """Noise on one counter of moves or visits (not on rewards or losses); 0 if unknown."""
        return max(self.facts["noise"].get(name, 0.0) for name in ("transitions", "visits"))


@dataclass(frozen=True, eq=False)
class Results:
    """A finished experiment, read back from its folder."""

    path: Path
    experiment: Experiment
    table: "pyarrow.Table"
    guarantees: Sequence[Entry]
    timings: Mapping[str, Mapping[str, float]]
    policies: Mapping[str, list[list[int]] | None]

    @property
    def version(self) -> str:
        """The discreet that made these results."""
        return ", ".join(sorted({entry["version"] for entry in self.guarantees}))

    def to_pandas(self) -> "pandas.DataFrame":
        """The tidy table as a pandas data frame (pandas must be installed)."""
        return self.table.to_pandas()

    def series(self) -> list[Series]:
        """The runs of every cell, in the experiment's order."""
        wanted = ("cell", "run", *_CURVES)
        columns = {name: np.asarray(self.table[name]) for name in wanted}
        found = []
        for entry in self.guarantees:
            rows = columns["cell"] == entry["cell"]
            runs = np.unique(columns["run"][rows])
            curves = {name: columns[name][rows].reshape(len(runs), -1) for name in _CURVES}
            played = bool(np.isfinite(curves["return"]).all())
            times = [self.timings[f"{entry['cell']}-{run:04d}"] for run in runs]
            one = Series(
                facts=entry,
                episodes=curves["episode"][0],
                regret=curves["regret"],
                uniform=curves["uniform_return" if played else "uniform_regret"].mean(axis=0),
                seconds=float(np.median([time["seconds"] for time in times])),
                compile_seconds=float(sum(time["compile_seconds"] for time in times)),
                returns=curves["return"] if played else None,
                errors=curves["return_error"] if played else None,
            )
            found.append(one)
        return found


def load_results(path: str | Path) -> Results:
    """Read a result folder.

    Raises:
        InvalidInputError: the folder has no finished results, or a schema that cannot be read.
    """
    folder = Path(path)
    if not (folder / "results.parquet").is_file():
        raise InvalidInputError(
            f"Expected a result folder, got {str(folder)!r}: it has no results.parquet. Make one "
            f"with `discreet run NAME --output {folder}`."
        )
    table = _read(folder / "results.parquet", _arrow().parquet.read_table)
    found = (table.schema.metadata or {}).get(b"schema_version", b"none").decode()
    if found != str(SCHEMA_VERSION):
        raise InvalidInputError(
            f"{str(folder)!r} has results of schema version {found}; this version of "
            f"discreet reads {SCHEMA_VERSION}. Run the experiment again, or install the "
            f"version that wrote it (see environment.json)."
        )
    spec = _read(folder / "spec.toml", lambda path: path.read_text("utf-8"))
    entries, timings, policies = (
        _read(folder / f"{name}.json", lambda path: json.loads(path.read_bytes()))
        for name in ("guarantees", "timings", "policies")
    )
    experiment = parse_experiment(spec, str(folder / "spec.toml"))
    return Results(folder, experiment, table, entries, timings, policies)


def _read(path: Path, read: Callable[[Path], _Value]) -> _Value:
    try:
        return read(path)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InvalidInputError(
            f"Cannot read {str(path)!r}: {reason}. Run the experiment again into that folder; "
            f"finished runs are kept."
        ) from None
