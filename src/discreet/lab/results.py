"""Result folders: files that outlive the code. No pickles; a schema version; plots read only these.

``spec.toml`` (resolved experiment), ``results.parquet`` (tidy, one row per recorded episode),
``guarantees.json``, ``timings.json``, ``policies.json``, ``environment.json`` (versions), and
``parts/`` (one small file per finished run, which makes a run resumable).
"""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from discreet._files import write_atomically
from discreet._types import FloatArray, IntArray
from discreet.errors import DiscreetError, InvalidInputError, MissingExtraError
from discreet.lab.spec import Experiment, parse_experiment
from discreet.lab.tasks import SCHEMA_VERSION, Outcome, Task

_VERSIONED = ("discreet", "numpy", "scipy", "numba", "gymnasium", "pyarrow", "matplotlib")
CELL_COLUMNS = (
    "environment",
    "learner",
    "label",
    "constants",
    "trust",
    "mechanism",
    "calibration",
    "epsilon",
    "delta",
    "episodes",
)


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "lab") from None
    return pyarrow


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


def _write_json(path: Path, value: Any) -> None:
    write_file(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())


class ResultFolder:
    """The folder of one experiment while it runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parts = path / "parts"

    def begin(self, experiment: Experiment) -> None:
        """Write the resolved experiment and the versions; proves that the folder is writable."""
        write_file(self.path / "spec.toml", experiment.to_toml().encode())
        _write_json(self.path / "environment.json", _versions())

    def finished(self, task: Task) -> Mapping[str, Any] | None:
        """The record of a finished task, or None. A damaged part counts as not finished."""
        path = self.parts / f"{task.name}.json"
        try:
            record: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return record if record.get("schema") == SCHEMA_VERSION else None

    def keep(self, outcome: Outcome) -> None:
        """Store the record of one finished task."""
        record = {"schema": SCHEMA_VERSION, "seconds": outcome.seconds, **(outcome.record or {})}
        write_file(
            self.parts / f"{outcome.task.name}.json", json.dumps(record, sort_keys=True).encode()
        )

    def complete(self, experiment: Experiment, tasks: Sequence[Task]) -> "Results":
        """Merge the finished parts, in the experiment's order, into the files that people read."""
        pairs = [(task, self.finished(task)) for task in tasks]
        done = [(task, record) for task, record in pairs if record is not None]
        arrow = _arrow()
        sink = arrow.BufferOutputStream()
        arrow.parquet.write_table(_table(experiment, done), sink, compression="zstd")
        write_file(self.path / "results.parquet", sink.getvalue().to_pybytes())
        _write_json(self.path / "guarantees.json", _guarantees(done))
        timings = {task.name: record["seconds"] for task, record in done}
        _write_json(self.path / "timings.json", timings)
        policies = {task.name: record["policy"] for task, record in done if task.run == 0}
        _write_json(self.path / "policies.json", policies)
        return load(self.path)


def describe(task: Task) -> dict[str, Any]:
    """The identifying columns of a task's cell."""
    cell = task.cell
    return {
        "environment": cell.environment.title,
        "learner": cell.learner.name,
        "label": cell.learner.title,
        "trust": cell.trust_name,
        "mechanism": str(getattr(cell.trust, "mechanism", "none")),
        "calibration": str(getattr(cell.trust, "calibration", "exact")),
        "epsilon": float(getattr(cell.trust, "epsilon", np.inf)),
        "delta": float(getattr(cell.trust, "delta", 0.0)),
        "episodes": cell.episodes,
    }


def _table(experiment: Experiment, done: Sequence[tuple[Task, Mapping[str, Any]]]) -> Any:
    arrow = _arrow()
    columns: dict[str, list[Any]] = {name: [] for name in ("cell", *CELL_COLUMNS)}
    columns |= {name: [] for name in ("run", "episode", "regret", "uniform_regret")}
    for task, record in done:
        episodes = record["episodes"]
        facts = {"cell": task.cell.key, **describe(task), "run": task.run}
        facts["constants"] = record["constants"]
        for name, value in facts.items():
            columns[name] += [value] * len(episodes)
        columns["episode"] += episodes
        columns["regret"] += record["regret"]
        gap = record["uniform_regret_per_episode"]
        columns["uniform_regret"] += [gap * k for k in episodes]
    columns = {"experiment": [experiment.name] * len(columns["run"]), **columns}
    words = ("experiment", "cell", *CELL_COLUMNS[:7])
    whole = ("episodes", "run", "episode")
    schema = arrow.schema(
        [
            (n, arrow.string() if n in words else arrow.int64() if n in whole else arrow.float64())
            for n in columns
        ],
        metadata={"schema_version": str(SCHEMA_VERSION)},
    )
    return arrow.table(columns, schema=schema)


