"""Between Gymnasium and `TabularMDP`, in both directions.

Importing this module registers ``discreet/RiverSwim-v0`` and so on, one id for each environment.
Gymnasium's own way to ask for it is `gymnasium.register_envs(discreet.mdp.gymnasium)`.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces, wrappers
from gymnasium.envs.registration import EnvSpec, register, registry
from gymnasium.vector import SyncVectorEnv, VectorEnv
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp._arrays import cumulative_rows
from discreet.mdp.environments.registry import environment_names, make
from discreet.mdp.shape import Shape
from discreet.mdp.simulation import Simulator
from discreet.mdp.tabular import RewardMap, TabularMDP


def from_gymnasium(
    env: gymnasium.Env | str,
    horizon: int,
    *,
    initial: ArrayLike | int | None = None,
    name: str | None = None,
) -> TabularMDP:
    """The finite-horizon MDP behind a Gymnasium environment that exposes its model.

    Read are ``env.unwrapped.P`` (FrozenLake, Taxi, CliffWalking and their kind), the arrays of
    ICU-Sepsis, and our own environments. States where episodes end absorb, at an original reward of
    0. Rewards are mapped linearly to [0, 1]; ``mdp.reward_map`` keeps the map. The actions that
    ICU-Sepsis admits are ``mdp.allowed``. Wrappers that would change anything are refused, since a
    model says nothing of them.

    >>> mdp = from_gymnasium("FrozenLake-v1", horizon=20)
    >>> mdp
    TabularMDP('FrozenLake-v1', states=16, actions=4, horizon=20, stationary)

    Args:
        env: an environment, or its id.
        horizon: steps per episode.
        initial: the first state or its distribution, if the environment does not expose it.
        name: what the model is called in tables; the environment's id by default.
    """
    _validate.count(horizon=horizon)
    if isinstance(env, str):
        env = gymnasium.make(env)
    inner = env.unwrapped
    label = name or (env.spec.id if getattr(env, "spec", None) else type(inner).__name__)
    _refuse_wrappers(env)
    own = getattr(inner, "mdp", None)
    if isinstance(own, TabularMDP):
        if horizon != own.horizon and not own.stationary:
            raise UnsupportedError(
                f"{own.name or 'The MDP'} differs by step and has horizon {own.horizon}; "
                f"build it with horizon={horizon} instead."
            )
        return own if horizon == own.horizon else own.replace(horizon=horizon)
    dynamics = getattr(inner, "dynamics", None)
    if isinstance(getattr(inner, "P", None), Mapping | list | tuple):
        model = _read_table(inner)
    elif isinstance(dynamics, Mapping) and {"tx_mat", "r_mat", "d_0"} <= set(dynamics):
        model = _read_sepsis(inner)
    else:
        raise UnsupportedError(
            f"{label} does not expose a finite model (no P table, no transition arrays); say the "
            f"range of its rewards to play it without one (discreet.mdp.simulator with "
            f"reward_range=(low, high); --set env.reward_range=[low,high]), or build a TabularMDP "
            f"from its transition probabilities."
        )
    reward_map = RewardMap()
    if model.low < 0 or model.high > 1:
        reward_map = RewardMap(model.high - model.low, model.low)
    start = model.initial if initial is None else initial
    if start is None:
        raise UnsupportedError(
            f"{label} does not say where episodes begin; pass initial=, a state or a distribution."
        )
    if np.ndim(start) and len(np.asarray(start)) == len(model.transitions) - 1:
        start = np.append(np.asarray(start, np.float64), 0.0)  # no episode begins where all end
    return TabularMDP(
        transitions=model.transitions,
        rewards=np.clip((model.rewards - reward_map.offset) / reward_map.scale, 0, 1),
        initial=start,
        horizon=horizon,
        reward_kind="deterministic" if model.fixed_rewards else "bernoulli",
        name=label,
        reward_map=reward_map,
        allowed=model.allowed,
    )


_WATCHING = (
    *(wrappers.TimeLimit, wrappers.OrderEnforcing, wrappers.PassiveEnvChecker, wrappers.Autoreset),
    *(wrappers.RecordEpisodeStatistics, wrappers.RecordVideo, wrappers.RenderCollection),
    wrappers.HumanRendering,
)
"""Wrappers that leave the model as it is; where episodes end, the horizon says. Those of ICU-Sepsis
number its actions as its arrays do."""


def _refuse_wrappers(env: gymnasium.Env) -> None:
    while isinstance(env, gymnasium.Wrapper):
        if not (isinstance(env, _WATCHING) or type(env).__module__.startswith("icu_sepsis.")):
            raise UnsupportedError(
                f"The wrapper {type(env).__name__} may change what the model of "
                f"{type(env.unwrapped).__name__} does not show; pass env.unwrapped if it does not "
                f"matter, play it with discreet.mdp.simulator, or build a TabularMDP."
            )
        env = env.env


_TOGETHER = 64
"""Episodes of a batch that are played side by side."""


def simulator(
    env: gymnasium.Env | VectorEnv | str,
    horizon: int,
    *,
    reward_range: tuple[float, float],
    stationary: bool = False,
    name: str | None = None,
    **parameters: object,
) -> Simulator:
    """Any Gymnasium environment with finitely many observations and actions, to be played.

    Observations are Discrete, MultiDiscrete or tuples of them, flattened to states; one more state,
    the last, absorbs those whose episode is over, at a reward of 0. An id is played in vectors of
    episodes (`gymnasium.make_vec`), an environment with whatever wrappers it has one by one.

    >>> simulator("Blackjack-v1", horizon=8, reward_range=(-1, 1))
    Simulator('Blackjack-v1', states=705, actions=2, horizon=8)

    Args:
        env: an environment, a vector of environments, or an id.
        horizon: steps per episode; longer ones are cut off.
        reward_range: the least and the largest reward of a step, as they are known in advance.
        stationary: declares that what follows an action does not depend on the step.
        name: what it is called in tables; the environment's id by default.
        parameters: of the environment, beside an id.
    """
    _validate.count(horizon=horizon)
    low, high = _range(reward_range)
    if isinstance(env, str):
        envs = functools.partial(gymnasium.make_vec, env, **parameters)
    else:
        vector = env if isinstance(env, VectorEnv) else SyncVectorEnv([lambda: env])
        envs = functools.partial(_given, vector)
    one = envs(1)
    if not isinstance(one.single_action_space, spaces.Discrete):
        raise UnsupportedError(f"Expected Discrete actions, got {one.single_action_space}.")
    states = int(np.prod(_sizes(one.single_observation_space))) + 1
    shape = Shape(states, int(one.single_action_space.n), horizon)
    reward_map = RewardMap(high - low, low)
    spec = getattr(one, "spec", None)
    return Simulator(
        shape,
        _Player(functools.cache(envs), reward_map).play,
        start=np.arange(states) < states - 1,
        stationary=stationary,
        reward_map=reward_map,
        name=name or (spec.id if spec else type(env).__name__),
    )


def _given(vector: VectorEnv, count: int) -> VectorEnv:
    return vector


def _range(given: tuple[float, float]) -> tuple[float, float]:
    """The least and the largest reward, zero among them: it is what follows the end."""
    ends = np.asarray(given, np.float64)
    if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        raise InvalidInputError(
            f"Expected reward_range as two numbers, the least and the largest reward of a step, "
            f"got {given!r}."
        )
    return min(float(ends[0]), 0.0), max(float(ends[1]), 0.0)


def _sizes(space: spaces.Space) -> list[int]:
    """How many values each part of an observation has."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.ravel()]
    if isinstance(space, spaces.Tuple):
        return [size for part in space.spaces for size in _sizes(part)]
    raise UnsupportedError(
        f"Expected observations that are Discrete, MultiDiscrete or tuples of them, got {space}; "
        f"cut numbers into ranges with a wrapper."
    )


