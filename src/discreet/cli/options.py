"""Options that commands share, alone and in groups: a dataclass in place of a dozen parameters."""

import ast
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet._types import Plain
    from discreet.mdp.shape import Shape
    from discreet.privacy.trust import TrustModel

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Head = Annotated[
    str | None,
    typer.Option(help="The head that you noted last. An older copy of the study is refused."),
]

Force = Annotated[
    bool,
    typer.Option("--force", help="Write over a file that is there."),
]


def whole(text: str | int, option: str) -> int:
    """A whole number as people write it.

    >>> whole("2e5", "--users"), whole("20_000", "--users")
    (200000, 20000)
    """
    try:
        number = float(str(text).replace("_", ""))
    except ValueError:
        number = float("nan")
    if not number.is_integer():
        raise InvalidInputError(f"Expected {option} to be whole numbers such as 2e5, got {text!r}.")
    return int(number)


def users_option(description: str, option: str = "--users") -> Any:
    """A number of people, which is 20000 and 2e4 alike."""
    parser = functools.partial(whole, option=option)
    return typer.Option(help=description, parser=parser, metavar="<int>")


def importing(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the option ``--import``, whose modules are imported before it is called."""
    kind = Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="A module to import first, with learners or environments of your own.",
        ),
    ]
    added = Parameter("imports", Parameter.KEYWORD_ONLY, default=None, annotation=kind)

    @functools.wraps(command)
    def call(*, imports: list[str] | None = None, **values: object) -> None:
        from discreet import _registry

        _registry.import_modules(imports or ())
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
            for field in fields(groups[name]):
                usual = Parameter.empty if field.default is MISSING else field.default
                own = {"default": usual, "annotation": types[field.name]}
                flat.append(Parameter(field.name, Parameter.KEYWORD_ONLY, **own))
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


@dataclass(frozen=True)
class GuaranteeOptions:
    """Options on the guarantee, and to whom it is given."""

    epsilon: Annotated[
        float | None,
        typer.Option(help="Epsilon of the guarantee. 1 if neither --epsilon nor --rho is given."),
    ] = None
    delta: Annotated[
        float, typer.Option(help="Delta of the guarantee. 0 asks for pure differential privacy.")
    ] = 1e-6
    rho: Annotated[
        float | None,
        typer.Option(
            help="Central trust: a budget of zero-concentrated privacy instead of epsilon."
        ),
    ] = None
    trust: Annotated[
        str, typer.Option(help="central, local, shuffle or none. All of them if left out.")
    ] = ""
    mechanism: Annotated[
        str,
        typer.Option(
            help="Mechanism. Left out: central takes the least noise, local and shuffle the first "
            "of `discreet list mechanisms`."
        ),
    ] = "auto"
    participations: Annotated[
        int, typer.Option(help="How many episodes of one person are protected together.")
    ] = 1
    honest: Annotated[
        float, typer.Option(help="Shuffle: the fraction of users who add their noise honestly.")
    ] = 1.0

    @property
    def wanted(self) -> float:
        """The epsilon that was asked for, unless by rho."""
        return 1.0 if self.epsilon is None else self.epsilon

    def model(self, trust: str, calibration: str = "exact") -> "TrustModel":
        """The trust model of a name with this guarantee."""
        from discreet.privacy.trust import make_trust

        if self.trust not in ("", "shuffle") and self.honest != 1:
            raise InvalidInputError(
                f"--honest belongs to --trust shuffle, got --trust {self.trust}; leave it out."
            )
        if self.rho is not None and self.trust != "central":
            raise InvalidInputError(
                f"--rho belongs to --trust central, where noise is Gaussian, got --trust "
                f"{self.trust or '(all)'}; give --trust central, or --epsilon instead of --rho."
            )
        if self.rho is not None and self.epsilon is not None:
            raise InvalidInputError(
                f"--rho stands instead of --epsilon, got --rho {self.rho!r} --epsilon "
                f"{self.epsilon!r}; leave one of them out."
            )
        if trust == "none":
            return make_trust(trust)
        return make_trust(
            trust,
            **({"epsilon": self.wanted} if self.rho is None else {"rho": self.rho}),
            delta=self.delta,
            mechanism=self.mechanism,
            calibration=calibration,
            participations=self.participations,
            **({"honest": self.honest} if trust == "shuffle" else {}),
        )


@dataclass(frozen=True)
class ReleaseOptions:
    """Options on what is released: the problem's size, its users, the counters."""

    states: Annotated[int, typer.Option(help="Number of states.")] = 4
    actions: Annotated[int, typer.Option(help="Number of actions.")] = 2
    horizon: Annotated[int, typer.Option(help="Steps per episode.")] = 6
    users: Annotated[int, users_option("Users of a batch, or of a continual release.")] = 20_000
    statistics: Annotated[
        str,
        typer.Option(
            help="Counters to release, separated by commas. Left out: transitions,visits,rewards, "
            "or what learners ask the mechanism for, where that is less."
        ),
    ] = ""
    stationary: Annotated[
        bool,
        typer.Option("--stationary", help="Add up the counters of all steps (continual release)."),
    ] = False

    @property
    def shape(self) -> "Shape":
        from discreet.mdp.shape import Shape

        return Shape(states=self.states, actions=self.actions, horizon=self.horizon)

    @property
    def counters(self) -> tuple[str, ...] | None:
        """The statistics by name; None if the choice is left open."""
        if not self.statistics:
            return None
        return tuple(name.strip() for name in self.statistics.split(","))


# Settings given as name=value.


def parse_value(text: str) -> "Plain":
    """A Python literal if it reads as one, else the text itself; ``2e5`` is the integer 200000.

    >>> [parse_value(t) for t in ("4", "2e5", "0.5", "true", "S..G")]
    [4, 200000, 0.5, True, 'S..G']
    """
    words: dict[str, bool | None] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two: absurd nesting
        return text
    if not isinstance(value, int | float | str | list | tuple | dict):
        return text  # bytes, sets and complex numbers are nobody's settings
    if isinstance(value, float) and "e" in text.lower() and value.is_integer():
        return int(value)
    return value


def parse_settings(texts: Iterable[str], option: str = "--set") -> "dict[str, Plain]":
    """``["states=4", "slip=0.1"]`` as a dictionary."""
    settings: dict[str, Plain] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidInputError(f"Expected {option} name=value, got {option} {text!r}.")
        settings[name.strip()] = parse_value(value.strip())
    return settings


# Names that a shell completes.


Names = Callable[[str], list[str]]


def _completed(module: str, known: str, **options: bool) -> Names:
    """Those of a module that begin as typed; it is loaded when a shell asks."""

    def complete(incomplete: str) -> list[str]:
        names = getattr(importlib.import_module(module), known)
        found = names(**options) if callable(names) else names
        return [name for name in found if name.lower().startswith(incomplete.lower())]

    return complete


experiments = _completed("discreet.lab.spec", "experiment_names")
learners = _completed("discreet.learners.registry", "learner_names")
environments = _completed("discreet.mdp.environments.registry", "environment_names", optional=True)
trusts = _completed("discreet.privacy.trust", "TRUST_MODELS")
papers = _completed("discreet.papers.presets", "preset_names")
