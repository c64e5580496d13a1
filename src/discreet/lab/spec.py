"""Experiment files: TOML in, frozen dataclasses behind, TOML out.

An experiment is environments x learners x trust models x epsilons x episodes, each repeated
``runs`` times on common random numbers. An unknown key is an error with a suggestion.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import _settings, _validate
from discreet.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from discreet.privacy.trust import TrustModel

_SHIPPED = resources.files("discreet.lab") / "experiments"
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
    parameters: Mapping[str, Any] = field(default_factory=dict)
    relabel: bool = True
    vary: str = ""
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class TrustRow:
    """One trust model with a list of epsilons.

    Attributes:
        model: ``"none"``, ``"central"``, ``"shuffle"`` or ``"local"``.
        epsilon: a list; each one gets runs of its own.
        delta: of the guarantee; 0 asks for a pure epsilon.
        mechanism: as in `discreet list`; ``"auto"`` takes the default of the trust model.
        calibration: ``"exact"``, or ``"paper"`` for printed constants.
        participations: how many episodes of one person are protected together.
        separation: of a central continual release, the least number of episodes between two of one
            person.
    """

    model: str
    epsilon: tuple[float, ...] = ()
    delta: float = 0.0
    mechanism: str = "auto"
    calibration: str = "exact"
    participations: int = 1
    separation: int = 1

    def __post_init__(self) -> None:
        from discreet.privacy.trust import TRUST_MODELS

        if self.model not in TRUST_MODELS:
            raise UnknownNameError("trust model", self.model, TRUST_MODELS)
        for epsilon in self.epsilon:
            _validate.positive(epsilon=epsilon)
        if self.model != "none" and not self.epsilon:
            raise InvalidInputError(
                f"Expected at least one epsilon for trust model {self.model!r}, got none; "
                f"give one: --epsilon 1, or epsilon = [1.0] in a file."
            )
        for item in fields(self)[1:] if self.model == "none" else ():
            value = getattr(self, item.name)
            if value != item.default:  # it would be ignored
                raise InvalidInputError(
                    f"Expected no options beside trust model 'none', which guarantees nothing, got "
                    f"{item.name}={value!r}; leave it out, or choose central, local or shuffle."
                )

    def models(self) -> "Iterator[TrustModel]":
        """One configured trust model per epsilon."""
        from discreet.privacy.trust import make_trust

        if self.model == "none":
            yield make_trust(self.model)
        for epsilon in self.epsilon:
            yield make_trust(
                self.model,
                epsilon=epsilon,
                delta=self.delta,
                mechanism=self.mechanism,
                calibration=self.calibration,
                participations=self.participations,
                separation=self.separation,
            )


@dataclass(frozen=True, kw_only=True)
class LearnerRow(Titled):
    """One learner with its settings and the trust models it runs under.

    Attributes:
        name: as in `discreet list`.
        settings: keyword arguments of the learner (``constants = "practical"``, ...).
        trusts: trust models by name; empty means all of the experiment's that it can use.
        environments: environments by label; empty means all.
        max_episodes: skip longer runs (a continual learner pays per episode, a batch one not).
        label: shown in tables and legends.
        panel: a title; pictures along the episodes draw the learners of each panel on axes of their
            own, with one legend; colours go by what stands behind ``: `` in the label.
        paper: a preset instead of ``name`` (`discreet list papers`), under its own trust model;
            ``settings`` replace printed ones.
        epsilon: of a preset.
        delta: of a preset; 0 is its own.
        calibration: of a preset: ``"exact"`` instead of as printed.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
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
        from discreet.papers.presets import get_preset

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
    """A whole experiment, resolved.

    Attributes:
        name: also the name of the result folder.
        title: of the report page.
        description: for people.
        paper: what is rebuilt; ``"ours"`` if nothing is.
        expect: what is expected, in words for people.
        plots: which pictures are drawn.
        seed: one integer that fixes every random draw.
        runs: how often every combination is repeated.
        episodes: numbers of users; each has runs of its own.
        environments: one `EnvironmentRow` for each table ``[[environments]]``.
        learners: one `LearnerRow` for each table ``[[learners]]``.
        trusts: one `TrustRow` for each table ``[[trusts]]``.
        variants: what ``--quick`` replaces, in the table ``[variants.quick]``.
        imports: modules to import first, for what they register.
    """

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
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    imports: tuple[str, ...] = ()

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
        return replace(self, **_listed(dict(self.variants[name]), "episodes"))

    def only(self, learner: str | None, epsilon: float | None) -> "Experiment":
        """The experiment with the lines of one learner, and with one epsilon; None: as it is."""
        kept = tuple(row for row in self.learners if learner in (None, row.name))
        if not kept:
            names = dict.fromkeys(row.name for row in self.learners)
            raise UnknownNameError(f"learner of experiment {self.name!r}", str(learner), names)
        if epsilon is None:
            return replace(self, learners=kept)
        one = (epsilon,)
        return replace(
            self,
            learners=tuple(replace(row, epsilon=one) if row.epsilon else row for row in kept),
            trusts=tuple(replace(row, epsilon=one) if row.epsilon else row for row in self.trusts),
        )

    def to_toml(self) -> str:
        """The resolved experiment as TOML; reading it back gives an equal experiment."""
        return _settings.to_toml(_settings.to_plain(self))


