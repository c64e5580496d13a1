"""One user after the other, compiled: the episode, what it adds to the counters, what is public.

`run_block` is the loop that all stream learners share. Before each user it asks the learner's
*planner* for a policy and hands it public counters, nothing else. Planners have one signature and
are passed as first-class functions: the loop is compiled once, whatever the learner.

Arrays that belong together travel together, up to the loop, which takes the tuples apart once: what
it calls, planners too, has the arrays as parameters. (Kept from when a tuple cost references on
every call; not measured again.) Nothing here makes an array, and the loop counts no references
(`_jit.BORROWED`).
``G`` is H, or 1 for counters pooled over steps.
"""

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
from numba import types

from discreet._jit import BORROWED, inlined
from discreet._types import FloatArray, IntArray

UNIT, CELL, CATEGORY = range(3)
RESPONSES = {"unit": UNIT, "cell": CELL, "category": CATEGORY}
"""What one step of a user adds to the counters (see `releases.NoiseBlock`)."""

GENERATOR = numba.typeof(np.random.default_rng(0))
FLOATS_1, FLOATS_2 = types.float64[::1], types.float64[:, ::1]
FLOATS_3, FLOATS_4 = types.float64[:, :, ::1], types.float64[:, :, :, ::1]
INTEGERS_1, INTEGERS_2 = types.int64[::1], types.int64[:, ::1]


class TrueModel(NamedTuple):
    """What users live in.

    Attributes:
        cumulative: ``[G, S, A, S]``, of ``transitions``.
        transitions: ``[G, S, A, S]``.
        means: ``[H, S, A]``, of the rewards.
        start: ``[S]``, cumulative, of ``initial``.
        initial: ``[S]``.
    """

    cumulative: FloatArray
    transitions: FloatArray
    means: FloatArray
    start: FloatArray
    initial: FloatArray


class Counters(NamedTuple):
    """All counters in the order of a release, and views of their parts."""

    everything: FloatArray
    transitions: FloatArray
    visits: FloatArray
    rewards: FloatArray


class Randomness(NamedTuple):
    """The randomness of some consecutive releases (see `releases.NoiseBlock`).

    ``noise`` without columns: nothing is private. ``centres`` without columns: nothing to debias.
    """

    noise: FloatArray
    gains: FloatArray
    steps: IntArray
    centres: FloatArray
    scale: float
    response: int
    moving: int  # the steps whose transitions are counted: H, or one less


class Users(NamedTuple):
    """Users to come: where they live, what was counted of others, and what of it is public.

    Attributes:
        model: where they live.
        raw: what was counted of others.
        public: what of it is public.
        randomness: of their releases.
        chances: ``[n, 2·H + 1]`` in [0, 1), of their episodes: the first state, then of every step
            the next state and the reward.
    """

    model: TrueModel
    raw: Counters
    public: Counters
    randomness: Randomness
    chances: FloatArray


class Scratch(NamedTuple):
    """What a planner keeps between episodes, and room to compute in.

    Attributes:
        memory: ``[M, H, S, A]``, kept.
        model: ``[rows of the planner, G, S·A]``.
        values: ``[H + 1, S]``.
    """

    memory: FloatArray
    model: FloatArray
    values: FloatArray


class NextPolicy(NamedTuple):
    """What a planner fills, one of the first two.

    Attributes:
        actions: ``[H, S]``.
        probabilities: ``[H, S, A]``.
        valued: ``[H, S]``, the actions whose value was computed last.
        value: ``[1]``, that value (not a number: none yet); carried from block to block.
    """

    actions: IntArray
    probabilities: FloatArray
    valued: IntArray
    value: FloatArray


