"""`discreet.fit`: a better policy from logged episodes, what may be claimed of it, and `Fit`.

The value of behaviour is estimated without any model, by the mean total reward of the users: the
counters of rewards add up to it, each with its noise. Totals lie in [0, H], so their variance is at
most V·(H - V) (Bhatia and Davis), whatever behaviour does, and

    se² = V·(H - V)/n + G·(reward counters)/n².

Where rewards are known they are not released, and the visits are weighed with them instead. Any
constant c_h may be subtracted from the rewards of a step, because its visits add up to n:
V = sum_h c_h + sum (N - of the release itself, unbiased)·(r - c_h)/n, and the noise is
sigma²·sum over counters of (r - c_h)²/n². With several episodes of a person, or declared starts, n
is itself an estimate, with noise of its own, and (V - sum_h c_h)² times its variance is added.

The claim is V - width·se + Delta, where Delta is the gain of `improvement` at the first states,
less ``width`` standard deviations of the noise and sampling of the first states, and not below 0.
Delta alone would be no claim: it is relative to a behaviour whose value is itself uncertain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._files import write_rows
from discreet._types import BoolArray, FloatArray, Plain
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError
from discreet.mdp.policies import DEFER, DeferringPolicy
from discreet.mdp.shape import Shape
from discreet.offline.improvement import (
    Evidence,
    Improvement,
    gather,
    improve,
    pooled,
)
from discreet.offline.release import (
    Episodes,
    Released,
    Slots,
    check_trust,
    logged,
    mask_of,
    of_actions,
    released,
    size_of,
    start_of,
)
from discreet.privacy.guarantee import Guarantee, rounded_down, rounded_up, said
from discreet.privacy.ledger import Account, Ledger
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import TrustModel

FORMAT = "discreet-fit-1"
_WIDEST = 100
_MOST_STATES = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class Coverage:
    """What the release could see. Estimates from noisy counts, as public as the policy.

    Attributes:
        visits: ``[H, S]``, estimated users in each state at each step.
        behaviour: ``bool[H, S]``, states whose behaviour is known.
        actions: ``bool[H, S, A]``, declared actions that are known: enough people took them to
            rise above the noise.
        other: the estimated share of steps that took an undeclared action.
        pooled: the share of declared rows (s, a) that were pooled over steps; None if the caller
            did not declare stationary dynamics.
    """

    visits: FloatArray
    behaviour: BoolArray
    actions: BoolArray
    other: float
    pooled: float | None

    @property
    def seen(self) -> float:
        """The share of steps spent in states with a choice that is known: two actions or more."""
        return self.share(self.actions.sum(axis=2) > 1)

    def share(self, where: BoolArray) -> float:
        """The estimated share of all steps that are spent in the marked states ``bool[H, S]``."""
        return float(self.visits[where].sum() / max(float(self.visits.sum()), 1e-300))


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """A policy from logged episodes, and what may be said of it. ``print`` it.

    Attributes:
        policy: an action, or DEFER, for each step and state.
        lower_value: a value per episode that the policy is claimed to reach.
        behaviour_value: the estimated value per episode of what people do today.
        behaviour_error: its standard error, noise included.
        gain: the pessimistic estimate of what the policy adds; 0 if it always defers.
        coverage: what could be seen.
        guarantee: of the people in the log.
        users: how many they are (public).
        declared: ``bool[H, S, A]``, the actions that were declared.
        width: standard deviations of pessimism.
        reward_range: of a step, in the units of the table; all values here are from 0 to 1 a step,
            what is printed is in these units.
        vocabulary: the names of states, actions and steps, if given.
        account: what the ledger says of these people; None if it was not charged.
    """

    policy: DeferringPolicy
    lower_value: float
    behaviour_value: float
    behaviour_error: float
    gain: float
    coverage: Coverage
    guarantee: Guarantee
    users: int
    declared: BoolArray
    width: float
    reward_range: tuple[float, float] = (0.0, 1.0)
    vocabulary: Vocabulary | None = None
    account: Account | None = None

    @property
    def names(self) -> Vocabulary:
        """What states, actions and steps are called; numbers if nobody named them."""
        horizon, states = self.policy.actions.shape
        return self.vocabulary or Vocabulary(
            states=states, actions=self.declared.shape[2], steps=horizon
        )

    def rows(self) -> list[dict[str, Plain]]:
        """One row per step and state: an action, or DEFER."""
        names, chosen = self.names, self.policy.actions
        return [
            {
                "step": step,
                "state": state,
                "action": "DEFER" if chosen[h, s] == DEFER else names.actions[chosen[h, s]],
            }
            for h, step in enumerate(names.steps)
            for s, state in enumerate(names.states)
        ]

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON, the policy left out: see `rows`."""
        cover, acts = self.coverage, ~self.policy.defers
        return {
            "format": FORMAT,
            "guarantee": str(said(self.guarantee)),
            "simulated": self.guarantee.simulated,
            "users": self.users,
            "behaviour_value": self.behaviour_value,
            "behaviour_error": self.behaviour_error,
            "lower_value": self.lower_value,
            "gain": self.gain,
            "in_units": {"reward_range": list(self.reward_range), **self._in_units()},
            "width": self.width,
            "changed_steps": cover.share(acts),
            "seen_steps": cover.seen,
            "undeclared_steps": cover.other,
            "pooled": cover.pooled,
            "ledger": None if self.account is None else self.account.to_dict(),
        }

    def in_units(self, low: float, high: float) -> "Fit":
        """The same, printed for rewards from ``low`` to ``high`` a step."""
        return replace(self, reward_range=(float(low), float(high)))

    def _in_units(self) -> dict[str, float]:
        """The values in the units of the table."""
        low, high = self.reward_range
        least, scale = low * len(self.policy.actions), high - low
        return {
            "behaviour_value": least + scale * self.behaviour_value,
            "behaviour_error": scale * self.behaviour_error,
            "lower_value": least + scale * self.lower_value,
            "gain": scale * self.gain,
        }

    def save_policy(self, path: str | Path) -> None:
        """Write the policy with names, as JSON or CSV by the ending of ``path``."""
        write_rows(path, self.rows(), self.to_dict())

    def __str__(self) -> str:
        lines = [f"Fit on the logged episodes of {self.users:,} people"]
        lines += [f"  {name:<15} {text}" for name, text in self._facts()]
        return "\n".join([*lines, "", *self._table()])

    def _facts(self) -> list[tuple[str, str]]:
        cover, acts = self.coverage, ~self.policy.defers
        cells, rows = acts.size, int(self.declared.sum())
        unseen = rows - int((cover.actions & self.declared).sum())
        dark = int((~cover.behaviour).sum())
        (low, high), steps = self.reward_range, len(self.policy.actions)
        unit = f"per episode of {steps} steps with rewards from {low:g} to {high:g} each"
        return [
            ("today", self._today(unit)),
            ("this policy", self._claim()),
            ("changes", f"{int(acts.sum())} of {cells} (step, state): {cover.share(acts):.0%} of "
             "all steps; elsewhere it DEFERs to today's behaviour"),
            ("could not see", f"{unseen} of {rows} declared actions, and anything at all in {dark} "
             f"of {cells} (step, state), {cover.share(~cover.behaviour):.0%} of all steps"),
            ("could compare", f"two actions or more in {cover.seen:.0%} of all steps"),
            ("undeclared", f"{cover.other:.0%} of all steps took an action that was not declared"),
            *([] if cover.pooled is None else [("stationary", _pooled(cover.pooled))]),
            ("guarantee", str(said(self.guarantee))),
            *([] if self.account is None else [("ledger", str(self.account))]),
        ]  # fmt: skip

    def _today(self, unit: str) -> str:
        """The value of behaviour and its error, to the error's second digit."""
        value, error, _, _ = self._in_units().values()
        least, most = (end * len(self.policy.actions) for end in self.reward_range)
        said = _written_out(rounded_up(error, 2))
        if min(value + 2 * error, most) - max(value - 2 * error, least) > 0.99 * (most - least):
            return f"not known: so few people leave a standard error of {said} {unit}"
        digits = max(0, 1 - math.floor(math.log10(error))) if error > 0 else 4
        value_said = f"{value:,.{digits}f} +- {said}"
        return f"{value_said} {unit}, as logged (estimate and standard error)"

    def _claim(self) -> str:
        _, _, lower, gain = self._in_units().values()
        width = rounded_up(self.width, 6)
        least = _written_out(rounded_down(lower))
        less = f"today's value less {width} standard errors"
        if gain > 0:
            better = _written_out(rounded_down(gain, 2))
            claim = f"better than today by {better} or more"
            return f"{claim}; it earns {least} or more: {less}, and the {better}"
        return f"nothing better than today was found; it earns {least} or more: {less}"

    def _table(self) -> list[str]:
        names, horizon = self.names, len(self.policy.actions)
        acting = np.flatnonzero((~self.policy.defers).any(axis=0))
        if not acting.size:
            return ["It DEFERs everywhere: these data cannot tell a better policy from today's."]
        shown = acting[:_MOST_STATES]
        grid = [["state", *names.steps]]
        for state in shown:
            chosen = self.policy.actions[:, state]
            grid.append(
                [names.states[state], *("." if a < 0 else names.actions[a] for a in chosen)]
            )
        widths = [max(len(row[i]) for row in grid) for i in range(horizon + 1)]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in grid]
        lines = [
            line.rstrip() if len(line) <= _WIDEST else f"{line[:_WIDEST]}..." for line in lines
        ]
        more = acting.size - shown.size
        end = [f"... and {more} more states; see policy.actions."] if more else []
        return ["What to do at each step (. = DEFER; states left out always DEFER):", *lines, *end]