def _guarantees(done: Sequence[tuple[Task, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    first = {task.cell.key: (task, record) for task, record in reversed(done)}
    return [
        {"cell": key, **describe(task)}
        | {name: record[name] for name in ("constants", "guarantee", "noise_std", "signal")}
        for key, (task, record) in reversed(first.items())
    ]


def _versions() -> dict[str, Any]:
    found = {}
    for name in _VERSIONED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return {
        "schema_version": SCHEMA_VERSION,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": found,
    }


@dataclass(frozen=True, eq=False)
class Series:
    """All runs of one cell.

    Attributes:
        facts: the identifying columns.
        episodes: recorded episodes, ``[points]``.
        regret: cumulative expected regret, ``[runs, points]``.
        uniform: the uniform policy's cumulative regret (mean over runs), ``[points]``.
        guarantee: what was delivered.
        noise_std: noise on one counter once all users are in.
        signal: expected visits per counter under the optimal policy, largest first.
        seconds: mean time per run.
    """

    facts: Mapping[str, Any]
    episodes: IntArray
    regret: FloatArray
    uniform: FloatArray
    guarantee: Mapping[str, Any]
    noise_std: float
    signal: Sequence[float]
    seconds: float

    @property
    def final(self) -> FloatArray:
        """Regret after all episodes, per run."""
        return self.regret[:, -1]


@dataclass(frozen=True, eq=False)
class Results:
    """A finished experiment, read back from its folder."""

    path: Path
    experiment: Experiment
    table: Any
    guarantees: Sequence[Mapping[str, Any]]
    timings: Mapping[str, float]
    policies: Mapping[str, Any]

    def to_pandas(self) -> Any:
        """The tidy table as a pandas data frame (pandas must be installed)."""
        return self.table.to_pandas()

    def series(self) -> list[Series]:
        """The runs of every cell, in the experiment's order."""
        columns = {name: np.asarray(self.table[name]) for name in ("cell", "run", "episode")}
        values = {name: np.asarray(self.table[name]) for name in ("regret", "uniform_regret")}
        return [self._one(entry, columns, values) for entry in self.guarantees]

    def _one(self, entry: Mapping[str, Any], columns: Any, values: Any) -> Series:
        rows = columns["cell"] == entry["cell"]
        runs = np.unique(columns["run"][rows])
        shape = (len(runs), -1)
        times = [self.timings[f"{entry['cell']}-{run:04d}"] for run in runs]
        return Series(
            facts={name: entry[name] for name in CELL_COLUMNS},
            episodes=columns["episode"][rows].reshape(shape)[0],
            regret=values["regret"][rows].reshape(shape),
            uniform=values["uniform_regret"][rows].reshape(shape).mean(axis=0),
            guarantee=entry["guarantee"],
            noise_std=entry["noise_std"],
            signal=entry["signal"],
            seconds=float(np.mean(times)),
        )


def load(path: str | Path) -> Results:
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
            f"discreet reads {SCHEMA_VERSION}. Run the experiment again, or install the version "
            f"that wrote it (see environment.json)."
        )
    spec = _read(folder / "spec.toml", _text)
    guarantees, timings, policies = (
        _read(folder / f"{name}.json", lambda path: json.loads(_text(path)))
        for name in ("guarantees", "timings", "policies")
    )
    experiment = parse_experiment(spec, str(folder / "spec.toml"))
    return Results(folder, experiment, table, guarantees, timings, policies)


def _text(path: Path) -> str:
    return path.read_text("utf-8")


def _read(path: Path, read: Callable[[Path], Any]) -> Any:
    try:
        return read(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InvalidInputError(
            f"Cannot read {str(path)!r}: {reason}. Run the experiment again into that folder; "
            f"finished runs are kept."
        ) from None
