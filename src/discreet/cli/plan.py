"""`discreet plan`: what studies of a design would find, before anybody is asked."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet._files import check_output
from discreet.cli.options import Json, whole
from discreet.cli.output import Progress, echo_json, need_extra, print_table, say
from discreet.errors import InvalidInputError
from discreet.privacy.guarantee import rounded_up

if TYPE_CHECKING:
    from discreet.study.plan import PlanRow

_PICTURES = (".svg", ".png", ".pdf")


def command(
    design: Annotated[Path, typer.Argument(help="The design, a TOML file.", show_default=False)],
    people: Annotated[
        str | None, typer.Option(help="Sizes, e.g. 2e3,5e3 (half to five times the design's).")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="E.g. 0.5,1 (the design's; half and twice for its trust).")
    ] = None,
    trust: Annotated[
        str | None, typer.Option(help="E.g. central,shuffle (all); no privacy is always beside.")
    ] = None,
    effect: Annotated[
        float | None,
        typer.Option(
            help="How much more the best action earns than today's, from the first step on, in "
            "the units of the rewards (a tenth of their range)."
        ),
    ] = None,
    reward: Annotated[
        float | None, typer.Option(help="Mean reward of the first step today (the middle).")
    ] = None,
    spread: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of what the rest of an episode is worth, over the states "
            "that can come next (drawn)."
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="Simulated studies per row.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="A picture: .svg, .png or .pdf.")] = None,
    json: Json = False,
) -> None:
    """What a study of each size and guarantee finds, by simulation from public facts alone."""
    from discreet.study.plan import plan_study

    if plot is not None:
        need_extra(["matplotlib"], "lab")
        check_output(plot, *_PICTURES)
    with Progress(quiet=json, verb="simulating") as progress:
        found = plan_study(
            design,
            people=_list(people, lambda text: whole(text, "--people")),
            epsilon=_list(epsilon, lambda text: _number(text, "--epsilon")),
            trust=_list(trust, str),
            effect=effect,
            reward=reward,
            spread=spread,
            runs=runs,
            seed=seed,
            progress=progress,
        )
    if plot is not None:
        from discreet.lab.plots import plan_figure

        plan_figure(found).savefig(plot, dpi=150)
    if json:
        echo_json({**found.to_dict(), "plot": None if plot is None else str(plot)})
        return
    print_table(
        f"{found.learner}: what studies of {design.name} find, if an action earns "
        f"{found.effect:g} more than today's",
        ("people", "trust", "epsilon", "smallest difference", "right", "wrong", "gain", "batches"),
        [_cells(row, found.most) for row in found.rows],
        right=(0, 2, 3, 4, 5, 6, 7),
        caption=found.words,
    )
    say(found.assumed)
    if plot is not None:
        say(str(plot))


def _cells(row: "PlanRow", most: float) -> tuple[str, ...]:
    least = row.smallest_difference
    return (
        f"{row.people:,}",
        row.trust,
        "" if row.epsilon is None else rounded_up(row.epsilon),
        f"over {most:.3g}" if least is None else f"{least:.2g}",
        f"{row.right:.0%}",
        f"{row.wrong:.0%}",
        f"{row.gain:z.0%}",
        f"{row.recruitments:.3g}",
    )


def _list(text: str | None, read: Callable[[str], Any]) -> list[Any] | None:
    return None if text is None else [read(part.strip()) for part in text.split(",")]


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInputError(
            f"Expected {option} to be numbers such as 0.5,1, got {text!r}."
        ) from None
