"""`discreet plan`: what studies of a design would find, before anybody is asked."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import Force, Json, environments, parse_settings, whole
from discreet.cli.output import Progress, Table, answer, check_target, need_extra
from discreet.errors import InvalidInputError
from discreet.privacy.guarantee import rounded_up

if TYPE_CHECKING:
    from discreet.study.plan import PlanRow

_PICTURES = (".svg", ".png", ".pdf")


def command(
    design: Annotated[Path, typer.Argument(help="The design, a TOML file.", show_default=False)],
    people: Annotated[
        str | None, typer.Option(help="Sizes, e.g. 2e3,5e3 (half, once and twice the design's).")
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="E.g. 0.5,1 (the design's; half and twice, too, at its size)."),
    ] = None,
    trust: Annotated[
        str | None,
        typer.Option(
            help="E.g. central,shuffle (the design's; all at its size); no privacy always."
        ),
    ] = None,
    problem: Annotated[
        str | None,
        typer.Option(
            help="A problem that resembles yours: an environment of `discreet list`, a Gymnasium "
            "id with a model, or an .npz file with the arrays transitions and rewards (initial, "
            "horizon). Without it: what standard errors say.",
            autocompletion=environments,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the problem, name=value.")
    ] = None,
    effect: Annotated[
        float | None,
        typer.Option(
            help="With --problem: how much more the best action of the first step shall earn than "
            "today's, in all steps, in the units of the rewards (the problem's own)."
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="Simulated studies per row.")] = 50,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="A picture: .svg, .png or .pdf.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """How small a difference studies find, and how often they find one where there is none."""
    from discreet.mdp.environments.registry import make
    from discreet.study.plan import plan_study

    if settings and problem is None:
        raise InvalidInputError("Expected --problem beside --set, which is about its parameters.")
    if effect is not None and not 0 < effect < math.inf:
        raise InvalidInputError(f"Expected --effect > 0, got --effect {effect:g}.")

    if plot is not None:
        need_extra(["matplotlib"], "lab")
        check_target(plot, *_PICTURES, force=force, inputs=[design])
    with Progress(quiet=json, verb="simulating") as progress:
        found = plan_study(
            design,
            people=_list(people, lambda text: whole(text, "--people")),
            epsilon=_list(epsilon, lambda text: _number(text, "--epsilon")),
            trust=_list(trust, str),
            problem=None if problem is None else make(problem, **parse_settings(settings or [])),
            effect=effect,
            runs=runs,
            seed=seed,
            progress=progress,
        )
    if plot is not None:
        from discreet.lab.plots import plan_figure

        plan_figure(found).savefig(plot, dpi=150)
    columns = ["people", "trust", "epsilon", "difference", "null error", "batches"]
    title = f"{found.learner}: what studies of {design.name} find"
    if found.effect is not None:
        columns += ["right", "wrong", "gain"]
        title += f", if an action earns {found.effect:.3g} more than today's"
    table = Table(
        title,
        columns,
        [_cells(row, found.most) for row in found.rows],
        right=(0, *range(2, len(columns))),
        caption=found.words,
        spare=("batches", "gain"),
    )
    drawn = [] if plot is None else [str(plot)]
    plain = {**found.to_dict(), "plot": None if plot is None else str(plot)}
    answer(plain, [table, found.assumed, *drawn], json=json)


def _cells(row: "PlanRow", most: float) -> list[str]:
    least = row.smallest_difference
    return [
        f"{row.people:,}",
        row.trust,
        "" if row.epsilon is None else rounded_up(row.epsilon),
        f"over {most:.3g}" if least is None else f"{least:.2g}",
        f"{row.null_error:.0%}",
        f"{row.recruitments:.3g}",
        *(f"{share:z.0%}" for share in (row.right, row.wrong, row.gain) if share is not None),
    ]


def _list(text: str | None, read: Callable[[str], Any]) -> list[Any] | None:
    return None if text is None else [read(part.strip()) for part in text.split(",")]


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInputError(
            f"Expected {option} to be numbers such as 0.5,1, got {text!r}."
        ) from None
