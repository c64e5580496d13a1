"""`discreet service init`: a study, its proof, its keys and a file per role."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._options import Json, grouped
from discreet.cli._output import echo_json, need_extra, say, warn, warn_of_promise
from discreet.cli.service._shared import PACKAGES, Rehearsal, said, show_charter


@dataclass(frozen=True)
class Promised:
    """Options on what is promised."""

    epsilon: Annotated[float, typer.Option(help="Epsilon.")] = 1.0
    delta: Annotated[float, typer.Option(help="Delta.")] = 1e-6
    honest: Annotated[float, typer.Option(help="Fraction of users whose noise counts.")] = 1.0
    min_users: Annotated[
        int, typer.Option(help="No batch is smaller; 0: a quarter of the first batch.")
    ] = 0
    patience: Annotated[int, typer.Option(help="Seconds for which a batch may stay open.")] = (
        7 * 86_400
    )
    purpose: Annotated[str, typer.Option(help="In words for participants.")] = (
        "a study with discreet"
    )


@dataclass(frozen=True)
class Studied:
    """Options on what is learnt."""

    learner: Annotated[str, typer.Option(help="A batch learner.")] = "flow-ucb"
    states: Annotated[str, typer.Option(help="Their number, or names with commas.")] = "4"
    actions: Annotated[str, typer.Option(help="Their number, or names with commas.")] = "2"
    steps: Annotated[str, typer.Option(help="Their number, or names with commas.")] = "6"
    start: Annotated[str, typer.Option(help="Start states with commas, if that is public.")] = ""
    episodes: Annotated[int, typer.Option(help="How many users will take part in all.")] = 10_000


@grouped
def command(
    folder: Annotated[Path, typer.Argument(help="A new folder for the files of all roles.")],
    promised: Promised,
    studied: Studied,
    url: Annotated[str, typer.Option(help="Where the shuffler will be.")] = "http://127.0.0.1:8700",
    store: Annotated[str, typer.Option(help="A file, or postgresql://...")] = "shuffler.db",
    rehearsal: Rehearsal = False,
    json: Json = False,
) -> None:
    """Begin a study, prove its promise, write charter, keys and a file per role."""
    need_extra(PACKAGES, "service")
    from discreet.privacy.trust import Shuffle
    from discreet.service.configs import check_url
    from discreet.service.setup import Terms, setup_service

    terms = Terms(
        purpose=promised.purpose,
        min_users=promised.min_users,
        patience=promised.patience,
        rehearsal=rehearsal,
    )
    check_url(url)
    warn_of_promise(promised.epsilon, promised.delta)
    if not json and not folder.exists():
        warn("Calibrating the noise and proving the promise; some seconds ...")
    service = setup_service(
        folder,
        terms,
        trust=Shuffle(promised.epsilon, promised.delta, honest=promised.honest),
        url=url,
        store=store,
        learner=studied.learner,
        states=_names(studied.states),
        actions=_names(studied.actions),
        horizon=_names(studied.steps),
        start_states=_starts(studied.start),
        episodes=studied.episodes,
    )
    if json:
        echo_json(said(service.charter) | {"folder": str(folder)})
        return
    show_charter(service.charter)
    say(f"Next: discreet service tickets {folder} --count N; then give each role its folder.")


def _names(text: str) -> int | list[str]:
    return int(text) if text.isdigit() else [name.strip() for name in text.split(",")]


def _starts(text: str) -> list[int | str] | None:
    return [name.strip() for name in text.split(",")] if text else None
