"""A small TOML writer for plain values (the standard library only reads)."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, cast

from discreet import _validate
from discreet._types import Plain
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.papers.presets import get_preset
from discreet.privacy.trust import TRUST_MODELS, TrustModel, make_trust


def dumps(table: Mapping[str, Plain]) -> str:
    """Write nested dictionaries, lists and scalars as TOML.

    >>> print(dumps({"name": "x", "runs": 3, "learners": [{"name": "pe", "settings": {"b": 2}}]}))
    name = "x"
    runs = 3
    <BLANKLINE>
    [[learners]]
    name = "pe"
    settings = {b = 2}
    <BLANKLINE>
    """
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not _tables(value)]
    for key, value in table.items():
        for item in _tables(value):
            lines += ["", f"[[{_key(key)}]]"]
            lines += [f"{_key(name)} = {_value(inner)}" for name, inner in item.items()]
    return "\n".join(lines) + "\n"


def _tables(value: Plain) -> list[Mapping[str, Plain]]:
    """The tables of a list of nothing but tables; none if it is anything else."""
    if not isinstance(value, list):
        return []
    tables = [item for item in value if isinstance(item, Mapping)]
    return tables if len(tables) == len(value) else []


def _key(name: str) -> str:
    """Bare where TOML allows it: a dot in a bare key would open a table."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    """A JSON string is a TOML string, but for one character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Plain) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
        )
    if value is None:
        raise InvalidInputError("Expected a value that TOML can say, got None; leave the key out.")
    return "[" + ", ".join(_value(item) for item in value) + "]"


# The experiments that come with discreet, as text: names and titles without reading them whole.


def experiment_names() -> list[str]:
    """The shipped experiments."""
    folder = resources.files("discreet.lab") / "experiments"
    if not folder.is_dir():
        return []
    return sorted(
        p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")
    )


def text(name: str) -> str:
    """The file of a shipped experiment."""
    return (resources.files("discreet.lab") / "experiments" / f"{name}.toml").read_text("utf-8")


def titles() -> dict[str, str]:
    return {name: str(tomllib.loads(text(name))["title"]) for name in experiment_names()}


# Experiment files: TOML in, frozen dataclasses behind, TOML out.
#
# An experiment is environments x learners x trust models x epsilons x episodes, each repeated
# `runs`
# times on common random numbers. An unknown key is an error with a suggestion, never ignored.


_VARIANT_KEYS = ("runs", "episodes")
_MOST_RUNS = 100_000
_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # never a path


class Titled:
    """What tables and legends show under a name of its own."""

    name: str
    label: str

    @property
    def title(self) -> str:
        return self.label or self.name


@dataclass(frozen=True, kw_only=True)
class EnvironmentRow(Titled):
    """One environment: its registered name, its parameters, and what changes from run to run.

    Attributes:
        name: as in `discreet list`.
        parameters: keyword arguments of the environment.
        relabel: permute the actions at random in every run, so that no fixed action is special.
        vary: a parameter that takes the run's number (for instance ``"seed"`` of RandomMDP).
        label: shown in tables and legends.
    """

    name: str
    parameters: Mapping[str, Plain] = field(default_factory=dict)
    relabel: bool = True
    vary: str = ""
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class TrustRow:
    """One trust model with a list of epsilons."""

    model: str
    epsilon: tuple[float, ...] = ()
    delta: float = 0.0
    mechanism: str = "auto"
    calibration: str = "exact"

    def __post_init__(self) -> None:
        if self.model not in TRUST_MODELS:
            raise UnknownNameError("trust model", self.model, TRUST_MODELS)
        if self.model != "none" and not self.epsilon:
            raise InvalidInputError(
                f"Expected at least one epsilon for trust model {self.model!r}, got none; "
                f"give one: --epsilon 1, or epsilon = [1.0] in a file."
            )
        self._refuse_options_of_none()

    def _refuse_options_of_none(self) -> None:
        """No privacy promises nothing: an option beside it would be ignored."""
        for item in fields(self) if self.model == "none" else ():
            value = getattr(self, item.name)
            if item.name != "model" and value != item.default:
                raise InvalidInputError(
                    f"Expected no options beside trust model 'none', which promises nothing, got "
                    f"{item.name}={value!r}; leave it out, or choose central, local or shuffle."
                )

    def models(self) -> Iterator[TrustModel]:
        """One configured trust model per epsilon."""
        if self.model == "none":
            yield make_trust(self.model)
        for epsilon in self.epsilon:
            yield make_trust(
                self.model,
                epsilon=epsilon,
                delta=self.delta,
                mechanism=self.mechanism,
                calibration=self.calibration,
            )