def _parts(space: spaces.Space, seen: Any) -> list[IntArray]:
    """The parts of the observations of several environments, from zero on."""
    if isinstance(space, spaces.Tuple):
        pairs = zip(space.spaces, seen, strict=True)
        return [part for one, given in pairs for part in _parts(one, given)]
    values = np.asarray(seen, np.int64) - np.asarray(space.start, np.int64)
    return (
        [values] if isinstance(space, spaces.Discrete) else list(values.reshape(len(values), -1).T)
    )


class _Player:
    """Plays episodes in vectors of environments, made for one user or for many."""

    def __init__(self, envs: Callable[[int], VectorEnv], reward_map: RewardMap) -> None:
        self._envs, self._map = envs, reward_map

    def play(
        self, chances: FloatArray, users: int, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray, FloatArray]:
        horizon = len(chances)
        states = np.zeros((users, horizon + 1), np.int64)
        actions, rewards = np.zeros((users, horizon), np.int64), np.zeros((users, horizon))
        envs, cumulative = self._envs(1 if users == 1 else _TOGETHER), cumulative_rows(chances)
        for first in range(0, users, envs.num_envs):
            mine = slice(first, min(first + envs.num_envs, users))
            played = self._together(envs, cumulative, rng)
            for whole, part in zip((states, actions, rewards), played, strict=True):
                whole[mine] = part[: mine.stop - first]
        return states, actions, rewards

    def _together(
        self, envs: VectorEnv, cumulative: FloatArray, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """One episode in each environment; the actions of those that are over change nothing."""
        horizon, over = len(cumulative), cumulative.shape[1] - 1
        states = np.full((envs.num_envs, horizon + 1), over)
        actions = np.zeros((envs.num_envs, horizon), np.int64)
        rewards = np.zeros((envs.num_envs, horizon))
        seen, _ = envs.reset(seed=int(rng.integers(2**31 - envs.num_envs)))
        going = np.ones(envs.num_envs, np.bool_)
        states[:, 0] = self._states(envs, seen)
        for h in range(horizon):
            luck = rng.random((envs.num_envs, 1))
            actions[:, h] = (cumulative[h, states[:, h]] <= luck).sum(axis=-1)
            if not going.any():
                continue
            seen, paid, ended, cut, _ = envs.step(actions[:, h] + envs.single_action_space.start)
            rewards[going, h] = paid[going]
            going &= ~(ended | cut)
            states[going, h + 1] = self._states(envs, seen)[going]
        return states, actions, self._scaled(rewards)

    def _states(self, envs: VectorEnv, seen: Any) -> IntArray:
        space = envs.single_observation_space
        return np.asarray(np.ravel_multi_index(_parts(space, seen), _sizes(space)), np.int64)

    def _scaled(self, rewards: FloatArray) -> FloatArray:
        low, high = self._map.offset, self._map.offset + self._map.scale
        wrong = (rewards < low) | (rewards > high)
        if wrong.any():
            raise InvalidInputError(
                f"Expected rewards in reward_range=({low:g}, {high:g}), as declared, got "
                f"{rewards[wrong][0]:g}; declare a range that holds all rewards."
            )
        return np.clip((rewards - low) / self._map.scale, 0, 1)


def to_gymnasium(mdp: TabularMDP) -> "TabularEnv":
    """The MDP as a Gymnasium environment whose episodes end after ``horizon`` steps.

    >>> from discreet.mdp import RiverSwim
    >>> env = to_gymnasium(RiverSwim(states=4, horizon=6))
    >>> env.reset(seed=0)
    (0, {'step': 0})
    """
    env = TabularEnv(mdp)
    env.spec = EnvSpec("discreet/TabularMDP-v0", entry_point=TabularEnv, kwargs={"mdp": mdp})
    return env


def make_environment(
    name: str, render_mode: str | None = None, **parameters: object
) -> "TabularEnv":
    """What ``gymnasium.make("discreet/Name-v0", **parameters)`` calls."""
    if render_mode is not None:
        raise UnsupportedError(f"{name} cannot be rendered; leave render_mode out.")
    return TabularEnv(make(name, **parameters))


def register_environments() -> None:
    """Register every environment that has no id yet."""
    for name in environment_names():
        identity = f"discreet/{name}-v0"
        if identity not in registry:
            register(
                id=identity,
                entry_point="discreet.mdp.gymnasium:make_environment",
                kwargs={"name": name},
            )


register_environments()


class TabularEnv(gymnasium.Env):  # type: ignore[misc]
    """A `TabularMDP` to act in: observations are states, ``info["step"]`` is the step."""

    metadata: ClassVar[dict[str, list[str]]] = {"render_modes": []}

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp
        self.observation_space = spaces.Discrete(mdp.shape.states)
        self.action_space = spaces.Discrete(mdp.shape.actions)
        self.render_mode = None
        self._state = 0
        self._step = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[int, dict[str, int]]:
        """Begin an episode; the seed decides all that follows."""
        super().reset(seed=seed)
        self._step = 0
        self._state = self._draw(self.mdp.tables.initial)
        return self._state, {"step": 0}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, int]]:
        """One step; the episode terminates after ``horizon`` of them."""
        if not self.action_space.contains(action):
            raise UnsupportedError(f"Expected an action in {self.action_space}, got {action!r}.")
        if self._step >= self.mdp.horizon:
            raise UnsupportedError("The episode is over; call reset().")
        if not self.mdp.shape.mask[self._step, self._state, action]:
            raise UnsupportedError(
                f"Expected an action that is possible in state {self._state} at step {self._step}, "
                f"got {action!r}; env.mdp.shape.mask says which are."
            )
        mean = float(self.mdp.rewards[self._step, self._state, action])
        if self.mdp.reward_kind == "bernoulli":
            mean = float(self.np_random.random() < mean)
        table = self.mdp.tables.transitions
        row = table[self._step if len(table) > 1 else 0, self._state, action]
        self._state = self._draw(row)
        self._step += 1
        return self._state, mean, self._step == self.mdp.horizon, False, {"step": self._step}

    def _draw(self, cumulative: FloatArray) -> int:
        return int(np.searchsorted(cumulative, self.np_random.random(), side="right"))


