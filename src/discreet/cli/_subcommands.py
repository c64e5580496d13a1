"""A command that has commands of its own: one file each."""

import importlib

import typer


def subcommands(package: str, sentence: str, names: tuple[str, ...]) -> typer.Typer:
    """The commands of a package, each the function ``command`` of the module of its name.

    Args:
        package: that has the modules.
        sentence: what the help says of all of them.
        names: in the order of the help.
    """
    app = typer.Typer(help=sentence, no_args_is_help=True)
    for name in names:
        app.command(name)(importlib.import_module(f"{package}.{name}").command)
    return app
