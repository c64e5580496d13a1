"""Optimistic value iteration as the papers print it: the reference that the kernels must match.

A subclass says how private counts become a model and which bonus each (s, a) gets.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.learners.streams.loop import StreamLearner, choose
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.release import PrivateCounts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Model:
    """Estimates; the first axis has length H, or 1 for stationary counts.

    Attributes:
        transitions: ``[G, S, A, S]``, perhaps signed or of mass below one.
        rewards: ``[G, S, A]``.
        visits: ``[G, S, A]``, the N of the bonus.
    """

    transitions: Floats
    rewards: Floats
    visits: Floats

    def step(self, h: int) -> int:
        """Where the estimates of step h are."""
        return h if len(self.visits) > 1 else 0


class Optimist(StreamLearner):
    """Q(h,s,a) = min(cap, max(0, r + P·V + b)), V = max Q, greedy policy, random ties."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        shape = self.problem.shape
        self.q = np.full(shape.visits, float(shape.horizon))

    @abstractmethod
    def model(self, counts: PrivateCounts) -> Model:
        """Estimates from private counts."""

    @abstractmethod
    def bonus(self, h: int, model: Model, values: Floats, users: int) -> Floats:
        """``[S, A]``: the bonus at step h, given the values of step h + 1; inf: unknown."""

    def next_policy(self, counts: PrivateCounts) -> DeterministicPolicy:
        """Backward induction with bonuses."""
        shape = self.problem.shape
        model = self.model(counts)
        values = np.zeros(shape.states)
        actions = np.zeros(shape.visits[:2], np.int64)
        for h in reversed(range(shape.horizon)):
            self.q[h] = self.q_values(h, model, values, counts.users)
            for s in range(shape.states):
                actions[h, s] = choose(self.q[h, s], self.rng)
            values = np.max(self.q[h], axis=-1)
        return DeterministicPolicy(actions)

    def q_values(self, h: int, model: Model, values: Floats, users: int) -> Floats:
        """The optimistic Q values of step h."""
        cap = self.problem.shape.horizon - (h if self.settings["cap"] == "remaining" else 0)
        g = model.step(h)
        plain = model.rewards[g] + expected(model.transitions[g], values)
        q = np.clip(plain + self.bonus(h, model, values, users), 0.0, cap)
        clipped: Floats = np.minimum(q, self.q[h]) if self.settings["clip"] else q
        return clipped

    def planner(self) -> Any:
        """The compiled form of `next_policy`."""
        from discreet.learners.streams.ucbvi_kernels import optimistic_values

        return optimistic_values

    def memory(self) -> Floats:
        """Q starts at H."""
        return np.full((1, *self.problem.shape.visits), float(self.problem.shape.horizon))

    def table(self, users: Ints, **columns: Any) -> Floats:
        """Rows for the compiled planner from named columns (see `ucbvi_kernels.Row`)."""
        from discreet.learners.streams.ucbvi_kernels import Row

        columns.setdefault("remaining", self.settings.get("cap") == "remaining")
        columns.setdefault("clip", self.settings.get("clip", False))
        rows = np.zeros((len(users), len(Row)))
        for name, value in columns.items():
            rows[:, Row[name.upper()]] = value
        return rows


def expected(transitions: Floats, values: Floats) -> Floats:
    """P·V, summed from the first state to the last: what ties must tie in the kernels too."""
    total = np.zeros(transitions.shape[:-1])
    for t, value in enumerate(values):
        total += transitions[..., t] * value
    return total


def variance(model: Model, h: int, values: Floats) -> Floats:
    """Var_P(V) per (s, a)."""
    transitions = model.transitions[model.step(h)]
    mean = expected(transitions, values)
    spread: Floats = np.maximum(0.0, expected(transitions, values**2) - mean**2)
    return spread


def unknown_ahead(model: Model, h: int, near: float, near2: float, horizon: int) -> Floats:
    """sum_s' P(s')·min(near/N'(s') + near2/N'(s')², H²) with N'(s') the visits at step h + 1."""
    visits = model.visits[model.step(h + 1)].sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ceiling = np.where(visits > 0, near / visits + near2 / visits**2, np.inf)
    return expected(model.transitions[model.step(h)], np.minimum(ceiling, horizon**2))
