"""From private counts to the absorbing model of policy elimination, with upper and lower rewards.

A transition (h, x, a, x') that was counted too rarely is *infrequent*: its probability goes to an
absorbing state that is worth nothing in the estimate and in the lower bound (Definition 5 of 001);
optimism for it enters the upper bound only. At the last step no transition is needed.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._types import BoolArray, FloatArray
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.statistics import PrivateCounts


@dataclass(eq=False)
class CountPool:
    """Private counts summed over batches, each batch with one public weight.

    Attributes:
        transitions: ``[H, X, A, X]``.
        rewards: ``[H, X, A]``.
        transition_variance: ``[H, X, A]``, noise variance of one pooled transition counter.
        reward_variance: ``[H, X, A]``, noise variance of one pooled reward counter.
        users: how many users they come from.
    """

    transitions: FloatArray
    rewards: FloatArray
    transition_variance: FloatArray
    reward_variance: FloatArray
    users: int

    @classmethod
    def empty(cls, shape: Shape) -> "CountPool":
        """No users yet."""
        visits = shape.visits
        zeros = np.zeros(shape.transitions)
        return cls(zeros, np.zeros(visits), np.zeros(visits), np.zeros(visits), 0)

    @classmethod
    def of_release(cls, counts: PrivateCounts) -> "CountPool":
        """One batch as it was released, with the exact variance of its noise."""
        if counts.transitions is None or counts.rewards is None:
            raise InvalidInputError(
                "Policy elimination needs transitions and rewards; calibrate the plan with "
                "statistics=('transitions', 'rewards')."
            )
        noisy = counts.played.astype(np.float64)
        variance = counts.noise_variance
        return cls(
            counts.transitions,
            counts.rewards,
            variance["transitions"] * noisy,
            variance["rewards"] * noisy,
            counts.users,
        )

    def add(self, other: "CountPool", weight: float = 1.0) -> None:
        """One more batch of other users."""
        self.transitions += weight * other.transitions
        self.rewards += weight * other.rewards
        self.transition_variance += weight**2 * other.transition_variance
        self.reward_variance += weight**2 * other.reward_variance
        self.users += other.users

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        arrays = ("transitions", "rewards", "transition_variance", "reward_variance")
        return {name: getattr(self, name).tolist() for name in arrays} | {"users": self.users}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "CountPool":
        """The inverse of `to_dict`."""
        users = int(data["users"])
        arrays = {k: np.array(v, np.float64) for k, v in data.items() if k != "users"}
        return cls(**arrays, users=users)


@dataclass(frozen=True, eq=False)
class AbsorbingModel:
    """An estimated sub-stochastic model.

    Attributes:
        transitions: ``[H, X, A, X]``, zero for infrequent tuples and at the last step.
        rewards: ``[H, X, A]`` in [0, 1].
        initial: ``[X]``, distribution of the first state.
        visits: ``[H, X, A]``, the pooled counts behind the estimates.
        noise: ``[H, X, A]``, noise variance of one pooled transition counter.
    """

    transitions: FloatArray
    rewards: FloatArray
    initial: FloatArray
    visits: FloatArray
    noise: FloatArray

    @property
    def absorbed(self) -> FloatArray:
        """``[H, X, A]``, the probability of leaving for the absorbing state (0 at the last)."""
        missing: FloatArray = np.clip(1.0 - self.transitions.sum(axis=-1), 0.0, 1.0)
        missing[-1] = 0.0
        return missing

    @property
    def known(self) -> BoolArray:
        """``bool[H, X]``, the states with some evidence about what follows or is earned there."""
        evidence: BoolArray = np.any(self.transitions > 0.0, axis=(2, 3))
        evidence[-1] = (self.visits[-1] > 0.0).any(axis=-1)
        return evidence


def estimate_initial(pool: CountPool, start: BoolArray) -> FloatArray:
    """Distribution of the first state: known if there is one start state, else from the counts."""
    counts = np.maximum(pool.transitions[0].sum(axis=(1, 2)), 0.0) * start
    weights: FloatArray = counts if counts.sum() > 0.0 else start.astype(np.float64)
    normalised: FloatArray = weights / weights.sum()
    return normalised


def absorbing_model(pool: CountPool, threshold: FloatArray, start: BoolArray) -> AbsorbingModel:
    """The model of pooled counts.

    Args:
        pool: private counts.
        threshold: ``[H, X, A]``; a transition counted at most so often is infrequent.
        start: ``bool[X]``, the public start states.
    """
    frequent = pool.transitions > threshold[..., None]
    frequent[-1] = False
    counts = np.maximum(pool.transitions, 0.0)
    visits = counts.sum(axis=-1)
    divisor = np.maximum(visits, 1.0)
    transitions = np.where(frequent, counts / divisor[..., None], 0.0)
    seen = visits > np.maximum(threshold, 0.5)
    rewards = np.where(seen, np.clip(pool.rewards / divisor, 0.0, 1.0), 0.0)
    return AbsorbingModel(
        transitions, rewards, estimate_initial(pool, start), visits, pool.transition_variance
    )


def bernstein_widths(
    model: AbsorbingModel, values: FloatArray, iota: float, confidence: float
) -> FloatArray:
    """Half-widths of the one-step estimates, per (h, x, a), at most 1.

    ``confidence`` times
    sqrt(2 iota) · sqrt(Var/N + sigma²·(1 + sum of squared value deviations)/N²) + iota/N: the
    Bernstein term of N draws of reward plus next value, and the exact variance that noise on the
    reward counter and on each frequent transition counter adds to the same ratio.

    Args:
        model: the estimate.
        values: ``[H + 1, X]``, values of the states (absorbing: 0).
        iota: logarithm of the inverse failure probability.
        confidence: 1 for the width as derived; less is a practical choice without a theorem.
    """
    divisor = np.maximum(model.visits, 1.0)
    ahead = values[1:, None, None, :]
    mean = (model.transitions * ahead).sum(axis=-1)
    spread = np.maximum((model.transitions * ahead**2).sum(axis=-1) - mean**2, 0.0)
    spread += model.rewards * (1.0 - model.rewards)
    frequent = model.transitions > 0.0
    deviations = ((ahead - mean[..., None]) ** 2 * frequent).sum(axis=-1)
    variance = spread / divisor + model.noise * (1.0 + deviations) / divisor**2
    width = math.sqrt(2.0 * iota) * np.sqrt(variance) + iota / divisor
    capped: FloatArray = np.minimum(confidence * width, 1.0)
    return capped


def absorption_optimism(model: AbsorbingModel) -> FloatArray:
    """``[H, X, A]``: what the absorbed mass could earn in the steps that follow."""
    horizon = model.rewards.shape[0]
    steps_left = np.arange(horizon - 1, -1, -1, dtype=np.float64)
    return model.absorbed * steps_left[:, None, None]


def upper_and_lower(
    model: AbsorbingModel, iota: float, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Rewards ``[H, X, A]`` whose values in the model bound the true values of policies.

    The absorbing state is worth nothing below and as much as the steps left above.
    """
    from discreet.learners.elimination.active_set_kernels import optimal_values

    values = optimal_values(model.transitions, model.rewards)
    width = bernstein_widths(model, values, iota, confidence)
    upper = model.rewards + width + confidence * absorption_optimism(model)
    return upper, model.rewards - width
