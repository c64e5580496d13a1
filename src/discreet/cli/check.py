"""`discreet check`: conformance checks, one per kind of part."""

import importlib

import typer

_CHECKS: dict[str, str] = {
    "learner": "discreet.cli.check_learner",
    "mdp": "discreet.cli.check_mdp",
    "mechanism": "discreet.cli.check_mechanism",
}
"""What to check -> module that defines the function ``command``."""

app = typer.Typer(
    help="Conformance checks, also public functions in the library.", no_args_is_help=True
)

for _name, _module in _CHECKS.items():
    app.command(_name)(importlib.import_module(_module).command)
