"""Policies: deterministic, stochastic, mixtures of one per episode, and those that may defer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import InvalidInputError
from discreet.mdp._arrays import frozen_copy, probability_rows
from discreet.mdp.shape import Shape


@dataclass(frozen=True, eq=False)
class DeterministicPolicy:
    """One action for each step and state.

    >>> DeterministicPolicy(np.array([[0, 1], [1, 1]])).actions.shape
    (2, 2)

    Attributes:
        actions: ``int64[H, S]``.
    """

    actions: IntArray

    def __post_init__(self) -> None:
        given = np.asarray(self.actions)
        if given.ndim != 2 or not np.issubdtype(given.dtype, np.integer):
            raise InvalidInputError(
                f"Expected actions to be an integer array of shape (H, S), got dtype "
                f"{given.dtype} and shape {given.shape}."
            )
        if given.size and given.min() < 0:
            raise InvalidInputError(f"Expected actions >= 0, got {given.min()}.")
        object.__setattr__(self, "actions", frozen_copy(given, np.int64))

    @property
    def key(self) -> bytes:
        """Bytes that are equal exactly for equal policies of one shape."""
        return b"d" + self.actions.tobytes()

    def distribution(self, shape: Shape) -> FloatArray:
        """``float64[H, S, A]``, the same policy as probabilities."""
        return np.asarray(self.support(shape), np.float64)

    def support(self, shape: Shape, start: BoolArray | None = None) -> BoolArray:
        """``bool[H, S, A]``: what the policy can play (at h=0 only in the states of ``start``)."""
        check_policy(self, shape)
        return _started(self.actions[:, :, None] == np.arange(shape.actions), start)


@dataclass(frozen=True, eq=False)
class StochasticPolicy:
    """A distribution over actions for each step and state.

    Attributes:
        probabilities: ``float64[H, S, A]``; each row sums to one.
    """

    probabilities: FloatArray

    def __post_init__(self) -> None:
        given = np.asarray(self.probabilities)
        if given.ndim != 3:
            raise InvalidInputError(
                f"Expected policy probabilities of shape (H, S, A), got shape {given.shape}."
            )
        object.__setattr__(self, "probabilities", probability_rows(given, "probabilities"))

    @property
    def actions(self) -> IntArray:
        """``int64[H, S]``, the likeliest action everywhere (the first of several)."""
        return np.asarray(self.probabilities.argmax(axis=-1), np.int64)

    @property
    def key(self) -> bytes:
        """Bytes that are equal exactly for equal policies of one shape."""
        return b"s" + self.probabilities.tobytes()

    def distribution(self, shape: Shape) -> FloatArray:
        """``float64[H, S, A]``, the probabilities themselves."""
        check_policy(self, shape)
        return self.probabilities

    def support(self, shape: Shape, start: BoolArray | None = None) -> BoolArray:
        """``bool[H, S, A]``: what the policy can play (at h=0 only in the states of ``start``)."""
        return _started(self.distribution(shape) > 0, start)


@dataclass(frozen=True, eq=False)
class MixturePolicy:
    """One of several policies, drawn once per episode and kept for all its steps.

    Averaging the components per step would be another policy with other occupancies.

    Attributes:
        components: policies that are not mixtures themselves.
        weights: ``float64[len(components)]``, the probability of each.
        stratified: simulated users are not drawn: each component gets its share of them.
    """

    components: tuple[DeterministicPolicy | StochasticPolicy, ...]
    weights: FloatArray
    stratified: bool = False

    def __post_init__(self) -> None:
        components = tuple(self.components)
        for component in components:
            if not isinstance(component, DeterministicPolicy | StochasticPolicy):
                raise InvalidInputError(
                    f"Expected components to be deterministic or stochastic policies, got "
                    f"{type(component).__name__}; flatten nested mixtures."
                )
        weights = np.asarray(self.weights)
        if not components or weights.shape != (len(components),):
            raise InvalidInputError(
                f"Expected one weight per component, got {len(components)} components and "
                f"weights of shape {weights.shape}."
            )
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", probability_rows(weights, "weights"))

    @classmethod
    def uniform(
        cls, components: Sequence[DeterministicPolicy | StochasticPolicy]
    ) -> "MixturePolicy":
        """Each component with the same probability."""
        count = max(len(components), 1)
        return cls(tuple(components), np.full(count, 1 / count))

    @property
    def actions(self) -> IntArray:
        """``int64[H, S]``, the likeliest actions of the likeliest component."""
        return self.components[int(self.weights.argmax())].actions

    @property
    def key(self) -> bytes:
        """Bytes that are equal exactly for equal mixtures of one shape."""
        kind = b"e" if self.stratified else b"m"
        return kind + self.weights.tobytes() + b"".join(c.key for c in self.components)

    def shares(self, users: int) -> IntArray:
        """``int64[len(components)]``: users of each, as near to their weights as integers are.

        >>> MixturePolicy.uniform([DeterministicPolicy([[a]]) for a in range(3)]).shares(7).tolist()
        [2, 3, 2]
        """
        ends = np.rint(users * np.cumsum(self.weights)).astype(np.int64)
        shares: IntArray = ends - np.append(0, ends[:-1])
        return shares

    def allotted(self, users: int) -> "MixturePolicy":
        """The components that so many users play if each gets its share of them."""
        shares = self.shares(users)
        played = tuple(c for c, n in zip(self.components, shares, strict=True) if n)
        return MixturePolicy(played, shares[shares > 0] / users, stratified=True)

    def support(self, shape: Shape, start: BoolArray | None = None) -> BoolArray:
        """``bool[H, S, A]``: what some component of positive weight can play."""
        marked = np.zeros(shape.visits, np.bool_)
        for component, weight in zip(self.components, self.weights, strict=True):
            if weight > 0:
                marked |= component.support(shape, start)
        return marked


Policy: TypeAlias = DeterministicPolicy | StochasticPolicy | MixturePolicy
PolicyLike: TypeAlias = Policy | ArrayLike
"""A policy, or the array of one: see `as_policy`."""


def as_policy(policy: PolicyLike, shape: Shape) -> Policy:
    """A policy from a policy, an integer array ``[H, S]`` or a float array ``[H, S, A]``.

    >>> as_policy([[0, 1]], Shape(states=2, actions=2, horizon=1))
    DeterministicPolicy(actions=array([[0, 1]]))
    """
    if not isinstance(policy, DeterministicPolicy | StochasticPolicy | MixturePolicy):
        array = np.asarray(policy)
        policy = DeterministicPolicy(array) if array.ndim == 2 else StochasticPolicy(array)
    check_policy(policy, shape)
    return policy


def uniform_policy(shape: Shape) -> StochasticPolicy:
    """Every possible action with the same probability, everywhere."""
    return StochasticPolicy(shape.mask / shape.mask.sum(axis=-1, keepdims=True))


DEFER = -1
"""What a `DeferringPolicy` says where the present behaviour goes on."""


@dataclass(frozen=True, eq=False)
class DeferringPolicy:
    """One action for each step and state, or `DEFER`: whoever decides today decides.

    It needs the behaviour's own action. Replacing that by an estimate of what behaviour does is
    another policy, and a worse one.

    >>> policy = DeferringPolicy(np.array([[1, DEFER]]))
    >>> policy.action(0, 0, behaviour=0), policy.action(0, 1, behaviour=0)
    (1, 0)

    Attributes:
        actions: ``int64[H, S]``, `DEFER` where the behaviour goes on.
    """

    actions: IntArray

    def __post_init__(self) -> None:
        given = np.asarray(self.actions)
        whole = np.issubdtype(given.dtype, np.integer)
        if given.ndim != 2 or not whole or not given.size or given.min() < DEFER:
            raise InvalidInputError(
                f"Expected actions as integers (H, S), at least 0 or DEFER = {DEFER}, got dtype "
                f"{given.dtype} and shape {given.shape}."
            )
        object.__setattr__(self, "actions", frozen_copy(given, np.int64))

    @property
    def defers(self) -> BoolArray:
        """``bool[H, S]``: where the behaviour goes on."""
        return np.asarray(self.actions == DEFER)

    def action(self, step: int, state: int, *, behaviour: int) -> int:
        """What to do at a step in a state where today's behaviour would do ``behaviour``."""
        _validate.count(0, step=step, state=state, behaviour=behaviour)
        horizon, states = self.actions.shape
        if step >= horizon or state >= states:
            raise InvalidInputError(
                f"Expected step < {horizon} and state < {states}, got step={step} and "
                f"state={state}."
            )
        chosen = int(self.actions[step, state])
        return behaviour if chosen == DEFER else chosen

    def with_behaviour(self, behaviour: PolicyLike, actions: int) -> StochasticPolicy:
        """The policy that people meet if today's behaviour is ``behaviour`` (for simulations).

        Args:
            behaviour: deterministic or stochastic, or the array of one.
            actions: A, how many actions there are.
        """
        horizon, states = self.actions.shape
        shape = Shape(states, actions, horizon)
        given = as_policy(behaviour, shape)
        if isinstance(given, MixturePolicy):
            raise InvalidInputError(
                "Expected a behaviour without memory, got a mixture; merge each of its components."
            )
        chosen: FloatArray = np.eye(actions)[np.maximum(self.actions, 0)]
        merged = np.where(self.defers[:, :, None], given.distribution(shape), chosen)
        return StochasticPolicy(merged)