@dataclass(frozen=True, kw_only=True)
class LearnerRow(Titled):
    """One learner with its settings and the trust models it runs under.

    Attributes:
        name: as in `discreet list`.
        settings: keyword arguments of the learner (``constants = "practical"``, ...).
        trusts: trust models by name; empty means all of the experiment's that it can use.
        environments: environments by label; empty means all.
        max_episodes: skip longer runs (a stream learner pays per episode, a batch one does not).
        label: shown in tables and legends.
        panel: pictures along the episodes draw learners of one panel together, and those of others
            beside them on the same axes; colours go by what stands behind ``: `` in the label.
        paper: a preset instead (`discreet list papers`): its learner with its settings (those given
            here win) under its own trust model, whatever the experiment's are.
        epsilon: of a preset.
        delta: of a preset; 0 is its own.
        calibration: of a preset: ``"exact"`` instead of as printed.
    """

    name: str
    settings: Mapping[str, Plain] = field(default_factory=dict)
    trusts: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    max_episodes: int = 0
    label: str = ""
    panel: str = ""
    paper: str = ""
    epsilon: tuple[float, ...] = ()
    delta: float = 0.0
    calibration: str = ""

    def __post_init__(self) -> None:
        given = [n for n in ("epsilon", "delta", "calibration") if getattr(self, n)]
        if given and not self.paper:
            raise InvalidInputError(
                f"Expected {given[0]} of learner {self.name!r} in a [[trusts]] table, got "
                f"{given[0]}={getattr(self, given[0])!r}; beside a learner it belongs to paper =."
            )

    def trust_rows(self, trusts: "tuple[TrustRow, ...]") -> "tuple[TrustRow, ...]":
        """The experiment's trust models, or the one of the preset."""
        if not self.paper:
            return trusts
        preset = get_preset(self.paper)
        row = TrustRow(
            model=preset.trust,
            epsilon=self.epsilon,
            delta=self.delta or preset.delta,
            mechanism=preset.mechanism,
            calibration=preset.noise(self.calibration),
        )
        return (row,)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A whole experiment, resolved."""

    name: str
    title: str
    description: str = ""
    paper: str = "ours"
    expect: str = ""
    plots: tuple[str, ...] = ("regret",)
    seed: int = 0
    runs: int = 20
    episodes: tuple[int, ...] = (20_000,)
    environments: tuple[EnvironmentRow, ...] = ()
    learners: tuple[LearnerRow, ...] = ()
    trusts: tuple[TrustRow, ...] = ()
    variants: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    """Modules to import first, for the learners, environments and mechanisms they register."""

    def __post_init__(self) -> None:
        if not _FOLDER_NAME.fullmatch(self.name):
            raise InvalidInputError(
                f"Expected a name of letters, digits, '.', '_' and '-', which also names the "
                f"result folder, got name={self.name!r}."
            )
        _validate.count(runs=self.runs)
        _validate.at_most(_MOST_RUNS, "each has a file of its own", runs=self.runs)
        _validate.count(0, seed=self.seed)
        for episodes in self.episodes:
            _validate.count(episodes=episodes)
        for key, part in (("environments", self.environments), ("learners", self.learners)):
            if not part:
                raise InvalidInputError(
                    f"Experiment {self.name!r} has no {key}; add a [[{key}]] table."
                )

    def variant(self, name: str) -> "Experiment":
        """The experiment with the keys of ``[variants.<name>]`` replaced."""
        if not self.variants:
            raise InvalidInputError(
                f"Experiment {self.name!r} has no {name} variant: add a table [variants.{name}] "
                f"with runs and episodes to its file, or give --runs and --episodes."
            )
        if name not in self.variants:
            raise UnknownNameError(f"variant of experiment {self.name!r}", name, self.variants)
        changes = self.variants[name]
        return replace(
            self,
            runs=cast(int, changes.get("runs", self.runs)),  # checked like any other
            episodes=_integers(changes.get("episodes", self.episodes), "episodes"),
        )

    def to_toml(self) -> str:
        """The resolved experiment as TOML; reading it back gives an equal experiment."""
        return dumps(_plain(self))


def load_experiment(source: str | Path) -> Experiment:
    """Read an experiment by shipped name or from a TOML file.

    Raises:
        UnknownNameError: neither a file nor a shipped name.
        InvalidInputError: the file is not valid TOML, or a key or type is wrong.
    """
    path = Path(source)
    if path.suffix == ".toml":
        if not path.is_file():
            raise InvalidInputError(
                f"Expected an experiment file, got {str(path)!r}: no such file."
            )
        return parse_experiment(_text(path), origin=str(path))
    if str(source) not in experiment_names() and path.suffix:
        raise InvalidInputError(
            f"Expected a shipped experiment or a file that ends in .toml, got {str(path)!r}."
        )
    if str(source) not in experiment_names():
        raise UnknownNameError("experiment", str(source), experiment_names())
    return parse_experiment(text(str(source)), origin=f"{source}.toml")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInputError(
            f"Expected an experiment file that can be read, got {str(path)!r}: {reason}."
        ) from None


def parse_experiment(text: str, origin: str = "experiment") -> Experiment:
    r"""Build an experiment from TOML text.

    >>> parse_experiment('name = "x"\ntitle = "X"\nrun = 3')
    Traceback (most recent call last):
    ...
    discreet.errors.UnknownNameError: Unknown key of an experiment 'run'; did you mean 'runs'?
    """
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInputError(f"{origin} is not valid TOML: {error}.") from None
    kinds = {"environments": EnvironmentRow, "learners": LearnerRow, "trusts": TrustRow}
    parts: dict[str, object] = {
        key: tuple(
            _build(kind, _with_preset(table, origin), origin)
            for table in _spec_tables(raw, key, origin)
        )
        for key, kind in kinds.items()
    }
    variants = raw.pop("variants", {})
    if not isinstance(variants, dict) or not all(isinstance(v, dict) for v in variants.values()):
        raise InvalidInputError(f"{origin}: expected variants to be tables [variants.name].")
    for table in variants.values():
        for key in table:
            if key not in _VARIANT_KEYS:
                raise UnknownNameError("key of a variant", key, _VARIANT_KEYS)
    experiment: Experiment = _build(Experiment, raw, origin, variants=variants, **parts)
    return experiment


def _spec_tables(raw: dict[str, Any], key: str, origin: str) -> list[dict[str, Plain]]:
    """The tables ``[[key]]``, taken out of ``raw``."""
    tables = raw.pop(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidInputError(f"{origin}: expected {key} to be tables [[{key}]], got {tables!r}.")
    return tables


def _with_preset(table: dict[str, Any], origin: str) -> dict[str, Any]:
    """A learner that is given as a paper has the preset's name, settings and label."""
    if not table.get("paper"):
        return table
    preset = get_preset(table["paper"])
    own = table.get("settings", {})
    if not isinstance(own, dict):
        raise InvalidInputError(f"{origin}: expected settings to be a table, got {own!r}.")
    if table.get("name", preset.learner) != preset.learner:
        raise InvalidInputError(
            f"{origin}: expected paper = {preset.name!r} without a name, since it runs "
            f"{preset.learner!r}, got name = {table['name']!r}; leave one of the two out."
        )
    usual = {"name": preset.learner, "label": preset.title(table.get("calibration"))}
    return {**usual, **table, "settings": {**preset.settings, **own}}


