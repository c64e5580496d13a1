"""The compiled episode loop that all stream learners share.

One loop simulates an episode, adds it to the cumulative counts, adds the noise of that release and
asks the learner's *planner* for the next policy. Planners have one common signature and are passed
as first-class functions: the loop is compiled once, whatever the learner.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from discreet._jit import inlined

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_GENERATOR = numba.typeof(np.random.default_rng(0))
_F1, _F2 = types.float64[::1], types.float64[:, ::1]
_F3, _F4 = types.float64[:, :, ::1], types.float64[:, :, :, ::1]
_I2 = types.int64[:, ::1]

_PLANNER = types.void(_F1, _F4, _F3, _F3, _F4, _F4, _F2, _I2, _F3, _GENERATOR)
"""row, transitions, visits, rewards, memory, model, values, actions, probabilities, rng."""

TIE = 1e-12
"""Values closer than this are equal up to rounding: integer noise makes such ties common."""


def planner(function: Callable[..., None]) -> Any:
    """Compile a planner: from the released counts to the next policy.

    Its arguments, all changed in place where they are outputs or scratch:

    - ``row``: the learner's coefficients for this release (bonus factors, error terms);
    - ``transitions[G,S,A,S]``, ``visits[G,S,A]``, ``rewards[G,S,A]``: the cumulative private
      counts, G = H, or 1 for stationary counts;
    - ``memory[M,H,S,A]``: what the learner keeps between episodes;
    - ``model[G,S,A,S+3]``, ``values[H+1,S]``: scratch;
    - ``actions[H,S]``, ``probabilities[H,S,A]``: the next policy (one of the two);
    - ``rng``: ties and draws of the learner.
    """
    return numba.njit(_PLANNER, cache=True, fastmath=False, error_model="numpy")(function)


@inlined
def greedy(q: Floats, h: int, s: int, actions: Ints, values: Floats) -> bool:
    """An action of the largest ``q[0,h,s]`` and its value; could there be a tie?"""
    best = q[0, h, s, 0]
    chosen = 0
    close = False
    for a in range(1, q.shape[3]):
        value = q[0, h, s, a]
        close |= not abs(value - best) > TIE  # infinity minus infinity is close, too
        chosen = a if value > best else chosen
        best = value if value > best else best
    actions[h, s] = chosen
    values[h, s] = best
    return close


@numba.njit(types.void(_F4, _I2, _GENERATOR), cache=True)
def break_ties(q: Floats, actions: Ints, rng: np.random.Generator) -> None:
    """A random one of the best actions wherever there are several, from the last step to the first.

    After the induction and not inside: a generator in the inner loop costs more than the loop.
    """
    horizon, states, choices = q.shape[1:]
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            least = q[0, h, s, actions[h, s]] - TIE
            ties = 0
            for a in range(choices):
                ties += int(q[0, h, s, a] >= least)
            if ties > 1:
                rank = int(rng.random() * ties)
                for a in range(choices):
                    if q[0, h, s, a] >= least:
                        if rank == 0:
                            actions[h, s] = a
                        rank -= 1


@inlined
def draw(cumulative: Floats, u: float) -> int:
    """The category that ``u`` in [0, 1) falls into."""
    i = 0
    while i < cumulative.size - 1 and u >= cumulative[i]:
        i += 1
    return i


@inlined
def policy_value(
    transitions: Floats,
    rewards: Floats,
    initial: Floats,
    actions: Ints,
    probabilities: Floats,
    stochastic: bool,
    values: Floats,
) -> float:
    """The exact value of a policy in the true model."""
    horizon, states, choices = rewards.shape
    values[horizon, :] = 0.0
    for h in range(horizon - 1, -1, -1):
        step = h if transitions.shape[0] > 1 else 0
        for s in range(states):
            total = 0.0
            for a in range(choices):
                weight = probabilities[h, s, a] if stochastic else 1.0 * (actions[h, s] == a)
                if weight > 0.0:
                    ahead = rewards[h, s, a]
                    for t in range(states):
                        ahead += transitions[step, s, a, t] * values[h + 1, t]
                    total += weight * ahead
            values[h, s] = total
    value = 0.0
    for s in range(states):
        value += initial[s] * values[0, s]
    return value


@inlined
def _changed(actions: Ints, last: Ints) -> bool:
    different = False
    for h in range(actions.shape[0]):
        for s in range(actions.shape[1]):
            if actions[h, s] != last[h, s]:
                last[h, s] = actions[h, s]
                different = True
    return different


_LOOP = types.void(
    types.FunctionType(_PLANNER),
    *(_F4, _F4, _F3, _F1, _F1),
    *(_F2, _F2, _F2, types.int64[::1], _F2, types.float64, types.int64),
    *(_F1, _F4, _F3, _F3, _F1, _F4, _F3, _F3),
    *(_F4, _F4, _F2, _I2, _I2, _F3),
    *(types.boolean, types.float64, _F1, _F1),
    *(_GENERATOR, _GENERATOR),
)


@numba.njit(_LOOP, cache=True, fastmath=False, error_model="numpy")
def run_block(
    plan: Any,
    cumulative: Floats,
    transitions: Floats,
    means: Floats,
    start: Floats,
    initial: Floats,
    rows: Floats,
    noise: Floats,
    gains: Floats,
    steps: Ints,
    centres: Floats,
    scale: float,
    response: int,
    total: Floats,
    total_transitions: Floats,
    total_visits: Floats,
    total_rewards: Floats,
    seen: Floats,
    seen_transitions: Floats,
    seen_visits: Floats,
    seen_rewards: Floats,
    memory: Floats,
    model: Floats,
    values: Floats,
    actions: Ints,
    last: Ints,
    probabilities: Floats,
    stochastic: bool,
    optimum: float,
    current: Floats,
    regrets: Floats,
    environment: np.random.Generator,
    policy: np.random.Generator,
) -> None:
    """Run ``len(regrets)`` episodes: plan, play, count, release.

    ``rows[i]`` goes to the planner before episode i of the block; ``noise[i]`` (no columns: no
    noise) is the noise on the cumulative counters after it. ``current[0]`` carries the regret of
    the last policy from block to block (negative: not yet known). ``gains``, ``steps``,
    ``centres``, ``scale`` and ``response`` are those of `streams.release.StreamBlock`. ``total``
    (integers) and ``seen`` (what is public) hold all counters in the order of a release; the
    arrays after them are views of their parts.
    """
    horizon, states, choices = means.shape
    pooled = total_visits.shape[0] == 1
    private = noise.shape[1] > 0
    biased = centres.shape[1] > 0
    for i in range(regrets.size):
        plan(
            rows[i],
            seen_transitions,
            seen_visits,
            seen_rewards,
            memory,
            model,
            values,
            actions,
            probabilities,
            policy,
        )
        if stochastic or _changed(actions, last) or current[0] < 0.0:
            value = policy_value(
                transitions, means, initial, actions, probabilities, stochastic, values
            )
            current[0] = max(0.0, optimum - value)
        regrets[i] = current[0]
        s = draw(start, environment.random())
        for h in range(horizon):
            a = actions[h, s]
            if stochastic:
                u = policy.random()
                a = 0
                below = probabilities[h, s, 0]
                while a < choices - 1 and u >= below:
                    a += 1
                    below += probabilities[h, s, a]
            step = h if cumulative.shape[0] > 1 else 0
            u = environment.random()
            t = 0
            for x in range(states - 1):  # counting instead of stopping: no branch to mispredict
                t += int(u >= cumulative[step, s, a, x])
            bit = 1.0 if environment.random() < means[h, s, a] else 0.0
            g = 0 if pooled else h
            move, visit, earn = 1.0, 1.0, bit
            if response == 1:
                cell = (h * states + s) * choices + a
                move = gains[i, cell * states + t]
                visit = gains[i, horizon * states * choices * states + cell]
                earn = bit * gains[i, horizon * states * choices * (states + 1) + cell]
            elif response == 2:
                category = ((s * choices + a) * states + t) * 2 + int(bit)
                move = gains[i, category] if h == steps[i] else 0.0
                visit, earn = move, bit * move
            total_transitions[g, s, a, t] += move
            total_visits[g, s, a] += visit
            total_rewards[g, s, a] += earn
            if not private:
                seen_transitions[g, s, a, t] += 1.0
                seen_visits[g, s, a] += 1.0
                seen_rewards[g, s, a] += bit
            s = t
        if biased:  # integers first: their rounding must not tell what was added to what
            for cell in range(total.size):
                seen[cell] = scale * (total[cell] + noise[i, cell] - centres[i, cell])
        elif private:
            for cell in range(total.size):
                seen[cell] = total[cell] + noise[i, cell]
