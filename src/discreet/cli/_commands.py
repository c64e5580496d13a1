"""The commands as Typer sees them: one file each, loaded when it is called.

A new command is one file with a function ``command`` (or a typer app ``app``) and one line in
``COMMANDS``. ``--import`` and ``-h`` come by themselves.
"""

import functools
import importlib
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from discreet.cli._console import say
from discreet.cli._options import importing
from discreet.errors import DiscreetError

COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("list_", "List environments, learners, mechanisms, experiments and papers."),
    "run": ("run", "Run an experiment (resumable): table, report page and pictures."),
    "plot": ("plot", "Draw the figures of a finished experiment as SVG and PNG."),
    "report": ("report", "Write the report page of a finished experiment."),
    "audit": ("audit", "Exact and empirical privacy of every mechanism."),
    "calibrate": ("calibrate", "What a guarantee costs: noise, messages and bytes."),
    "certify": ("certify", "Prove a guarantee by rigorous arithmetic, or check a proof."),
    "study": ("study", "A study with real people, over weeks: start, ask, tell, close."),
    "fit": ("fit", "Learn a policy from logged episodes, under a guarantee."),
    "check": ("check", "Conformance checks of environments, learners, mechanisms, studies."),
    "bench": ("bench", "Measure speed against peers (from a clone)."),
    "service": ("service", "Private learning from real devices: one command per role."),
}
"""Command name -> its module in this package, and what the list of commands says of it."""

# Typer carries its own copy of click's exceptions; this is their common base, whichever copy.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


class _Commands(TyperGroup):
    """A group whose commands are imported when they are called, not when they are listed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in COMMANDS.items()])


@functools.cache
def _load(name: str) -> Any:
    """The command of a name, ready to be called."""
    part = importlib.import_module(f"discreet.cli.{COMMANDS[name][0]}")
    made: typer.Typer = getattr(part, "app", None) or _single(name, part.command)
    for info in made.registered_commands:
        if info.callback is not None:
            info.callback = importing(info.callback)
    made.rich_markup_mode, made._add_completion = None, False  # plain help, in any width
    return typer.main.get_command(made)


def _single(name: str, command: Callable[..., None]) -> typer.Typer:
    made = typer.Typer()
    made.command(name)(command)
    return made


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


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(_options)


def call() -> object:
    """What was asked for, by the words of the command line.

    Raises:
        DiscreetError: words that no command understands.
        KeyboardInterrupt: the person gave up at a question.
    """
    try:
        return app(standalone_mode=False)
    except _USAGE_ERROR as error:
        raise DiscreetError(error.format_message()) from None  # type: ignore[attr-defined]
    except typer.Abort:
        raise KeyboardInterrupt from None
