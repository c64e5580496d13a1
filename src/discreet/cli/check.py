"""`discreet check` and `discreet audit`: does everything keep its rules and its guarantee?"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import Json, environments, learners, parse_settings
from discreet.cli.output import Progress, Table, answer, warn
from discreet.errors import InvalidInputError
from discreet.privacy.guarantee import rounded_down, rounded_up

if TYPE_CHECKING:
    from discreet.auditing.run import AuditRow
    from discreet.mdp.check import MDPReport

app = typer.Typer(
    help="Check an environment, a learner, a mechanism or a table.", no_args_is_help=True
)


_RAW = (
    "This is raw data, for the operator who has the table: do not pass it on. The number of rows, "
    "too, which tells that of the episodes: `discreet fit` protects it."
)
_MENDING = (
    "Nothing was released, and a design is public: a state or a range that is added because of a "
    "row here tells that somebody has it. Prefer rules for everybody: states for what is missing, "
    "clip_rewards."
)


@app.command("learner")
def check_learner(
    name: Annotated[
        str, typer.Argument(help="A learner of `discreet list`.", autocompletion=learners)
    ],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the learner, name=value.")
    ] = None,
    json: Json = False,
) -> None:
    """Check a learner: determinism, relabelling, valid policies, private counts, flat regret."""
    from discreet.learners.check import check_learner as check

    given: dict[str, Any] = dict(parse_settings(settings or []))
    with Progress(quiet=json) as progress:
        report = check(name, progress=lambda step: progress(f"{name}: {step}"), **given)
    rows = [[rule, "holds"] for rule in report.passed]
    for said, sentences in (("FAILS", report.problems), ("not checked", report.unchecked)):
        parts = [sentence.partition(": ") for sentence in sentences]
        rows += [[rule, f"{said}: {why}"] for rule, _, why in parts]
    answer(report.to_dict(), [Table(f"Learner {name}", ["rule", "result"], rows)], json=json)
    if report.problems:
        raise typer.Exit(1)


@app.command("mdp")
def check_mdp(
    name: Annotated[
        str | None,
        typer.Argument(
            help="An environment of `discreet list`, a Gymnasium id with a model, or an .npz file "
            "with the arrays transitions and rewards (initial, horizon).",
            autocompletion=environments,
        ),
    ] = None,
    states: Annotated[int | None, typer.Option(help="Number of states.")] = None,
    actions: Annotated[int | None, typer.Option(help="Number of actions.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Steps per episode.")] = None,
    relabel: Annotated[
        int | None, typer.Option(help="Seed for renaming the actions at random.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any other parameter, name=value.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Check every environment.")] = False,
    json: Json = False,
) -> None:
    """Check an MDP: optimal, uniform and constant-action value, reachability, problems."""
    from discreet.mdp.check import check_mdp as check
    from discreet.mdp.environments.registry import environment_names, make

    sizes = {"states": states, "actions": actions, "horizon": horizon, "relabel": relabel}
    given = {key: value for key, value in sizes.items() if value is not None}
    parameters = {**given, **parse_settings(settings or [])}
    if all_ == (name is not None):
        raise InvalidInputError("Expected one environment of `discreet list`, or --all.")
    if all_ and parameters:
        raise InvalidInputError("Expected no parameters with --all; check one environment by name.")
    names = environment_names() if name is None else [name]
    reports = [check(make(each, **parameters)) for each in names]
    dicts = [report.to_dict() for report in reports]
    wrong = [f"{one.name}: {problem}" for one in reports for problem in one.problems]
    answer({"results": dicts} if all_ else dicts[0], [_table(reports)], json=json, notes=wrong)
    if wrong:
        raise typer.Exit(1)


@app.command("mechanism")
def check_mechanism(
    name: Annotated[
        str | None,
        typer.Argument(help="For example central/gaussian, or laplace for all trust models."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Check every mechanism.")] = False,
    json: Json = False,
) -> None:
    """Check a mechanism for shared or redrawn noise, wrong scales, floats and linked messages."""
    from discreet.auditing.cases import entries, find
    from discreet.auditing.conformance import check_mechanism as check

    if all_ == (name is not None):
        raise InvalidInputError("Expected one mechanism of `discreet list`, or --all.")
    chosen = [e for e in (entries() if name is None else find(name)) if e.calibration == "exact"]
    with Progress(quiet=json) as progress:

        def problems(label: str) -> tuple[str, ...]:
            progress(label)
            return check(label, progress=lambda step: progress(f"{label}: {step}")).problems

        found = [(entry.name, problems(entry.name)) for entry in chosen]
    results = [{"name": label, "problems": list(wrong)} for label, wrong in found]
    rows = [(label, " ".join(wrong) or "none") for label, wrong in found]
    columns = ("mechanism", "problems")
    table = Table("Mechanisms: ways in which privacy is lost", columns, rows)
    answer(results[0] if len(results) == 1 else {"results": results}, [table], json=json)
    if any(wrong for _, wrong in found):
        raise typer.Exit(1)


@app.command("table")
def check_table(
    file: Annotated[
        Path, typer.Argument(help="A table: CSV, Excel or Parquet.", show_default=False)
    ],
    design: Annotated[
        Path,
        typer.Option(
            help="The design, a TOML file, which says how the table is read.", show_default=False
        ),
    ],
    json: Json = False,
) -> None:
    """List all problems of a table, and what would mend each. The list shows raw data."""
    from discreet.data.layout import Layout
    from discreet.data.tables import check_table as check
    from discreet.study.design import read_design

    written = read_design(design)
    layout = Layout(written.vocabulary, written.format)  # checked before a large table is read
    with Progress(quiet=json, verb="reading") as progress:
        progress(str(file))
        report = check(file, layout)
    rows = [
        (
            problem.kind,
            f"{problem.count:,}",
            "\n".join(": ".join(filter(None, pair)) for pair in problem.examples),
            problem.mend,
        )
        for problem in report.problems
    ]
    columns = ("problem", "found", "first found", "what mends it")
    found = Table(f"Problems of {file}", columns, rows, right=[1], caption=_MENDING)
    shown = [
        f"{file}: {report.rows:,} rows of {report.people:,} people.",
        found if rows else "Every row can be read as the design says.",
        _RAW,
    ]
    answer({"table": str(file), **report.to_dict(), "note": _RAW}, shown, json=json)
    if report.problems:
        raise typer.Exit(1)


def _table(reports: "list[MDPReport]") -> Table:
    return Table(
        "Environments, with exact values",
        ["name", "S", "A", "H", "optimal", "uniform", "constant action", "C_M", "reachable"],
        [
            [
                report.name,
                str(report.states),
                str(report.actions),
                str(report.horizon),
                f"{report.optimal_value:.6f}",
                f"{report.uniform_value:.4f}",
                f"{report.constant_action_value:.4f}",
                "-" if report.effective_support is None else f"{report.effective_support:.2f}",
                f"{report.reachable:.0%}",
            ]
            for report in reports
        ],
        right=range(1, 9),
        caption="Expected total reward per episode; C_M: cumulative effective support.",
    )


# By calculation and by attack.


def audit(
    mechanisms: Annotated[
        list[str] | None,
        typer.Argument(help="For example central/gaussian, laplace or shuffle. All if left out."),
    ] = None,
    epsilon: Annotated[
        float, typer.Option(help="Epsilon that mechanisms are calibrated to.")
    ] = 1.0,
    delta: Annotated[float, typer.Option(help="Delta that mechanisms are calibrated to.")] = 1e-6,
    quick: Annotated[
        bool, typer.Option("--quick", help="Audit a part, in less than 20 seconds.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the noise that is attacked.")] = 0,
    json: Json = False,
) -> None:
    """Measure the privacy of every mechanism: exactly where possible, and by attack."""
    from discreet.auditing.run import audit as run_audit

    with Progress(quiet=json) as progress:
        rows = run_audit(
            mechanisms or (),
            epsilon=epsilon,
            delta=delta,
            quick=quick,
            seed=seed,
            progress=progress,
        )
    answer({"results": [row.to_dict() for row in rows]}, _shown(rows), json=json)
    broken = [row for row in rows if row.calibration == "exact" and not row.holds]
    if broken:
        named = ", ".join(f"{row.mechanism} through {row.path}" for row in broken)
        warn(f"Guarantees that do not hold: {named}.")
        raise typer.Exit(1)


def _shown(rows: "list[AuditRow]") -> Iterator[Table | str]:
    yield Table(
        "Privacy delivered: one user's whole episode, replace-one",
        ("mechanism", "path", "kind", "guarantee", "exact epsilon", "attack proves", "holds"),
        [_cells(row) for row in rows],
        right=(4, 5),
        caption="exact: at the guaranteed delta, from the distribution of all outputs; "
        "attack: a lower bound on epsilon at confidence 1 - 1e-6",
    )
    for row in rows:
        if not row.holds:
            none, exact = math.isinf(row.exact_epsilon), rounded_up(row.exact_epsilon)
            said = f"{_named(row)}, {row.path}"
            delivers = "no epsilon at all" if none else exact
            yield f"{said}: claims {rounded_up(row.epsilon)} and delivers {delivers}."
            yield from (f"{said}: {problem}" for problem in row.problems)


def _named(row: "AuditRow") -> str:
    return row.mechanism + (" (printed)" if row.calibration == "paper" else "")


def _cells(row: "AuditRow") -> tuple[str, ...]:
    pair = f"{rounded_up(row.epsilon)}, {rounded_up(row.delta, 3)}"
    return (
        _named(row),
        row.path,
        row.kind,
        f"({pair})-{row.notion}",
        rounded_up(row.exact_epsilon * (1 - 1e-12), 7),  # the last digits are the audit's own
        f">= {rounded_down(row.empirical_epsilon_low, 3)}" if row.empirical_epsilon_low else "",
        "yes" if row.holds else "NO",
    )
