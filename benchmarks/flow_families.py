"""Families of problems on which rules and constants of flow-ucb are chosen; none is reported.

Every family is a function of one seed: sizes, dynamics, rewards and the names of actions are drawn
from it. Traps are among them: a step that differs where few go, locks, decoys.

These are other problems than the reported ones (`benchmarks.flow_problems`), but not of other
kinds: chains, locks, small gaps, many actions, one odd reward, one odd transition, cliffs, rare
doors, trees of arms and a course of treatments are on both sides, with other sizes and parameters.
What holds for both is no evidence about a kind that is in neither. ``python -m
tools.flow_families`` runs them.
"""

from collections.abc import Callable

import numpy as np

from discreet.mdp import LowerBound, TabularMDP
from discreet.mdp.environments._relabel import relabel_actions

Floats = np.ndarray


def _made(
    transitions: Floats, rewards: Floats, horizon: int, rng: np.random.Generator, start: int = 0
) -> TabularMDP:
    """With actions relabelled in every state (at every step alike)."""
    states, actions = rewards.shape[-2:]
    order = np.argsort(rng.random((states, actions)), axis=1)
    rows = np.arange(states)[:, None]
    initial = np.zeros(states)
    initial[start] = 1.0
    return TabularMDP(
        transitions=transitions[..., rows, order, :],
        rewards=rewards[..., rows, order],
        horizon=horizon,
        initial=initial,
    )


def chain(seed: int) -> TabularMDP:
    """A slippery chain: all the reward is at its end, a little at its beginning."""
    rng = np.random.default_rng([1, seed])
    states, horizon = int(rng.integers(4, 7)), int(rng.integers(7, 10))
    slip = rng.uniform(0.1, 0.4)
    moves, rewards = np.zeros((states, 2, states)), np.zeros((states, 2))
    for s in range(states):
        moves[s, 0, max(s - 1, 0)] = 1.0
        moves[s, 1, min(s + 1, states - 1)] += 1 - slip
        moves[s, 1, s] += slip
    rewards[0, 0], rewards[-1, 1] = rng.uniform(0.01, 0.05), rng.uniform(0.7, 1)
    return _made(moves, rewards, horizon, rng)


def dense(seed: int) -> TabularMDP:
    """Dense random transitions and rewards."""
    rng = np.random.default_rng([2, seed])
    states, actions = int(rng.integers(4, 7)), int(rng.integers(2, 5))
    moves = rng.dirichlet(np.full(states, 0.7), (states, actions))
    return _made(moves, rng.random((states, actions)), int(rng.integers(5, 8)), rng)


def changing(seed: int) -> TabularMDP:
    """Dense random dynamics that differ at every step."""
    rng = np.random.default_rng([3, seed])
    states, actions, horizon = 4, 3, 5
    moves = rng.dirichlet(np.full(states, 0.7), (horizon, states, actions))
    return _made(moves, rng.random((horizon, states, actions)), horizon, rng)


def lock(seed: int) -> TabularMDP:
    """A combination lock: one wrong action, and a small sure reward is all that remains."""
    rng = np.random.default_rng([4, seed])
    length, actions = int(rng.integers(3, 5)), int(rng.integers(2, 4))
    states = length + 2
    moves, rewards = np.zeros((states, actions, states)), np.zeros((states, actions))
    moves[:, :, states - 1] = 1.0
    for s in range(length):
        moves[s, 0] = 0.0
        moves[s, 0, s + 1], moves[s, 0, states - 1] = 0.9, 0.1
    moves[length], moves[length, :, length] = 0.0, 1.0
    rewards[length], rewards[states - 1] = 0.9, rng.uniform(0.05, 0.2)
    return _made(moves, rewards, length + 3, rng)


def many_actions(seed: int) -> TabularMDP:
    """Few states, twelve actions."""
    rng = np.random.default_rng([5, seed])
    moves = rng.dirichlet(np.full(3, 0.7), (3, 12))
    return _made(moves, rng.random((3, 12)), 4, rng)


