"""Options that commands share, and groups: a dataclass in place of a dozen parameters."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Json = Annotated[bool, typer.Option("--json", help="JSON for scripts.")]
Head = Annotated[
    str | None,
    typer.Option(help="The study's head that you noted last: an older copy is refused."),
]
ResultFolder = Annotated[Path, typer.Argument(help="A result folder of `discreet run`.")]


def whole(text: str | int, option: str) -> int:
    """A whole number as people write it.

    >>> whole("2e5", "--users"), whole("20_000", "--users")
    (200000, 20000)
    """
    from discreet.errors import InvalidInputError

    try:
        number = float(str(text).replace("_", ""))
    except ValueError:
        number = float("nan")
    if not number.is_integer():
        raise InvalidInputError(f"Expected {option} to be whole numbers such as 2e5, got {text!r}.")
    return int(number)


def _users(text: str | int) -> int:
    return whole(text, "--users")


def users_option(description: str) -> Any:
    """``--users``, which takes 20000 and 1e6 alike."""
    return typer.Option(help=description, parser=_users, metavar="<int>")


def importing(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the option ``--import``, whose modules are imported before it is called."""
    kind = Annotated[
        list[str] | None,
        typer.Option("--import", metavar="MODULE", help="Import a module of your own first."),
    ]
    added = Parameter("imports", Parameter.KEYWORD_ONLY, default=None, annotation=kind)

    @functools.wraps(command)
    def call(*, imports: list[str] | None = None, **values: object) -> None:
        from discreet import _plugins

        _plugins.import_modules(imports or ())
        command(**values)

    given = inspect.signature(command)
    call.__annotations__ = {**command.__annotations__, "imports": kind}
    vars(call)["__signature__"] = given.replace(parameters=[*given.parameters.values(), added])
    return call


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command for Typer: each parameter that is a dataclass becomes one option per field.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     states: int = 4
    ...     actions: int = 2
    >>> list(inspect.signature(grouped(lambda size: None)).parameters)
    ['size']
    >>> def command(name: str, size: Size) -> None:
    ...     print(name, size)
    >>> str(inspect.signature(grouped(command)))
    '(*, name: str, states: int = 4, actions: int = 2) -> None'
    >>> grouped(command)(name="x", states=3, actions=2)
    x Size(states=3, actions=2)
    """
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters
    groups = {name: hints[name] for name in given if is_dataclass(hints.get(name))}
    flat: list[Parameter] = []
    for name, parameter in given.items():
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            flat += [_parameter(field, types[field.name]) for field in fields(groups[name])]
        else:
            kind = hints.get(name, Parameter.empty)
            flat.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind))

    def call(**values: object) -> None:
        for name, group in groups.items():
            own = {field.name: values.pop(field.name) for field in fields(group)}
            values[name] = group(**own)
        command(**values)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    vars(call)["__signature__"] = inspect.Signature(flat, return_annotation=None)
    return call


def _parameter(field: "Field[object]", annotation: object) -> Parameter:
    default = Parameter.empty if field.default is MISSING else field.default
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
