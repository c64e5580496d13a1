"""The problems of the studies: those that are reported, and families on which constants are chosen.

A problem is a function of one number, the run: actions are relabelled, or another member is
drawn. `REPORTED` is a fixed list; README.md says which of its members were looked at while rules
were made. `FAMILIES` are other problems but of the same kinds (chains, locks, small gaps, odd
steps, cliffs, rare doors): what holds for both is no evidence about a kind that is in neither.
Traps, which tests hold flow-ucb to, are families too.
"""

import sys
from pathlib import Path

import numpy as np

import discreet
from discreet.mdp import LowerBound, TabularMDP, from_gymnasium
from discreet.mdp.tabular import relabel_actions

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from helpers.traps import TRAPS, along_a_cliff, behind_doors, made, with_an_odd_reward


def _shipped(name, **parameters):
    return lambda run: discreet.make(name, relabel=run, **parameters)


def _gymnasium(name, horizon):
    return lambda run: relabel_actions(from_gymnasium(name, horizon), run)


def _random_member(**parameters):
    return lambda run: discreet.make("RandomMDP", seed=run, relabel=run, **parameters)


def _small_gaps(run):
    """Every (s, a) pays 0.45 or 0.55 on average: no action is much better than another."""
    rng = np.random.default_rng((1, run))
    transitions = rng.dirichlet(np.full(5, 0.5), size=(5, 3))
    rewards = np.where(rng.random((5, 3)) < 0.5, 0.45, 0.55)
    return TabularMDP(transitions=transitions, rewards=rewards, horizon=6, name="SmallGaps")


def _many_actions(run):
    rng = np.random.default_rng((2, run))
    transitions = rng.dirichlet(np.full(4, 0.3), size=(4, 16))
    return TabularMDP(
        transitions=transitions, rewards=rng.random((4, 16)), horizon=5, name="ManyActions"
    )


def _lock(run):
    """One of three actions stays on the path, another at every step; only its end pays 1."""
    horizon, rng = 8, np.random.default_rng((3, run))
    transitions, rewards = np.zeros((horizon, 2, 3, 2)), np.zeros((horizon, 2, 3))
    transitions[:, :, :, 1] = 1.0
    rewards[:, 1] = 0.02
    for h, right in enumerate(rng.integers(3, size=horizon)):
        transitions[h, 0, right] = [0.95, 0.05]
        rewards[h, 0, right] = float(h == horizon - 1)
    return TabularMDP(transitions=transitions, rewards=rewards, name="Lock")


def _ring(run, key):
    """A stationary ring of six states in which moving on is rarely worth it, for eight steps."""
    rng = np.random.default_rng((key, run))
    transitions, rewards = np.zeros((8, 6, 2, 6)), np.zeros((8, 6, 2))
    for s in range(6):
        transitions[:, s, 0, s] = 1.0
        transitions[:, s, 1, (s + 1) % 6] = 0.8
        transitions[:, s, 1, s] += 0.2
    rewards[:, 0, 0] = 0.4
    rewards[:, 3, 0] = 0.3
    return transitions, rewards, rng


def _odd_reward(run):
    """Stationary but for one reward in the last three steps, where few come by themselves."""
    transitions, rewards, rng = _ring(run, 4)
    rewards[5:, 2, 0] = 1.0
    return _relabelled_per_state(transitions, rewards, rng, "OddReward")


def _odd_transition(run):
    """Stationary but for one move at one step, which leads to a state that pays until the end."""
    transitions, rewards, rng = _ring(run, 5)
    rewards[:, 5, 0] = 1.0
    transitions[:, 4, 1] = np.eye(6)[0]
    transitions[3, 2, 1] = np.eye(6)[5]
    return _relabelled_per_state(transitions, rewards, rng, "OddTransition")


def _relabelled_per_state(transitions, rewards, rng, name):
    """Actions renamed in each state, the same at every step: all but the odd step look alike."""
    order = rng.permuted(np.tile(np.arange(2), (6, 1)), axis=1)
    states = np.arange(6)[:, None]
    return TabularMDP(
        transitions=transitions[:, states, order], rewards=rewards[:, states, order], name=name
    )


