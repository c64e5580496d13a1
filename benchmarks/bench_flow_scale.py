"""flow-ucb on large problems: time per batch and peak memory, each in a process of its own."""

import json
import math
import resource
import subprocess
import sys
import time

import discreet
from benchmarks.measure import Peer, row
from discreet._seeds import RunSeeds
from discreet.learners.learn import make_batch_learner, public_facts, run_batches
from discreet.learners.registry import get_learner

PROBLEMS = {
    "S=50, A=5, H=20": ("RandomMDP", {"states": 50, "actions": 5, "horizon": 20}),
    "ICU-Sepsis, S=716, A=25, H=20": ("ICU-Sepsis", {"horizon": 20}),
}


def run(quick: bool) -> list[dict]:
    """Rows: time per batch against the non-private twin, memory against one dense array."""
    rows = []
    for label in list(PROBLEMS)[: 1 if quick else None]:
        pairs = [
            (_measure(label, "central"), _measure(label, "none")) for _ in range(2 if quick else 5)
        ]
        rows += [_time(label, pairs), _memory(label, [private for private, _ in pairs])]
    return rows


def _time(label: str, pairs: list[tuple[dict, dict]]) -> dict:
    peer = Peer("the same without privacy (no noise, no projection)", kind="ours")
    seconds = [(private["seconds"], plain["seconds"]) for private, plain in pairs]
    return row(f"flow-ucb, central, stationary, {label}", seconds, peer, "s per batch")


def _memory(label: str, private: list[dict]) -> dict:
    peer = Peer("one dense array of counts [H, S, A, S], without anything else", kind="ours")
    sizes = [(one["gigabytes"], one["dense"]) for one in private]
    task = f"flow-ucb, central, stationary, {label}"
    return row(task, sizes, peer, "GB, peak", clock="none")


def _measure(label: str, trust: str) -> dict:
    command = [sys.executable, "-m", "benchmarks.bench_flow_scale", label, trust]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def main(label: str, trust: str, batches: int = 4) -> None:
    """Print seconds per batch after the first, and the peak memory of this process."""

    class Clock:
        """Ends a run after some batches."""

        def __init__(self, learner) -> None:
            self.learner, self.times = learner, []

        def __getattr__(self, name):
            return getattr(self.learner, name)

        def ask(self):
            self.times.append(time.process_time())
            if len(self.times) > batches + 1:
                raise StopIteration
            return self.learner.ask()

        def tell(self, counts) -> None:
            self.learner.tell(counts)

    name, parameters = PROBLEMS[label]
    mdp = discreet.make(name, **parameters)
    model = discreet.NoPrivacy() if trust == "none" else discreet.Central(1, 1e-6)
    seeds = RunSeeds(0)
    clock = Clock(
        make_batch_learner(
            get_learner("flow-ucb"),
            public_facts(mdp, 10**8, stationary=True),
            model,
            seeds.generator("policy"),
            {},
        )
    )
    try:
        run_batches(mdp, clock, seeds)
    except StopIteration:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    seconds = (clock.times[-1] - clock.times[1]) / (len(clock.times) - 2)
    dense = 8 * math.prod(mdp.shape.transitions) / 1e9
    print(json.dumps({"seconds": seconds, "gigabytes": peak, "dense": dense}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