_KINDS: dict[str, tuple[str, ...]] = {
    "number": ("delta",),
    "integer": ("seed", "runs", "max_episodes"),
    "true or false": ("relabel",),
    "a table": ("parameters", "settings"),
    "a list of words": ("plots", "trusts", "environments", "imports"),
}


_CALLED: dict[type[Any], str] = {
    EnvironmentRow: "[[environments]]",
    LearnerRow: "[[learners]]",
    TrustRow: "[[trusts]]",
}


def _build(cls: type[Any], table: Mapping[str, Plain], origin: str, **known: object) -> Any:
    names = {f.name for f in fields(cls)}
    kind = _CALLED.get(cls, "an experiment")
    for key in table:
        if key not in names or key in known:
            raise UnknownNameError(f"key of {kind}", key, names)
    values = {key: _convert(key, value, origin) for key, value in table.items()}
    for required in ("name", "model", "title"):
        if required in names and required not in values:
            raise InvalidInputError(f"{origin}: {kind} needs the key {required!r}.")
    return cls(**values, **known)


def _convert(key: str, value: Plain, origin: str) -> object:
    if key == "episodes":
        return _integers(value, key)
    if key == "epsilon":
        listed = value if isinstance(value, list) else [value]
        for item in listed:
            _validate.positive(epsilon=item)
        return tuple(map(float, listed))
    kind = next((k for k, keys in _KINDS.items() if key in keys), "text")
    good = {
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "true or false": isinstance(value, bool),
        "a table": isinstance(value, dict),
        "a list of words": isinstance(value, list) and all(isinstance(v, str) for v in value),
        "text": isinstance(value, str),
    }[kind]
    if not good:
        raise InvalidInputError(f"{origin}: expected {key} to be {kind}, got {value!r}.")
    return tuple(value) if isinstance(value, list) else value


def _integers(value: object, key: str) -> tuple[int, ...]:
    listed: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    # 1e6 is how people write a million
    whole = [int(v) if isinstance(v, float) and v.is_integer() else v for v in listed]
    for item in whole:
        _validate.count(**{key: item})
    return tuple(map(int, whole))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value
