"""The `discreet` command: one file per command, loaded when it is called.

A new command is one file with a function ``command`` (or a typer app ``app``) and one line in
``_COMMANDS``. ``--import`` and ``-h`` come by themselves.
"""

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from discreet.cli._console import echo_json, say, warn
from discreet.cli._options import importing
from discreet.errors import DiscreetError

_COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("list_", "List environments, learners, mechanisms and experiments."),
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
        self.commands = dict.fromkeys(_COMMANDS)  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported."""
        return _load(cmd_name) if cmd_name in _COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in _COMMANDS.items()])


@functools.cache
def _load(name: str) -> Any:
    """The command of a name, ready to be called."""
    part = importlib.import_module(f"discreet.cli.{_COMMANDS[name][0]}")
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


def main() -> NoReturn:
    """Entry point: errors raised on purpose become one sentence and exit code 2."""
    try:
        code = _plain_list(sys.argv[1:]) or _call(sys.argv[1:])
    except DiscreetError as error:
        _fail(str(error))
    except _USAGE_ERROR as error:
        _fail(error.format_message())  # type: ignore[attr-defined]
    except MemoryError:
        _fail("Not enough memory for a problem of this size; ask for fewer states or steps.")
    except (typer.Abort, KeyboardInterrupt):
        raise SystemExit(130) from None
    raise SystemExit(code if isinstance(code, int) and code is not True else 0)


def _call(arguments: list[str]) -> Any:
    """The command that was asked for; what `calibrate` has said before is said again."""
    if arguments[:1] != ["calibrate"]:
        return app(standalone_mode=False)
    from discreet.cli import _answers

    with _answers.kept(arguments) as known:
        return 0 if known else app(standalone_mode=False)


def _plain_list(arguments: list[str]) -> bool:
    """`discreet list` in its plain form: Typer's parser alone would double its time."""
    from discreet.cli import list_

    command, rest = arguments[:1], [word for word in arguments[1:] if word != "--json"]
    plain = command == ["list"] and len(rest) <= 1 and not any(w.startswith("-") for w in rest)
    if plain:
        list_.command("".join(rest), json="--json" in arguments)
    return plain


def _fail(sentence: str) -> NoReturn:
    """One sentence; a script that asked for JSON gets it as JSON where it reads its answers."""
    if sentence.startswith("Usage:"):  # no arguments at all: the help
        sys.stderr.write(sentence + "\n")
    elif "--json" in sys.argv:
        echo_json({"error": sentence})
    else:
        warn(f"Error: {sentence}")
    raise SystemExit(2) from None