def experiment_names() -> list[str]:
    """The shipped experiments."""
    files = _SHIPPED.iterdir() if _SHIPPED.is_dir() else ()
    return sorted(path.name.removesuffix(".toml") for path in files if path.name.endswith(".toml"))


def titles() -> dict[str, str]:
    """What the shipped experiments are called, by name; for lists, they are not checked."""
    return {name: str(_shipped(name)["title"]) for name in experiment_names()}


def _shipped(name: str) -> dict[str, Any]:
    return _settings.parse_toml((_SHIPPED / f"{name}.toml").read_bytes())


def load_experiment(source: str | Path) -> Experiment:
    """Read an experiment by shipped name or from a TOML file.

    Raises:
        UnknownNameError: neither a file nor a shipped name.
        InvalidInputError: the file is not valid TOML, or a key or type is wrong.
    """
    path, name = Path(source), str(source)
    if path.suffix == ".toml":
        return make_experiment(_settings.read_toml(path), place=name)
    if name in experiment_names():
        return make_experiment(_shipped(name), place=f"{name}.toml")
    if path.suffix:
        raise InvalidInputError(
            f"Expected a shipped experiment or a file that ends in .toml, got {name!r}."
        )
    raise UnknownNameError("experiment", name, experiment_names())


def parse_experiment(text: str, place: str = "experiment") -> Experiment:
    r"""Build an experiment from TOML text.

    >>> parse_experiment('name = "x"\ntitle = "X"\nrun = 3')
    Traceback (most recent call last):
    ...
    discreet.errors.UnknownNameError: Unknown key of an experiment 'run'; did you mean 'runs'?
    """
    try:
        return make_experiment(_settings.parse_toml(text.encode()), place)
    except InvalidInputError:
        raise
    except ValueError as error:
        raise InvalidInputError(f"Cannot read {place}: {error}.") from None


def make_experiment(table: dict[str, Any], place: str = "experiment") -> Experiment:
    """Build an experiment from a table as TOML has it."""
    table = _listed(table, "episodes")
    for key in ("learners", "trusts"):
        rows = table.get(key, ())
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            listed = (_listed(row, "epsilon") for row in rows)
            table[key] = [_with_preset(row) if row.get("paper") else row for row in listed]
    made = _settings.make(Experiment, table, called="an experiment", place=place)
    for changes in made.variants.values():
        _settings.check_names("key of a variant", changes, _VARIANT_KEYS)
    return made


def _listed(table: dict[str, Any], key: str) -> dict[str, Any]:
    """The table with a list under ``key``, also of a single number; 1e6 is a whole number."""
    if key not in table:
        return table
    listed = table[key] if isinstance(table[key], list | tuple) else [table[key]]
    if key == "episodes":
        listed = [int(v) if isinstance(v, float) and v.is_integer() else v for v in listed]
    return {**table, key: tuple(listed)}


def _with_preset(table: dict[str, Any]) -> dict[str, Any]:
    """A learner that is given as a paper has the preset's name, settings and label."""
    from discreet.papers.presets import get_preset

    preset = get_preset(table["paper"])
    if table.get("name", preset.learner) != preset.learner:
        raise InvalidInputError(
            f"Expected paper = {preset.name!r} without a name, since it runs "
            f"{preset.learner!r}, got name = {table['name']!r}; leave one of the two out."
        )
    own = table.get("settings", {})
    if not isinstance(own, dict):
        return {"name": preset.learner, **table}  # refused with all other settings that are none
    label = preset.title(table.get("calibration"), literal=bool(own.get("literal", True)))
    usual = {"name": preset.learner, "label": label}
    return {**usual, **table, "settings": preset.chosen(own)}