def _written_out(number: str) -> str:
    """A rounded number as people write it, without an exponent where it is large.

    >>> _written_out("2.5e+02"), _written_out("0.13"), _written_out("1e-06")
    ('250', '0.13', '1e-06')
    """
    return f"{float(number):,.0f}" if "e+" in number or abs(float(number)) >= 1e4 else number


def _pooled(share: float) -> str:
    if share == 0:
        return "as declared, but the data contradict it: nothing was pooled over steps"
    return f"as declared, and not checked by anybody else: {share:.0%} of all rows were pooled"


class BehaviourValue(NamedTuple):
    """The estimated value of behaviour, per episode, and its standard error."""

    value: float
    error: float


def behaviour_value(
    counts: PrivateCounts, given_rewards: FloatArray, *, last_transitions: bool, doubt: float = 0.0
) -> BehaviourValue:
    """The value of behaviour; see the module docstring. ``doubt``: the variance of n."""
    horizon, users = len(counts.support), counts.users
    if counts.row_rewards is None:
        fixed, total, noise = _from_visits(counts, given_rewards, last_transitions=last_transitions)
    else:
        fixed, total = counts.centre * horizon, float(counts.row_rewards.sum())
        noise = counts.noise_variance["rewards"] * counts.row_rewards.size
    value = min(max(fixed + total / users, 0.0), float(horizon))
    sampling = max(value * (horizon - value), horizon / users) / users
    noise += doubt * (value - fixed) ** 2
    return BehaviourValue(value, math.sqrt(sampling + noise / users**2))