REPORTED = {
    "RiverSwim-4x6": _shipped("RiverSwim", states=4, horizon=6),
    "RiverSwim-6x20": _shipped("RiverSwim", states=6, horizon=20),
    "DoubleChain": _shipped("DoubleChain"),
    "GridWorld": _shipped("GridWorld"),
    "Treatment": _shipped("Treatment"),
    "Recommender": _shipped("Recommender"),
    "DemandResponse": _shipped("DemandResponse"),
    "SixArms": _shipped("SixArms"),
    "LowerBound": _shipped("LowerBound"),
    "FrozenLake-20": _gymnasium("FrozenLake-v1", 20),
    "CliffWalking-20": _gymnasium("CliffWalking-v1", 20),
    "Random-8x4x8": _random_member(states=8, actions=4, horizon=8, concentration=0.5),
    "RandomSteps-6x3x8": _random_member(
        states=6, actions=3, horizon=8, concentration=0.3, stationary=False
    ),
    "SmallGaps": _small_gaps,
    "ManyActions": _many_actions,
    "Lock": _lock,
    "OddReward": _odd_reward,
    "OddTransition": _odd_transition,
}


def chain(seed):
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
    return made(moves, rewards, horizon, rng)


def dense(seed):
    """Dense random transitions and rewards."""
    rng = np.random.default_rng([2, seed])
    states, actions = int(rng.integers(4, 7)), int(rng.integers(2, 5))
    moves = rng.dirichlet(np.full(states, 0.7), (states, actions))
    return made(moves, rng.random((states, actions)), int(rng.integers(5, 8)), rng)


def changing(seed):
    """Dense random dynamics that differ at every step."""
    rng = np.random.default_rng([3, seed])
    states, actions, horizon = 4, 3, 5
    moves = rng.dirichlet(np.full(states, 0.7), (horizon, states, actions))
    return made(moves, rng.random((horizon, states, actions)), horizon, rng)


def many_actions(seed):
    """Few states, twelve actions."""
    rng = np.random.default_rng([5, seed])
    moves = rng.dirichlet(np.full(3, 0.7), (3, 12))
    return made(moves, rng.random((3, 12)), 4, rng)


def small_gaps(seed):
    """Every reward between 0.45 and 0.55."""
    rng = np.random.default_rng([6, seed])
    states, actions = int(rng.integers(3, 6)), int(rng.integers(2, 4))
    moves = rng.dirichlet(np.ones(states), (states, actions))
    rewards = rng.uniform(0.45, 0.55, (states, actions))
    return made(moves, rewards, int(rng.integers(4, 7)), rng)


def rare_door(seed):
    """Doors that open the more rarely the more their rooms pay."""
    rng = np.random.default_rng([105, seed])
    return behind_doors(rng, (3, 6), (12, 19), (0.3, 0.6), (0.008, 0.03), (0.05, 0.1))


def queue(seed):
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
    return made(moves, rewards, 8, rng, start=int(rng.integers(0, 4)))


def faint_reward(seed):
    """Stationary but for one reward, better by 0.1 to 0.4 than the state's other actions."""
    rng = np.random.default_rng([14, seed])
    return with_an_odd_reward(rng, 0.3, lambda others: others + rng.uniform(0.1, 0.4))


def long_cliff(seed):
    """A cliff of about forty states: too many rows for one route per batch."""
    rng = np.random.default_rng([12, 77, seed])
    length = int(rng.integers(9, 11))
    pay, spare = rng.uniform(0.97, 0.99), int(rng.integers(6, 9))
    return along_a_cliff(4, length, pay, length + 1 + spare, rng)


def tree(seed):
    """A tree to arms that are all alike but one, with sizes that LowerBound does not have."""
    rng = np.random.default_rng([101, seed])
    depth, actions = [(2, 2), (2, 4), (3, 2), (1, 6)][seed % 4]
    horizon = int(rng.integers(5, 8)) + depth - 1
    advantage = float(rng.uniform(0.14, 0.28))
    return LowerBound(
        depth=depth, actions=actions, horizon=horizon, advantage=advantage, relabel=1000 + seed
    )


def step_lock(seed):
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


def branch(seed):
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


def care(seed):
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