@dataclass(frozen=True, eq=False)
class _Model:
    """A stationary model in its own units, before rewards are mapped to [0, 1]."""

    transitions: FloatArray  # [S, A, S]
    rewards: FloatArray  # [S, A], means of values from low to high
    initial: ArrayLike | int | None  # None if it is not said
    low: float  # at most 0 (the reward once an episode has ended)
    high: float  # at least 0
    fixed_rewards: bool  # a reward never differs from its mean
    allowed: BoolArray | None = None  # [S, A], the actions that are possible; None: all


class _Outcomes(NamedTuple):
    """The lines of a table ``P[s][a]``: (probability, next state, reward, terminated)."""

    state: IntArray
    action: IntArray
    probability: FloatArray
    ahead: IntArray
    reward: FloatArray
    over: BoolArray


def _read_table(inner: gymnasium.Env) -> _Model:
    states, outcomes = _outcomes(inner)
    initial = getattr(inner, "initial_state_distrib", None)
    state, action, probability, ahead, reward, over = outcomes
    ends = np.unique(ahead[over])
    reached = _reached(outcomes, initial, ends, states)
    passing = ~over & np.isin(ahead, ends) & ~np.isin(state, ends) & reached[state]
    if passing.any():  # episodes end on the way into a state that others pass through
        ahead, ends = np.where(over, states, ahead), np.array([states])
        states += 1
    shape = (states, int(action.max()) + 1)
    transitions, means = np.zeros((*shape, states)), np.zeros(shape)
    np.add.at(transitions, (state, action, ahead), probability)
    np.add.at(means, (state, action), probability * reward)
    transitions[ends] = 0
    transitions[ends, :, ends] = 1
    means[ends] = 0
    spread = np.zeros(shape)
    np.maximum.at(spread, (state, action), np.abs(reward - means[state, action]))
    counted = ~np.isin(state, ends)
    return _Model(
        transitions,
        means,
        initial,
        low=min(float(reward[counted].min(initial=0)), 0.0),
        high=max(float(reward[counted].max(initial=0)), 0.0),
        fixed_rewards=bool(spread[state[counted], action[counted]].max(initial=0) < 1e-12),
    )