def _from_visits(
    counts: PrivateCounts, given_rewards: FloatArray, *, last_transitions: bool
) -> tuple[float, float, float]:
    transitions = np.asarray(counts.row_transitions)
    steps, rewards = np.nonzero(counts.support)[0], given_rewards[counts.support]
    horizon = len(counts.support)
    columns = np.full(horizon, float(transitions.shape[1]))
    visits = transitions.sum(axis=1)
    if not last_transitions:
        columns[-1] = 1.0
        last = steps == horizon - 1
        visits[last] = transitions[last, 0]
    rows = np.bincount(steps, minlength=horizon)
    centre = np.bincount(steps, rewards, horizon) / rows
    beyond = rewards - centre[steps]
    noise = counts.noise_variance["transitions"] * float((columns[steps] * beyond**2).sum())
    return float(centre.sum()), float(visits @ beyond), noise


def gain_at_start(evidence: Evidence, gain: FloatArray, width: float) -> float:
    """Delta: the gain of the first states ``gain[S]``, less what their estimate may be off."""
    initial, first = evidence.initial, evidence.behaviour.layer(0)
    mean = float(initial @ gain)
    sampling = max(float(initial @ (gain - mean) ** 2), 0.0) / evidence.users
    noise = float(first.rows.visit_variance @ (gain - mean) ** 2) / evidence.users**2
    return max(mean - width * math.sqrt(sampling + noise), 0.0)


