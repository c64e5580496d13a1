"""The `discreet` command: one file per command; heavy modules load when a command is called."""

import importlib
from typing import Annotated, NoReturn

import typer

from discreet.cli._console import say, warn
from discreet.errors import DiscreetError

_COMMANDS: dict[str, str] = {
    "list": "discreet.cli.list_",
    "run": "discreet.cli.run",
    "plot": "discreet.cli.plot",
    "report": "discreet.cli.report",
    "audit": "discreet.cli.audit",
    "calibrate": "discreet.cli.calibrate",
    "certify": "discreet.cli.certify",
    "study": "discreet.cli.study",
    "fit": "discreet.cli.fit",
    "check": "discreet.cli.check",
    "bench": "discreet.cli.bench",
    "service": "discreet.cli.service",
}
"""Command name -> module that defines the function ``command``, or a typer app ``app``."""

# Typer carries its own copy of click's exceptions; this is their common base, whichever copy.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


def _command_line() -> typer.Typer:
    commands = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    commands.callback()(_options)
    for name, module in _COMMANDS.items():
        part = importlib.import_module(module)
        if hasattr(part, "app"):
            commands.add_typer(part.app, name=name)
        else:
            commands.command(name)(part.command)
    return commands


def _show_version(wanted: bool) -> None:
    if wanted:
        import discreet

        say(f"discreet {discreet.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Reinforcement learning from people's data, without collecting it."""


app = _command_line()


def main() -> NoReturn:
    """Entry point: errors raised on purpose become one sentence and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except DiscreetError as error:
        _fail(str(error))
    except _USAGE_ERROR as error:
        _fail(error.format_message())  # type: ignore[attr-defined]
    except MemoryError:
        _fail("Not enough memory for a problem of this size; ask for fewer states or steps.")
    except (typer.Abort, KeyboardInterrupt):
        raise SystemExit(130) from None
    raise SystemExit(code if isinstance(code, int) else 0)


def _fail(sentence: str) -> NoReturn:
    if sentence:  # a command without arguments has shown its help instead
        warn(f"Error: {sentence}")
    raise SystemExit(2) from None