def _outcomes(inner: gymnasium.Env) -> tuple[int, _Outcomes]:
    """All lines of the table with positive probability, with states and actions from 0."""
    states, first_state = _numbering(inner.observation_space, inner.P)
    actions, first_action = _numbering(inner.action_space, inner.P[first_state])
    lines = [
        (s, a, float(p), int(ahead) - first_state, float(reward), bool(over))
        for s in range(states)
        for a in range(actions)
        for p, ahead, reward, over in inner.P[s + first_state][a + first_action]
        if p > 0
    ]
    s, a, p, ahead, reward, over = zip(*lines, strict=True)
    return states, _Outcomes(
        np.array(s), np.array(a), np.array(p), np.array(ahead), np.array(reward), np.array(over)
    )


def _read_sepsis(inner: gymnasium.Env) -> _Model:
    """The model of ICU-Sepsis; what it does not admit is as the mean of what it admits."""
    dynamics = inner.dynamics
    transitions = np.array(dynamics["tx_mat"], np.float64)
    rewards = np.asarray(dynamics["r_mat"], np.float64)
    inadmissible = ~admissible_actions(inner)
    for state in np.flatnonzero(inadmissible.any(axis=1)):
        admitted = transitions[state, ~inadmissible[state]]
        transitions[state, inadmissible[state]] = admitted.mean(axis=0)
    means = np.einsum("sat,sat->sa", transitions, rewards)
    possible = rewards[transitions > 0]
    low, high = min(float(possible.min()), 0.0), max(float(possible.max()), 0.0)
    start = dynamics["d_0"]
    return _Model(transitions, means, start, low, high, fixed_rewards=False, allowed=~inadmissible)


