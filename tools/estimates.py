"""How good are the estimates that `discreet run` makes? The table of docs/experiments.md.

Each row is a process of its own: it makes the estimate, then the runs and their report. Times are
the processor's, so that others on the machine do not matter; memory is the most the process had.

Usage: python -m tools.estimates [ROW], of one row its numbers as JSON
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time

from discreet.lab import run_experiment, write_report
from discreet.lab.forecast import forecast
from discreet.lab.spec import EnvironmentRow, Experiment, LearnerRow, TrustRow
from discreet.lab.tasks import tasks_of

CENTRAL = TrustRow(model="central", epsilon=(1.0,), delta=1e-6)
SHUFFLE = TrustRow(model="shuffle", epsilon=(1.0,), delta=1e-6)
LOCAL = TrustRow(model="local", epsilon=(1.0,))
ROWS = {  # learner, trust, users, runs
    "flow-ucb, no privacy": ("flow-ucb", TrustRow(model="none"), 10**7, 40),
    "flow-ucb, central": ("flow-ucb", CENTRAL, 10**7, 40),
    "flow-ucb, shuffle": ("flow-ucb", SHUFFLE, 10**7, 20),
    "flow-ucb, local": ("flow-ucb", LOCAL, 10**8, 20),
    "dp-ucbvi, central (a stream)": ("dp-ucbvi", CENTRAL, 200_000, 4),
}


def measured(name: str) -> dict[str, float]:
    """Seconds and bytes, expected and found."""
    learner, trust, users, runs = ROWS[name]
    experiment = Experiment(
        name="estimate",
        title=name,
        environments=(EnvironmentRow(name="RiverSwim"),),
        learners=(LearnerRow(name=learner),),
        trusts=(trust,),
        episodes=(users,),
        runs=runs,
        plots=("regret", "cost"),
    )
    expected = forecast(tasks_of(experiment))
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        report = run_experiment(experiment, folder, jobs=1)
        took = time.process_time() - began
        write_report(report.results)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    return {"seconds": expected.seconds, "took": took, "bytes": expected.bytes, "used": used}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("row", nargs="?", choices=ROWS)
    row = parser.parse_args().row
    if row is not None:
        print(json.dumps(measured(row)))
        return
    print("| run | seconds, expected | found | ratio | GB, expected | found | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in ROWS:
        command = [sys.executable, "-m", "tools.estimates", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        ratio = found["seconds"] / found["took"]
        times = f"{found['seconds']:.1f} | {found['took']:.1f} | {ratio:.2f}"
        sizes = (found["bytes"] / 1e9, found["used"] / 1e9, found["bytes"] / found["used"])
        memory = " | ".join(f"{value:.2f}" for value in sizes)
        print(f"| {name} | {times} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