def small_gaps(seed: int) -> TabularMDP:
    """Every reward between 0.45 and 0.55."""
    rng = np.random.default_rng([6, seed])
    states, actions = int(rng.integers(3, 6)), int(rng.integers(2, 4))
    moves = rng.dirichlet(np.ones(states), (states, actions))
    rewards = rng.uniform(0.45, 0.55, (states, actions))
    return _made(moves, rewards, int(rng.integers(4, 7)), rng)


def rare_door(seed: int) -> TabularMDP:
    """Doors that open the more rarely the more their rooms pay."""
    rng = np.random.default_rng([105, seed])
    return _doors(rng, (3, 6), (12, 19), (0.3, 0.6), (0.008, 0.03), (0.05, 0.1))


def rarest_door(seed: int) -> TabularMDP:
    """More doors, the best of which opens once in a hundred times: noise hides it."""
    rng = np.random.default_rng([905, seed])
    return _doors(rng, (4, 8), (15, 24), (0.4, 1.0), (0.006, 0.015), (0.01, 0.05))


Range = tuple[float, float]


def _doors(
    rng: np.random.Generator,
    number: tuple[int, int],
    steps: tuple[int, int],
    often: Range,
    rarely: Range,
    little: Range,
) -> TabularMDP:
    """One action per door; in a room one action stays and is paid, all others lead out.

    Drawn are the number of doors, the horizon, how often the first and the last door open, and what
    the first room pays; the last one pays 1.
    """
    doors, horizon = int(rng.integers(*number)), int(rng.integers(*steps))
    opens = np.geomspace(rng.uniform(*often), rng.uniform(*rarely), doors)
    pays = np.geomspace(rng.uniform(*little), 1.0, doors)
    moves, rewards = np.zeros((doors + 1, doors, doors + 1)), np.zeros((doors + 1, doors))
    for door in range(doors):
        moves[0, door, 0], moves[0, door, door + 1] = 1 - opens[door], opens[door]
        moves[door + 1, :, 0] = 1.0
        moves[door + 1, 0] = np.eye(doors + 1)[door + 1]
        rewards[door + 1, 0] = pays[door]
    return _made(moves, rewards, horizon, rng)


def queue(seed: int) -> TabularMDP:
    """A queue served slowly and free, or fast at a price."""
    rng = np.random.default_rng([7, seed])
    states, speeds = 8, np.array([0.2, 0.5, 0.8])
    arrive = rng.uniform(0.4, 0.6)
    moves, rewards = np.zeros((states, 3, states)), np.zeros((states, 3))
    for s in range(states):
        for a, speed in enumerate(speeds):
            down, up = speed * (1 - arrive) * (s > 0), (1 - speed) * arrive * (s < states - 1)
            moves[s, a, max(s - 1, 0)] += down
            moves[s, a, min(s + 1, states - 1)] += up
            moves[s, a, s] += 1 - down - up
            rewards[s, a] = max(0.0, 1 - s / (states - 1) - 0.3 * a / 2)
    return _made(moves, rewards, 8, rng, start=int(rng.integers(0, 4)))


def rooms(seed: int) -> TabularMDP:
    """Two rooms of 2 by 3 with a door, and a goal in the second."""
    rng = np.random.default_rng([8, seed])
    door, slip = int(rng.integers(0, 2)), rng.uniform(0, 0.2)
    moves, rewards = np.zeros((12, 4, 12)), np.zeros((12, 4))
    for s in range(12):
        y, x = divmod(s, 6)
        for a, (dy, dx) in enumerate(((0, 1), (0, -1), (1, 0), (-1, 0))):
            v, u = min(max(y + dy, 0), 1), min(max(x + dx, 0), 5)
            if {x, u} == {2, 3} and y != door:
                v, u = y, x
            moves[s, a, v * 6 + u] += 1 - slip
            moves[s, a, s] += slip
    rewards[(1 - door) * 6 + 5] = 1.0
    return _made(moves, rewards, 10, rng, start=(1 - door) * 6)


