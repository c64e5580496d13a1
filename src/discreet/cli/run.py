"""`discreet run`: an experiment file, a shipped experiment, or one learner; `plot`, `report`."""

import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.models import OptionInfo

from discreet._registry import imported
from discreet.cli.options import (
    Json,
    Names,
    environments,
    experiments,
    grouped,
    learners,
    papers,
    parse_settings,
    trusts,
    whole,
)
from discreet.cli.output import Table, answer, compact, echo_json, say, warn, warn_of_guarantee
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet._types import Plain
    from discreet.lab.results import Results
    from discreet.lab.runner import Execution
    from discreet.lab.spec import EnvironmentRow, Experiment
    from discreet.lab.tasks import Outcome


def _beside_learner(text: str, names: Names | None = None, *, papers: bool = True) -> OptionInfo:
    said = f"With --learner{' or --paper' * papers}: {text}"
    return cast(OptionInfo, typer.Option(help=said, autocompletion=names))


@dataclass(frozen=True)
class OneLearner:
    """Options that describe one learner instead of an experiment file."""

    learner: Annotated[
        str | None,
        typer.Option(
            help="Run one learner. With an experiment: only this learner of it.",
            autocompletion=learners,
        ),
    ] = None
    paper: Annotated[
        str | None,
        typer.Option(help="Run one paper's algorithm as printed.", autocompletion=papers),
    ] = None
    environment: Annotated[
        str | None,
        _beside_learner("the environment, .npz file or Gymnasium id (RiverSwim).", environments),
    ] = None
    trust: Annotated[
        str | None,
        _beside_learner("none, central, local or shuffle (none).", trusts, papers=False),
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(help="Epsilon of the guarantee. Left out: the paper's or the experiment's."),
    ] = None
    delta: Annotated[float | None, _beside_learner("of the guarantee (0, the paper's).")] = None
    mechanism: Annotated[
        str | None, _beside_learner("of the release (the best one).", papers=False)
    ] = None
    calibration: Annotated[
        str | None, _beside_learner("exact or paper (exact; a paper is as printed).")
    ] = None
    batches: Annotated[
        int | None, _beside_learner("at most so many recruitments (as many as it takes).")
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="With --learner or --paper: a setting, name=value; env.name=value."
        ),
    ] = None

    @property
    def given(self) -> list[str]:
        """The options that somebody typed, besides --learner and --paper."""
        unused: tuple[object, ...] = (None, [])
        names = [f.name for f in fields(self) if getattr(self, f.name) not in unused]
        own = ("learner", "paper")
        return ["set" if name == "settings" else name for name in names if name not in own]

    @property
    def what(self) -> str:
        """The option that says what runs, or nothing."""
        return "learner" if self.learner is not None else "paper" * (self.paper is not None)


@dataclass(frozen=True)
class Changes:
    """Options that change an experiment, wherever it comes from."""

    runs: Annotated[int | None, typer.Option(help="Number of runs, each with its own seed.")] = None
    episodes: Annotated[
        str | None, typer.Option(help="Number of users, for example 2e5, or several: 1e4,1e6.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of everything that is random.")] = None

    def of(self, chosen: "Experiment") -> "Experiment":
        """The experiment with what was typed."""
        given: dict[str, Any] = {
            name: value for name, value in vars(self).items() if value is not None
        }
        if self.episodes is not None:
            given["episodes"] = tuple(whole(k, "--episodes") for k in self.episodes.split(","))
        return replace(chosen, **given)


@dataclass(frozen=True)
class Workers:
    """Options on who does the work; no result depends on them."""

    jobs: Annotated[int, typer.Option(help="Number of worker processes. 0 means all cores.")] = 0
    engine: Annotated[str, typer.Option(help="Where runs are computed: local or ray.")] = "local"
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None

    def __post_init__(self) -> None:
        if self.jobs < 0:
            raise InvalidInputError(
                f"Expected --jobs of at least 1, or 0 for all cores, got --jobs {self.jobs}."
            )

    @property
    def processes(self) -> int:
        """How many; zero stands for all cores."""
        return self.jobs or os.cpu_count() or 1


