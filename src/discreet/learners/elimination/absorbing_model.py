"""From private counts to the absorbing model of policy elimination, with upper and lower rewards.

A transition (h, x, a, x') that was counted too rarely is *infrequent*: its probability goes to an
absorbing state that is worth nothing in the estimate and in the lower bound (Definition 5 of 001);
optimism for it enters the upper bound only. At the last step no transition is needed.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, JsonObject, Plain
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.statistics import PrivateCounts


class SecondLook(NamedTuple):
    """Visits ``[H, X, A]`` that were counted besides the transitions, and their noise variance."""

    visits: FloatArray
    variance: FloatArray


@dataclass(eq=False)
class CountPool:
    """Private counts summed over batches, each batch with one public weight.

    Attributes:
        transitions: ``[H, X, A, X]``.
        rewards: ``[H, X, A]``, sums of r - ``centre``.
        transition_variance: ``[H, X, A]``, noise variance of one pooled transition counter.
        reward_variance: ``[H, X, A]``, noise variance of one pooled reward counter.
        users: how many users they come from.
        second: visits that were counted besides, or None.
        centre: 1/2 for centred rewards, else 0.
    """

    transitions: FloatArray
    rewards: FloatArray
    transition_variance: FloatArray
    reward_variance: FloatArray
    users: int
    second: SecondLook | None = None
    centre: float = 0.0

    @classmethod
    def empty(cls, shape: Shape) -> "CountPool":
        visits = shape.visits
        zeros = np.zeros(shape.transitions)
        return cls(zeros, np.zeros(visits), np.zeros(visits), np.zeros(visits), 0)

    @classmethod
    def of_release(cls, counts: PrivateCounts) -> "CountPool":
        """One batch as it was released, with the exact variance of its noise."""
        transitions, rewards, visits = counts.transitions, counts.rewards, counts.visits
        if transitions is None or rewards is None:
            raise InvalidInputError(
                "Policy elimination needs transitions and rewards; calibrate the plan with "
                "statistics=('transitions', 'rewards')."
            )
        if visits is None and not counts.last_transitions:
            raise InvalidInputError(
                "Policy elimination plays mixtures: it needs the transitions of the last step, or "
                "visits, to know who played what there; calibrate with last_transitions=True."
            )
        noisy, variance = counts.support.astype(np.float64), counts.noise_variance
        spread = variance["transitions"] * noisy
        if not counts.last_transitions:
            spread[-1] = 0.0
        return cls(
            transitions,
            rewards,
            spread,
            variance["rewards"] * noisy,
            counts.users,
            None if visits is None else SecondLook(visits, variance["visits"] * noisy),
            0.5 if counts.centred else 0.0,
        )

    def add(self, other: "CountPool", weight: float = 1.0) -> None:
        """One more batch of other users."""
        self.transitions += weight * other.transitions
        self.rewards += weight * other.rewards
        self.transition_variance += weight**2 * other.transition_variance
        self.reward_variance += weight**2 * other.reward_variance
        self.users += other.users
        self.centre = other.centre  # one plan releases all batches in one form
        if other.second is not None:
            zero = np.zeros_like(self.rewards)
            visits, variance = self.second or (zero, zero)
            more, noise = other.second
            self.second = SecondLook(visits + weight * more, variance + weight**2 * noise)

    @property
    def widest(self) -> FloatArray:
        """``[H, X, A]``: the largest noise variance of a counter of any statistic."""
        own = np.maximum(self.transition_variance, self.reward_variance)
        return own if self.second is None else np.maximum(own, self.second.variance)

    def visit_sums(self) -> FloatArray:
        """``[H, X, A]``: all looks at the visits together, each by its precision; unbiased."""
        return self._with_looks(self.transitions.sum(axis=-1))

    def visits(self) -> FloatArray:
        """As `visit_sums`, of counts that are not negative."""
        return self._with_looks(np.maximum(self.transitions, 0.0).sum(axis=-1), least=0.0)

    def _with_looks(self, outflow: FloatArray, least: float = -np.inf) -> FloatArray:
        """``outflow`` averaged with the second look; alone where there are no transitions."""
        if self.second is None:
            return outflow
        visits, variance = self.second
        noise = self.transitions.shape[-1] * self.transition_variance
        share = np.divide(noise, noise + variance, out=np.ones_like(noise), where=noise > 0.0)
        mixed: FloatArray = (1.0 - share) * outflow + share * np.maximum(visits, least)
        return mixed

    def to_dict(self) -> dict[str, Plain]:
        plain = {name: getattr(self, name).tolist() for name in _ARRAYS}
        if self.second is not None:
            visits, variance = self.second
            plain |= {"looks": visits.tolist(), "look_variance": variance.tolist()}
        return plain | {"users": self.users, "centre": self.centre}

    @classmethod
    def from_dict(cls, data: JsonObject) -> "CountPool":
        def read(name: str) -> FloatArray:
            return np.array(data[name], np.float64)

        arrays = {name: read(name) for name in _ARRAYS}
        looked = SecondLook(read("looks"), read("look_variance")) if "looks" in data else None
        centre = float(data.get("centre", 0.0))
        return cls(**arrays, users=int(data["users"]), second=looked, centre=centre)


_ARRAYS = ("transitions", "rewards", "transition_variance", "reward_variance")


@dataclass(frozen=True, eq=False)
class AbsorbingModel:
    """An estimated sub-stochastic model.

    Attributes:
        transitions: ``[H, X, A, X]``, zero for infrequent tuples and at the last step.
        rewards: ``[H, X, A]`` in [0, 1].
        initial: ``[X]``, distribution of the first state.
        visits: ``[H, X, A]``, the pooled counts behind the estimates.
        noise: ``[H, X, A]``, noise variance of one pooled transition counter.
        reward_noise: ``[H, X, A]``, that of one pooled reward counter.
    """

    transitions: FloatArray
    rewards: FloatArray
    initial: FloatArray
    visits: FloatArray
    noise: FloatArray
    reward_noise: FloatArray

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
    counts = np.maximum(pool.visit_sums()[0].sum(axis=1), 0.0) * start
    weights: FloatArray = counts if counts.sum() > 0.0 else start.astype(np.float64)
    normalised: FloatArray = weights / weights.sum()
    return normalised


def frequent_tuples(pool: CountPool, threshold: FloatArray) -> BoolArray:
    """``bool[H, X, A, X]``: counted more often than ``threshold[H, X, A]``, before the last step.

    What is left out is the W of the papers.
    """
    frequent: BoolArray = pool.transitions > threshold[..., None]
    frequent[-1] = False
    return frequent


def absorbing_model(
    pool: CountPool,
    threshold: FloatArray,
    start: BoolArray,
    *,
    frequent: BoolArray | None = None,
) -> AbsorbingModel:
    """The model of pooled counts: Definition 5.

    A frequent tuple has the probability N(x, a, x')/N(x, a), where N(x, a) counts the infrequent
    ones, too; their share is absorbed. Rewards are R(x, a)/N(x, a), of the same N(x, a).

    Args:
        pool: private counts.
        threshold: ``[H, X, A]``; a transition counted at most so often is infrequent, and a pair
            visited at most so often has no reward.
        start: ``bool[X]``, the public start states.
        frequent: ``bool[H, X, A, X]`` if other counts have decided it.
    """
    if frequent is None:
        frequent = frequent_tuples(pool, threshold)
    counts, visits = np.maximum(pool.transitions, 0.0), pool.visits()
    total = np.maximum(counts.sum(axis=-1), 1.0)  # of these: probabilities must not exceed one
    transitions = np.where(frequent, counts / total[..., None], 0.0)
    seen = visits > np.maximum(threshold, 0.5)
    means = pool.rewards / np.maximum(visits, 1.0) + pool.centre
    return AbsorbingModel(
        transitions,
        np.where(seen, np.clip(means, 0.0, 1.0), 0.0),
        estimate_initial(pool, start),
        visits,
        pool.transition_variance,
        pool.reward_variance,
    )


def bernstein_widths(
    model: AbsorbingModel, values: FloatArray, iota: float, confidence: float
) -> FloatArray:
    """Half-widths of the one-step estimates, per (h, x, a), at most 1.

    ``confidence`` times
    sqrt(2 iota) · sqrt(Var/N + (rho² + sigma²·(sum of squared value deviations))/N²) + iota/N: the
    Bernstein term of N draws of reward plus next value, and the exact variance that noise on the
    reward counter (rho²) and on each frequent transition counter (sigma²) adds to the same ratio.

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
    noise = model.reward_noise + model.noise * deviations
    variance = spread / divisor + noise / divisor**2
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
    from discreet.learners.elimination.active_set import optimal_values

    values = optimal_values(model.transitions, model.rewards)
    width = bernstein_widths(model, values, iota, confidence)
    upper = model.rewards + width + confidence * absorption_optimism(model)
    return upper, model.rewards - width
