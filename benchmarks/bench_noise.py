"""Noise of a stream, per episode, at S=6, A=2, H=20 (1,920 counters), K=20,000.

The reference is plain NumPy that draws every node of the current prefix anew at each episode, as
simple code would (and which is wrong: redrawn noise averages out).
"""

import time

import numpy as np

from benchmarks._measure import best, row

EPISODES = 20_000


def run(quick: bool) -> list[dict]:
    """One row per mechanism: microseconds per episode."""
    from discreet.privacy.mechanisms.registry import mechanisms
    from discreet.privacy.trust import Central, Local

    trusts = [Central(1, 1e-6, mechanism=name) for name in mechanisms("central", "stream")]
    trusts += [Local(1, mechanism=name) for name in ("laplace", "randomized-response", "one-step")]
    peer = _redrawn(40 if quick else 400)
    return [_release(trust, 200 if quick else 2000, peer) for trust in trusts]


def _release(trust, episodes: int, peer: float) -> dict:
    from discreet.mdp.shape import Shape
    from discreet.privacy.sampling.samplers import SimulationSampler

    shape = Shape(states=6, actions=2, horizon=20)
    plan = trust.calibrate(shape, rhythm="stream", episodes=EPISODES)
    release = plan.open(SimulationSampler(np.random.default_rng(0)))
    seconds = best(lambda: [release.block(100) for _ in range(episodes // 100)], 3)
    task = f"noise of one release, {trust.notion} {plan.mechanism}"
    name = "numpy.random.laplace, every node of the prefix anew"
    return row(task, seconds / episodes * 1e6, peer, name, "us per episode")


def _redrawn(episodes: int) -> float:
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for k in range(10_000, 10_000 + episodes):
        rng.laplace(0.0, 1800.0, (bin(k).count("1"), 1920)).sum(axis=0)
    return (time.perf_counter() - start) / episodes * 1e6


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