def run(
    one: OneLearner,
    changes: Changes,
    workers: Workers,
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="The name of a shipped experiment, or a TOML file.", autocompletion=experiments
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the results. Left out: results/NAME.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run the quick variant, in less than a minute.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check everything, estimate time and memory, run nothing."),
    ] = False,
    json: Json = False,
) -> None:
    """Run an experiment (resumable): table, report page and pictures."""
    _refuse_mixtures(experiment, one, quick)
    from discreet.lab.runner import free_folder
    from discreet.lab.spec import load_experiment, titles

    if experiment is None and not one.what:
        raise InvalidInputError(
            f"Expected an experiment's name, a TOML file, or --learner NAME. Shipped experiments: "
            f"{', '.join(titles())}. Try `discreet run price-of-trust --quick`."
        )
    single = _single if one.paper is None else _printed
    chosen = single(one) if experiment is None else load_experiment(experiment)
    chosen = chosen.variant("quick") if quick else chosen
    if experiment is not None:
        chosen = chosen.only(one.learner, one.epsilon)
    imports = tuple(dict.fromkeys([*imported(), *chosen.imports]))
    chosen = changes.of(replace(chosen, imports=imports))
    rows = [row for learner in chosen.learners for row in learner.trust_rows(chosen.trusts)]
    warn_of_guarantee(max((each for row in rows for each in row.epsilon), default=None), None)
    for delta in dict.fromkeys(row.delta for row in rows):
        warn_of_guarantee(None, delta)
    wanted = Path("results") / (chosen.name + "-quick" * quick)
    folder = output or free_folder(chosen, wanted)
    if output is None and folder != wanted:
        warn(f"{wanted} holds other results and is left alone; these go to {folder}.")
    if dry_run or not json:
        _announce(chosen, folder, workers, as_json=json, alone=dry_run)
    if dry_run:
        return
    execution = _run(chosen, folder, workers, quiet=json)
    failures = []
    for outcome in execution.failures:
        cell = outcome.task.cell
        failures.append(
            f"Run {outcome.task.run} of {cell.learner.title} ({cell.trust_name}) on "
            f"{cell.environment.title} failed: {outcome.error}"
        )
    from discreet.lab.report import write_report
    from discreet.lab.summary import summarise

    page = write_report(execution.results)
    results = [row.to_dict() for row in summarise(execution.results)]
    about = {"experiment": chosen.name, "output": str(folder)}
    plain = {**about, "results": results, "failures": failures}
    answer(plain, shown(execution.results, page), json=json, notes=failures)
    if failures:
        raise typer.Exit(1)


command = grouped(run)
ResultFolder = Annotated[Path, typer.Argument(help="A result folder of `discreet run`.")]


def plot(
    folder: ResultFolder,
    formats: Annotated[
        list[str],
        typer.Option(
            "--format", help="svg, png, pdf or pgf. Give the option again for more than one."
        ),
    ] = ["svg", "png"],  # noqa: B006
    width: Annotated[
        float | None, typer.Option(help="Width in inches. A column of a paper has 3.3.")
    ] = None,
    title: Annotated[
        bool,
        typer.Option(
            "--title/--no-title", help="Draw the title, or leave it out for a caption of your own."
        ),
    ] = True,
    json: Json = False,
) -> None:
    """Draw the figures of a finished experiment, for a page or a paper."""
    from discreet.lab.report import write_figures
    from discreet.lab.results import load_results

    paths = write_figures(load_results(folder), formats, width=width, titled=title)
    figures = [str(path) for path in paths]
    answer({"figures": figures}, figures, json=json)


def report(
    folder: ResultFolder,
    latex: Annotated[
        bool, typer.Option("--latex", help="Write the table as table.tex, too.")
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Write the table as table.csv, too.")
    ] = False,
    json: Json = False,
) -> None:
    """Write the report page of a finished experiment."""
    from discreet.lab.report import write_report, write_tables
    from discreet.lab.results import load_results

    results = load_results(folder)
    page = str(write_report(results))
    tables = [str(path) for path in write_tables(results, ["tex"] * latex + ["csv"] * as_csv)]
    answer({"report": page, "tables": tables}, [page, *tables], json=json)


def cite(
    source: Annotated[
        str | None,
        typer.Argument(help="A result folder or a learner. Left out: discreet alone."),
    ] = None,
    json: Json = False,
) -> None:
    """Print BibTeX of discreet and of the papers behind a run or a learner."""
    from discreet.papers.references import bibtex

    used = list[str]()
    if source is not None and Path(source).is_dir():
        from discreet.lab.results import load_results

        used = [row.name for row in load_results(source).experiment.learners]
    elif source is not None:
        from discreet.learners.registry import get_learner

        used = [get_learner(source).name]
    text = bibtex(used)
    answer({"learners": used, "bibtex": text}, [text], json=json)


