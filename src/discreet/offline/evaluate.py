"""`discreet.evaluate_policy`: what a policy would earn, from logged episodes, by one release.

**The release** is that of `fit` (`release`, with its proof), with the policy's own actions
declared: the policy is public, all other actions are counted together. What follows is
post-processing.

**Counts.** Transitions y of a row (h, s, a) with noise of variance sigma² each, and perhaps
another measurement v of its visits, of variance tau², are first combined: x = y + (v - sum
y)·sigma²/(tau² + S·sigma²) in every cell, with the covariance C = sigma²·I - sigma⁴/(tau² +
S·sigma²)·11'. Then they are projected, in the norm of C, onto counts that are consistent as a
flow: the first layer has n users, what comes into a state goes out of it. Counts below zero stay.
So the projection is linear: x -> P·x + const, without bias, whatever the noise, and a linear
function g'x of projected counts has the variance g'P·C·P'g = g'P·(C·g), since P is orthogonal in
that norm: one more projection. At the last step the next state means nothing, and a row is a count
of visits with sigma² (`release`).

**Value.** Backward, Q(h, s, a) = (R + sum x(s')·V(s'))/N, V = sum pi·Q. Where the policy DEFERs to
today's behaviour all actions of a state are one row; so *today* is the policy that defers
everywhere, and its value is simply the sum of all rewards over n (where the noise hides most rows,
its interval is that of `fit`, which needs none: the narrower one is taken). A row is known if N
exceeds two standard deviations of its noise by half a visit (as in `fit`). What is not known is
worth anything between 0 and all steps left: two passes, one with the least and one with the most,
give the two ends.

**Interval.** With W(h, s) how often the policy comes to a state by the estimated model and W =
W·pi for its rows, V depends on the counts to first order by

    dV = sum W/N·[sum_s' dx(s')·(V(s') + c - Q) + dR] + sum_s dN(0, s)·V(0, s)/n,

R released as a sum of r - c. *Noise*: g is the factor of dx, and its variance is as above, plus
(W/N)² times that of R. *Sampling*: given the state and action, people are independent, and each
adds r + V(s') - Q, with a variance of at most (sd r + sd V(s'))², however the reward depends on
the next state; the first states add Var V(0, s)/n. Rewards are bits, r(1 - r). ((1 + range of
V)/2)² is added to the sum of a row, as if half a surprise more had been seen: rows seen a few
times show no variance. *Denominators* are noisy too: N is replaced by N - 2·sqrt D in the
variances, D the noise of N. The interval is 1.96 standard errors of the lower pass below it to
1.96 of the upper pass above it. It is an approximation (first order, normal), measured in
docs/understand/learners/fit.md, and not a theorem.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import BoolArray, FloatArray, Plain
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError
from discreet.learners.estimate import Estimate, probabilities_of
from discreet.mdp.counts import dense_of
from discreet.mdp.policies import MixturePolicy, PolicyLike, as_policy
from discreet.mdp.shape import Shape
from discreet.offline.fit import (
    BOTH,
    DeferringPolicy,
    behaviour_value,
)
from discreet.offline.improvement import slot_factors, state_factors
from discreet.offline.release import (
    Episodes,
    People,
    Randomness,
    Slots,
    check_trust,
    known_rewards,
    logged,
    released,
    size_of,
    start_of,
)
from discreet.privacy.guarantee import Guarantee, said
from discreet.privacy.ledger import Account, Ledger
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import TrustModel

NORMAL = 1.959964
"""Two-sided 95%."""


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
            ("this policy", f"{self._own(self.value)} {unit}"),
            ("today", str(self._own(self.today))),
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
    known = known_rewards(rewards, slots, size)
    statistics = BOTH if np.isnan(known[slots.support]).any() else BOTH[:1]
    randomness, people = Randomness.of(sampler, seed), People.given(users, data, trust)
    counts, account = released(
        data,
        slots,
        trust,
        statistics=statistics,
        keep_last=False,
        randomness=randomness,
        people=people,
        ledger=ledger,
    )
    chosen = np.take_along_axis(chances, np.maximum(slots.action_of, 0), axis=2) * slots.named
    found = evaluated(counts, chosen, defers, known)
    return replace(found, account=account, users=people.number)


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


def evaluated(
    counts: PrivateCounts, chances: FloatArray, defers: BoolArray, known: FloatArray
) -> Evaluation:
    """Of a release in slots: ``chances[H, S, K]``, ``known`` rewards (NaN where they are not)."""
    counts, doubt = logged(counts)
    flow, horizon = Flow.of(counts), len(counts.support)
    value, unseen = _estimate(flow, counts, chances, defers, known)
    today, _ = _estimate(flow, counts, chances, np.ones_like(defers), known)
    plain, error = behaviour_value(counts, known, keep_last=False, doubt=doubt)
    low, high = max(plain - NORMAL * error, 0.0), min(plain + NORMAL * error, float(horizon))
    if high - low < today.high - today.low:
        today = Estimate(plain, low, high)
    return Evaluation(
        value=today if defers.all() else value,
        today=today,
        unseen=unseen,
        horizon=horizon,
        users=counts.users,
        guarantee=said(counts.guarantee),
    )


class Flow(NamedTuple):
    """Consistent counts, linear in those released, and the norm in which they are projected.

    Attributes:
        counts: x ``[R, S]``, the rows of the support.
        support: ``bool[H, S, K]``.
        variance: sigma² of the cells of each row ``[R]``.
        shared: of each row, what is subtracted from every entry of its covariance ``[R]``.
        visit_variance: of one row's visits and of a state's, ``[H, S, K]`` and ``[H, S]``.
    """

    counts: FloatArray
    support: BoolArray
    variance: FloatArray
    shared: FloatArray
    visit_variance: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, counts: PrivateCounts) -> "Flow":
        """The consistent counts of a release whose last next states mean nothing."""
        support, noise = counts.support, counts.noise_variance["transitions"]
        (horizon, states, _), steps = support.shape, np.nonzero(support)[0]
        columns = np.full(horizon, float(states))
        columns[-1] = 1.0
        rows = np.array(counts.row_transitions, np.float64)
        rows[steps == horizon - 1] = rows[steps == horizon - 1, :1] / states
        variance, shared = noise * columns[steps] / states, np.zeros(len(rows))
        factors = noise * slot_factors(support, columns), noise * state_factors(support, columns)
        other = counts.noise_variance.get("visits", 0.0)
        if counts.row_visits is not None and other:
            share = variance / (other + states * variance)
            rows += ((counts.row_visits - rows.sum(axis=1)) * share)[:, None]
            shared = variance * share
            factors = (
                np.minimum(factors[0], other * support),
                np.minimum(factors[1], other * support.sum(axis=2)),
            )
        flow = cls(rows, support, variance, shared, factors)
        return flow._replace(counts=flow.project(rows, counts.users)) if noise else flow

    def spread(self, rows: FloatArray) -> FloatArray:
        """C·g."""
        both: FloatArray = self.variance[:, None] * rows - (self.shared * rows.sum(axis=1))[:, None]
        return both

    def project(self, rows: FloatArray, users: float) -> FloatArray:
        """The nearest consistent rows, by elimination from layer to layer of the flow equations.

        With one potential for each state of a layer (for all of the first together) the solution is
        rows + C·A'u, and A·C·A' is block tridiagonal: two layers meet in the rows between them.
        """
        horizon, states, _ = self.support.shape
        steps, state, _ = np.nonzero(self.support)
        state = np.where(steps == 0, 0, state)
        own, total = rows.sum(axis=1), states * (self.variance - states * self.shared)
        missing, out = np.zeros((2, horizon, states))
        np.add.at(missing, (steps, state), own)
        np.add.at(out, (steps, state), total)
        missing[0, 0] -= users
        blocks, joint = [], []
        for step in range(horizon):
            block = np.diag(out[step])
            if step:
                before = steps == step - 1
                missing[step] -= rows[before].sum(axis=0)
                block -= self.shared[before].sum()
                block += np.eye(states) * self.variance[before].sum()
            else:
                block[np.arange(1, states), np.arange(1, states)] = 1.0
            blocks.append(block)
            joint.append(out[step] / states)
        u = missing.copy()
        for step in range(1, horizon):  # A·C·A' between layers: -joint in every column
            solved = np.linalg.solve(blocks[step - 1], np.stack([joint[step - 1], u[step - 1]], 1))
            blocks[step] = blocks[step] - joint[step - 1] @ solved[:, 0]
            u[step] += joint[step - 1] @ solved[:, 1]
        following = 0.0
        for step in reversed(range(horizon)):
            u[step] = np.linalg.solve(blocks[step], u[step] + joint[step] * following)
            following = float(u[step].sum())
        after = np.concatenate([u[1:], np.zeros((1, states))])[steps]
        return rows + self.spread(after - u[steps, state][:, None])


class _Step(NamedTuple):
    """The rows ``[S, K]`` of one step; a state that defers has one row, the first, of all slots.

    Attributes:
        known: rows that noise does not explain.
        chances: with which the policy takes them.
        moves: probabilities ``[S, K, S]``, signed.
        values: Q; what was given for them where they are not known.
        ahead: V of the next step.
        scale: 1 over the visits that are certain, 0 where a row is not known.
        sampling: variance of Q by sampling.
    """

    known: BoolArray
    chances: FloatArray
    moves: FloatArray
    values: FloatArray
    ahead: FloatArray
    scale: FloatArray
    sampling: FloatArray


def _estimate(
    flow: Flow, counts: PrivateCounts, chances: FloatArray, defers: BoolArray, known: FloatArray
) -> tuple[Estimate, float]:
    """The value of a policy, and the share of its steps in rows that are not known."""
    horizon, users = len(defers), counts.users
    public, centre = ~np.isnan(known), counts.centre
    anchor = np.where(public, np.nan_to_num(known), centre)
    ends, unseen = [], 0.0
    for worth in (0.0, 1.0):
        steps = _backward(flow, counts, chances, defers, anchor, public, worth)
        first = (steps[0].chances * steps[0].values).sum(axis=1)
        visits = flow.counts.sum(axis=1)
        share = dense_of(visits, flow.support)[0].sum(axis=1) / users
        value = float(share @ first)
        variance = max(float(share @ (first - value) ** 2), 0.0) / users
        gradient = np.zeros((*flow.support.shape, flow.counts.shape[1]))
        of_rewards = np.zeros(flow.support.shape)
        gradient[0] += first[:, None, None] / users
        unseen = 0.0
        for h, step in enumerate(steps):
            taken = share[:, None] * step.chances
            unseen += float((taken * ~step.known).sum()) * (horizon - h)
            variance += float((taken**2 * step.sampling).sum())
            factor = taken * step.scale
            all_slots = defers[h][:, None, None]
            factor_of = np.where(all_slots[..., 0], factor[:, :1], factor)
            values = np.where(all_slots[..., 0], step.values[:, :1], step.values)
            beyond = step.ahead + (anchor[h] - values)[..., None]
            gradient[h] += factor_of[..., None] * beyond
            of_rewards[h] = factor_of * ~public[h]
            share = np.einsum("sk,skt->t", taken * step.known, step.moves)
        noisy = gradient[flow.support]
        if flow.variance.any():
            variance += float((noisy * flow.project(flow.spread(noisy), 0.0)).sum())
        reward_noise = counts.noise_variance.get("rewards", 0.0)
        variance += reward_noise * float((of_rewards[flow.support] ** 2).sum())
        ends.append((value, NORMAL * math.sqrt(max(variance, 0.0))))  # rounding, where 0 is known
    (least, below), (most, above) = ends
    found = np.clip([(least + most) / 2, least - below, most + above], 0.0, horizon)
    return Estimate(*map(float, found)), float(np.clip(unseen / horizon, 0.0, 1.0))


def _backward(
    flow: Flow,
    counts: PrivateCounts,
    chances: FloatArray,
    defers: BoolArray,
    anchor: FloatArray,
    public: BoolArray,
    worth: float,
) -> list[_Step]:
    """All steps; a row that is not known is worth so much of every step that is left."""
    horizon, states, slots = flow.support.shape
    transitions = dense_of(flow.counts, flow.support)
    rewards = np.zeros(flow.support.shape)
    if counts.row_rewards is not None:
        rewards = dense_of(counts.row_rewards, flow.support)
    visits = transitions.sum(axis=-1)
    rewards = np.where(public, 0.0, rewards) + anchor * visits
    drawn, ahead, steps = ~public & flow.support, np.zeros(states), []
    one = np.eye(slots)[0]
    for h in reversed(range(horizon)):
        left, every = horizon - h, defers[h][:, None]
        moved = np.where(
            every[..., None], transitions[h].sum(axis=1, keepdims=True), transitions[h]
        )
        seen = np.where(every, visits[h].sum(axis=1, keepdims=True), visits[h])
        earned = np.where(every, rewards[h].sum(axis=1, keepdims=True), rewards[h])
        doubt = np.where(every, flow.visit_variance[1][h][:, None], flow.visit_variance[0][h])
        certain = seen - 2 * np.sqrt(doubt)
        known = certain > 0.5
        some = np.where(known, seen, 1.0)
        moves, mean = moved / some[..., None], earned / some
        values = np.clip(mean + moves @ ahead, -left, 2 * left)  # far outside, only noise is left
        inside = probabilities_of(moved)
        apart = np.sqrt(np.maximum(inside @ ahead**2 - (inside @ ahead) ** 2, 0.0))
        paid = np.clip(mean, 0, 1)
        paid = np.sqrt(paid * (1 - paid)) * np.where(every, True, drawn[h])
        scale = np.where(known, 1 / np.maximum(certain, 0.5), 0.0)
        sampling = (some * (apart + paid) ** 2 + ((1 + np.ptp(ahead)) / 2) ** 2) * scale**2
        values = np.where(known, values, worth * left)
        taken = np.where(every, one, chances[h])
        steps.append(_Step(known, taken, moves, values, ahead, scale, sampling))
        ahead = (taken * values).sum(axis=1)
    return steps[::-1]
