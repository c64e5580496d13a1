"""trial: few recruitments, small numbers. A randomised trial, or one that shifts in stages. Ours.

**Privacy** is proven: every user is in exactly one batch, each batch is released once (parallel
composition), and all else is post-processing of releases. **No regret bound is claimed.**

``aim="policy"`` is for those who come after the study: all users take random actions, in one
batch, and the noise is paid once. ``aim="participants"`` is for those who are in it: stages end at
K/2^(B-1), ..., K/2, K; the first plays random actions, those between play an action as often as it
is the best of 64 draws of the estimate (5% of the users at random), the last plays the best policy.
B = 1 + floor(log2(K/n1)), at least 2 and at most ``batches``, where
n1 = 40·(sd of a reward counter's noise, at least 1/2)·A·(start states). Who does not come is not
replaced. If more users are admitted than were planned, the stages that are left are those of the
new K; one that would be less than half as large as all before it joins the next.

*The estimate* is that of `learners.estimate` on projected counts: values Q = r + P·V of every
(h, s, a) with variances v. *Advantages* Q - mu(h, s) are shrunk towards those of the same state and
action at all steps, these towards those of the same action in all states, and these towards zero
(`shrunk`): at each level by k = tau²/(tau² + v), with the variance tau² between members of
DerSimonian and Laird (1986), max(q - df, sqrt(2·df))/c: never below one standard error of itself,
since that all are alike is not assumed. V follows the policy that this prefers.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, Plain
from discreet.learners.base import Batch, FlowLearner, PublicFacts
from discreet.learners.estimate import (
    CountSums,
    action_values,
)
from discreet.learners.registry import LearnerSpec, by_name
from discreet.learners.settings import OwnSettings, at_least_two_batches
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy, uniform_policy

FIRST = 40.0
"""Users of the first stage for each action, start state and standard deviation of the noise."""
DRAWS = 64
UNIFORM = 0.05
"""Share of users between the first and the last stage who take random actions."""


class Shrunk(NamedTuple):
    """Advantages ``[H, S, A]`` after shrinkage, and their variances."""

    advantages: FloatArray
    variances: FloatArray


class _Level(NamedTuple):
    """tau² between members, and mean and variance of every group with it."""

    between: float
    mean: FloatArray
    variance: FloatArray


def _pooled(values: FloatArray, variances: FloatArray) -> _Level:
    """Groups of members along the first axis; one tau² for all. Infinite variances say nothing."""
    weights = 1 / variances
    total = weights.sum(axis=0)
    seen = np.maximum(total, 1e-300)
    apart = values - (weights * values).sum(axis=0) / seen
    freedom = float(np.maximum((weights > 0).sum(axis=0) - 1, 0).sum())
    scale = float((total - (weights**2).sum(axis=0) / seen).sum())
    excess = max(float((weights * apart**2).sum()) - freedom, math.sqrt(2 * freedom))
    between = excess / scale if scale > 0 else 0.0
    weights = 1 / (variances + between)
    total = np.maximum(weights.sum(axis=0), 1e-300)
    return _Level(between, (weights * values).sum(axis=0) / total, 1 / total)


def shrunk(values: FloatArray, variances: FloatArray) -> Shrunk:
    """Advantages of actions ``[H, S, A]``: (h, s, a) -> (s, a) -> a -> 0, as the module says.

    The base mu(h, s) is what values hold beyond the advantages of (s, a), by their weights: it is
    found in four rounds, so that an action that is hardly known moves no other.
    """
    variances = np.minimum(variances, 1e9)  # nothing is known: the parent's is taken
    parent, weights = np.zeros(values.shape[1:]), 1 / variances
    for _ in range(4):
        base = (weights * (values - parent)).sum(axis=-1, keepdims=True)
        own = values - base / weights.sum(axis=-1, keepdims=True)
        steps = _pooled(own, variances)
        states = _pooled(steps.mean, steps.variance)
        mean, variance = states.mean, states.variance
        actions = len(mean)
        excess = max(float((mean**2 / variance).sum()) - actions, math.sqrt(2 * actions))
        kept = 1 / (1 + variance * float((1 / variance).sum()) / excess)
        mean, variance = kept * mean, kept * variance
        kept = states.between / (states.between + steps.variance)
        parent = mean + kept * (steps.mean - mean)
        spread = kept * steps.variance + (1 - kept) ** 2 * variance
        weights = 1 / (variances + steps.between + states.between)
    kept = steps.between / (steps.between + variances)
    return Shrunk(parent + kept * (own - parent), kept * variances + (1 - kept) ** 2 * spread)


def advantages(sums: CountSums, mask: BoolArray, centre: float) -> Shrunk:
    """Backward induction, twice: the second time V follows what the first one prefers.

    Where ``mask[H, S, A]`` is False an action is not possible, and its advantage is -inf.
    """
    horizon, states, actions = mask.shape
    found = Shrunk(*np.zeros((2, horizon, states, actions)))
    for again in (False, True):
        values, variances = np.zeros((2, horizon, states, actions))
        ahead = np.zeros(states)
        for h in reversed(range(horizon)):
            worth, variance = action_values(sums.layer(h), ahead, centre=centre, deviations=1.0)
            variance = np.where(mask[h], variance, np.inf)
            known = np.isfinite(variance)
            worth = np.where(known, worth, 0.0)
            weight = 1 / np.where(known, variance, np.inf)
            prior = np.where(mask[h], found.advantages[h], 0.0) if again else 0.0
            base = (weight * (worth - prior)).sum(axis=-1) / np.maximum(weight.sum(axis=-1), 1e-300)
            best = np.where(known, worth, -np.inf).max(axis=-1)
            best = base + found.advantages[h].max(axis=-1) if again else best
            seen = known.any(axis=-1)
            ahead = np.where(seen, best, best[seen].mean() if seen.any() else 0.0)
            choice = mask[h].sum(axis=-1, keepdims=True) > 1  # else an advantage of 0 says nothing
            values[h], variances[h] = worth, np.where(choice, variance, np.inf)
        # Steps that are one share their evidence: each has its part of it.
        found = shrunk(values, variances * (horizon if len(sums.number) < horizon else 1))
        found = found._replace(advantages=np.where(mask, found.advantages, -np.inf))
    return found


@dataclass(frozen=True, kw_only=True)
class TrialSettings(OwnSettings):
    """What may be chosen of a trial.

    Attributes:
        aim: ``"participants"``, the best for those who take part; ``"policy"``, the best policy
            for those who come after them.
        batches: at most so many stages, for participants; a trial for the policy is one.
    """

    aim: Literal["policy", "participants"] = "participants"
    batches: int = 5

    def check(self) -> None:
        """A trial in stages has two at least."""
        super().check()
        _validate.count(batches=self.batches)
        if self.aim == "participants":
            at_least_two_batches(self.batches)


class Trial(FlowLearner[TrialSettings]):
    """A randomised trial, or one that shifts in stages: see the module."""

    name = "trial"
    summary = "a randomised trial, in one batch or in stages: for few people and recruitments"
    settings_type = TrialSettings
    open_ended = True

    def begin(self) -> None:
        """Decide how many stages there are, from public facts."""
        super().begin()
        self._seed = int(self.rng.integers(2**62))
        self._plan()

    def extend(self, problem: PublicFacts, *, pending: bool) -> None:
        """The stages that are left follow the new number."""
        super().extend(problem, pending=pending)
        self._plan()

    def _plan(self) -> None:
        problem, mechanism = self.problem, self.mechanism
        shape, starts = problem.shape, int(problem.start.sum())
        stages = 1
        if self.chosen.aim == "participants":
            noise = math.sqrt(mechanism.noise_variance(problem.episodes)["rewards"])
            first = FIRST * max(noise, 0.5) * shape.actions * starts
            stages = 1 + int(math.log2(max(problem.episodes / first, 2.0)))
            stages = min(stages, self.chosen.batches)
        self._stages = stages
        sizes = [self._told] if self._told else []
        while sum(sizes) < problem.episodes:
            done = self._batches + len(sizes) - bool(self._told)
            sizes.append(self._users(sum(sizes), done))
        self.settings["stages"] = sizes

    def _users(self, told: int, done: int) -> int:
        """Of the stage that follows ``done`` others."""
        left, later = self.problem.episodes - told, self._stages - done
        while later > 1 and self.problem.episodes // 2 ** (later - 1) < 1.5 * told:
            later -= 1
        users = self.problem.episodes // 2 ** (later - 1) - told if later > 1 else left
        users = max(users, self.mechanism.min_users)
        # Too few to be released on their own join those before them.
        return left if left - users < self.mechanism.min_users else users

    def next_batch(self) -> Batch:
        """Random actions, then a mixture of what may be best, then what seems best."""
        users = self._users(self._told, self._batches)
        if self._batches == 0 or self.chosen.aim == "policy":
            return Batch(uniform_policy(self.problem.shape), users)
        if self._told + users == self.problem.episodes:
            return Batch(self.greedy(), users)
        rng, found = np.random.default_rng((self._seed, self._batches)), self._advantages()
        noise = rng.standard_normal((DRAWS, *found.advantages.shape))
        best = (found.advantages + np.sqrt(found.variances) * noise).argmax(axis=-1)
        often = (best[..., None] == np.arange(self.problem.shape.actions)).mean(axis=0)
        mask = self.problem.shape.mask
        often = (1 - UNIFORM) * often + UNIFORM * mask / mask.sum(axis=-1, keepdims=True)
        return Batch(StochasticPolicy(often), users)

    def _advantages(self) -> Shrunk:
        return advantages(self.sums, self.problem.shape.mask, self.mechanism.centre)

    def greedy(self) -> DeterministicPolicy:
        """The policy of the shrunk advantages; ties at random."""
        found = self._advantages().advantages
        luck = np.random.default_rng(self._seed).random(found.shape)
        return DeterministicPolicy((found + 1e-12 * luck).argmax(axis=-1))

    @property
    def extras(self) -> dict[str, Plain]:
        """The policy afterwards, which nobody in the trial need have played."""
        return {"greedy": self.greedy().actions.tolist()}


SPECS = by_name(LearnerSpec.of_batch(Trial, paper="ours"))
