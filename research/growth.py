"""How processor time grows with S, A, H and K: one exponent per learner and size.

    python -m research.growth [LEARNER ...]

One size at a time is doubled twice from a base problem, the others stay; an exponent is the slope
of a line through the logarithms of the medians of processor time of three whole runs (compiled
before). Stream learners keep counts per step. Prints a Markdown table (docs/reference/speed.md).
"""

import time

import numpy as np
from benchmarks.bench_adversarial import random_layers

from discreet import Central, Local, NoPrivacy, Shuffle, learn
from discreet.mdp import RandomMDP
from research import parser

STREAM = {"S": (4, 8, 16), "A": (2, 4, 8), "H": (5, 10, 20), "K": (1000, 2000, 4000)}
BATCH = {"S": (5, 10, 20), "A": (2, 4, 8), "H": (5, 10, 20), "K": (20_000, 80_000, 320_000)}
STAGES = {"S": (3, 4, 6), "A": (2, 3, 4), "H": (3, 4, 6), "K": (20_000, 80_000, 320_000)}
LAYERS = {"S": (3, 6, 12), "A": (2, 4, 8), "H": (3, 6, 12), "K": (150, 300, 600)}
"""The first value of each size is the base; of layered problems S is the width of a layer."""

TREE, LAPLACE = Central(1, mechanism="tree-laplace"), Local(1, mechanism="laplace")
CASES = {
    "ucbvi": (STREAM, NoPrivacy()),
    "dp-ucbvi": (STREAM, TREE),
    "private-ucb-vi": (STREAM, TREE),
    "private-ucb-po": (STREAM, TREE),
    "pucb": (STREAM, TREE),
    "psrl": (STREAM, NoPrivacy()),
    "ldp-obi": (STREAM, LAPLACE),
    "ldp-psrl": (STREAM, LAPLACE),
    "flow-ucb": (BATCH, Shuffle(1, 1e-6)),
    "explore-then-commit": (BATCH, Shuffle(1, 1e-6)),
    "pe": (STAGES, NoPrivacy()),
    "sdp-pe": (STAGES, Shuffle(1, 1e-6)),
    "private-uc-o-reps": (LAYERS, Central(1, 1e-6)),
    "private-uob-lbps": (LAYERS, Central(1, 1e-6)),
}


def run_once(name: str, size: dict[str, int]) -> float:
    """Processor seconds of one run."""
    sizes, trust = CASES[name]
    if sizes is LAYERS:
        mdp = random_layers([1, *[size["S"]] * (size["H"] - 1), 1], size["A"], 0.3, 0)
    else:
        mdp = RandomMDP(states=size["S"], actions=size["A"], horizon=size["H"])
    options = {"stationary": False} if sizes is STREAM else {}
    start = time.process_time()
    learn(mdp, learner=name, trust=trust, episodes=size["K"], **options)
    return time.process_time() - start


def grow(name: str, repeats: int = 3) -> tuple[list[float], float]:
    """The exponents of S, A, H and K, and the seconds of a run at the base."""
    sizes = CASES[name][0]
    base = {key: values[0] for key, values in sizes.items()}
    run_once(name, base)  # compile
    slopes, first = [], 0.0
    for key, values in sizes.items():
        seconds = [
            np.median([run_once(name, {**base, key: value}) for _ in range(repeats)])
            for value in values
        ]
        slopes.append(float(np.polyfit(np.log(values), np.log(seconds), 1)[0]))
        first = first or float(seconds[0])
    return slopes, first


def main() -> None:
    """Measure and print."""
    arguments = parser("research.growth", __doc__)
    arguments.add_argument("learners", nargs="*", metavar="LEARNER", help="all if none is named")
    options = arguments.parse_args()
    print("| learner | S | A | H | K | ms of a run at the base |\n|---|---|---|---|---|---|")
    for name in options.learners or CASES:
        slopes, seconds = grow(name)
        cells = " | ".join(f"{slope:.2f}" for slope in slopes)
        print(f"| `{name}` | {cells} | {1e3 * seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
