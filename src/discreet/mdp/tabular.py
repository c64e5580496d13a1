"""`TabularMDP`: a finite-horizon MDP given by its arrays, validated and immutable."""

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray, NumberArray, WordArray
from discreet.errors import InvalidInputError
from discreet.mdp._arrays import (
    cumulative_rows,
    frozen_copy,
    one_layout,
    probability_rows,
    unit_interval,
)
from discreet.mdp.shape import Shape

RewardKind = Literal["bernoulli", "deterministic"]


class Rows(NamedTuple):
    """Transition rows for compiled code.

    Row number ``(t S + s) A + a`` is that of (h, s, a), with t = h, or t = 0 if all steps share
    their transitions. Its entries that are not 0 are ``pointers[row]`` to ``pointers[row + 1]``.
    Pointers and columns are unsigned: numba asks of a signed index whether it counts from the end.

    Where most entries are positive, ``across[t, y, s A + a]`` has them once more, zeros and all:
    all pairs are neighbours there, as a vector instruction wants them. Otherwise it is empty.
    """

    pointers: WordArray
    columns: NumberArray
    entries: FloatArray
    across: FloatArray


class EpisodeTables(NamedTuple):
    """What the compiled simulation of single episodes reads.

    Cumulative rows make a draw one comparison per state: the next state is the first whose entry
    exceeds a uniform number, and a state of probability zero is never the first.
    """

    initial: FloatArray
    transitions: FloatArray
    rewards: FloatArray


class RewardMap(NamedTuple):
    """How the rewards in [0, 1] relate to the original ones: ``offset + scale * reward``."""

    scale: float = 1.0
    offset: float = 0.0

    def original(self, value: float, horizon: int) -> float:
        """The original total reward of an episode whose rewards in [0, 1] add up to ``value``.

        >>> RewardMap(scale=30.0, offset=-10.0).original(0.5, horizon=1)
        5.0
        """
        return horizon * self.offset + self.scale * value