_COUNTERS = types.NamedTuple((FLOATS_1, FLOATS_4, FLOATS_3, FLOATS_3), Counters)
_MODEL = types.NamedTuple((FLOATS_4, FLOATS_4, FLOATS_3, FLOATS_1, FLOATS_1), TrueModel)
_RANDOMNESS = types.NamedTuple(
    (FLOATS_2, FLOATS_2, INTEGERS_1, FLOATS_2, types.float64, types.int64, types.int64), Randomness
)
_USERS = types.NamedTuple((_MODEL, _COUNTERS, _COUNTERS, _RANDOMNESS, FLOATS_2), Users)
_SCRATCH = types.NamedTuple((FLOATS_4, FLOATS_3, FLOATS_2), Scratch)
_POLICY = types.NamedTuple((INTEGERS_2, FLOATS_3, INTEGERS_2, FLOATS_1), NextPolicy)

PLANNER = types.void(
    *(FLOATS_1, FLOATS_4, FLOATS_3, FLOATS_3),
    *(FLOATS_4, FLOATS_3, FLOATS_2, INTEGERS_2, FLOATS_3, GENERATOR),
)
"""Coefficients; public transitions, visits and rewards; memory, model and values of `Scratch`;
actions and probabilities of `NextPolicy`; the learner's generator."""


@inlined
def draw(cumulative: FloatArray, u: float) -> int:
    """The category that ``u`` in [0, 1) falls into."""
    i = 0
    while i < cumulative.size - 1 and u >= cumulative[i]:
        i += 1
    return i


@inlined
def _ahead(
    transitions: FloatArray,
    rewards: FloatArray,
    values: FloatArray,
    place: tuple[int, int, int, int],
) -> float:
    """The value of one action: its reward and what follows."""
    step, h, s, a = place
    total = float(rewards[h, s, a])
    for t in range(transitions.shape[3]):
        total += transitions[step, s, a, t] * values[h + 1, t]
    return total


@inlined
def policy_value(
    transitions: FloatArray,
    rewards: FloatArray,
    initial: FloatArray,
    actions: IntArray,
    probabilities: FloatArray,
    stochastic: bool,
    values: FloatArray,
) -> float:
    """The exact value of a policy in the true model."""
    horizon, states, choices = rewards.shape
    values[horizon, :] = 0.0
    for h in range(horizon - 1, -1, -1):
        step = h if transitions.shape[0] > 1 else 0
        for s in range(states):
            total = 0.0
            if stochastic:
                for a in range(choices):
                    weight = probabilities[h, s, a]
                    if weight > 0.0:
                        total += weight * _ahead(transitions, rewards, values, (step, h, s, a))
            else:
                total = _ahead(transitions, rewards, values, (step, h, s, actions[h, s]))
            values[h, s] = total
    value = 0.0
    for s in range(states):
        value += initial[s] * values[0, s]
    return value


@inlined
def changed(actions: IntArray, last: IntArray) -> bool:
    """Whether the policy is another than the ``last``, which becomes this one."""
    different = False
    for h in range(actions.shape[0]):
        for s in range(actions.shape[1]):
            if actions[h, s] != last[h, s]:
                last[h, s] = actions[h, s]
                different = True
    return different


@inlined
def choose(probabilities: FloatArray, h: int, s: int, u: float) -> int:
    """The action of a stochastic policy."""
    a = 0
    below = probabilities[h, s, 0]
    while a < probabilities.shape[2] - 1 and u >= below:
        a += 1
        below += probabilities[h, s, a]
    return a


@inlined
def add(
    transitions: FloatArray,
    visits: FloatArray,
    rewards: FloatArray,
    place: tuple[int, int, int, int],
    move: float,
    visit: float,
    earn: float,
) -> None:
    """Add to the counters of one step (h, s, a, s')."""
    h, s, a, t = place
    g = 0 if visits.shape[0] == 1 else h
    transitions[g, s, a, t] += move
    visits[g, s, a] += visit
    rewards[g, s, a] += earn


@inlined
def contribution(
    gains: FloatArray,
    steps: IntArray,
    response: int,
    i: int,
    place: tuple[int, int, int, int],
    bit: float,
    sizes: tuple[int, int, int],
) -> tuple[float, float, float]:
    """What one step of user i adds to its three counters, as her report shows it."""
    horizon, states, choices = sizes
    h, s, a, t = place
    move, visit, earn = 1.0, 1.0, bit
    if response == CELL:
        cell = (h * states + s) * choices + a
        move = gains[i, cell * states + t]
        visit = gains[i, horizon * states * choices * states + cell]
        earn = bit * gains[i, horizon * states * choices * (states + 1) + cell]
    elif response == CATEGORY:
        category = ((s * choices + a) * states + t) * 2 + int(bit)
        move = gains[i, category] if h == steps[i] else 0.0
        visit, earn = move, bit * move
    return move, visit, earn


