"""`discreet check mdp`: exact values of an environment, and whether it is worth learning."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._console import echo_json, print_table, warn
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet.mdp.check import MDPReport


def command(
    name: Annotated[
        str | None,
        typer.Argument(help="An environment of `discreet list`, or a Gymnasium id with a model."),
    ] = None,
    states: Annotated[int | None, typer.Option(help="Number of states.")] = None,
    actions: Annotated[int | None, typer.Option(help="Number of actions.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Steps per episode.")] = None,
    relabel: Annotated[int | None, typer.Option(help="Seed to rename the actions.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any other parameter, name=value.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Check every environment.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Check an MDP: optimal, uniform and constant-action value, reachability, problems."""
    from discreet.cli._settings import parse_settings
    from discreet.mdp.environments.registry import environment_names

    sizes = {"states": states, "actions": actions, "horizon": horizon, "relabel": relabel}
    given = {key: value for key, value in sizes.items() if value is not None}
    parameters = {**given, **parse_settings(settings or [])}
    if all_ == (name is not None):
        raise InvalidInputError("Expected one environment of `discreet list`, or --all.")
    if all_ and parameters:
        raise InvalidInputError("Expected no parameters with --all; check one environment by name.")
    names = environment_names() if name is None else [name]
    reports = [_check(each, parameters) for each in names]
    if json:
        dicts = [report.to_dict() for report in reports]
        echo_json({"results": dicts} if all_ else dicts[0])
    else:
        _show(reports)
    if any(report.problems for report in reports):
        raise typer.Exit(1)


def _check(name: str, parameters: dict[str, Any]) -> "MDPReport":
    from discreet.mdp.check import check_mdp
    from discreet.mdp.environments.registry import make

    if _is_foreign(name):
        return check_mdp(_from_gymnasium(name, parameters))
    return check_mdp(make(name, **parameters))


def _is_foreign(name: str) -> bool:
    """True for a Gymnasium id of another package, such as FrozenLake-v1."""
    stem, _, version = name.rpartition("-v")
    return bool(stem) and version.isdigit() and not name.lower().startswith("discreet/")


def _from_gymnasium(name: str, parameters: dict[str, Any]) -> Any:
    import gymnasium

    from discreet.mdp.gymnasium_bridge import from_gymnasium

    horizon = parameters.pop("horizon", None)
    if horizon is None:
        raise InvalidInputError(f"Expected --horizon for {name}: its episodes have no set length.")
    try:
        env = gymnasium.make(name, **parameters)
    except (gymnasium.error.Error, TypeError) as error:
        raise InvalidInputError(f"Gymnasium cannot make {name!r}: {error}") from None
    return from_gymnasium(env, horizon)


def _show(reports: "list[MDPReport]") -> None:
    print_table(
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
    for report in reports:
        for problem in report.problems:
            warn(f"{report.name}: {problem}")