FAMILIES = TRAPS | {
    "chain": chain,
    "dense": dense,
    "changing": changing,
    "many-actions": many_actions,
    "small-gaps": small_gaps,
    "rare-door": rare_door,
    "queue": queue,
    "faint-reward": faint_reward,
    "long-cliff": long_cliff,
    "tree": tree,
    "step-lock": step_lock,
    "branch": branch,
    "care": care,
}


def two_arms(seed):
    """One state, one step, two actions that pay 0.5 and 0.4."""
    rng = np.random.default_rng([201, seed])
    return made(np.ones((1, 2, 1)), np.array([[0.5, 0.4]]), 1, rng)


def fifty_arms(seed):
    """One state, one step, fifty actions; the best pays 0.1 to 0.2 more than the second."""
    rng = np.random.default_rng([202, seed])
    rewards = rng.uniform(0.1, 0.5, (1, 50))
    rewards[0, 0] = rewards.max() + rng.uniform(0.1, 0.2)
    return made(np.ones((1, 50, 1)), rewards, 1, rng)


def random_tree(seed):
    """A tree of two or three choices per node; each leaf has a reward of its own."""
    rng = np.random.default_rng([203, seed])
    branches, depth = [(2, 3), (3, 2), (2, 4)][seed % 3]
    inner = sum(branches**level for level in range(depth))
    states = inner + branches**depth
    moves, rewards = np.zeros((states, branches, states)), np.zeros((states, branches))
    slip = rng.uniform(0, 0.2)
    for s in range(inner):
        children = branches * s + 1 + np.arange(branches)
        moves[s, :, children] = slip / branches
        moves[s, np.arange(branches), children] += 1 - slip
    moves[inner:, :, inner:] = np.eye(states - inner)[:, None]
    rewards[inner:] = rng.beta(1, 3, states - inner)[:, None]
    return made(moves, rewards, depth + 1, rng)


