"""`check_mdp`: is a problem valid, reachable, and worth learning?"""

from dataclasses import asdict, dataclass

import numpy as np

from discreet._types import BoolArray, Checked
from discreet.errors import InvalidInputError
from discreet.mdp.layered import LayeredMDP, effective_support
from discreet.mdp.planning import evaluate, solve
from discreet.mdp.policies import uniform_policy
from discreet.mdp.tabular import TabularMDP

_TINY = 1e-9
"""Values closer than this count as equal."""

_SMALL = 10**7
"""Models with more transition entries than this are not expanded for their effective support."""


@dataclass(frozen=True)
class MDPReport(Checked):
    """What `check_mdp` found.

    Attributes:
        states: S (the widest layer of a layered MDP).
        stationary: True if no step differs from another.
        optimal_value: expected total reward of an optimal policy.
        uniform_value: of the policy that plays every action equally often.
        constant_action_value: of the best policy that always plays one action (and the first
            possible one, in states where a mask does not allow that action).
        gap: what there is to learn, optimal_value - uniform_value.
        reachable: fraction of the pairs (h, s) that some policy reaches.
        never_reached: states that no policy reaches at any step.
        effective_support: C_M of the stage expansion; None for very large models.
        problems: sentences on what makes the model unfit for learning; empty if nothing does.
    """

    name: str
    states: int
    actions: int
    horizon: int
    stationary: bool
    optimal_value: float
    uniform_value: float
    constant_action_value: float
    gap: float
    reachable: float
    never_reached: tuple[int, ...]
    effective_support: float | None
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """As JSON takes it."""
        listed = {"never_reached": list(self.never_reached), "problems": list(self.problems)}
        return {**asdict(self), **listed}


def check_mdp(mdp: TabularMDP | LayeredMDP) -> MDPReport:
    """Report validity, reachability, whether the optimum is trivial, and what there is to gain.

    A `LayeredMDP` has no rewards of its own: its values are reported as 0 and not judged.

    >>> from discreet.mdp import RiverSwim
    >>> report = check_mdp(RiverSwim(states=4, horizon=6))
    >>> round(report.optimal_value, 6), report.problems
    (0.475791, ())
    """
    if not isinstance(mdp, TabularMDP | LayeredMDP):
        raise InvalidInputError(
            f"Expected a TabularMDP or a LayeredMDP, got {type(mdp).__name__}; "
            f"read Gymnasium environments with from_gymnasium()."
        )
    model = mdp.tabular if isinstance(mdp, LayeredMDP) else mdp
    best = solve(model).value
    uniform = evaluate(model, uniform_policy(model.shape))
    mask, first = model.shape.mask, model.shape.first
    constant = max(
        evaluate(model, np.where(mask[..., a], a, first)) for a in range(model.shape.actions)
    )
    reached = reachable_states(model)
    present = mdp.present if isinstance(mdp, LayeredMDP) else np.ones_like(reached)
    never = np.flatnonzero(~reached.any(axis=0))
    large = np.prod(mdp.shape.transitions) > _SMALL
    problems = []
    if isinstance(mdp, TabularMDP) and model.shape.actions == 1:
        problems.append("There is only one action: nothing to decide.")
    elif isinstance(mdp, TabularMDP) and best - uniform <= _TINY:
        problems.append("Every action is equally good: nothing to learn.")
    elif isinstance(mdp, TabularMDP) and best - constant <= _TINY:
        problems.append("Playing one action always is optimal; relabel= hides which one it is.")
    return MDPReport(
        name=mdp.name,
        states=model.shape.states,
        actions=model.shape.actions,
        horizon=model.shape.horizon,
        stationary=model.stationary,
        optimal_value=best,
        uniform_value=uniform,
        constant_action_value=constant,
        gap=best - uniform,
        reachable=float(reached[present].mean()),
        never_reached=tuple(never.tolist()),
        effective_support=None if large else effective_support(mdp).cumulative,
        problems=tuple(problems),
    )


def reachable_states(mdp: TabularMDP) -> BoolArray:
    """``bool[H, S]``: the states that some policy can be in at each step."""
    reached = np.zeros((mdp.horizon, mdp.shape.states), np.bool_)
    reached[0] = mdp.start
    possible = [(step > 0).any(axis=1) for step in mdp.step_transitions]
    for h in range(mdp.horizon - 1):
        reached[h + 1] = possible[h if len(possible) > 1 else 0][reached[h]].any(axis=0)
    return reached
