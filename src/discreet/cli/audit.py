"""`discreet audit`: does every mechanism deliver what it promises? By calculation and by attack."""

import math
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli._console import Progress, echo_json, print_table, say, warn
from discreet.cli._options import Json
from discreet.privacy.guarantee import rounded_down, rounded_up

if TYPE_CHECKING:
    from discreet.privacy.auditing.run import AuditRow


def command(
    mechanisms: Annotated[
        list[str] | None,
        typer.Argument(help="For instance central/gaussian, laplace or shuffle; all if left out."),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Epsilon to calibrate to.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Delta to calibrate to.")] = 1e-6,
    quick: Annotated[bool, typer.Option("--quick", help="In under 20 seconds.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the attacked noise.")] = 0,
    json: Json = False,
) -> None:
    """Exact and empirical privacy of every mechanism, on every path of its real code."""
    from discreet.offline.audited import fit_cases
    from discreet.privacy.auditing.run import audit

    with Progress(quiet=json) as progress:
        rows = audit(
            mechanisms or (),
            epsilon=epsilon,
            delta=delta,
            quick=quick,
            seed=seed,
            more=fit_cases,
            progress=progress,
        )
    if json:
        echo_json({"results": [row.to_dict() for row in rows]})
    else:
        _show(rows)
    broken = [row for row in rows if row.calibration == "exact" and not row.holds]
    if broken:
        named = ", ".join(f"{row.mechanism} through {row.path}" for row in broken)
        warn(f"Promises that do not hold: {named}.")
        raise typer.Exit(1)


def _show(rows: "list[AuditRow]") -> None:
    print_table(
        "Privacy delivered: one user's whole episode, replace-one",
        ("mechanism", "path", "kind", "promised", "exact epsilon", "attack proves", "holds"),
        [_cells(row) for row in rows],
        right=(4, 5),
        caption="exact: at the promised delta, from the distribution of all outputs; "
        "attack: a lower bound on epsilon at confidence 1 - 1e-6",
    )
    false = [row for row in rows if not row.holds]
    for row in false:
        exact = (
            "no epsilon at all" if math.isinf(row.exact_epsilon) else rounded_up(row.exact_epsilon)
        )
        promised = rounded_up(row.epsilon)
        said = f"{_named(row)}, {row.path}"
        say(f"{said}: promises {promised} and delivers {exact}.")
        for problem in row.problems:
            say(f"{said}: {problem}")


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