def decoy(seed: int) -> TabularMDP:
    """A near reward of a half, and a far one of one behind states that pay nothing."""
    rng = np.random.default_rng([9, seed])
    far = int(rng.integers(2, 4))
    states = far + 2
    moves, rewards = np.zeros((states, 3, states)), np.zeros((states, 3))
    moves[:, :, 0] = 1.0
    moves[0, 0], moves[0, 0, 1] = 0.0, 1.0
    moves[1, :], moves[1, :, 1] = 0.0, 1.0
    for s in (0, *range(2, states - 1)):
        moves[s, 1] = 0.0
        moves[s, 1, s + 1 if s else 2] = 1.0
    moves[-1, 1], moves[-1, 1, -1] = 0.0, 1.0
    rewards[1], rewards[-1, 1] = rng.uniform(0.4, 0.5), 1.0
    return _made(moves, rewards, far + 5, rng)


def odd_reward(seed: int) -> TabularMDP:
    """Stationary but for one reward: one where all other steps pay nothing, off the usual way."""
    rng = np.random.default_rng([10, seed])
    return _with_an_odd_reward(rng, 0.4, lambda others: 1.0)


def faint_reward(seed: int) -> TabularMDP:
    """Stationary but for one reward, better by 0.1 to 0.4 than the state's other actions."""
    rng = np.random.default_rng([14, seed])
    return _with_an_odd_reward(rng, 0.3, lambda others: others + rng.uniform(0.1, 0.4))


def _with_an_odd_reward(
    rng: np.random.Generator, most: float, pays: Callable[[float], float]
) -> TabularMDP:
    """One action pays at one step alone; ``pays`` is given the best of its state's others."""
    states, actions, horizon = 4, 3, 6
    moves = rng.dirichlet(np.full(states, 0.5), (states, actions))
    rewards = np.repeat(rng.uniform(0, most, (1, states, actions)), horizon, axis=0)
    s, a = int(rng.integers(1, states)), int(rng.integers(actions))
    rewards[:, s, a] = 0.0
    odd = pays(rewards[0, s].max())
    rewards[int(rng.integers(2, horizon)), s, a] = odd
    return _made(np.repeat(moves[None], horizon, axis=0), rewards, horizon, rng)


def odd_pair(seed: int) -> TabularMDP:
    """Two odd rewards, one after the other, that are worth leaving for together, neither alone."""
    rng = np.random.default_rng([15, seed])
    horizon = int(rng.integers(6, 9))
    first, sure = int(rng.integers(1, horizon - 1)), rng.uniform(0.7, 0.9)
    moves, rewards = np.zeros((2, 2, 2)), np.zeros((horizon, 2, 2))
    moves[0, 0, 0] = moves[0, 1, 1] = 1.0
    moves[1, :, 0] = 1.0
    rewards[:, 0, 0] = sure
    rewards[first, 0, 1] = rewards[first + 1, 1, 1] = 1.0
    return _made(np.repeat(moves[None], horizon, axis=0), rewards, horizon, rng)


def odd_transition(seed: int) -> TabularMDP:
    """Stationary but for one row: at one step it leads to a state that pays until the end."""
    rng = np.random.default_rng([11, seed])
    states, actions, horizon = 5, 3, 7
    moves = rng.dirichlet(np.full(states - 1, 0.5), (states, actions))
    moves = np.concatenate([moves, np.zeros((states, actions, 1))], axis=2)
    moves[-1], moves[-1, :, -1] = 0.0, 1.0
    rewards = rng.uniform(0, 0.3, (states, actions))
    rewards[-1] = 1.0
    s, a, h = int(rng.integers(1, 4)), int(rng.integers(actions)), int(rng.integers(1, 4))
    moves[0, 0, -1] += 0.05  # the state that pays is known from the start
    moves /= moves.sum(axis=-1, keepdims=True)
    by_step = np.repeat(moves[None], horizon, axis=0)
    by_step[h, s, a] = 0.0
    by_step[h, s, a, -1] = 1.0
    return _made(by_step, np.repeat(rewards[None], horizon, axis=0), horizon, rng)