def lower_value(behaviour: BehaviourValue, gain: float, width: float) -> float:
    """The claim.

    >>> lower_value(BehaviourValue(1.0, 0.1), 0.5, 2.0)
    1.3
    """
    return max(behaviour.value - width * behaviour.error + gain, 0.0)


def fit(  # noqa: PLR0913 - each is one public choice of the caller
    data: Episodes,
    trust: TrustModel,
    *,
    shape: Shape | None = None,
    vocabulary: Vocabulary | None = None,
    support: ArrayLike | None = None,
    start: ArrayLike | None = None,
    rewards: ArrayLike | None = None,
    behaviour: ArrayLike | None = None,
    stationary: bool = False,
    width: float = 2.0,
    sampler: str = "secure",
    seed: int | None = None,
    users: Sequence[str | int] | None = None,
    ledger: str | Path | Ledger | None = None,
) -> Fit:
    """Learn a policy from logged episodes, by one release.

    The policy takes another action than the one behind the data only where that is better with
    confidence. Elsewhere it defers. The rule by which the logged actions were chosen need not be
    known, if it depended on the state alone. All arguments but ``data`` are public: choose them
    before you look at the data.

    >>> from discreet import Central
    >>> from discreet.mdp import Treatment, sample_counts, uniform_policy
    >>> mdp = Treatment()
    >>> people = sample_counts(mdp, uniform_policy(mdp.shape), 20_000, np.random.default_rng(0))
    >>> found = fit(people, Central(epsilon=1, delta=1e-6), sampler="simulation", seed=0)
    >>> found.lower_value > found.behaviour_value
    True

    Args:
        data: whole episodes, or their sums. ``users`` says whose they are. Without it every
            episode counts as another person's, and a person with k episodes is protected with
            k epsilon only. Episodes that end early are padded (`discreet.data.Padding`).
        trust: `Central`, or `NoPrivacy` to see what privacy costs. Of each person at most its
            ``participations`` episodes are used, drawn at random; m of them in one release cost m
            times the noise.
        shape: sizes and possible actions; needed for episodes unless a vocabulary is given.
        vocabulary: the same, with names for the printed table.
        support: ``bool[H, S, A]`` or ``bool[S, A]``, the actions that may be recommended (all by
            default). All other possible ones are counted together and never recommended.
        start: ``bool[S]``, where an episode can begin (anywhere by default). Episodes that begin
            elsewhere are not counted.
        rewards: ``[H, S, A]`` or ``[S, A]`` in [0, 1], the mean rewards, where they are known.
        behaviour: ``[H, S, A]`` or ``[S, A]``, the probabilities of the logged actions, if they are
            public (a trial, a rule, an algorithm). They help when steps are pooled.
        stationary: declares that transitions and rewards are the same at every step. Steps are
            then pooled, unless the data contradict it clearly.
        width: standard errors that an action must be better by; less than 2 was not safe.
        sampler: ``"secure"`` protects people; ``"simulation"`` is for rehearsals.
        seed: the seed of a rehearsal; secure noise has none.
        users: the name of each episode's person, as the readers of tables return them: equal names
            are one person.
        ledger: the file that adds up what was released about these people, or a
            `discreet.privacy.Ledger` with a budget. The release is charged before it is made, and
            refused beyond the budget; a rehearsal is not. Without one nothing is added up.
    """
    check_trust(trust)
    _validate.truth(stationary=stationary)
    _validate.real(width=width)
    if width < 0:
        raise InvalidInputError(f"Expected width >= 0, got width={width!r}; the default is 2.")
    size = size_of(data, shape, vocabulary)
    slots = Slots.of(_declared(support, size, stationary), start_of(start, size))
    told = None if behaviour is None else slots.shares(_behaviour(behaviour, size))
    made = released(
        data,
        slots,
        trust,
        size,
        rewards=rewards,
        last_transitions=stationary,
        sampler=sampler,
        seed=seed,
        users=users,
        ledger=ledger,
    )
    return _fitted(made, slots, told, stationary, float(width), vocabulary)


