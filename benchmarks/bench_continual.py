"""Continual learners per episode, against peers run in turns in the same process.

Peers: (a) the public code of Chowdhury and Zhou (PrivateTabularRL), which is no package: its JDP
loop is rewritten here from its description, every episode Python loops over (s, a) that draw fresh
Laplace noise, then over (h, s, a) for value iteration, then one Python step per h; (b) the UCBVI of
rlberry-scool (`make bench-peers`), or else a loop after its description.
"""

import math

import numpy as np

from benchmarks.measure import Peer, compare, package
from discreet import Central, learn
from discreet.mdp import RiverSwim

ORIGINAL = {
    (4, 6, True): "the original took about 420 us per episode (199 times 2.1 us, one measurement)",
    (6, 20, False): "the original, which has no per-step form, took about 1,500 us pooled",
}
"""What PrivateTabularRL's own code was measured at, in processor time on another machine."""


def run(quick: bool) -> list[dict]:
    """One row per task."""
    repeats = 5 if quick else 15
    return [
        _private(4, 6, repeats, stationary=True),
        _private(6, 20, repeats, stationary=False),
        _plain(repeats),
    ]


def _private(states: int, horizon: int, repeats: int, *, stationary: bool) -> dict:
    mdp = RiverSwim(states=states, horizon=horizon)
    trust = Central(1, mechanism="tree-laplace")
    options = {"learner": "dp-ucbvi", "trust": trust, "stationary": stationary}
    peer, name = PeerLoop(mdp, 1.0, stage_dependent=not stationary), "PrivateTabularRL's JDP loop"
    return compare(
        f"dp-ucbvi, JDP, RiverSwim S={states}, H={horizon}, "
        f"{'pooled counts' if stationary else 'stage-dependent'}",
        lambda: learn(mdp, episodes=5_000, **options),
        lambda: peer.run(30),
        Peer(name, kind="rewritten", note=ORIGINAL[states, horizon, stationary]),
        "us per episode",
        repeats=repeats,
        per=(1e6 / 5_000, 1e6 / 30),
    )


def _plain(repeats: int) -> dict:
    mdp = RiverSwim(states=4, horizon=6)
    try:
        peer, against = _rlberry(mdp), package("rlberry-scool", "rlberry-scool UCBVI")
    except ImportError:
        note = "about 1.8 times slower than the original when both were measured"
        against = Peer("UCBVI loop after rlberry-scool", kind="rewritten", note=note)
        peer = PeerLoop(mdp, None).run
    return compare(
        "ucbvi, no privacy, RiverSwim S=4, H=6, stage-dependent",
        lambda: learn(mdp, learner="ucbvi", episodes=20_000),
        lambda: peer(100),
        against,
        "us per episode",
        repeats=repeats,
        per=(1e6 / 20_000, 1e6 / 100),
    )


def _rlberry(mdp):
    """Its agent, written for a Gymnasium with one more function, which does not matter here."""
    import gymnasium

    if not hasattr(gymnasium.logger, "set_level"):
        gymnasium.logger.set_level = lambda level: None
    from rlberry.envs.finite_mdp import FiniteMDP
    from rlberry_scool.agents.ucbvi import UCBVIAgent

    env = FiniteMDP(np.array(mdp.rewards[0]), np.array(mdp.transitions[0]), 0)
    agent = UCBVIAgent(env, horizon=mdp.horizon, stage_dependent=True)
    return agent.fit


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