def gambler(seed):
    """Bets on a coin up to a goal: all that pays is to reach it."""
    rng = np.random.default_rng([204, seed])
    goal, win = int(rng.integers(6, 9)), rng.uniform(0.35, 0.6)
    stakes = 3
    moves, rewards = np.zeros((goal + 1, stakes, goal + 1)), np.zeros((goal + 1, stakes))
    for s in range(goal + 1):
        for a in range(stakes):
            bet = min(a + 1, s, goal - s)
            moves[s, a, s + bet] += win
            moves[s, a, s - bet] += 1 - win
    rewards[goal] = 1.0
    return made(moves, rewards, int(rng.integers(6, 10)), rng, start=goal // 2)


def energy(seed):
    """Store, hold or sell energy while its price walks between three levels."""
    rng = np.random.default_rng([205, seed])
    levels, prices = 4, np.array([0.2, 0.5, 1.0])
    walk = rng.dirichlet(np.ones(3), 3) * 0.5 + np.eye(3) * 0.5
    moves, rewards = np.zeros((levels * 3, 3, levels * 3)), np.zeros((levels * 3, 3))
    for level in range(levels):
        for price in range(3):
            for a, change in enumerate((1, 0, -1)):
                after = min(max(level + change, 0), levels - 1)
                moves[3 * level + price, a, 3 * after : 3 * after + 3] = walk[price]
                rewards[3 * level + price, a] = 0.5 + 0.5 * prices[price] * (level - after)
    return made(moves, rewards, int(rng.integers(5, 9)), rng, start=4)


def sparse(seed):
    """Every action leads to two of eight states; few of them pay."""
    rng = np.random.default_rng([206, seed])
    states, actions = 8, int(rng.integers(2, 5))
    moves = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        chance = rng.uniform(0.5, 1)
        one, other = rng.choice(states, 2, replace=False)
        moves[s, a, one], moves[s, a, other] = chance, 1 - chance
    rewards = np.where(rng.random((states, actions)) < 0.2, rng.random((states, actions)), 0.0)
    rewards[states - 1] = 1.0
    return made(moves, rewards, int(rng.integers(5, 10)), rng)


def dose(seed):
    """Five severities, three doses: strong ones help and harm; one start state per patient."""
    rng = np.random.default_rng([207, seed])
    states, doses = 5, 3
    moves, rewards = np.zeros((states, doses, states)), np.zeros((states, doses))
    for s in range(states):
        for a in range(doses):
            better = 0.2 + 0.25 * a * rng.uniform(0.6, 1.2)
            worse = rng.uniform(0.05, 0.3) * (1 + a * (s == 0))
            total = max(better + worse, 1.0)
            moves[s, a, max(s - 1, 0)] += better / total
            moves[s, a, min(s + 1, states - 1)] += worse / total
            moves[s, a, s] += 1 - (better + worse) / total
            rewards[s, a] = max(0.0, 1 - s / (states - 1) - 0.1 * a)
    return made(moves, rewards, int(rng.integers(3, 6)), rng, start=3)


def swim(seed):
    """RiverSwim of other sizes and currents."""
    rng = np.random.default_rng([208, seed])
    states, horizon = int(rng.integers(3, 7)), int(rng.integers(6, 16))
    on, back = rng.uniform(0.3, 0.7), rng.uniform(0.02, 0.15)
    moves, rewards = np.zeros((states, 2, states)), np.zeros((states, 2))
    for s in range(states):
        moves[s, 0, max(s - 1, 0)] = 1.0
        moves[s, 1, min(s + 1, states - 1)] += on
        moves[s, 1, max(s - 1, 0)] += back
        moves[s, 1, s] += 1 - on - back
    rewards[0, 0], rewards[-1, 1] = 0.01, 1.0
    return made(moves, rewards, max(horizon, states + 2), rng)


def epidemic(seed):
    """A share of infected, a policy of closing: three strengths, each with a price."""
    rng = np.random.default_rng([209, seed])
    states, spread = 7, rng.uniform(0.5, 0.8)
    moves, rewards = np.zeros((states, 3, states)), np.zeros((states, 3))
    for s in range(states):
        for a in range(3):
            up, down = spread * (1 - 0.4 * a) * (s > 0), 0.15 + 0.15 * a
            total = max(up + down, 1.0)
            moves[s, a, min(s + 1, states - 1)] += up / total
            moves[s, a, max(s - 1, 0)] += down / total
            moves[s, a, s] += 1 - (up + down) / total
            rewards[s, a] = max(0.0, 1 - s / (states - 1) - 0.12 * a)
    return made(moves, rewards, int(rng.integers(6, 11)), rng, start=2)


def tandem(seed):
    """Two queues in a row; the server works at the first, at the second, or at both slowly."""
    rng = np.random.default_rng([210, seed])
    room = 3
    arrive, serve = rng.uniform(0.3, 0.6), rng.uniform(0.6, 0.9)
    moves, rewards = np.zeros((room**2, 3, room**2)), np.zeros((room**2, 3))
    for one, two in np.ndindex(room, room):
        s = room * one + two
        for a, (first, second) in enumerate(((serve, 0), (0, serve), (serve / 2, serve / 2))):
            for came, moved, left in np.ndindex(2, 2, 2):
                chance = (arrive if came else 1 - arrive) * (first if moved else 1 - first)
                chance *= second if left else 1 - second
                on = min(moved, one) if two - min(left, two) < room - 1 else 0
                after = min(one - on + came, room - 1), two - min(left, two) + on
                moves[s, a, room * after[0] + after[1]] += chance
            rewards[s, a] = 1 - (one + two) / (2 * (room - 1))
    return made(moves, rewards, int(rng.integers(6, 10)), rng)


def arms_and_rooms(seed):
    """SixArms of other sizes: doors open the more rarely the more their rooms pay."""
    rng = np.random.default_rng([211, seed])
    return behind_doors(rng, (5, 8), (10, 22), (0.6, 1.0), (0.01, 0.03), (0.02, 0.1))


FRESH = {
    "two-arms": two_arms,
    "fifty-arms": fifty_arms,
    "random-tree": random_tree,
    "gambler": gambler,
    "energy": energy,
    "sparse": sparse,
    "dose": dose,
    "swim": swim,
    "epidemic": epidemic,
    "tandem": tandem,
    "arms-and-rooms": arms_and_rooms,
}
"""Nothing was chosen on these, nor were they looked at while rules were made."""


def problem(name: str, run: int) -> TabularMDP:
    """A reported problem, or a member of a family, as run number ``run`` meets it."""
    return (REPORTED | FAMILIES | FRESH)[name](run)
