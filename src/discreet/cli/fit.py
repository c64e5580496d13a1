"""`discreet fit`: a better policy from a table of logged episodes, by one private release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet._files import TABLES, check_output
from discreet.cli.options import Json, grouped
from discreet.cli.output import Progress, echo_json, say, warn, warn_of_guarantee
from discreet.cli.study import DesignOptions, Rehearsal
from discreet.errors import DiscreetError, InvalidInputError

if TYPE_CHECKING:
    from discreet._types import BoolArray
    from discreet.data.vocabulary import Vocabulary
    from discreet.offline.fit import Fit
    from discreet.privacy.ledger import Budget, Ledger
    from discreet.study.design import Design


def logged(
    table: Annotated[
        Path, typer.Argument(help="Logged episodes, CSV or Parquet.", show_default=False)
    ],
    design: DesignOptions,
    rehearsal: Rehearsal,
    width: Annotated[
        float, typer.Option(help="Standard deviations of pessimism; below 2 was not found safe.")
    ] = 2.0,
    output: Annotated[
        Path | None, typer.Option(help="Write the policy here, .json or .csv.")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Adds up what was released about these people (people.ledger beside the table)."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON[,DELTA]", help="Of every person; kept in the ledger, never raised."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """A policy that is better than what people do today, or DEFERs to it, by one release."""
    written = design.read()
    trust = written.trust_model
    warn_of_guarantee(getattr(trust, "epsilon", None), getattr(trust, "delta", None))
    charges = _ledger(ledger, budget, table)
    if output is not None:  # known before the release, which is made once
        check_output(output, *TABLES)
    with Progress(quiet=json, verb="reading") as progress:
        progress(str(table))
        options = {**rehearsal.arguments(), "width": width}
        found = _fit(written, table, {**options, "ledger": charges}, progress)
    problem = _written(found, output)
    if json:
        plain = {**found.to_dict(), "policy": found.rows(), "output": output and str(output)}
        if rehearsal.rehearse:
            plain["ledger"] = {"path": str(charges.path), "charged": False}
        echo_json({**plain, "output": None, "error": problem} if problem else plain)
    else:
        for line in str(found).splitlines():
            say(line)
        if rehearsal.rehearse:
            say(f"Ledger: {charges.path} is not charged, this is a rehearsal.")
        if output is not None:
            say(f"Error: {problem}" if problem else f"Policy: {output}")
    if problem:
        raise typer.Exit(2)


command = grouped(logged)


def _ledger(path: Path | None, budget: str | None, table: Path) -> "Ledger":
    """The ledger that was named, or the one beside the table; it speaks before it is charged."""
    from discreet.privacy.ledger import NAME, Ledger

    beside = table.resolve() if table.is_symlink() else table  # one table, one ledger
    where = beside.parent / NAME if path is None else path
    return Ledger(
        where,
        budget=None if budget is None else _budget(budget),
        table=table,
        told=lambda account: warn(f"Ledger: {account}."),
    )


def _budget(text: str) -> "Budget":
    from discreet.privacy.ledger import Budget

    epsilon, _, delta = text.partition(",")
    try:
        return Budget(float(epsilon), float(delta or 0))
    except ValueError:
        raise InvalidInputError(
            f"Expected --budget as EPSILON or EPSILON,DELTA such as 2,1e-5, with epsilon > 0 and "
            f"0 <= delta < 1, got {text!r}."
        ) from None


def _written(found: "Fit", output: Path | None) -> str:
    """Write the policy; why it could not be, if so: the release is made, and must not be lost.

    Who had to make it again would have made two releases of the same people.
    """
    try:
        if output is not None:
            found.save_policy(output)
    except DiscreetError as error:
        return f"{error} The release was made and is printed here: keep it, and do not repeat it."
    return ""


def _start(design: "Design", names: "Vocabulary") -> "BoolArray":
    import numpy as np

    from discreet.study.config import start_numbers

    mask = np.zeros(len(names.states), np.bool_)
    mask[start_numbers(design.start_states, names)] = True
    return mask


def _fit(design: "Design", table: Path, options: dict[str, Any], progress: Progress) -> "Fit":
    """Everything public is checked before the table is read."""
    from discreet.offline.fit import fit
    from discreet.offline.release import Randomness, check_trust

    trust, names = design.trust_model, design.vocabulary
    check_trust(trust)
    Randomness.of(options["sampler"], options["seed"])
    start = None if design.start_states is None else _start(design, names)
    form = design.format
    form.layout(names)
    episodes, options["users"] = form.read(table, names)
    progress(f"{len(episodes):,} episodes of {table}")
    stationary = design.stationary
    return fit(episodes, trust, vocabulary=names, start=start, stationary=stationary, **options)
