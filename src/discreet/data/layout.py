"""How a table is to be read: which column is what, and the public facts about its values."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from discreet import _validate
from discreet._spelling import quoted
from discreet._types import FloatArray, IntArray
from discreet.data.discretizer import Discretizer
from discreet.data.vocabulary import Vocabulary, key, nearest
from discreet.errors import InvalidInputError
from discreet.mdp.policies import Policy

ROLES = ("user", "step", "state", "action", "reward", "next_state")


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
        policy: whose actions to fill in. Give the policy that the users followed, so that staying
            at the end counts as following it; otherwise the first action is filled in.
    """

    end: str | int | Sequence[str | int]
    reward: float = 0.0
    policy: Policy | None = None

    def __post_init__(self) -> None:
        _validate.real(reward=self.reward)

    @property
    def ends(self) -> tuple[str | int, ...]:
        """The end states, always several."""
        end = self.end
        return tuple(end) if isinstance(end, Iterable) and not isinstance(end, str) else (end,)


class Options(TypedDict, total=False):
    """The keywords that all readers of tables share; see `Layout`."""

    columns: Mapping[str, str]
    discretizer: Discretizer | None
    reward_range: tuple[float, float]
    clip_rewards: bool
    padding: Padding | None


@dataclass(frozen=True)
class Layout:
    """How to read a table.

    Attributes:
        vocabulary: the public names of states, actions and steps.
        columns: role -> name of the column, for those that are called otherwise; roles are user,
            step, state, action, reward, next_state.
        discretizer: makes states of numeric columns; there is then no column of states.
        reward_range: the least and the largest reward that can be, mapped to 0 and 1. Public: never
            read off the data.
        clip_rewards: rewards beyond the range count as its ends instead of being refused.
        padding: fills up episodes that ended early, which are refused without it.
    """

    vocabulary: Vocabulary
    columns: Mapping[str, str] = field(default_factory=dict)
    discretizer: Discretizer | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    clip_rewards: bool = False
    padding: Padding | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.vocabulary, Vocabulary):
            raise InvalidInputError(
                f"Expected Vocabulary(states=..., actions=..., steps=...), got "
                f"{quoted(self.vocabulary)}; names are public and never read off the data."
            )
        _validate.truth(clip_rewards=self.clip_rewards)
        _check_roles(self.columns)
        if not isinstance(self.reward_range, Sequence) or len(self.reward_range) != 2:
            raise InvalidInputError(
                f"Expected reward_range=(low, high), got {quoted(self.reward_range)}."
            )
        low, high = self.reward_range
        _validate.real(low=low, high=high)
        if not low < high or not math.isfinite(float(high) - float(low)):
            raise InvalidInputError(
                f"Expected a reward_range with low < high, got ({low!r}, {high!r})."
            )
        if self.discretizer is not None:
            if not isinstance(self.discretizer, Discretizer):
                raise InvalidInputError(
                    f"Expected Discretizer(Cuts(...), ...), got {quoted(self.discretizer)}."
                )
            names = self.discretizer.names
            if self.vocabulary.states[: len(names)] != names:
                raise InvalidInputError(
                    "Expected a vocabulary whose states begin with those of the discretizer; "
                    "write Vocabulary(states=[*discretizer.names, ...], ...)."
                )
        if self.padding is not None:
            self._check_padding(self.padding)

    def column(self, role: str) -> str:
        """The column that plays this role."""
        return self.columns.get(role, role)

    @property
    def state_columns(self) -> tuple[str, ...]:
        """The columns that make a state."""
        return (self.column("state"),) if self.discretizer is None else self.discretizer.columns

    def needed(self, names: Sequence[str]) -> list[str]:
        """The columns to read from a table with these."""
        roles = [self.column(role) for role in ("user", "step", "action", "reward")]
        following = self.column("next_state")
        wanted = "next_state" in self.columns or following in names
        return [*roles, *self.state_columns, *([following] if wanted else [])]

    def scaled(self, rewards: FloatArray) -> FloatArray:
        """Rewards within the range as numbers in [0, 1]."""
        low, high = map(float, self.reward_range)
        return (np.clip(rewards, low, high) - low) / (high - low)

    def end_states(self, padding: Padding) -> IntArray:
        """The numbers of the end states."""
        known = self.vocabulary.numbers("states")
        return np.array([known[str(key(name))] for name in padding.ends], np.int64)

    def end_actions(self, padding: Padding) -> IntArray:
        """``int64[H, S]``, the action to fill in."""
        shape = self.vocabulary.shape
        if padding.policy is None:
            return np.zeros((shape.horizon, shape.states), np.int64)
        return np.asarray(padding.policy.support(shape).argmax(axis=2), np.int64)

    def _check_padding(self, padding: Padding) -> None:
        if not isinstance(padding, Padding):
            raise InvalidInputError(f"Expected Padding(end state), got {quoted(padding)}.")
        known = self.vocabulary.numbers("states")
        for name in padding.ends:
            if key(name) not in known:
                raise InvalidInputError(
                    f"Expected an end state of the vocabulary, got {quoted(name)}; "
                    f"{nearest(name, self.vocabulary.states)}"
                )
        if not padding.ends:
            raise InvalidInputError("Expected at least one end state for the padding, got none.")
        low, high = self.reward_range
        if not low <= padding.reward <= high:
            raise InvalidInputError(
                f"Expected the reward of padded steps in the reward_range {low:g} to {high:g}, got "
                f"{padding.reward!r}; say with Padding(reward=...) what a step at the end is worth."
            )


def _check_roles(columns: Mapping[str, str]) -> None:
    if not isinstance(columns, Mapping):
        raise InvalidInputError(f"Expected columns={{role: name}}, got {quoted(columns)}.")
    for role, name in columns.items():
        if not isinstance(name, str):
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