def _fitted(
    made: Released,
    slots: Slots,
    told: FloatArray | None,
    stationary: bool,
    width: float,
    vocabulary: Vocabulary | None,
) -> Fit:
    (counts, doubt), given_rewards = logged(made.counts), made.given_rewards
    evidence = gather(counts, given_rewards, last_transitions=stationary)._replace(told=told)
    if stationary:
        evidence = pooled(evidence, slots.named)
    found = improve(evidence, slots.named, given_rewards, width)
    today = behaviour_value(counts, given_rewards, last_transitions=stationary, doubt=doubt)
    gain = gain_at_start(evidence, found.gain[0], width)
    return Fit(
        policy=_policy(found, slots),
        lower_value=lower_value(today, gain, width),
        behaviour_value=today.value,
        behaviour_error=today.error,
        gain=gain,
        coverage=_coverage(evidence, slots),
        guarantee=said(counts.guarantee),
        users=made.people,
        declared=slots.declared,
        width=width,
        vocabulary=vocabulary,
        account=made.account,
    )


def _policy(found: Improvement, slots: Slots) -> DeferringPolicy:
    chosen = np.take_along_axis(slots.action_of, np.maximum(found.slots, 0)[..., None], axis=2)
    return DeferringPolicy(np.where(found.slots < 0, DEFER, chosen[..., 0]))


def _coverage(evidence: Evidence, slots: Slots) -> Coverage:
    horizon = len(evidence.support)
    known = np.stack([evidence.at(step).known for step in range(horizon)]) & slots.named
    actions = np.take_along_axis(
        np.concatenate([known, np.zeros_like(known[..., :1])], axis=2), slots.slot_of, axis=2
    )
    visits = evidence.visits
    other = visits[slots.support & ~slots.named].sum() / max(float(visits.sum()), 1e-300)
    alike = evidence.stationary
    return Coverage(
        visits=evidence.behaviour.visits,
        behaviour=evidence.behaviour.known,
        actions=actions & slots.declared,
        other=float(other),
        pooled=None if alike is None else float(alike[slots.named.any(axis=0)].mean()),
    )


def _declared(support: ArrayLike | None, size: Shape, stationary: bool) -> BoolArray:
    declared = size.mask
    if support is not None:
        declared = declared & mask_of("support", support, size.visits, size.visits[1:])
    if stationary and (declared != declared[:1]).any():
        raise InvalidInputError(
            f"Expected the same declared actions at every step with stationary=True, got others "
            f"at some step; give support as bool{list(size.visits[1:])}, and allowed actions "
            f"without steps."
        )
    return declared


def _behaviour(behaviour: ArrayLike, size: Shape) -> FloatArray:
    shares = of_actions("behaviour", behaviour, size)
    total = shares.sum(axis=-1)
    worst = float(total.flat[np.abs(total - 1).argmax()])
    if abs(worst - 1) > 1e-6:
        raise InvalidInputError(
            f"Expected the probabilities of behaviour to add up to 1 in every state, got a state "
            f"with {worst:.6g}; leave out behaviour where it is not known."
        )
    return np.asarray(shares / total[..., None])
