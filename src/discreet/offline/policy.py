"""`DeferringPolicy`: an action where the data can tell, DEFER everywhere else."""

from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import InvalidInputError
from discreet.mdp._arrays import frozen_copy
from discreet.mdp.policies import MixturePolicy, PolicyLike, StochasticPolicy, as_policy
from discreet.mdp.shape import Shape

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
