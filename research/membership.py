"""A membership attack on policies, private and not, and on RLSVI as it is (the errata).

Two arms, one step. One user played the second arm and was healed, or was not: all other users are
known to the attacker, who sees policies alone and says which of the two it was. The bound on
epsilon is that of `discreet.auditing.attack`: thresholds are chosen on half of the runs and counted
on the other half, and it holds with probability 1 - 1e-6. It can convict and never acquit.

*A released policy*: the arm with the larger mean of what a mechanism released about one batch. Both
arms are as good, so that the one user decides without noise.

*RLSVI* (Russo 2019: rewards shrunk by n + 1, noise of variance beta_k/(n + 1) on the value of an
arm, beta_k = S·H³·log(2HSAk)/2): the policies of all K - 1 users who come after, with their
rewards. The attacker computes the exact likelihood of the policies in both worlds. Lu, Gajane, Bai
and Talebi (arXiv:2606.01952) prove JDP with `claimed`.

Usage: python -m research.membership [--runs 20000] [--users 101]
"""

import math

import numpy as np
from scipy.special import log_ndtr

import discreet
from discreet.auditing.attack import epsilon_low
from discreet.mdp import Counts, Shape
from discreet.privacy.sampling.samplers import SimulationSampler
from research import parser

SHAPE = Shape(states=1, actions=2, horizon=1)
DELTA = 1e-6
POLICIES = {
    "none": discreet.NoPrivacy(),
    "central, epsilon = 1": discreet.Central(1, DELTA),
    "central, epsilon = 10": discreet.Central(10, DELTA),
    "shuffle, epsilon = 1": discreet.Shuffle(1, DELTA),
    "local, epsilon = 1": discreet.Local(1),
}
EPISODES = (100, 1_000, 10_000)
MEANS = (0.9, 0.5)
"""Of both arms, for RLSVI: who played the worse one, which few play, counts for long."""


def main() -> None:
    """Print both tables."""
    made = parser("research.membership", __doc__)
    made.add_argument("--runs", type=int, default=20_000)
    made.add_argument("--users", type=int, default=101, help="who played the second arm (odd)")
    given = made.parse_args()
    print("| released policy | right guesses | epsilon at least |\n|---|---|---|")
    for name, trust in POLICIES.items():
        show(name, *released(trust, given.users, given.runs), delta=trust.name != "none")
    print("\n| RLSVI | right guesses | epsilon at least | proven |\n|---|---|---|---|")
    for episodes in EPISODES:
        healed, ill = (rlsvi(episodes, given.runs, bit, seed=bit) for bit in (1, 0))
        proven = f"{claimed(SHAPE, episodes, DELTA):,.0f} |"
        show(f"K = {episodes:,}", healed, ill, delta=True, more=proven)
    print(f"\nS=4, A=2, H=6, K=2e5: {claimed(Shape(4, 2, 6), 200_000, DELTA):,.1f}")


def show(name: str, healed: np.ndarray, ill: np.ndarray, *, delta: bool, more: str = "") -> None:
    """One row: scores of both worlds, the larger the likelier the first."""
    cut = np.median(np.concatenate([healed, ill]))
    right = (np.mean(healed > cut) + np.mean(healed == cut) / 2) / 2
    right += (np.mean(ill < cut) + np.mean(ill == cut) / 2) / 2
    least = epsilon_low(healed[:, None], ill[:, None], DELTA if delta else 0.0)
    print(f"| {name} | {right:.1%} | {least:.2f} | {more}", flush=True)


def released(trust: discreet.privacy.trust.TrustModel, users: int, runs: int) -> list[np.ndarray]:
    """``[runs]`` for both worlds: the arm that the released policy plays."""
    mechanism, worlds = trust.calibrate(SHAPE, statistics=("visits", "rewards")), []
    for bit in (1, 0):
        # One arm has 2n plays and n rewards, the other n plays of which the user's makes half.
        plays, ones = np.array([2 * users, users]), np.array([users, users // 2 + bit])
        counts = Counts(3 * users, plays.reshape(SHAPE.transitions), ones.reshape(SHAPE.visits))
        sampler, arms = SimulationSampler(np.random.default_rng(bit)), np.empty(runs)
        for run in range(runs):
            found = mechanism.release(counts, sampler=sampler)
            first, second = found.rewards.ravel() / np.maximum(found.visits.ravel(), 1.0)
            arms[run] = float(second > first)
        worlds.append(arms)
    return worlds


def rlsvi(episodes: int, runs: int, bit: int, *, seed: int) -> np.ndarray:
    """``[runs]``: log-likelihood ratio of the policies after the user, who earned ``bit``."""
    rng = np.random.default_rng(seed)
    plays, sums = np.zeros((runs, 2)), np.zeros((runs, 2))
    plays[:, 1] = 1.0  # the user; her reward is added in each world below
    ratio, rows = np.zeros(runs), np.arange(runs)
    for k in range(2, episodes + 1):
        spread = np.sqrt(0.5 * math.log(4 * k) * (1 / (plays + 1)).sum(axis=1))
        shrunk = sums / (plays + 1)
        gap = shrunk[:, 1] - shrunk[:, 0]
        more = 1 / (plays[:, 1] + 1)
        second = rng.random(runs) < np.exp(log_ndtr((gap + bit * more) / spread))
        sign = np.where(second, 1.0, -1.0)
        ratio += log_ndtr(sign * (gap + more) / spread) - log_ndtr(sign * gap / spread)
        arm = second.astype(np.int64)
        plays[rows, arm] += 1
        sums[rows, arm] += rng.random(runs) < np.array(MEANS)[arm]
    return ratio


def claimed(shape: Shape, episodes: int, delta: float) -> float:
    """2AK/(H²·log(2HSA)) + 2·sqrt(2AK·log(1/delta)/(H²·log(2HSA))): their abstract."""
    S, A, H = shape.states, shape.actions, shape.horizon
    rho = 2 * A * episodes / (H**2 * math.log(2 * H * S * A))
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


if __name__ == "__main__":
    main()