def check_policy(policy: Policy, shape: Shape) -> None:
    """Raise unless the policy fits a problem of this shape and plays possible actions alone."""
    if isinstance(policy, MixturePolicy):
        for component in policy.components:
            check_policy(component, shape)
    elif isinstance(policy, StochasticPolicy):
        _check_shape(policy.probabilities.shape, shape.visits, "probabilities (H, S, A)")
        if shape.allowed is not None:
            _refuse_forbidden(np.argwhere((policy.probabilities > 0) & ~shape.allowed))
    else:
        _check_shape(policy.actions.shape, shape.visits[:2], "actions (H, S)")
        if policy.actions.max() >= shape.actions:
            raise InvalidInputError(
                f"Expected actions below {shape.actions}, got {policy.actions.max()}."
            )
        if shape.allowed is not None:
            played = policy.actions[:, :, None] == np.arange(shape.actions)
            _refuse_forbidden(np.argwhere(played & ~shape.allowed))


def _refuse_forbidden(places: IntArray) -> None:
    if len(places):
        step, state, action = places[0].tolist()
        raise InvalidInputError(
            f"Expected a policy that plays possible actions only, got action {action} in state "
            f"{state} at step {step}, which the mask of the problem does not allow (and "
            f"{len(places) - 1} more)."
        )


def _check_shape(got: tuple[int, ...], expected: tuple[int, ...], what: str) -> None:
    if got != expected:
        raise InvalidInputError(f"Expected policy {what} of shape {expected}, got {got}.")


def _started(marked: BoolArray, start: BoolArray | None) -> BoolArray:
    if start is not None:
        marked = marked.copy()
        marked[0] &= np.asarray(start, np.bool_)[:, None]
    return marked
