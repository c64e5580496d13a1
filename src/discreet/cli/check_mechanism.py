"""`discreet check mechanism`: is a mechanism fit to protect anybody?"""

from typing import Annotated

import typer

from discreet.cli._console import echo_json, print_table
from discreet.errors import InvalidInputError


def command(
    name: Annotated[
        str | None, typer.Argument(help="For instance central/gaussian, or laplace in all models.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Check every mechanism.")] = False,
    json: Annotated[bool, typer.Option("--json", help="JSON for scripts.")] = False,
) -> None:
    """Check a mechanism: shared or redrawn noise, wrong scale, floats, linked messages ..."""
    from discreet.privacy.auditing.conformance import check_mechanism
    from discreet.privacy.auditing.roster import entries, find

    if all_ == (name is not None):
        raise InvalidInputError("Expected one mechanism of `discreet list`, or --all.")
    chosen = [e for e in (entries() if name is None else find(name)) if e.calibration == "exact"]
    found = [(entry.name, check_mechanism(entry.plan()).problems) for entry in chosen]
    if json:
        results = [{"name": label, "problems": list(problems)} for label, problems in found]
        echo_json(results[0] if len(results) == 1 else {"results": results})
    else:
        rows = [(label, " ".join(problems) or "none") for label, problems in found]
        print_table("Mechanisms: ways in which privacy is lost", ("mechanism", "problems"), rows)
    if any(problems for _, problems in found):
        raise typer.Exit(1)
