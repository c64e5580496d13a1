"""`discreet.evaluate_policy`: what a policy would earn, from logged episodes, by one release.

**The release** is that of `fit` (`release`, with its proof), with the policy's own actions
declared: the policy is public, all other actions are counted together. What follows is
post-processing.

**Counts** are made consistent as a flow, and stay linear in what was released
(`privacy.projection.linear_flow`). **The value** of the policy, of what is done today, and their
intervals are those of `learners.values`; where the noise hides most rows, today's interval is that
of `fit`, which needs none: the narrower one is taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import BoolArray, FloatArray, Plain
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError
from discreet.learners.estimate import Estimate
from discreet.learners.values import NORMAL, Layers, value_of
from discreet.mdp.counts import dense_of
from discreet.mdp.policies import DeferringPolicy, MixturePolicy, PolicyLike, as_policy
from discreet.mdp.shape import Shape
from discreet.offline.fit import behaviour_value
from discreet.offline.improvement import slot_factors, state_factors
from discreet.offline.release import (
    Episodes,
    Released,
    Slots,
    check_trust,
    logged,
    released,
    size_of,
    start_of,
)
from discreet.privacy.guarantee import Guarantee, said
from discreet.privacy.ledger import Account, Ledger
from discreet.privacy.projection.linear_flow import LinearFlow
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import TrustModel


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """What a policy would earn per episode, and what is earned today. ``print`` it.

    Attributes:
        value: of the policy, with a 95% interval: noise, sampling and projection included.
        today: of the behaviour that was logged.
        unseen: the policy's steps, of all, in places of which nothing is known: what the interval
            leaves open there are all rewards or none.
        horizon: H, the most that can be earned.
        users: whose episodes they are (public).
        guarantee: of these people.
        reward_range: of a step, in the units of the table, in which values are printed.
        account: what the ledger says of them; None if it was not charged.
    """

    value: Estimate
    today: Estimate
    unseen: float
    horizon: int
    users: int
    guarantee: Guarantee
    reward_range: tuple[float, float] = (0.0, 1.0)
    account: Account | None = None

    def in_units(self, low: float, high: float) -> "Evaluation":
        """The same, printed for rewards from ``low`` to ``high`` a step."""
        return replace(self, reward_range=(float(low), float(high)))

    def _own(self, value: Estimate) -> Estimate:
        return value.in_units(*self.reward_range, self.horizon)

    def _said(self, value: Estimate) -> str:
        whole = value.high - value.low > 0.99 * self.horizon
        return "not known from so few people" if whole else str(self._own(value))

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON."""
        return {
            "guarantee": str(said(self.guarantee)),
            "simulated": self.guarantee.simulated,
            "users": self.users,
            "value": dict(self.value._asdict()),
            "today": dict(self.today._asdict()),
            "in_units": {
                "reward_range": list(self.reward_range),
                "value": dict(self._own(self.value)._asdict()),
                "today": dict(self._own(self.today)._asdict()),
            },
            "unseen_steps": self.unseen,
            "ledger": None if self.account is None else self.account.to_dict(),
        }

    def __str__(self) -> str:
        low, high = self.reward_range
        unit = f"per episode of {self.horizon} steps with rewards from {low:g} to {high:g} each"
        facts = [
            ("this policy", f"{self._said(self.value)}, {unit}"),
            ("today", self._said(self.today)),
            ("could not see", f"{self.unseen:.0%} of the policy's steps"),
            ("guarantee", str(said(self.guarantee))),
            *([] if self.account is None else [("ledger", str(self.account))]),
        ]
        lines = [f"A policy evaluated on the logged episodes of {self.users:,} people"]
        return "\n".join([*lines, *(f"  {name:<15} {text}" for name, text in facts)])


