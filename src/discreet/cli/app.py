"""The `discreet` command: one file per command, loaded when it is called."""

import importlib
import sys

import typer

from discreet.errors import DiscreetError

_COMMANDS: dict[str, str] = {
    "run": "discreet.cli.run",
    "plot": "discreet.cli.plot",
    "report": "discreet.cli.report",
    "calibrate": "discreet.cli.calibrate",
}
"""Command name -> module that defines the function ``command``."""

app = typer.Typer(
    help="Reinforcement learning from people's data, without collecting it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Entry point: errors raised on purpose become one sentence and a non-zero exit."""
    for name, module in _COMMANDS.items():
        app.command(name)(importlib.import_module(module).command)
    try:
        app()
    except DiscreetError as error:
        sys.stderr.write(f"Error: {error}\n")
        raise SystemExit(2) from None