@dataclass(frozen=True, eq=False, init=False, repr=False)
class TabularMDP:
    """A finite-horizon MDP with known arrays. Arrays are read-only copies of what was given.

    >>> stay = np.eye(2)[:, None, :]  # two states, one action: nothing ever moves
    >>> TabularMDP(transitions=stay, rewards=[[0.0], [1.0]], horizon=3).transitions.shape
    (3, 2, 1, 2)

    Attributes:
        transitions: ``float64[H, S, A, S]``; a stationary model is a broadcast view, not H copies.
        rewards: mean rewards ``float64[H, S, A]`` in [0, 1].
        initial: ``float64[S]``, the distribution of the first state.
        horizon: steps per episode.
        reward_kind: ``"bernoulli"`` (a reward is 0 or 1) or ``"deterministic"`` (it is its mean).
        name: what the model is called in tables.
        reward_map: where the rewards came from, if they were rescaled.
        allowed: ``bool[S, A]`` or ``bool[H, S, A]``, the actions that are possible (see `Shape`);
            None if all are. What the arrays say of other actions does not matter.
    """

    transitions: FloatArray
    rewards: FloatArray
    initial: FloatArray
    horizon: int
    reward_kind: RewardKind
    name: str
    reward_map: RewardMap
    allowed: BoolArray | None

    def __init__(
        self,
        *,
        transitions: ArrayLike,
        rewards: ArrayLike,
        initial: ArrayLike | int = 0,
        horizon: int | None = None,
        reward_kind: RewardKind = "bernoulli",
        name: str = "",
        reward_map: RewardMap | None = None,
        allowed: ArrayLike | None = None,
    ) -> None:
        """Validate and copy.

        Transitions ``(S, A, S)`` and rewards ``(S, A)`` are the same at every step; if both are,
        the horizon must be said. ``initial`` may be the one state where all episodes begin.
        """
        _validate.choice(("bernoulli", "deterministic"), reward_kind=reward_kind)
        steps = _one_step(transitions, 4, "transitions (H, S, A, S) or (S, A, S)")
        means = _one_step(rewards, 3, "rewards (H, S, A) or (S, A)")
        length = _horizon(horizon, steps, means)
        states, actions = steps.shape[-3:-1]
        if min(steps.shape) < 1 or steps.shape[-1] != states:
            raise InvalidInputError(
                f"Expected transitions (H, S, A, S) or (S, A, S), got shape {steps.shape}: the "
                f"first and the last state axis must have the same positive length."
            )
        if means.shape[-2:] != (states, actions):
            raise InvalidInputError(
                f"Expected rewards for {states} states and {actions} actions, got shape "
                f"{means.shape}."
            )
        steps = probability_rows(steps, "transitions")
        means = unit_interval(means, "rewards")
        put = object.__setattr__
        put(self, "transitions", np.broadcast_to(steps, (length, states, actions, states)))
        put(self, "rewards", np.broadcast_to(means, (length, states, actions)))
        put(self, "initial", _initial(initial, states))
        put(self, "horizon", length)
        put(self, "reward_kind", reward_kind)
        put(self, "name", name)
        put(self, "reward_map", reward_map or RewardMap())
        put(self, "allowed", None if allowed is None else frozen_copy(allowed, np.bool_))
        if self.shape.allowed is None:
            put(self, "allowed", None)

    @cached_property
    def shape(self) -> Shape:
        """States, actions and horizon, and the actions that are possible."""
        horizon, states, actions = self.rewards.shape
        return Shape(states, actions, horizon, self.allowed)

    @property
    def start(self) -> BoolArray:
        """``bool[S]``, the states an episode can begin in."""
        return self.initial > 0

    @property
    def stationary(self) -> bool:
        """True if transitions and rewards do not depend on the step."""
        return self.same_transitions and self.rewards.strides[0] == 0

    @property
    def same_transitions(self) -> bool:
        """True if the transitions do not depend on the step (the rewards may)."""
        return self.transitions.strides[0] == 0

    @property
    def step_transitions(self) -> FloatArray:
        """``float64[T, S, A, S]`` contiguous, with T = 1 if all steps are alike, else T = H."""
        return self.transitions[:1] if self.same_transitions else self.transitions

    @cached_property
    def full_rewards(self) -> FloatArray:
        """``float64[H, S, A]`` contiguous, for compiled code."""
        return one_layout(self.rewards)

    @cached_property
    def rows(self) -> Rows:
        """The transition rows, built once for compiled code."""
        return _rows(self.step_transitions)

    @cached_property
    def tables(self) -> EpisodeTables:
        """Cumulative rows for the simulation of single episodes, built once.

        ``transitions`` is ``[T, S, A, S]`` with T = 1 if all steps are alike, else T = H.
        """
        return EpisodeTables(
            cumulative_rows(self.initial),
            cumulative_rows(self.step_transitions),
            self.full_rewards,
        )

    def __repr__(self) -> str:
        label = f"{self.name!r}, " if self.name else ""
        kind = "stationary" if self.stationary else "time-inhomogeneous"
        size = f"states={self.shape.states}, actions={self.shape.actions}, horizon={self.horizon}"
        return f"TabularMDP({label}{size}, {kind})"

    @property
    def _arguments(self) -> dict[str, Any]:
        """One step of a stationary model instead of H copies."""
        same_rewards = self.rewards.strides[0] == 0
        return {
            "transitions": self.transitions[0] if self.same_transitions else self.transitions,
            "rewards": self.rewards[0] if same_rewards else self.rewards,
            "initial": self.initial,
            "horizon": self.horizon,
            "reward_kind": self.reward_kind,
            "name": self.name,
            "reward_map": self.reward_map,
            "allowed": self.allowed,
        }

    def replace(self, **changes: Any) -> "TabularMDP":
        """The same model but for some arguments of the constructor."""
        return TabularMDP(**(self._arguments | changes))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle arguments, not views; what is read back is read-only again."""
        return _rebuild, (self._arguments,)


def _rows(transitions: FloatArray) -> Rows:
    steps, states, actions, _ = transitions.shape
    lengths = np.count_nonzero(transitions, axis=-1).ravel()
    columns = [np.flatnonzero(step).astype(np.uint64) % states for step in transitions]
    across = np.zeros((0, states, states * actions))
    if 2 * lengths.sum() > transitions.size:
        across = transitions.reshape(steps, states * actions, states).transpose(0, 2, 1)
    return Rows(
        np.append(0, np.cumsum(lengths)).astype(np.uint64),
        np.concatenate(columns).astype(np.uint32),
        one_layout(transitions[transitions != 0]),
        one_layout(across),
    )


def _rebuild(arguments: dict[str, Any]) -> TabularMDP:
    return TabularMDP(**arguments)


def _one_step(array: ArrayLike, axes: int, what: str) -> NumberArray:
    """The array, reduced to one step if it is a broadcast view of one step."""
    given = np.asarray(array)
    if given.ndim == axes and given.shape[0] > 0 and given.strides[0] == 0:
        given = given[0]
    if given.ndim not in (axes - 1, axes):
        raise InvalidInputError(f"Expected {what}, got shape {given.shape}.")
    return given


def _horizon(horizon: int | None, steps: NumberArray, means: NumberArray) -> int:
    """The one horizon on which the arguments agree."""
    lengths = {len(array) for array, axes in ((steps, 4), (means, 3)) if array.ndim == axes}
    if horizon is not None:
        _validate.count(horizon=horizon)
        lengths.add(int(horizon))
    if not lengths:
        raise InvalidInputError(
            "Expected a horizon: transitions (S, A, S) and rewards (S, A) do not tell it; "
            "pass horizon= (to a command: --set horizon=20), or save horizon in the .npz file."
        )
    if len(lengths) > 1:
        raise InvalidInputError(
            f"Expected one horizon, got horizon={horizon}, transitions {steps.shape} and rewards "
            f"{means.shape}."
        )
    return lengths.pop()


def _initial(initial: ArrayLike | int, states: int) -> FloatArray:
    """The distribution of the first state."""
    if isinstance(initial, Integral):
        _validate.count(0, initial=initial)
        if initial >= states:
            raise InvalidInputError(
                f"Expected initial to be a state below {states}, got initial={initial}."
            )
        initial = np.eye(1, states, int(initial))[0]
    if np.shape(initial) != (states,):
        raise InvalidInputError(
            f"Expected initial of shape ({states},), got shape {np.shape(initial)}."
        )
    return probability_rows(initial, "initial")


def relabel_actions(mdp: TabularMDP, seed: int | None) -> TabularMDP:
    """The same MDP with its actions permuted at random, so that no fixed action is special.

    The permutation is drawn per state in a stationary MDP (it stays stationary), else per step and
    state. The optimal value does not change; a constant action becomes a random policy. ``None``
    leaves the MDP as it is.
    """
    if seed is None:
        return mdp
    _validate.count(0, relabel=seed)
    order = relabelling(mdp, seed)
    transitions, rewards = mdp.transitions[: len(order)], mdp.rewards[: len(order)]
    transitions = np.take_along_axis(transitions, order[..., None], axis=2)
    rewards = np.take_along_axis(rewards, order, axis=2)
    if mdp.stationary:
        transitions, rewards = transitions[0], rewards[0]
    allowed = mdp.allowed
    if allowed is not None:
        names = order[0] if mdp.stationary else order
        mask, names = np.broadcast_arrays(allowed, names)
        allowed = np.take_along_axis(mask, names, axis=-1)
    return mdp.replace(transitions=transitions, rewards=rewards, allowed=allowed)


def relabelling(mdp: TabularMDP, seed: int) -> IntArray:
    """``[1 or H, S, A]``: the original action behind each new name, before or after renaming."""
    steps = 1 if mdp.stationary else mdp.horizon
    names = np.broadcast_to(np.arange(mdp.shape.actions), (steps, *mdp.shape.visits[1:]))
    return np.random.default_rng(seed).permuted(names, axis=-1)
