"""How a table is to be read: which column is what, and the public facts about its values."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from discreet import _validate
from discreet._spelling import quoted, spelled
from discreet._types import FloatArray, IntArray, JsonObject, Plain
from discreet.data.discretizer import Discretizer
from discreet.data.sources import check_delimiter, check_encoding
from discreet.data.vocabulary import Vocabulary, key, nearest
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp.policies import Policy

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?", re.ASCII)
ROLES = ("user", "episode", "step", "state", "action", "reward", "next_state")


@dataclass(frozen=True)
class Padding:
    """What stands for the steps of an episode that ended before the last one.

    The episode must have arrived in an end state, where it stays. If nothing is recorded after its
    last step and there is only one end state, it arrived there.

    >>> Padding("lost to care").ends
    ('lost to care',)

    Attributes:
        end: the name of the absorbing end state, or several names.
        reward: of each step that is filled in, in the table's units (within ``reward_range``).
    """

    end: str | int | Sequence[str | int]
    reward: float = 0.0

    def __post_init__(self) -> None:
        _validate.real(reward=self.reward)

    @property
    def ends(self) -> tuple[str | int, ...]:
        """The end states, always several."""
        end = self.end
        return tuple(end) if isinstance(end, Iterable) and not isinstance(end, str) else (end,)


@dataclass(frozen=True)
class Absence:
    """What stands for steps before somebody's first row, or between two of them.

    >>> Absence("not yet here").reward
    0.0

    Attributes:
        state: the name of the state in which somebody is who is not there.
        reward: of each step that is filled in, in the table's units (within ``reward_range``).
    """

    state: str | int
    reward: float = 0.0

    def __post_init__(self) -> None:
        _validate.real(reward=self.reward)


@dataclass(frozen=True, kw_only=True)
class TableFormat:
    """All public facts about a table of episodes but its names; none is ever read off the data.

    A study that is given one reads its tables by it, so that every batch is read alike and the
    reader of its dossier sees the range of the rewards and the cut points.

    >>> form = TableFormat.from_dict({"columns": {"user": "patient"}, "reward_range": [0, 10]})
    >>> form.to_dict()
    {'columns': {'user': 'patient'}, 'reward_range': [0, 10]}

    Attributes:
        columns: role -> name of the column, for those that are called otherwise; roles are user,
            episode, step, state, action, reward, next_state. A table with several episodes of a
            user has a column that tells them apart: any text or number.
        discretizer: makes states of numeric columns; there is then no column of states. A file
            says ``cuts``, as `Cuts.to_dict` writes them.
        reward_range: the least and the largest reward that can be, mapped to 0 and 1.
        clip_rewards: rewards beyond the range count as its ends instead of being refused.
        padding: fills up episodes that ended early, which are refused without it.
        late: fills the steps before somebody's first row, which is refused without it.
        gap: fills the steps between somebody's rows, which are refused without it.
        missing: words in cells that stand for nothing, such as "n/a".
        missing_state: the state of rows that have none.
        missing_reward: what a row with an action and without a reward earned.
        decimal: what stands before the decimals, a point or a comma.
        delimiter: of a CSV file.
        encoding: of a CSV file; the usual one is UTF-8 with or without a byte-order mark.
        sheet: of a workbook that has several.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    discretizer: Discretizer | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    clip_rewards: bool = False
    padding: Padding | None = None
    late: Absence | None = None
    gap: Absence | None = None
    missing: Sequence[str] = ()
    missing_state: str | int | None = None
    missing_reward: float | None = None
    decimal: str = "."
    delimiter: str = ","
    encoding: str = "utf-8-sig"
    sheet: str | None = None

    @classmethod
    def from_dict(cls, plain: JsonObject) -> Self:
        """From plain values; an unknown key is refused with a suggestion."""
        if not isinstance(plain, Mapping):
            raise InvalidInputError(f"Expected the facts of a table, got {quoted(plain)}.")
        known = [{"discretizer": "cuts"}.get(item.name, item.name) for item in fields(cls)]
        for name in plain:
            if name not in known:
                raise UnknownNameError("fact of a table", str(name), known)
        given: dict[str, Any] = dict(plain)
        for name in {"cuts", "reward_range", "missing"} & given.keys():
            if not isinstance(given[name], list | tuple):
                raise InvalidInputError(
                    f"Expected {name} of a table as a list, got {quoted(given[name])}."
                )
            given[name] = tuple(given[name])
        if cuts := given.pop("cuts", ()):
            given["discretizer"] = Discretizer.from_dict({"cuts": list(cuts)})
        for name, state in (("padding", "end"), ("late", "state"), ("gap", "state")):
            if given.get(name) is not None:
                kind = Padding if name == "padding" else Absence
                given[name] = _filled(kind, name, state, given[name])
        return cls(**given)

    def to_dict(self) -> dict[str, Plain]:
        """Plain values of what is not as usual."""
        usual = type(self)()
        plain: dict[str, Plain] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Discretizer):
                plain |= value.to_dict()
            elif value != getattr(usual, item.name):
                value = vars(value) if isinstance(value, Padding | Absence) else value
                plain[item.name] = list(value) if isinstance(value, tuple) else value
        return plain


