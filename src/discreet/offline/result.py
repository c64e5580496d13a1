"""`DeferringPolicy`: an action where the data can tell, DEFER everywhere else."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet import _validate
from discreet._files import write_rows
from discreet._types import BoolArray, FloatArray, IntArray, Plain
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError
from discreet.mdp._arrays import frozen_copy
from discreet.mdp.policies import MixturePolicy, PolicyLike, StochasticPolicy, as_policy
from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import Guarantee, rounded_down, rounded_up, said
from discreet.privacy.ledger import Account

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


# `Fit`: what `discreet.fit` returns, and how it reads.


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
        guarantee: what has been promised to the people in the log.
        users: how many they are (public).
        declared: ``bool[H, S, A]``, the actions that were declared.
        width: standard deviations of pessimism.
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
    vocabulary: Vocabulary | None = None
    account: Account | None = None

    @property
    def promise(self) -> str:
        """The guarantee in one line that nobody mistakes if the noise was simulated."""
        return str(said(self.guarantee))

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
            {"step": step, "state": state, "action": _action(int(chosen[h, s]), names)}
            for h, step in enumerate(names.steps)
            for s, state in enumerate(names.states)
        ]

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON, the policy left out: see `rows`."""
        cover, acts = self.coverage, ~self.policy.defers
        return {
            "format": FORMAT,
            "guarantee": self.promise,
            "simulated": self.guarantee.simulated,
            "users": self.users,
            "behaviour_value": self.behaviour_value,
            "behaviour_error": self.behaviour_error,
            "lower_value": self.lower_value,
            "gain": self.gain,
            "width": self.width,
            "changed_steps": cover.share(acts),
            "seen_steps": cover.seen,
            "undeclared_steps": cover.other,
            "pooled": cover.pooled,
            "ledger": None if self.account is None else self.account.to_dict(),
        }

    def save_policy(self, path: str | Path) -> None:
        """Write the policy with names, as JSON or CSV by the ending of ``path``."""
        write_rows(path, self.rows(), self.to_dict())

    def __str__(self) -> str:
        """Two tables: what may be said, and what to do."""
        lines = [f"Fit on the logged episodes of {self.users:,} people"]
        lines += [f"  {name:<15} {text}" for name, text in self._facts()]
        return "\n".join([*lines, "", *self._table()])

    def _facts(self) -> list[tuple[str, str]]:
        cover, acts = self.coverage, ~self.policy.defers
        cells, rows = acts.size, int(self.declared.sum())
        unseen = rows - int((cover.actions & self.declared).sum())
        dark = int((~cover.behaviour).sum())
        error = f"{self.behaviour_value:.4g} +- {rounded_up(self.behaviour_error, 2)} per episode"
        unit = f"of at most {len(self.policy.actions)}: rewards count from 0 to 1 a step"
        return [
            ("today", f"{error}, {unit} (estimate and standard error)"),
            ("this policy", f"{rounded_down(self.lower_value)} or more ({self._claim()})"),
            ("changes", f"{int(acts.sum())} of {cells} (step, state): {cover.share(acts):.0%} of "
             "all steps; elsewhere it DEFERs to today's behaviour"),
            ("could not see", f"{unseen} of {rows} declared actions, and anything at all in {dark} "
             f"of {cells} (step, state), {cover.share(~cover.behaviour):.0%} of all steps"),
            ("could compare", f"two actions or more in {cover.seen:.0%} of all steps"),
            ("undeclared", f"{cover.other:.0%} of all steps took an action that was not declared"),
            *([] if cover.pooled is None else [("stationary", _pooled(cover.pooled))]),
            ("promise", self.promise),
            *([] if self.account is None else [("ledger", str(self.account))]),
        ]  # fmt: skip

    def _claim(self) -> str:
        width = rounded_up(self.width, 6)
        if self.gain > 0:
            return (
                f"today less {width} standard errors, plus a cautious {rounded_down(self.gain, 2)}"
            )
        return f"today less {width} standard errors: nothing better was found"

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


def _action(number: int, names: Vocabulary) -> str:
    return "DEFER" if number == DEFER else names.actions[number]


def _pooled(share: float) -> str:
    if share == 0:
        return "as declared, but the data contradict it: nothing was pooled over steps"
    return f"as declared, and not checked by anybody else: {share:.0%} of all rows were pooled"
