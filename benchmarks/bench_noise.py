"""Noise of a stream, per episode, at S=6, A=2, H=20 (1,920 counters), K=20,000.

The reference is plain NumPy that draws every node of the current prefix anew at each episode, as
simple code would (and which is wrong: redrawn noise averages out).
"""

import numpy as np

from benchmarks._measure import Peer, compare

EPISODES, BLOCK = 20_000, 100
PEER = Peer("numpy.random.laplace, every node of the prefix anew", kind="ours")


def run(quick: bool) -> list[dict]:
    """One row per mechanism: microseconds per episode."""
    from discreet.privacy.mechanisms.registry import mechanisms
    from discreet.privacy.trust import Central, Local

    trusts = [Central(1, 1e-6, mechanism=name) for name in mechanisms("central", "continual")]
    trusts += [Local(1, mechanism=name) for name in ("laplace", "randomized-response", "one-step")]
    return [_release(trust, 5 if quick else 15) for trust in trusts]


def _release(trust, repeats: int) -> dict:
    from discreet.mdp.shape import Shape
    from discreet.privacy.sampling.samplers import SimulationSampler

    shape = Shape(states=6, actions=2, horizon=20)
    plan = trust.calibrate(shape, schedule="continual", episodes=EPISODES)
    release = [plan.open(SimulationSampler(np.random.default_rng(0)))]

    def block() -> None:
        if release[0].episode + BLOCK > EPISODES:
            release[0] = plan.open(SimulationSampler(np.random.default_rng(0)))
        release[0].block(BLOCK)

    return compare(
        f"noise of one release, {trust.notion} {plan.mechanism}",
        block,
        lambda: _redrawn(10),
        PEER,
        "us per episode",
        repeats=repeats,
        per=(1e6 / BLOCK, 1e6 / 10),
    )


def _redrawn(episodes: int) -> None:
    rng = np.random.default_rng(0)
    for k in range(10_000, 10_000 + episodes):
        rng.laplace(0.0, 1800.0, (bin(k).count("1"), 1920)).sum(axis=0)


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