def cliff(seed: int) -> TabularMDP:
    """A grid along a cliff: every step pays almost one, a fall nothing, the goal a little more."""
    rng = np.random.default_rng([12, seed])
    height, length = int(rng.integers(2, 4)), int(rng.integers(5, 8))
    pay, spare = rng.uniform(0.95, 0.98), int(rng.integers(2, 6))
    return _along_a_cliff(height, length, pay, length + height + spare, rng)


def long_cliff(seed: int) -> TabularMDP:
    """A cliff of about forty states: too many rows for one route per batch."""
    rng = np.random.default_rng([12, 77, seed])
    length = int(rng.integers(9, 11))
    pay, spare = rng.uniform(0.97, 0.99), int(rng.integers(6, 9))
    return _along_a_cliff(4, length, pay, length + 1 + spare, rng)


def _along_a_cliff(
    height: int, length: int, pay: float, horizon: int, rng: np.random.Generator
) -> TabularMDP:
    states = height * length
    start, goal = (height - 1) * length, height * length - 1
    moves, rewards = np.zeros((states, 4, states)), np.full((states, 4), pay)
    for s in range(states):
        y, x = divmod(s, length)
        for a, (dy, dx) in enumerate(((0, 1), (0, -1), (1, 0), (-1, 0))):
            v, u = min(max(y + dy, 0), height - 1), min(max(x + dx, 0), length - 1)
            falls = v == height - 1 and 0 < u < length - 1
            moves[s, a, start if falls else v * length + u] = 1.0
            rewards[s, a] = 0.0 if falls else pay
    moves[goal], moves[goal, :, goal], rewards[goal] = 0.0, 1.0, 1.0
    return _made(moves, rewards, horizon, rng, start=start)


def needle(seed: int) -> TabularMDP:
    """Doors to arms that are all alike but one: each leads to a state that pays, or to none."""
    rng = np.random.default_rng([13, seed])
    doors, better = int(rng.integers(2, 5)), rng.uniform(0.12, 0.3)
    chance, states = rng.uniform(0.3, 0.6), doors + 3
    moves, rewards = np.zeros((states, doors, states)), np.zeros((states, doors))
    for a in range(doors):
        moves[0, a, a + 1] = 1.0
    moves[1:-2, :, -2], moves[1:-2, :, -1] = chance, 1 - chance
    moves[1, 0, -2] += better
    moves[1, 0, -1] -= better
    moves[-2, :, -2] = moves[-1, :, -1] = 1.0
    rewards[-2] = rng.uniform(0.6, 1)
    return _made(moves, rewards, int(rng.integers(4, 8)), rng)


def tree(seed: int) -> TabularMDP:
    """A tree to arms that are all alike but one, with sizes that LowerBound does not have."""
    rng = np.random.default_rng([101, seed])
    depth, actions = [(2, 2), (2, 4), (3, 2), (1, 6)][seed % 4]
    horizon = int(rng.integers(5, 8)) + depth - 1
    advantage = float(rng.uniform(0.14, 0.28))
    return LowerBound(
        depth=depth, actions=actions, horizon=horizon, advantage=advantage, relabel=1000 + seed
    )


def step_lock(seed: int) -> TabularMDP:
    """A lock of two states whose right action changes at every step."""
    rng = np.random.default_rng([102, seed])
    horizon, actions = int(rng.integers(5, 8)), int(rng.integers(2, 5))
    stay, low = rng.uniform(0.9, 1.0), rng.uniform(0, 0.05)
    moves, rewards = np.zeros((horizon, 2, actions, 2)), np.zeros((horizon, 2, actions))
    moves[..., 1], rewards[:, 1] = 1.0, low
    for h, right in enumerate(rng.integers(actions, size=horizon)):
        moves[h, 0, right] = [stay, 1 - stay]
        rewards[h, 0, right] = float(h == horizon - 1) * rng.uniform(0.8, 1)
    return TabularMDP(transitions=moves, rewards=rewards)