def evaluate_policy(
    data: Episodes,
    policy: PolicyLike | DeferringPolicy,
    trust: TrustModel,
    *,
    shape: Shape | None = None,
    vocabulary: Vocabulary | None = None,
    start: ArrayLike | None = None,
    rewards: ArrayLike | None = None,
    sampler: str = "secure",
    seed: int | None = None,
    users: Sequence[str | int] | None = None,
    ledger: str | Path | Ledger | None = None,
) -> Evaluation:
    """Estimate what a policy would earn, and what is earned today, by one release.

    The rule by which the logged actions were chosen need not be known, if it depended on the state
    alone. All arguments but ``data`` are public. The policy of a `fit` on the same people can be
    evaluated, too: that is a second release, and its interval ignores that these data chose the
    policy.

    >>> from discreet import Central
    >>> from discreet.mdp import Treatment, evaluate, sample_counts, uniform_policy
    >>> mdp = Treatment()
    >>> people = sample_counts(mdp, uniform_policy(mdp.shape), 20_000, np.random.default_rng(0))
    >>> mild = np.full((mdp.horizon, mdp.shape.states), 1)
    >>> found = evaluate_policy(
    ...     people, mild, Central(1, 1e-6), start=mdp.start, sampler="simulation", seed=0
    ... )
    >>> found.value.low < evaluate(mdp, mild) < found.value.high
    True

    Args:
        data: whole episodes, or their sums (see `fit`).
        policy: deterministic or stochastic, the array of one, or a `DeferringPolicy`.
        trust: `Central`, or `NoPrivacy` to see what privacy costs.
        shape: as in `fit`.
        vocabulary: as in `fit`.
        start: as in `fit`.
        rewards: as in `fit`, where they are known; they are released all the same for actions that
            the policy does not take, which today's value needs.
        sampler: ``"secure"`` protects people; ``"simulation"`` is for rehearsals.
        seed: of a rehearsal.
        users: as in `fit`.
        ledger: as in `fit`, and the same file.
    """
    check_trust(trust)
    size = size_of(data, shape, vocabulary)
    chances, defers = _policy(policy, size)
    slots = Slots.of((chances > 0) & ~defers[..., None], start_of(start, size))
    made = released(
        data,
        slots,
        trust,
        size,
        rewards=rewards,
        last_transitions=False,
        sampler=sampler,
        seed=seed,
        users=users,
        ledger=ledger,
    )
    chosen = np.take_along_axis(chances, np.maximum(slots.action_of, 0), axis=2) * slots.named
    return evaluated(made, chosen, defers)


def _policy(policy: PolicyLike | DeferringPolicy, size: Shape) -> tuple[FloatArray, BoolArray]:
    """Probabilities ``[H, S, A]``, and where they defer ``[H, S]``."""
    defers = np.zeros(size.visits[:2], np.bool_)
    if isinstance(policy, DeferringPolicy):
        defers, actions = policy.defers, policy.actions
        if actions.shape != defers.shape or actions.shape != size.visits[:2]:
            raise InvalidInputError(
                f"Expected a policy of shape {size.visits[:2]}, got {actions.shape}."
            )
        policy = np.where(defers, size.first, actions)
    given = as_policy(policy, size)
    if isinstance(given, MixturePolicy):
        raise InvalidInputError(
            "Expected a policy without memory, got a mixture; evaluate each of its components."
        )
    return given.distribution(size), defers


def evaluated(made: Released, chances: FloatArray, defers: BoolArray) -> Evaluation:
    """Of a release in slots: with ``chances[H, S, K]`` each is taken."""
    (counts, doubt), given_rewards = logged(made.counts), made.given_rewards
    layers, horizon = layers_of(counts, given_rewards), len(counts.support)
    value, unseen = value_of(layers, chances, defers)
    today, _ = value_of(layers, chances, np.ones_like(defers))
    plain, error = behaviour_value(counts, given_rewards, last_transitions=False, doubt=doubt)
    low, high = max(plain - NORMAL * error, 0.0), min(plain + NORMAL * error, float(horizon))
    if high - low < today.high - today.low:
        today = Estimate(plain, low, high)
    return Evaluation(
        value=today if defers.all() else value,
        today=today,
        unseen=unseen,
        horizon=horizon,
        users=made.people,
        guarantee=said(counts.guarantee),
        account=made.account,
    )


def layers_of(counts: PrivateCounts, given_rewards: FloatArray) -> Layers:
    """The consistent counts of a release, with rewards that are given or people's."""
    flow, support, noise = LinearFlow.of(counts), counts.support, counts.noise_variance
    public = ~np.isnan(given_rewards)
    anchor = np.where(public, np.nan_to_num(given_rewards), counts.centre)
    transitions = dense_of(flow.counts, support)
    rewards = np.zeros(support.shape)
    if counts.row_rewards is not None:
        rewards = dense_of(counts.row_rewards, support)
    columns = np.full(len(support), float(support.shape[1]))
    columns[-1] = 1.0
    of_rows = noise["transitions"] * slot_factors(support, columns)
    of_states = noise["transitions"] * state_factors(support, columns)
    if counts.row_visits is not None and noise.get("visits"):
        of_rows = np.minimum(of_rows, noise["visits"] * support)
        of_states = np.minimum(of_states, noise["visits"] * support.sum(axis=2))
    return Layers(
        users=counts.users,
        counts=flow,
        transitions=transitions,
        rewards=np.where(public, 0.0, rewards) + anchor * transitions.sum(axis=-1),
        anchor=anchor,
        drawn=~public & support,
        reward_noise=noise.get("rewards", 0.0),
        visit_noise=(of_rows, of_states),
    )
