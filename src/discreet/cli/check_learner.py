"""`discreet check learner`: the rules that every learner keeps."""

from typing import Annotated

import typer

from discreet.cli._console import echo_json, print_table, warn


def command(
    name: Annotated[str, typer.Argument(help="A learner of `discreet list`.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the learner, name=value.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Check a learner: determinism, relabelling, valid policies, private counts, flat regret."""
    from discreet.cli._settings import parse_settings
    from discreet.learners.check import check_learner

    report = check_learner(name, **parse_settings(settings or []))
    if json:
        echo_json(report.to_dict())
    else:
        rows = [[rule, "holds"] for rule in report.passed]
        print_table(f"Learner {name}", ["rule", "result"], rows)
        for problem in report.problems:
            warn(problem)
    if report.problems:
        raise typer.Exit(1)
