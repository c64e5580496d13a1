"""Noise of a stream, per episode, at S=6, A=2, H=20 (1,920 counters), K=20,000.

The reference is plain NumPy that draws every node of the current prefix anew at each episode, as
simple code would (and which is wrong: redrawn noise averages out).
"""

import time

import numpy as np

EPISODES = 20_000


def run(quick: bool) -> list[dict]:
    """One row per mechanism: microseconds per episode."""
    from discreet.privacy.trust import Central, Local

    trusts = [Central(1, 1e-6, mechanism=name) for name in Central.mechanisms["stream"]]
    trusts += [Local(1, mechanism=name) for name in ("laplace", "randomized-response", "one-step")]
    peer = _redrawn(40 if quick else 400)
    return [_row(trust, 200 if quick else 2000, peer) for trust in trusts]


def _row(trust, episodes: int, peer: float) -> dict:
    from discreet.mdp.shape import Shape
    from discreet.privacy.sampling.samplers import SimulationSampler

    shape = Shape(states=6, actions=2, horizon=20)
    plan = trust.calibrate(shape, rhythm="stream", episodes=EPISODES)
    release = plan.open(SimulationSampler(np.random.default_rng(0)))
    release.block(100)  # warm-up: compilation
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(episodes // 100):
            release.block(100)
        best = min(best, (time.perf_counter() - start) / episodes * 1e6)
    return {
        "task": f"noise of one release, {trust.notion} {plan.mechanism}",
        "ours": best,
        "peer": peer,
        "peer_name": "numpy.random.laplace, every node of the prefix anew",
        "ratio": peer / best,
        "unit": "us per episode",
    }


def _redrawn(episodes: int) -> float:
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for k in range(10_000, 10_000 + episodes):
        rng.laplace(0.0, 1800.0, (bin(k).count("1"), 1920)).sum(axis=0)
    return (time.perf_counter() - start) / episodes * 1e6


if __name__ == "__main__":
    for row in run(quick=True):
        print(row)