def admissible_actions(env: gymnasium.Env) -> BoolArray:
    """``bool[S, A]``: the actions that ICU-Sepsis admits in each state."""
    dynamics = getattr(env.unwrapped, "dynamics", None)
    if not isinstance(dynamics, Mapping) or "admissible_actions" not in dynamics:
        raise UnsupportedError(
            f"{type(env.unwrapped).__name__} does not list admissible actions; all are admissible."
        )
    mask = np.zeros(dynamics["tx_mat"].shape[:2], np.bool_)
    for state, actions in enumerate(dynamics["admissible_actions"]):
        mask[state, list(actions)] = True
    return mask


def _numbering(space: spaces.Space, table: object) -> tuple[int, int]:
    """How many, and the number of the first in the table: 0, or the start of the space."""
    if not isinstance(space, spaces.Discrete):
        raise UnsupportedError(f"Expected a Discrete space, got {space}; flatten it first.")
    start = int(space.start)
    keyed_from_start = isinstance(table, Mapping) and start in table and 0 not in table
    return int(space.n), start if keyed_from_start else 0


def _reached(
    outcomes: _Outcomes, initial: ArrayLike | None, ends: IntArray, states: int
) -> BoolArray:
    """The states that some policy can reach, episodes stopping at ``ends``."""
    if initial is None:
        return np.ones(states, np.bool_)
    reached = np.asarray(initial) > 0
    walk = ~np.isin(outcomes.state, ends)
    while True:
        ahead = reached.copy()
        ahead[outcomes.ahead[walk & reached[outcomes.state]]] = True
        if (ahead == reached).all():
            return reached
        reached = ahead
