"""The noise on a state's visits, which follow from the flow, by step."""

import numpy as np

from discreet._types import FloatArray
from discreet.learners.base import Problem
from discreet.privacy.plans import BatchMechanism

TIGHT = 0.5
"""Standard deviation to which a reward is known that was seen: half of what rewards can differ by.
Inherited (there as "twice the noise" and "below half of the visits")."""
LEAST_VISITS = 2.0
"""That show a reward, without noise: one may be an accident. Not varied."""


def plan_factors(problem: Problem, plan: BatchMechanism) -> FloatArray:
    """`visit_noise_factors` of what this plan releases."""
    return visit_noise_factors(
        problem.shape.states,
        problem.shape.horizon,
        int(problem.start.sum()),
        last_transitions=plan.last_transitions,
        look=_second_look(plan),
    )


def visit_noise_factors(
    states: int,
    horizon: int,
    starts: int,
    *,
    last_transitions: bool = True,
    look: float = 0.0,
) -> FloatArray:
    """Variance of a state's visits at each step, after flow consistency, per counter's variance.

    The visits of a layer sum to the users, which leaves 1 - 1/k of the variance with k states. They
    are measured by the ``states`` counters going out (not at the last step without its
    transitions), from step 1 on by the counters coming in, one per state of the layer before, and
    by a second measurement, if there is one: with one start, step 0 is exact and step 1 almost.

    >>> visit_noise_factors(states=4, horizon=3, starts=1).tolist()
    [0.0, 0.6, 1.5]

    Args:
        states: S.
        horizon: H.
        starts: the states an episode can begin in.
        last_transitions: whether the transitions of the last step are released.
        look: variance of a transition counter over that of a second measurement at the visits.
    """
    inside = 1 - 1 / states
    factors = np.full(horizon, inside * states / 2)
    factors[0] = (1 - 1 / starts) * states
    factors[1:2] = inside / (1 / starts + 1 / states)
    if not last_transitions:
        factors[-1] = inside * (starts if horizon == 2 else states)
    if look:
        free = np.full(horizon, inside)
        free[0] = 1 - 1 / starts
        factors = np.where(free > 0, factors * free / np.maximum(free + factors * look, 1e-300), 0)
    return factors


def visits_to_see(noise: tuple[float, float], factors: FloatArray, doubted: float) -> FloatArray:
    """Visits of a row at each step that show a reward of a half above its noise: at least two.

    Args:
        noise: variances of one counter of transitions and of rewards.
        factors: `visit_noise_factors`.
        doubted: `Planner.doubted`.
    """
    transitions, rewards = noise
    needed = np.sqrt(rewards + transitions * factors * doubted) / TIGHT
    return np.asarray(np.maximum(needed, LEAST_VISITS))


def _second_look(plan: BatchMechanism) -> float:
    """Variance of transitions over that of visits that are released besides, if they are."""
    noise = plan.noise_variance(plan.min_users)
    return noise["transitions"] / noise["visits"] if noise.get("visits") else 0.0
