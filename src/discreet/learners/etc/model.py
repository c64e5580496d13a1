"""What exploration has shown: sums of flow-consistent counts, and the best policy in them."""

from dataclasses import dataclass

import numpy as np

from discreet._plain import JsonObject, Plain
from discreet._types import BoolArray, FloatArray
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy
from discreet.mdp.shape import Shape
from discreet.privacy.postprocess.flow import released_flow
from discreet.privacy.statistics import PrivateCounts


@dataclass(eq=False)
class ExploredModel:
    """Sums over exploring batches; the first axis is H long, or 1 when pooled over steps.

    Attributes:
        transitions: ``[H, S, A, S]``.
        rewards: ``[H, S, A]``, sums of r.
        reward_visits: ``[H, S, A]``, the visits behind them.
        doubt: ``[H, S, A]``, the noise variance of the visits.
    """

    transitions: FloatArray
    rewards: FloatArray
    reward_visits: FloatArray
    doubt: FloatArray

    @classmethod
    def empty(cls, shape: Shape, *, pooled: bool) -> "ExploredModel":
        rows = (1 if pooled else shape.horizon, shape.states, shape.actions)
        return cls(np.zeros((*rows, shape.states)), *(np.zeros(rows) for _ in range(3)))

    def add(
        self,
        counts: PrivateCounts,
        policy: StochasticPolicy,
        start: BoolArray,
        visit_variance: float,
    ) -> None:
        """One batch of users who played ``policy``; ``visit_variance``: see `BatchPlan`."""
        where = np.nonzero(counts.played)
        flow, visits = released_flow(counts, start, policy.probabilities[where])
        rewards = np.asarray(counts.row_rewards) + (0.5 if counts.centred else 0.0) * visits
        noise = counts.noise_variance["transitions"] * flow.shape[1] / 2
        rows = (where[0] * 0, *where[1:]) if len(self.rewards) == 1 else where
        np.add.at(self.transitions, rows, flow)
        np.add.at(self.rewards, rows, rewards)
        np.add.at(self.reward_visits, rows, visits)
        np.add.at(self.doubt, rows, noise + visit_variance * np.maximum(visits, 0.0) / 2)

    @property
    def known(self) -> BoolArray:
        """Rows with more visits than noise explains."""
        certain: BoolArray = self.reward_visits > np.sqrt(self.doubt)
        return certain

    def probabilities(self, horizon: int) -> FloatArray:
        """``[H, S, A, S]``: transitions of the model; unknown rows lead anywhere."""
        totals = self.transitions.sum(axis=-1, keepdims=True)
        anywhere = 1.0 / self.transitions.shape[-1]
        chances = np.full(self.transitions.shape, anywhere)
        seen = self.known[..., None] & (totals > 0.0)
        np.divide(self.transitions, totals, out=chances, where=seen)
        return np.broadcast_to(chances, (horizon, *chances.shape[1:]))

    def greedy(self, horizon: int, luck: FloatArray) -> DeterministicPolicy:
        """The best policy of the model, which shuns what it does not know.

        Args:
            horizon: H.
            luck: ``[H, S, A]``, distinct numbers that break ties.
        """
        chances, known = self.probabilities(horizon), self.known
        means = np.clip(self.rewards / np.maximum(self.reward_visits, 1e-12), 0.0, 1.0)
        values = np.zeros(chances.shape[1])
        actions = np.zeros((horizon, values.size), np.int64)
        for h in range(horizon - 1, -1, -1):
            layer = h if len(means) > 1 else 0
            worth = np.where(known[layer], means[layer] + chances[h] @ values, 0.0)
            values = worth.max(axis=1)
            tied = worth > values[:, None] - 1e-9
            actions[h] = np.where(tied, luck[h], -1.0).argmax(axis=1)
        return DeterministicPolicy(actions)

    def to_dict(self) -> dict[str, Plain]:
        return {name: array.tolist() for name, array in vars(self).items()}

    @classmethod
    def from_dict(cls, data: JsonObject) -> "ExploredModel":
        return cls(**{name: np.array(values, np.float64) for name, values in data.items()})