def _run(chosen: "Experiment", folder: Path, workers: Workers, *, quiet: bool) -> "Execution":
    from discreet.lab.runner import run_experiment

    with Display(chosen.name, quiet=quiet) as display:
        try:
            return run_experiment(
                chosen,
                folder,
                jobs=workers.processes,
                engine=workers.engine,
                address=workers.address,
                progress=display.update,
            )
        except KeyboardInterrupt:
            warn(
                f"Stopped: {display.finished} of {display.total} runs are kept in {folder}; the "
                f"same command goes on from there."
            )
            raise


def _announce(
    chosen: "Experiment", folder: Path, workers: Workers, *, as_json: bool, alone: bool
) -> None:
    from discreet.lab.forecast import available_memory, forecast
    from discreet.lab.runner import check, missing

    check(chosen, engine=workers.engine)
    left = missing(chosen, folder)
    if not left and not alone:
        return
    expected = forecast(left, jobs=workers.processes)
    if as_json:
        echo_json({"output": str(folder), **asdict(expected)})
        return
    if not left:
        say(f"No runs: {folder} has them all.")
        return
    for problem in expected.problems:
        warn(f"Note: a rehearsal with few users failed: {problem}")
    (say if alone else warn)(f"{expected}.")
    if expected.bytes > available_memory():
        warn(
            f"Note: this is more than the {available_memory() / 1e9:.1f} GB of memory that are "
            f"free; take fewer --jobs, or a smaller problem."
        )


def shown(results: "Results", page: Path) -> Iterator[Table | str]:
    """The table of final regrets, who wins, and where the page is."""
    from discreet.lab.style import NOTIONS, name_of, pair_of
    from discreet.lab.summary import (
        beside_random,
        meanings,
        measured_by,
        summarise,
        warnings_of,
        winners,
    )

    rows = summarise(results)
    measure = measured_by(rows)
    columns = ["trust", "guarantee", "K", "runs", measure]
    columns.append("± se" if measure == "return" else "± sd")
    columns += [beside_random(rows), "s/run", "compile s"]
    cells = [
        [
            row.facts["trust"],
            pair_of(row.facts["guarantee"]),
            compact(row.facts["episodes"]),
            str(row.runs),
            row.text(row.mean),
            row.spread_text,
            row.share_text,
            f"{row.series.seconds:.2f}",
            f"{row.series.compile_seconds:.1f}",
        ]
        for row in rows
    ]
    shared, first = list[str](), len(columns)
    for name, values in (
        ("learner", [name_of(row.facts) for row in rows]),
        ("environment", [row.facts["environment"] for row in rows]),
    ):
        if len({*values}) == 1:  # what all rows share stands in the title
            shared += [values[0]] if values[0] not in results.experiment.title else []
            continue
        columns.insert(0, name)
        for value, line in zip(values, cells, strict=True):
            line.insert(0, value)
    before = len(columns) - first
    title = ": ".join([results.experiment.title, *([" on ".join(shared)] if shared else [])])
    right = range(2 + before, 9 + before)
    yield Table(title, columns, cells, right=right, spare=_SPARE)
    yield from meanings(rows)
    if any(row.facts["guarantee"]["notion"] != "none" for row in rows):
        yield NOTIONS
    yield from (f"Note: {text}" for text in warnings_of(results))
    for environment, comparisons in winners(results):
        yield from (f"{environment}: {comparison}" for comparison in comparisons[:_SHOWN])
    yield f"Report: {page}"


_SPARE = ("compile s", "s/run", "of uniform", "at random", "runs", "± sd")
"""Columns that a narrow table leaves out, the first one first."""
_SHOWN = 6  # comparisons per environment; the report has all
_GUARANTEE = ("epsilon", "delta", "mechanism", "calibration")
"""Options that say what a trust model guarantees, and how."""


def _refuse_mixtures(experiment: str | None, one: OneLearner, quick: bool) -> None:
    """What is typed must mean something beside the rest."""
    if one.paper is not None and experiment is not None:
        raise InvalidInputError(
            f"Expected an experiment or --paper, got {experiment!r} and --paper {one.paper}."
        )
    if experiment is not None or not one.what:
        own = [name for name in one.given if experiment is None or name != "epsilon"]
        if own:
            raise InvalidInputError(
                f"--{own[0]} belongs to --learner or --paper; an experiment file sets its own "
                f"(--learner, --epsilon, --episodes, --runs and --seed change it)."
            )
        return
    if quick:
        raise InvalidInputError(
            f"--quick belongs to shipped experiments; with --{one.what} choose --episodes and "
            f"--runs."
        )
    for name in ("learner", "trust", "mechanism") if one.paper is not None else ():
        if getattr(one, name) is not None:
            raise InvalidInputError(
                f"Expected --paper {one.paper} without --{name}, which it has of its own; "
                f"`discreet list papers` shows it."
            )
    given = [name for name in _GUARANTEE if name in one.given]
    if given and one.paper is None and one.trust in (None, "none"):
        raise InvalidInputError(
            f"Expected no --{given[0]} without privacy, got --{given[0]} "
            f"{getattr(one, given[0])} with --trust none (the default): leave it out, or choose "
            f"--trust central, local or shuffle."
        )