def _filled(
    kind: Callable[[Any, float], Padding | Absence], name: str, state: str, plain: object
) -> Padding | Absence:
    """Steps that are filled in, as the design says."""
    if not isinstance(plain, Mapping) or state not in plain or set(plain) - {state, "reward"}:
        raise InvalidInputError(
            f'Expected {name} = {{{state} = "STATE", reward = NUMBER}}, where the reward is 0 if '
            f"left out, got {quoted(plain)}."
        )
    return kind(plain[state], plain.get("reward", 0.0))


@dataclass(frozen=True)
class Layout:
    """How to read a table: its form, checked beside the names.

    Attributes:
        vocabulary: the public names of states, actions and steps.
        form: the other public facts.
        policy: whose actions to fill in. Give the policy that the users followed, so that being
            absent counts as following it; otherwise the first possible action is filled in.
    """

    vocabulary: Vocabulary
    form: TableFormat = field(default_factory=TableFormat)
    policy: Policy | None = None

    def __post_init__(self) -> None:
        form = self.form
        if not isinstance(self.vocabulary, Vocabulary):
            raise InvalidInputError(
                f"Expected Vocabulary(states=..., actions=..., steps=...), got "
                f"{quoted(self.vocabulary)}; names are public and never read off the data."
            )
        _validate.truth(clip_rewards=form.clip_rewards)
        _validate.choice((".", ","), decimal=form.decimal)
        check_delimiter(form.delimiter)
        check_encoding(form.encoding)
        check_roles(form.columns)
        self._check_range()
        self._check_missing()
        if form.discretizer is not None:
            if not isinstance(form.discretizer, Discretizer):
                raise InvalidInputError(
                    f"Expected Discretizer(Cuts(...), ...), got {quoted(form.discretizer)}."
                )
            names = form.discretizer.names
            if self.vocabulary.states[: len(names)] != names:
                raise InvalidInputError(
                    "Expected a vocabulary whose states begin with those of the discretizer; "
                    "write Vocabulary(states=[*discretizer.names, ...], ...)."
                )
        if form.padding is not None:
            if not isinstance(form.padding, Padding):
                raise InvalidInputError(f"Expected Padding(end state), got {quoted(form.padding)}.")
            if not form.padding.ends:
                raise InvalidInputError("Expected at least one end state for padding, got none.")
            for end in form.padding.ends:
                self._check_state("padding", end)
            self._check_reward("padding", form.padding.reward)
        for key_, absence in (("late", form.late), ("gap", form.gap)):
            if absence is not None:
                if not isinstance(absence, Absence):
                    raise InvalidInputError(f"Expected Absence(state), got {quoted(absence)}.")
                self._check_state(key_, absence.state)
                self._check_reward(key_, absence.reward)
        if form.missing_state is not None:
            self._check_state("missing_state", form.missing_state)

    def column(self, role: str) -> str:
        """The column that plays this role."""
        return self.form.columns.get(role, role)

    @property
    def state_columns(self) -> tuple[str, ...]:
        """The columns that make a state."""
        cut = self.form.discretizer
        return (self.column("state"),) if cut is None else cut.columns

    @property
    def nothing(self) -> frozenset[object]:
        """Cells that stand for nothing: the words, and the numbers that some of them are."""
        words = {spelled(word) for word in self.form.missing}
        numbers = {float(word) for word in words if _NUMBER.fullmatch(word)}
        return frozenset({*words, *numbers})

    @property
    def unrecorded(self) -> str:
        """A reward to propose for steps that have none: 0, or else the least that can be."""
        low, high = map(float, self.form.reward_range)
        reward = 0.0 if low <= 0 <= high else low
        return repr(int(reward) if reward.is_integer() else reward)

    def scaled(self, rewards: FloatArray) -> FloatArray:
        """Rewards within the range as numbers in [0, 1]."""
        low, high = map(float, self.form.reward_range)
        return (np.clip(rewards, low, high) - low) / (high - low)

    def numbers_of(self, states: Sequence[str | int]) -> IntArray:
        """The numbers of states of the vocabulary."""
        known = self.vocabulary.numbers("states")
        return np.array([known[str(key(name))] for name in states], np.int64)

    @cached_property
    def filled_actions(self) -> IntArray:
        """``int64[H, S]``, the action to fill in."""
        shape = self.vocabulary.shape
        if self.policy is None:
            return shape.first
        return np.asarray(self.policy.support(shape).argmax(axis=2), np.int64)

    def _check_range(self) -> None:
        if not isinstance(self.form.reward_range, Sequence) or len(self.form.reward_range) != 2:
            raise InvalidInputError(
                f"Expected reward_range = [low, high], got {quoted(self.form.reward_range)}."
            )
        low, high = self.form.reward_range
        _validate.real(low=low, high=high)
        if not low < high or not math.isfinite(float(high) - float(low)):
            raise InvalidInputError(
                f"Expected a reward_range with low < high, got [{low!r}, {high!r}]."
            )

    def _check_missing(self) -> None:
        words = self.form.missing
        listed = isinstance(words, Sequence) and not isinstance(words, str)
        if not listed or not all(isinstance(w, str) and spelled(w) for w in words):
            raise InvalidInputError(
                f'Expected missing as a list of words, such as missing = ["n/a"], got '
                f"{quoted(words)}."
            )
        for kind in ("states", "actions", "steps"):
            both = [word for word in words if key(word) in self.vocabulary.numbers(kind)]
            if both:
                raise InvalidInputError(
                    f"Expected words for missing values that name nothing else, got "
                    f"{quoted(both[0])}, which is one of the {kind}; take it out of one list."
                )
        if self.form.missing_reward is not None:
            _validate.real(missing_reward=self.form.missing_reward)
            self._check_reward("missing_reward", self.form.missing_reward)

    def _check_state(self, name: str, state: str | int) -> None:
        if key(state) not in self.vocabulary.numbers("states"):
            raise InvalidInputError(
                f"Expected {name} to name one of the states, got {quoted(state)}; "
                f"{nearest(state, self.vocabulary.states)}"
            )

    def _check_reward(self, name: str, reward: float) -> None:
        low, high = self.form.reward_range
        if not low <= reward <= high:
            single = name == "missing_reward"
            line = "missing_reward = NUMBER" if single else f"{name} = {{..., reward = NUMBER}}"
            raise InvalidInputError(
                f"Expected the reward of {name} in the reward_range {low:g} to {high:g}, got "
                f"{reward:g}{'' if single or reward else ', which it is if left out'}; say in "
                f"[table] what a step without a reward is worth: {line}."
            )


def check_roles(columns: Mapping[str, str]) -> None:
    """Refuse what says not which column is which."""
    if not isinstance(columns, Mapping):
        raise InvalidInputError(f'Expected columns = {{role = "name"}}, got {quoted(columns)}.')
    for role, name in columns.items():
        if not isinstance(name, str) or not name:
            raise InvalidInputError(
                f"Expected the name of a column for {quoted(role)}, got {quoted(name)}."
            )
        if role not in ROLES:
            raise InvalidInputError(
                f"Unknown role {quoted(role)} of a column; {nearest(role, ROLES)}"
            )
    names = [columns.get(role, role) for role in ROLES]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInputError(
            f"Expected a column of its own for each role, got {quoted(twice)} for several."
        )
