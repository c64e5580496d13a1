"""Stream learners per episode, against peers run in the same process.

Peers: (a) the public code of Chowdhury and Zhou (PrivateTabularRL), whose per-episode JDP loop is
re-timed here from its description: Python loops over (s, a) that draw fresh Laplace noise, then
over (h, s, a) for value iteration, then one Python step per h; (b) rlberry-scool's UCBVI if it is
installed, otherwise a loop after its description. CPU time, compilation excluded.
"""

import math
import time

import numpy as np

from benchmarks._measure import best, row


def run(quick: bool) -> list[dict]:
    """One row per task."""
    return [
        _private(4, 6, quick, stationary=True),
        _private(6, 20, quick, stationary=False),
        _plain(quick),
        _lockstep(quick),
    ]


def _best(work, episodes: int, repeats: int = 3) -> float:
    """Least microseconds of CPU per episode; everything is compiled already."""
    seconds = best(lambda: work(episodes), repeats, clock=time.process_time, warm_up=False)
    return seconds / episodes * 1e6


def _private(states: int, horizon: int, quick: bool, *, stationary: bool) -> dict:
    from discreet import Central, learn
    from discreet.mdp import RiverSwim

    mdp = RiverSwim(states=states, horizon=horizon)
    trust = Central(1, mechanism="tree-laplace")

    def ours(episodes: int) -> None:
        learn(mdp, learner="dp-ucbvi", trust=trust, episodes=episodes, stationary=stationary)

    ours(10)
    peer = PeerLoop(mdp, 1.0, stage_dependent=not stationary)
    kind = "pooled counts" if stationary else "stage-dependent"
    return row(
        f"dp-ucbvi, JDP, RiverSwim S={states}, H={horizon}, {kind}",
        _best(ours, 2_000 if quick else 20_000),
        _best(peer.run, 50 if quick else 300, 1),
        "PrivateTabularRL's JDP loop, from its description",
        "us per episode",
    )


def _plain(quick: bool) -> dict:
    from discreet import learn
    from discreet.mdp import RiverSwim

    mdp = RiverSwim(states=4, horizon=6)

    def ours(episodes: int) -> None:
        learn(mdp, learner="ucbvi", episodes=episodes)

    ours(10)
    try:
        name, peer = "rlberry-scool UCBVI", _rlberry(mdp)
    except ImportError:
        name, peer = "UCBVI loop after rlberry-scool's description", PeerLoop(mdp, None).run
    return row(
        "ucbvi, no privacy, RiverSwim S=4, H=6, stage-dependent",
        _best(ours, 5_000 if quick else 50_000),
        _best(peer, 100 if quick else 1_000, 1),
        name,
        "us per episode",
    )


def _rlberry(mdp):
    from rlberry.envs.finite_mdp import FiniteMDP
    from rlberry_scool.agents.ucbvi import UCBVIAgent

    env = FiniteMDP(np.array(mdp.rewards[0]), np.array(mdp.transitions[0]), 0)
    agent = UCBVIAgent(env, horizon=mdp.horizon, stage_dependent=True)
    agent.fit(20)
    return agent.fit


def _lockstep(quick: bool) -> dict:
    from discreet import Local, learn
    from discreet._seeds import RunSeeds
    from discreet.learners.streams.lockstep import run_lockstep
    from discreet.mdp import RandomMDP

    mdp, trust, runs = RandomMDP(states=2, actions=2, horizon=2), Local(2, mechanism="laplace"), 20
    seeds = [RunSeeds(0, run) for run in range(runs)]

    def ours(episodes: int) -> None:
        run_lockstep([mdp] * runs, trust, episodes, seeds)

    def alone(episodes: int) -> None:
        learn(mdp, learner="ldp-obi", trust=trust, episodes=episodes)

    ours(10)
    alone(10)
    episodes = 20_000 if quick else 200_000
    return row(
        "ldp-obi, S=A=H=2, 20 runs in lockstep",
        _best(ours, episodes) / runs * 1e3,
        _best(alone, 20_000) * 1e3,
        "one run at a time through the shared compiled loop",
        "ns per episode",
    )


class PeerLoop:
    """One learner as published code runs it: dictionaries and Python loops, every episode."""

    def __init__(self, mdp, epsilon, *, stage_dependent: bool = True) -> None:
        self.mdp, self.epsilon = mdp, epsilon
        self.shape = mdp.shape
        self.groups = range(self.shape.horizon if stage_dependent else 1)
        keys = [
            (g, s, a)
            for g in self.groups
            for s in range(self.shape.states)
            for a in range(self.shape.actions)
        ]
        self.moves = {key: np.ones(self.shape.states) for key in keys}
        self.rewards = dict.fromkeys(keys, 1.0)
        self.rng = np.random.default_rng(0)
        self.episode = 0

    def run(self, episodes: int) -> None:
        """Plan and play."""
        for _ in range(episodes):
            self.episode += 1
            self._play(self._plan(self._model()))

    def _model(self) -> dict:
        """Estimates and bonus per (g, s, a), with fresh noise where there is privacy."""
        terms = int(math.log(self.episode)) + 1
        model = {}
        for key, moves in self.moves.items():
            counts, visits, earned, error = moves, moves.sum(), self.rewards[key], 0.0
            if self.epsilon is not None:
                scale = 1 / self.epsilon
                visits = visits + self.rng.laplace(0, scale, terms).sum()
                counts = counts + self.rng.laplace(0, scale, (terms, len(moves))).sum(axis=0)
                earned = earned + self.rng.laplace(0, scale, terms).sum()
                error = scale * math.sqrt(terms)
            total = max(1.0, visits + error)
            bonus = np.sqrt(2 * np.log(3) / total) + self.shape.states * error / total
            model[key] = earned / total, counts / total, bonus
        return model

    def _plan(self, model: dict) -> dict:
        """Optimistic value iteration."""
        values, q = np.zeros(self.shape.states), {}
        for h in reversed(range(self.shape.horizon)):
            ahead = np.zeros(self.shape.states)
            for s in range(self.shape.states):
                q[h, s] = np.zeros(self.shape.actions)
                for a in range(self.shape.actions):
                    reward, row, bonus = model[h if len(self.groups) > 1 else 0, s, a]
                    left = self.shape.horizon - h
                    q[h, s][a] = min(left, reward + np.dot(row, values) + bonus * left)
                ahead[s] = q[h, s].max()
            values = ahead
        return q

    def _play(self, q: dict) -> None:
        """One episode, step by step."""
        s = int(self.rng.choice(self.shape.states, p=self.mdp.initial))
        for h in range(self.shape.horizon):
            a = int(np.argmax(q[h, s]))
            t = int(self.rng.choice(self.shape.states, p=self.mdp.transitions[h, s, a]))
            key = (h if len(self.groups) > 1 else 0, s, a)
            self.moves[key][t] += 1
            self.rewards[key] += self.mdp.rewards[h, s, a]
            s = t


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
