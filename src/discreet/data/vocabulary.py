"""`Vocabulary`: what the states, actions and steps of a problem are called, and what is possible.

The names and their order are *public*. They are written down before anybody looks at the data, and
never read off it: a list of the states that occur in a table says who is in the table (a state that
one person alone was in stands in it or not). A name that the vocabulary lacks is therefore an error
and not a new state.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import NamedTuple, Self

import numpy as np

from discreet._spelling import has_half_characters, quoted, spelled, unguarded
from discreet._types import BoolArray, Plain
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape

_MOST_NAMES = 1_000_000
"""Of one kind; a problem with more does not fit into tables."""

_UNSEEN = ("Cc", "Zl", "Zp")
"""Unicode's control characters and line breaks: on a terminal they are commands."""
_WHOLE = re.compile(r"([+-]?)0*(\d+)(?:\.0*)?", re.ASCII)


class Allowed(NamedTuple):
    """In these states, at these steps (none named: everywhere), only these actions are possible."""

    actions: tuple[str, ...]
    states: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, list[str]]:
        """The names that are given, for JSON or TOML."""
        return {kind: list(names) for kind, names in self._asdict().items() if names}

    def __str__(self) -> str:
        states, steps = ", ".join(self.states), ", ".join(self.steps)
        where = f"in {states or 'every state'} at {steps or 'every step'}"
        return f"{where}: {', '.join(self.actions)}"


