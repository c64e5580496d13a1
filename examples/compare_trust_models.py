"""The same epsilon under three trust models, and none: what does each cost?"""

import numpy as np

import discreet

RUNS, USERS = 3, (10_000, 1_000_000, 100_000_000)
TRUSTS = (
    discreet.NoPrivacy(),
    discreet.Central(epsilon=1, delta=1e-6),
    discreet.Shuffle(epsilon=1, delta=1e-6),
    discreet.Local(epsilon=1),
)


def regret(trust: discreet.privacy.TrustModel, episodes: int) -> tuple[float, str]:
    """Mean final regret of some runs, and what was guaranteed."""
    results = [
        discreet.learn(
            discreet.make("RiverSwim", states=4, horizon=6, relabel=run),
            learner="flow-ucb",
            trust=trust,
            episodes=episodes,
            seed=0,
            run=run,
        )
        for run in range(RUNS)
    ]
    guarantee = results[0].guarantee
    name = f"({guarantee.epsilon:g}, {guarantee.delta:g})-{guarantee.notion}"
    mean = float(np.mean([r.final_regret for r in results]))
    return mean, "no privacy" if guarantee.notion == "none" else name


print(f"{'guarantee':>16}" + "".join(f"{f'K = {k:.0e}':>16}" for k in USERS))
for trust in TRUSTS:
    row = [regret(trust, episodes) for episodes in USERS]
    print(f"{row[0][1]:>16}" + "".join(f"{mean:>16,.0f}" for mean, _ in row))
print(f"Mean regret of {RUNS} runs on RiverSwim, 4 states, horizon 6.")