@inlined
def publish(
    raw: FloatArray,
    public: FloatArray,
    noise: FloatArray,
    centres: FloatArray,
    scale: float,
    i: int,
) -> None:
    """What is public after user i of the block."""
    if centres.shape[1] > 0:  # integers first: their rounding must not tell what was added to what
        for cell in range(raw.size):
            public[cell] = scale * (raw[cell] + noise[i, cell] - centres[i, cell])
    elif noise.shape[1] > 0:
        for cell in range(raw.size):
            public[cell] = raw[cell] + noise[i, cell]


_LOOP = types.void(
    types.FunctionType(PLANNER),
    *(FLOATS_2, _USERS, _SCRATCH, _POLICY, types.boolean, FLOATS_1, GENERATOR),
)


@numba.njit(_LOOP, cache=True, fastmath=False, error_model="numpy", **BORROWED)
def _run_borrowed(
    planner: Callable[..., None],
    coefficients: FloatArray,
    users: Users,
    scratch: Scratch,
    policy: NextPolicy,
    stochastic: bool,
    out: FloatArray,
    rng: np.random.Generator,
) -> None:
    """`run_block`, with what its caller keeps alive."""
    model, raw_counters, public_counters, randomness, chances = users
    cumulative, transitions, means, start, initial = model
    raw, raw_transitions, raw_visits, raw_rewards = raw_counters
    public, seen_transitions, seen_visits, seen_rewards = public_counters
    noise, gains, steps, centres, scale, response, moving = randomness
    memory, estimates, values = scratch
    actions, probabilities, valued, value = policy
    private = noise.shape[1] > 0
    horizon, states, _ = means.shape
    for i in range(out.size):
        planner(
            coefficients[i],
            seen_transitions,
            seen_visits,
            seen_rewards,
            memory,
            estimates,
            values,
            actions,
            probabilities,
            rng,
        )
        if stochastic or changed(actions, valued) or np.isnan(value[0]):
            value[0] = policy_value(
                transitions, means, initial, actions, probabilities, stochastic, values
            )
        out[i] = value[0]
        s = draw(start, chances[i, 0])
        for h in range(horizon):
            a = choose(probabilities, h, s, rng.random()) if stochastic else actions[h, s]
            step = h if cumulative.shape[0] > 1 else 0
            u = chances[i, 2 * h + 1]
            t = 0
            for x in range(states - 1):  # counting instead of stopping: no branch to mispredict
                t += int(u >= cumulative[step, s, a, x])
            bit = 1.0 if chances[i, 2 * h + 2] < means[h, s, a] else 0.0
            place = (h, s, a, t)
            move, visit, earn = contribution(gains, steps, response, i, place, bit, means.shape)
            counted = 1.0 if h < moving else 0.0
            add(raw_transitions, raw_visits, raw_rewards, place, counted * move, visit, earn)
            if not private:
                add(seen_transitions, seen_visits, seen_rewards, place, counted, 1.0, bit)
            s = t
        publish(raw, public, noise, centres, scale, i)


@numba.njit(_LOOP, cache=True, fastmath=False, error_model="numpy")
def run_block(
    planner: Callable[..., None],
    coefficients: FloatArray,
    users: Users,
    scratch: Scratch,
    policy: NextPolicy,
    stochastic: bool,
    out: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Plan, value, play and release, ``len(out)`` times.

    ``coefficients[i]`` goes to the planner before user i of the block; ``out[i]`` becomes the exact
    value of the policy she plays. ``rng`` is the learner's: ties, and actions of its policy.

    References are counted here, once per block: borrowed code never lets go of a generator that
    Python hands to it.
    """
    _run_borrowed(planner, coefficients, users, scratch, policy, stochastic, out, rng)