@dataclass(frozen=True, init=False)
class Vocabulary:
    """The names of states, actions and steps, in the order of their numbers.

    A number n stands for the names ``"0"`` to ``"n-1"``. Whole numbers are one name in every
    spelling: ``1``, ``"1"``, ``"01"`` and ``1.0`` (what spreadsheets make of it).

    >>> names = Vocabulary(states=["ill", "well"], actions=["wait", "treat"], steps=range(1, 5))
    >>> names.steps, names.closing, names.shape
    (('1', '2', '3', '4'), '5', Shape(states=2, actions=2, horizon=4))
    >>> names.numbers("states")["well"]
    1
    >>> names = Vocabulary(
    ...     states=["ill", "well"],
    ...     actions=["wait", "treat"],
    ...     steps=4,
    ...     allowed=[{"states": "well", "actions": ["wait"]}],
    ... )
    >>> names.shape.mask[0].tolist()
    [[True, True], [True, False]]

    Attributes:
        closing: the name of the moment after the last step, at which only a state is observed
            (the number that follows, if the steps are consecutive numbers); None if it has none.
        allowed: which actions are possible where, if not all are: a list of tables with
            ``actions`` and, unless it holds everywhere, ``states`` and ``steps``. Where several
            hold, an action must be in all of them.
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    steps: tuple[str, ...]
    closing: str | None
    allowed: tuple[Allowed, ...]

    def __init__(
        self,
        *,
        states: int | Iterable[str | int],
        actions: int | Iterable[str | int],
        steps: int | Iterable[str | int],
        closing: str | int | None = None,
        allowed: Iterable[Mapping[str, str | int | Iterable[str | int]]] = (),
    ) -> None:
        put = object.__setattr__
        put(self, "states", check_names(states, "states"))
        put(self, "actions", check_names(actions, "actions"))
        put(self, "steps", check_names(steps, "steps"))
        put(self, "closing", _following(self.steps) if closing is None else _name(closing, "steps"))
        if self.closing is not None:
            check_names([*self.steps, self.closing], "steps")
        put(self, "allowed", tuple(self._rule(rule) for rule in _tables_of(allowed)))
        if self.allowed and not self._mask.any(axis=-1).all():
            step, state = np.argwhere(~self._mask.any(axis=-1))[0]
            raise InvalidInputError(
                f"Expected an allowed action in every state, got none in {self.states[state]!r} at "
                f"step {self.steps[step]!r}: where several tables of allowed actions hold, an "
                f"action must be in all of them."
            )

    def _rule(self, given: Mapping[str, object]) -> Allowed:
        """One table of ``allowed``, its names checked and spelled as the vocabulary does."""
        if "actions" not in given or set(given) - {*Allowed._fields}:
            raise InvalidInputError(
                f"Expected a table of allowed actions with actions, and perhaps states and steps, "
                f"got {', '.join(map(quoted, given)) or 'nothing'}."
            )
        found = dict[str, tuple[str, ...]]()
        for kind, listed in given.items():
            names: tuple[str, ...] = getattr(self, kind)
            numbers = self.numbers(kind)
            several = [listed] if isinstance(listed, str | Integral) else listed
            for name in several if isinstance(several, Iterable) else [several]:
                number = numbers.get(str(key(name)), len(names))
                if number >= len(names):
                    raise InvalidInputError(
                        f"Expected allowed {kind} among the {kind} of the problem, got "
                        f"{quoted(name)}; {nearest(name, names)}"
                    )
                found[kind] = (*found.get(kind, ()), names[number])
            if kind not in found:
                raise InvalidInputError(
                    f"Expected at least one of {kind} in a table of allowed actions, got none."
                )
        return Allowed(**found)

    @property
    def shape(self) -> Shape:
        return Shape(
            len(self.states),
            len(self.actions),
            len(self.steps),
            self._mask if self.allowed else None,
        )

    @cached_property
    def _mask(self) -> BoolArray:
        """``bool[H, S, A]``: the actions that are possible."""
        mask = np.ones((len(self.steps), len(self.states), len(self.actions)), np.bool_)
        for rule in self.allowed:
            steps, states, actions = (
                [name in listed or not listed for name in names]
                for names, listed in (
                    (self.steps, rule.steps),
                    (self.states, rule.states),
                    (self.actions, rule.actions),
                )
            )
            mask[np.ix_(steps, states)] &= actions
        return mask

    def numbers(self, kind: str) -> Mapping[str, int]:
        """Name -> number of all "states", "actions" or "steps" (the closing comes after them)."""
        return self._tables[kind]

    @cached_property
    def _tables(self) -> dict[str, dict[str, int]]:
        steps = self.steps if self.closing is None else (*self.steps, self.closing)
        kinds = {"states": self.states, "actions": self.actions, "steps": steps}
        return {
            kind: {str(key(n)): i for i, n in enumerate(names)} for kind, names in kinds.items()
        }

    def to_dict(self) -> dict[str, Plain]:
        """Plain values, for JSON or TOML."""
        plain: dict[str, Plain] = {
            "states": list(self.states),
            "actions": list(self.actions),
            "steps": list(self.steps),
        }
        if self.closing is not None:
            plain["closing"] = self.closing
        if self.allowed:
            plain["allowed"] = [rule.to_dict() for rule in self.allowed]
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Plain]) -> Self:
        """The inverse of `to_dict`.

        >>> names = Vocabulary(states=3, actions=2, steps=["spring", "autumn"])
        >>> Vocabulary.from_dict(names.to_dict()) == names
        True
        """
        if set(plain) - {"closing", "allowed"} != {"states", "actions", "steps"}:
            raise InvalidInputError(
                f"Expected a vocabulary with states, actions, steps and perhaps closing and "
                f"allowed, got {sorted(plain)}."
            )
        return cls(**plain)  # type: ignore[arg-type]


def _tables_of(given: object) -> list[Mapping[str, object]]:
    listed = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    rules = [rule for rule in listed if isinstance(rule, Mapping)]
    if isinstance(given, Mapping) or len(rules) < len(listed):
        raise InvalidInputError(
            f"Expected allowed as tables, one for each set of states, got {quoted(given)}; write "
            f'[[allowed]] with states = ["well"] and actions = ["wait"].'
        )
    return rules


def key(value: object) -> str | None:
    """The one spelling of a name, or None if ``value`` names nothing.

    >>> key(" ill "), key(7), key("07.0"), key(7.0), key(True), key(0.5), key("")
    ('ill', '7', '7', '7', 'True', None, None)
    """
    if isinstance(value, str):
        text = unguarded(spelled(value))
    elif isinstance(value, Integral) and abs(int(value)) < 2**64:
        text = str(value)
    elif isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        text = str(int(value))
    else:
        return None
    whole = _WHOLE.fullmatch(text)
    if whole:
        sign = "-" if whole[1] == "-" and whole[2] != "0" else ""
        return sign + whole[2]
    return text or None


def nearest(value: object, known: Iterable[str]) -> str:
    """What may have been meant: a near miss, or some of the names that there are.

    >>> nearest("wel", ["ill", "well"]), nearest(7, ["ill", "well"])
    ("did you mean 'well'?", "known: 'ill', 'well'.")
    """
    names = list(known)
    folded = {name.casefold(): name for name in names[:1000]}
    close = difflib.get_close_matches(str(key(value)).casefold(), folded, n=1, cutoff=0.7)
    if close:
        return f"did you mean {quoted(folded[close[0]])}?"
    listed = ", ".join(quoted(name) for name in names[:8])
    return f"known: {listed}{', ...' if len(names) > 8 else ''}."


def check_names(given: int | Iterable[str | int], kind: str) -> tuple[str, ...]:
    """Distinct names of one kind; a number stands for as many numbers."""
    if isinstance(given, Integral) and not isinstance(given, bool):
        if not 1 <= int(given) <= _MOST_NAMES:
            raise InvalidInputError(f"Expected 1 to {_MOST_NAMES} {kind}, got {quoted(given)}.")
        return tuple(map(str, range(int(given))))
    if isinstance(given, str | bool | Mapping) or not isinstance(given, Iterable):
        raise InvalidInputError(
            f"Expected {kind} as a number or as a list of names, got {quoted(given)}."
        )
    names = tuple(_name(name, kind) for name in given)
    if not names:
        raise InvalidInputError(
            f"Expected at least one of {kind}, got none; write {kind} = [names]."
        )
    seen: dict[str | None, str] = {}
    for name in names:
        if key(name) in seen:
            raise InvalidInputError(
                f"Expected different names of {kind}, got {quoted(seen[key(name)])} and "
                f"{quoted(name)}, which are one; rename one of them."
            )
        seen[key(name)] = name
    return names


def _name(given: object, kind: str) -> str:
    if not isinstance(given, str | Integral) or isinstance(given, bool) or key(given) is None:
        raise InvalidInputError(
            f"Expected names of {kind} as text or as integers, got {quoted(given)}."
        )
    name = unguarded(spelled(str(given)))
    if has_half_characters(name):
        raise InvalidInputError(
            f"Expected names of whole characters, got {quoted(given)} among the {kind}, which "
            f"holds half of one (a lone surrogate)."
        )
    if any(unicodedata.category(letter) in _UNSEEN for letter in name):
        raise InvalidInputError(
            f"Expected names of {kind} that can be printed on one line, got {quoted(given)}, which "
            f"holds a control character or a line break; leave it out."
        )
    return name


def _following(steps: tuple[str, ...]) -> str | None:
    """The number after the last step, if the steps are consecutive numbers."""
    try:
        numbers = [int(step) for step in steps]
    except ValueError:
        return None
    consecutive = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return str(numbers[-1] + 1) if consecutive else None