def branch(seed: int) -> TabularMDP:
    """One first action leads some to a better region; behind it everything changes by step."""
    rng = np.random.default_rng([104, seed])
    horizon, actions, states = int(rng.integers(8, 16)), int(rng.integers(2, 5)), 5
    chance, usual, better = rng.uniform(0.2, 0.4), slice(1, 3), slice(3, 5)
    moves = np.zeros((horizon, states, actions, states))
    moves[:, 0, :, usual] = rng.dirichlet(np.ones(2), (horizon, actions))
    for region in (usual, better):
        moves[:, region, :, region] = rng.dirichlet(np.ones(2), (horizon, 2, actions))
    rewards = rng.uniform(0.3, 0.5, (horizon, states, actions))
    rewards[:, better] = rng.uniform(0.5, 0.9, (horizon, 2, actions))
    rewards[0, 0] = 0.5
    key = int(rng.integers(actions))
    moves[0, 0, key] = [0, *[(1 - chance) / 2] * 2, *[chance / 2] * 2]
    rewards[0, 0, key] = 0.3
    return TabularMDP(transitions=moves, rewards=rewards)


def care(seed: int) -> TabularMDP:
    """Stages of an illness, treatments of rising strength and price, remission, lost to care."""
    rng = np.random.default_rng([103, seed])
    stages = int(rng.integers(3, 5))
    new, old, lost = stages, stages + 1, stages + 2
    moves, rewards = np.zeros((stages + 3, 3, stages + 3)), np.zeros((stages + 3, 3))
    well = np.sort(rng.uniform(0.1, 0.45, stages))[::-1]
    strength = np.array([0.5, 1, rng.uniform(1.3, 1.8)])
    leave = np.array([0.02, 0.05, 0.08]) * rng.uniform(0.7, 1.3)
    price = np.array([0, 0.05, 0.12]) * rng.uniform(0.7, 1.3)
    relapse = np.array([0.12, 0.05, 0.045]) * rng.uniform(0.7, 1.3)
    for a in range(3):
        for s in range(stages):
            moves[s, a, lost] = leave[a]
            moves[s, a, new] = (1 - leave[a]) * min(0.9, well[s] * strength[a])
            moves[s, a, min(s + (a > 0), stages - 1)] += 1 - moves[s, a].sum()
            rewards[s, a] = (0.5 if a else 0.1) - price[a]
        for s, early in ((new, 2), (old, 1)):
            stays = 1 - leave[a] / 2
            moves[s, a, lost], moves[s, a, 1] = 1 - stays, relapse[a] * early * stays
            moves[s, a, old] += 1 - moves[s, a].sum()
            rewards[s, a] = 1 - price[a]
    moves[lost, :, lost], rewards[lost] = 1.0, 0.1
    rewards = (rewards - rewards.min()) / (rewards.max() - rewards.min())
    horizon = int(rng.integers(6, 10))
    return relabel_actions(TabularMDP(transitions=moves, rewards=rewards, horizon=horizon), seed)


FAMILIES: dict[str, Callable[[int], TabularMDP]] = {
    "chain": chain,
    "dense": dense,
    "changing": changing,
    "lock": lock,
    "many-actions": many_actions,
    "small-gaps": small_gaps,
    "rare-door": rare_door,
    "rarest-door": rarest_door,
    "queue": queue,
    "rooms": rooms,
    "decoy": decoy,
    "odd-reward": odd_reward,
    "faint-reward": faint_reward,
    "odd-pair": odd_pair,
    "odd-transition": odd_transition,
    "cliff": cliff,
    "long-cliff": long_cliff,
    "needle": needle,
    "tree": tree,
    "step-lock": step_lock,
    "branch": branch,
    "care": care,
}
