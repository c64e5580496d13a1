"""The `discreet` command, from its words to its exit code.

A command is a function of a module of this package and a line in `COMMANDS`; a group of commands is
a ``typer.Typer`` in a module, with its commands on it. Modules are imported when they are called,
not when they are listed. ``--import`` and ``-h`` come by themselves.
"""

import functools
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from discreet.cli.output import (
    UnwrittenError,
    close_output,
    echo_json,
    noted,
    open_streams,
    say,
    warn,
)
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    import typer

COMMANDS: dict[str, tuple[str, str]] = {
    "list": (
        "list_:command",
        "List environments, learners, mechanisms, experiments and papers.",
    ),
    "run": ("run:command", "Run an experiment (resumable): table, report page and pictures."),
    "plot": ("run:plot", "Draw the figures of a finished experiment, for a page or a paper."),
    "report": ("run:report", "Write the report page of a finished experiment."),
    "cite": ("run:cite", "BibTeX of discreet and of the papers behind a run or a learner."),
    "audit": ("check:audit", "Exact and empirical privacy of every mechanism."),
    "calibrate": ("calibrate:command", "What a guarantee costs: noise, messages and bytes."),
    "certify": ("certify:command", "Prove a guarantee by rigorous arithmetic, or check a proof."),
    "design": ("study:design", "Write a first design for a table, by looking at its header."),
    "plan": ("plan:command", "What a study of each size and guarantee finds, before it starts."),
    "study": ("study:app", "A study with real people, over weeks: start, ask, tell, close."),
    "fit": ("fit:command", "Learn a policy from logged episodes, under a guarantee."),
    "check": ("check:app", "Check environments, learners, mechanisms, or a table of yours."),
    "bench": ("bench:command", "Measure speed against peers (from a clone)."),
    "service": ("service:app", "Private learning from real devices: one command per role."),
}
"""Command name -> module and function (or group) in this package, and what the help says of it."""


def main() -> NoReturn:
    """Entry point: errors raised on purpose become one sentence and exit code 2."""
    # Matrices are small and many: threads that wait for each other take several times as long,
    # above all on a busy machine. Whoever sets the variable is heard.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    open_streams()
    try:
        code = _coded(sys.argv[1:])
        sys.stdout.flush()
    except UnwrittenError as unwritten:
        close_output()
        error = unwritten.args[0]
        if not isinstance(error, BrokenPipeError):  # who has read enough (`discreet list | head`)
            warn(
                f"Error: standard output takes no more: {error.strerror}. What the command wrote "
                f"to files is whole; ask again for what it says."
            )
        code = 1
    except KeyboardInterrupt:
        code = 130
    raise SystemExit(code)


def _coded(words: Sequence[str]) -> int:
    """Do what was asked for; the exit code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = noted()
            code = _answered(words)
    except DiscreetError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("Not enough memory for a problem of this size; ask for fewer states or steps.")
    except OSError as error:
        if error.filename is None:
            raise
        return _fail(
            f"Cannot use {str(error.filename)!r}: {error.strerror}; check path and permissions."
        )
    return code if isinstance(code, int) else 0


def _fail(sentence: str) -> int:
    """One sentence; a script that asked for JSON gets it as JSON where it reads its answers."""
    if sentence.startswith("Usage:"):  # no arguments at all: the help
        sys.stderr.write(sentence + "\n")
    elif "--json" in sys.argv:
        echo_json({"error": sentence})
    else:
        warn(f"Error: {sentence}")
    return 2


def _answered(words: Sequence[str]) -> object:
    """Do what was asked for."""
    rest = [word for word in words[1:] if word != "--json"]
    if words[:1] == ["list"] and len(rest) <= 1 and not any(w.startswith("-") for w in rest):
        from discreet.cli.list_ import command  # without a parser: it takes longer than the answer

        command("".join(rest), json="--json" in words)
        return 0
    return call()


def call() -> object:
    """What was asked for, by the words of the command line.

    Raises:
        DiscreetError: words that no command understands.
        KeyboardInterrupt: the person gave up at a question.
    """
    import typer

    # Typer carries its own copy of click's exceptions; this is their common base, whichever copy.
    usage_error: type[Exception] = typer.BadParameter.__mro__[2]
    try:
        return make_app()(standalone_mode=False)
    except usage_error as error:
        raise DiscreetError(error.format_message()) from None  # type: ignore[attr-defined]
    except typer.Abort:
        raise KeyboardInterrupt from None


def make_app() -> "typer.Typer":
    """All commands, as Typer sees them."""
    import typer
    from typer.core import TyperGroup

    class Commands(TyperGroup):
        """Commands that are imported when they are called, not when they are listed."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]

        def list_commands(self, ctx: Any) -> list[str]:
            return list(COMMANDS)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return _load(cmd_name) if cmd_name in COMMANDS else None

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(name, sentence) for name, (_, sentence) in COMMANDS.items()])

    def show_version(wanted: bool) -> None:
        if wanted:
            import discreet

            say(f"discreet {discreet.__version__}")
            raise typer.Exit

    version = typer.Option("--version", help="Show the version.", is_eager=True)
    version.callback = show_version

    def options(version: Annotated[bool, version] = False) -> None:
        """What stands before a command."""

    app = typer.Typer(
        cls=Commands,
        help="Reinforcement learning from people's data, "
        "under a differential-privacy guarantee that is true.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    return app


@functools.cache
def _load(name: str) -> Any:
    import typer

    from discreet.cli.options import importing

    module, _, attribute = COMMANDS[name][0].partition(":")
    made = getattr(importlib.import_module(f"discreet.cli.{module}"), attribute)
    if not isinstance(made, typer.Typer):
        function, made = made, typer.Typer()
        made.command(name)(function)
    for info in made.registered_commands:
        if info.callback is not None:
            info.callback = importing(info.callback)
    made.rich_markup_mode, made._add_completion = None, False  # plain help, in any width
    return typer.main.get_command(made)
