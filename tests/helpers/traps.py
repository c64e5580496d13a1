"""Problems that trap a learner: one step that differs where few go, locks, decoys, rare doors.

Each is a function of one seed, from which sizes, dynamics, rewards and the names of actions are
drawn.
"""

import numpy as np

from discreet.mdp import TabularMDP


def made(transitions, rewards, horizon, rng, start=0):
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


def lock(seed):
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
    return made(moves, rewards, length + 3, rng)


def rarest_door(seed):
    """More doors, the best of which opens once in a hundred times: noise hides it."""
    rng = np.random.default_rng([905, seed])
    return behind_doors(rng, (4, 8), (15, 24), (0.4, 1.0), (0.006, 0.015), (0.01, 0.05))


def behind_doors(rng, number, steps, often, rarely, little):
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
    return made(moves, rewards, horizon, rng)


def rooms(seed):
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
    return made(moves, rewards, 10, rng, start=(1 - door) * 6)


def decoy(seed):
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
    return made(moves, rewards, far + 5, rng)


def odd_reward(seed):
    """Stationary but for one reward: one where all other steps pay nothing, off the usual way."""
    rng = np.random.default_rng([10, seed])
    return with_an_odd_reward(rng, 0.4, lambda others: 1.0)


def with_an_odd_reward(rng, most, pays):
    """One action pays at one step alone; ``pays`` is given the best of its state's others."""
    states, actions, horizon = 4, 3, 6
    moves = rng.dirichlet(np.full(states, 0.5), (states, actions))
    rewards = np.repeat(rng.uniform(0, most, (1, states, actions)), horizon, axis=0)
    s, a = int(rng.integers(1, states)), int(rng.integers(actions))
    rewards[:, s, a] = 0.0
    odd = pays(rewards[0, s].max())
    rewards[int(rng.integers(2, horizon)), s, a] = odd
    return made(np.repeat(moves[None], horizon, axis=0), rewards, horizon, rng)


def odd_pair(seed):
    """Two odd rewards, one after the other, that are worth leaving for together, neither alone."""
    rng = np.random.default_rng([15, seed])
    horizon = int(rng.integers(6, 9))
    first, sure = int(rng.integers(1, horizon - 1)), rng.uniform(0.7, 0.9)
    moves, rewards = np.zeros((2, 2, 2)), np.zeros((horizon, 2, 2))
    moves[0, 0, 0] = moves[0, 1, 1] = 1.0
    moves[1, :, 0] = 1.0
    rewards[:, 0, 0] = sure
    rewards[first, 0, 1] = rewards[first + 1, 1, 1] = 1.0
    return made(np.repeat(moves[None], horizon, axis=0), rewards, horizon, rng)


def odd_transition(seed):
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
    return made(by_step, np.repeat(rewards[None], horizon, axis=0), horizon, rng)


def cliff(seed):
    """A grid along a cliff: every step pays almost one, a fall nothing, the goal a little more."""
    rng = np.random.default_rng([12, seed])
    height, length = int(rng.integers(2, 4)), int(rng.integers(5, 8))
    pay, spare = rng.uniform(0.95, 0.98), int(rng.integers(2, 6))
    return along_a_cliff(height, length, pay, length + height + spare, rng)


def along_a_cliff(height, length, pay, horizon, rng):
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
    return made(moves, rewards, horizon, rng, start=start)


def needle(seed):
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
    return made(moves, rewards, int(rng.integers(4, 8)), rng)


TRAPS = {
    "lock": lock,
    "rarest-door": rarest_door,
    "rooms": rooms,
    "decoy": decoy,
    "odd-reward": odd_reward,
    "odd-pair": odd_pair,
    "odd-transition": odd_transition,
    "cliff": cliff,
    "needle": needle,
}
