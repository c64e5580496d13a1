"""Planning in a known MDP: optimal policies, values, occupancies, exact regret."""

from dataclasses import dataclass

import numpy as np

from discreet._types import FloatArray
from discreet.errors import UnsupportedError
from discreet.mdp._arrays import one_layout
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy, PolicyLike, as_policy
from discreet.mdp.tabular import TabularMDP

_REMEMBERED = 4096
"""Policies whose value a `RegretMeter` keeps; the memory is emptied when it is full."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A best policy and its values."""

    policy: DeterministicPolicy  # ties go to the action with the smallest number
    values: FloatArray  # [H + 1, S], the value of each state from each step on (0 at the end)
    value: float  # of an episode


def solve(mdp: TabularMDP) -> Solution:
    """The optimal policy, by value iteration.

    >>> from discreet.mdp import RiverSwim
    >>> round(solve(RiverSwim(states=4, horizon=6)).value, 6)
    0.475791
    """
    from discreet.mdp import _kernels

    rewards = mdp.full_rewards
    if mdp.allowed is not None:  # so little that no other action of the episode makes up for it
        rewards = one_layout(np.where(mdp.shape.mask, rewards, -(1.0 + 2 * mdp.horizon)))
    values, best = _kernels.maximise(mdp.rows, rewards)
    values.flags.writeable = False
    return Solution(DeterministicPolicy(best), values, float(mdp.initial @ values[0]))


def state_values(mdp: TabularMDP, policy: PolicyLike) -> FloatArray:
    """``float64[H + 1, S]``: expected reward from each step and state on, under the policy."""
    from discreet.mdp import _kernels

    chosen = as_policy(policy, mdp.shape)
    if isinstance(chosen, MixturePolicy):
        raise UnsupportedError(
            "A mixture has no value per state (its component is drawn once per episode); "
            "use evaluate(), or state_values() of each component."
        )
    probabilities = one_layout(chosen.distribution(mdp.shape))
    return _kernels.evaluate(mdp.rows, mdp.full_rewards, probabilities)


def evaluate(mdp: TabularMDP, policy: PolicyLike) -> float:
    """The expected total reward of one episode, exactly.

    >>> from discreet.mdp import RiverSwim, uniform_policy
    >>> mdp = RiverSwim(states=4, horizon=6)
    >>> round(evaluate(mdp, uniform_policy(mdp.shape)), 4)
    0.0316
    """
    chosen = as_policy(policy, mdp.shape)
    if isinstance(chosen, MixturePolicy):
        values = [evaluate(mdp, component) for component in chosen.components]
        return float(chosen.weights @ np.array(values))
    return float(mdp.initial @ state_values(mdp, chosen)[0])


def occupancy(mdp: TabularMDP, policy: PolicyLike) -> FloatArray:
    """``float64[H, S, A]``: the probability that step h of an episode is at (s, a)."""
    from discreet.mdp import _kernels

    chosen = as_policy(policy, mdp.shape)
    if isinstance(chosen, MixturePolicy):
        parts = zip(chosen.weights, chosen.components, strict=True)
        total: FloatArray = np.sum([w * occupancy(mdp, c) for w, c in parts], axis=0)
        return total
    probabilities = one_layout(chosen.distribution(mdp.shape))
    return _kernels.occupancies(mdp.rows, mdp.initial, probabilities)


class RegretMeter:
    """Exact expected regret per episode in one MDP, remembered per policy.

    A run that keeps its policy for many episodes pays for one evaluation.
    """

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp
        self.optimal = solve(mdp)
        self._values: dict[bytes, float] = {}

    def value(self, policy: PolicyLike) -> float:
        """The expected total reward of one episode under the policy."""
        chosen = as_policy(policy, self.mdp.shape)
        if isinstance(chosen, MixturePolicy):
            return float(chosen.weights @ np.array([self.value(c) for c in chosen.components]))
        if chosen.key not in self._values:
            if len(self._values) >= _REMEMBERED:
                self._values.clear()
            self._values[chosen.key] = evaluate(self.mdp, chosen)
        return self._values[chosen.key]

    def regret(self, policy: PolicyLike) -> float:
        """How much an episode under the policy loses to an optimal one (never below zero)."""
        return max(0.0, self.optimal.value - self.value(policy))