def _single(one: OneLearner) -> "Experiment":
    from discreet.lab.spec import Experiment, LearnerRow, TrustRow
    from discreet.learners.registry import get_learner

    own, parameters = _typed(one)
    name = get_learner(one.learner or "").name
    place = _place(one.environment or "RiverSwim", parameters)
    trust = one.trust or "none"
    row = TrustRow(
        model=trust,
        epsilon=() if one.epsilon is None else (one.epsilon,),
        delta=one.delta or 0.0,
        mechanism=one.mechanism or "auto",
        calibration=one.calibration or "exact",
    )
    return Experiment(
        name=_slug(f"{name}-{place.label}-{trust}"),
        title=f"{name} on {place.label}",
        runs=5,
        environments=(place,),
        learners=(LearnerRow(name=name, settings=own, trusts=(trust,)),),
        trusts=(row,),
    )


def _printed(one: OneLearner) -> "Experiment":
    """An experiment with one paper's algorithm as printed, on the paper's kind of problem."""
    from discreet.lab.spec import Experiment, LearnerRow
    from discreet.papers.presets import get_preset

    preset = get_preset(one.paper or "")
    own, parameters = _typed(one)
    title = preset.title(one.calibration, literal=bool(own.get("literal", True)))
    usual = preset.reference.parameters if one.environment is None else {}
    place = _place(one.environment or preset.reference.environment, {**usual, **parameters})
    row = LearnerRow(
        name=preset.learner,
        paper=preset.name,
        settings=preset.chosen(own),
        epsilon=(preset.reference.epsilon,) if one.epsilon is None else (one.epsilon,),
        delta=one.delta or 0.0,
        calibration=one.calibration or "",
        label=title,
    )
    exact = "-exact" * (preset.noise(one.calibration) == "exact")
    return Experiment(
        name=_slug(f"paper-{preset.name}{exact}-{place.label}"),
        title=f"{title}, on {place.label}",
        paper=preset.paper,
        runs=5,
        environments=(place,),
        learners=(row,),
    )


def _typed(one: OneLearner) -> "tuple[dict[str, Plain], dict[str, Plain]]":
    """Settings of the learner, and parameters of the environment (``env.name=value``)."""
    values = parse_settings(one.settings or [])
    if one.batches is not None:
        values["batches"] = one.batches
    parameters = {k.removeprefix("env."): v for k, v in values.items() if k.startswith("env.")}
    return {k: v for k, v in values.items() if not k.startswith("env.")}, parameters


def _place(name: str, parameters: "dict[str, Plain]") -> "EnvironmentRow":
    from discreet.lab.spec import EnvironmentRow
    from discreet.mdp.environments.registry import get_environment

    known = get_environment(name).name
    short = Path(known).stem if known.endswith(".npz") else known
    return EnvironmentRow(name=known, parameters=parameters, label=short)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower())


class Display:
    """Live progress on a terminal, plain lines elsewhere, always on standard error."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        self._console = Console(stderr=True, quiet=quiet)
        self._live = self._console.is_terminal and not quiet
        self._bar = Progress(
            "{task.description}",
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            "runs",
            "{task.fields[rate]}",
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._live,
        )
        self._task = self._bar.add_task(name, total=None, rate="")
        self._users = 0
        self.finished = self.total = 0
        self._started = self._last = 0.0

    def __enter__(self) -> "Display":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, outcome: "Outcome | None", finished: int, total: int) -> None:
        import time

        now = time.monotonic()
        self.finished, self.total = finished, total
        self._started = self._started or now
        if outcome is not None:
            self._users += outcome.task.cell.episodes
        speed = float(f"{self._users / max(now - self._started, 1e-9):.2g}")
        rate = f"{compact(speed)} users/s" if self._users else ""
        self._bar.update(self._task, completed=finished, total=total, rate=rate)
        if not self._live and (now - self._last > 5 or finished == total):
            self._last = now
            line = f"{finished} of {total} runs, {rate}".rstrip(", ")
            self._console.print(line, highlight=False)
