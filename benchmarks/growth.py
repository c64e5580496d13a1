"""How processor time grows with S, A, H and K: one exponent per learner and size.

Usage: ``python -m benchmarks.growth [--json FILE] [--picture FILE.svg] [LEARNER ...]``. One size at
a time is doubled twice from a base problem, the others stay; an exponent is the slope of a line
through the logarithms of the medians of processor time of three whole runs (compiled before).
Stream learners keep counts per step. A Markdown table is printed.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.bench_adversarial import random_layered

STREAM = {"S": (4, 8, 16), "A": (2, 4, 8), "H": (5, 10, 20), "K": (1000, 2000, 4000)}
BATCH = {"S": (5, 10, 20), "A": (2, 4, 8), "H": (5, 10, 20), "K": (20_000, 80_000, 320_000)}
STAGES = {"S": (3, 4, 6), "A": (2, 3, 4), "H": (3, 4, 6), "K": (20_000, 80_000, 320_000)}
LAYERS = {"S": (3, 6, 12), "A": (2, 4, 8), "H": (3, 6, 12), "K": (150, 300, 600)}
"""The first value of each size is the base; of layered problems S is the width of a layer."""

SIZES = {
    "ucbvi": STREAM,
    "dp-ucbvi": STREAM,
    "private-ucb-vi": STREAM,
    "private-ucb-po": STREAM,
    "pucb": STREAM,
    "psrl": STREAM,
    "ldp-obi": STREAM,
    "ldp-psrl": STREAM,
    "flow-ucb": BATCH,
    "etc": BATCH,
    "pe": STAGES,
    "sdp-pe": STAGES,
    "private-uc-o-reps": LAYERS,
    "private-uob-lbps": LAYERS,
}


def trust_of(name: str):
    """The trust model that the learner was made for."""
    from discreet import Central, Local, NoPrivacy, Shuffle

    if name in ("ucbvi", "psrl", "pe"):
        return NoPrivacy()
    if name.startswith("ldp"):
        return Local(1, mechanism="laplace")
    if name in ("flow-ucb", "etc", "sdp-pe"):
        return Shuffle(1, 1e-6)
    if SIZES[name] is LAYERS:
        return Central(1, 1e-6)
    return Central(1, mechanism="tree-laplace")


def run_once(name: str, size: dict[str, int]) -> float:
    """Processor seconds of one run."""
    from discreet import learn
    from discreet.mdp import RandomMDP

    if SIZES[name] is LAYERS:
        mdp = random_layered(size["S"], size["H"], size["A"])
    else:
        mdp = RandomMDP(states=size["S"], actions=size["A"], horizon=size["H"])
    options = {"stationary": False} if SIZES[name] is STREAM else {}
    start = time.process_time()
    learn(mdp, learner=name, trust=trust_of(name), episodes=size["K"], **options)
    return time.process_time() - start


def grow(name: str, repeats: int = 3) -> dict[str, dict]:
    """For every size: its values, median seconds, and the exponent."""
    sizes = SIZES[name]
    base = {key: values[0] for key, values in sizes.items()}
    run_once(name, base)  # compile
    found = {}
    for key, values in sizes.items():
        seconds = [
            float(np.median([run_once(name, {**base, key: value}) for _ in range(repeats)]))
            for value in values
        ]
        slope = np.polyfit(np.log(values), np.log(seconds), 1)[0]
        found[key] = {"values": values, "seconds": seconds, "exponent": float(slope)}
    return found


def table(results: dict[str, dict]) -> str:
    """Markdown: exponents, and what a run at the base takes."""
    lines = ["| learner | S | A | H | K | ms of a run at the base |", "|---|---|---|---|---|---|"]
    for name, found in results.items():
        slopes = " | ".join(f"{found[key]['exponent']:.2f}" for key in "SAHK")
        lines.append(f"| `{name}` | {slopes} | {1e3 * found['S']['seconds'][0]:.0f} |")
    return "\n".join(lines)


def picture(results: dict[str, dict], path: Path) -> None:
    """One panel per size, one line per learner: time relative to the base."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "growth", "font.size": 8})
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 4, figsize=(10, 3.2), sharey=True)
    for key, panel in zip("SAHK", panels, strict=True):
        for i, (name, found) in enumerate(results.items()):
            values, seconds = (np.array(found[key][part]) for part in ("values", "seconds"))
            line = "-" if i < 10 else "--"
            panel.loglog(
                values / values[0],
                seconds / seconds[0],
                color=f"C{i % 10}",
                linestyle=line,
                linewidth=1,
                marker=".",
                label=name,
            )
        panel.set_xlabel(f"{key}, relative to the base")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("processor time, relative")
    panels[-1].legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("learners", nargs="*", help="all if none is named")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    parser.add_argument("--picture", type=Path, help="and a picture of them here")
    options = parser.parse_args()
    results = {}
    for name in options.learners or SIZES:
        results[name] = grow(name)
        print(f"{name}: done", flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    print(table(results))
    if options.picture:
        picture(results, options.picture)


if __name__ == "__main__":
    main()
