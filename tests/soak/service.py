"""The service under strain: an attacker, faults, and studies against the simulation's interval.

python -m tests.soak.service [--minutes 10] [--studies 10] [--users 600] [--runs 100] [--kills 200]

An attacker who comes back as often as it can, to a shuffler that is killed again. Studies,
two or more, through a proxy that drops, doubles, truncates and delays requests: in the first all
roles are killed, in every second one the shuffler is spared and its memory watched. Then the regret
of studies with a few kills is compared with simulated runs of the same learner. A part with a zero
is left out.
"""

import math
import os
import pathlib
import sys
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np

from discreet.service.demo.run import (
    Arrangement,
    Demo,
    Findings,
    Sight,
    free_port,
    simulate,
)
from helpers.faults import FaultProxy
from helpers.service_kills import attacked
from helpers.strain import strain

_DEVIATIONS = 3.0
_KILLS = 6
"""In each of many studies."""
_GROWTH = 64.0
"""Megabytes by which a shuffler may grow between a quarter of a study and its end."""


def main() -> None:
    """All parts; exits with an error if one of them fails."""
    sizes = {"studies": 10, "users": 600, "minutes": 10.0, "runs": 100, "kills": 200}
    with strain(__doc__, **sizes) as (chosen, folder):
        if chosen.kills:
            print(attacked(folder, chosen.kills), flush=True)
        if chosen.minutes:
            soak(folder, chosen.users, 60 * chosen.minutes)
        if chosen.studies:
            compare(folder, chosen.studies, chosen.users, chosen.runs)


def compare(folder: pathlib.Path, studies: int, users: int, runs: int) -> None:
    """So many studies; the mean of their regret against that of as many simulated runs."""
    simulated = simulate(Arrangement(users=users), runs)
    regrets = []
    for number in range(studies):
        arrangement = Arrangement(users=users, seed=number)
        found = Demo(folder / f"study-{number}", arrangement).run(_KILLS)
        check(found, users)
        regrets.append(found.regret)
        print({"study": number, **found.to_dict(simulated)}, flush=True)
    said = judged(regrets, simulated)
    print(said, flush=True)
    if not said["within"]:
        raise SystemExit("The studies' mean regret is not what the simulation says.")


def judged(regrets: list[float], finals: np.ndarray) -> dict[str, Any]:
    """Whether the mean of studies lies where a mean of as many simulated runs would."""
    low, high = np.percentile(finals, [2.5, 97.5])
    spread = float(finals.std(ddof=1)) * math.sqrt(1 / len(regrets) + 1 / len(finals))
    away = (float(np.mean(regrets)) - float(finals.mean())) / spread
    return {
        "studies": len(regrets),
        "mean": float(np.mean(regrets)),
        "simulated mean": float(finals.mean()),
        "inside the interval of single runs": sum(low <= regret <= high for regret in regrets),
        "deviations": away,
        "within": abs(away) <= _DEVIATIONS,
    }


def check(found: Findings, users: int) -> None:
    """Nothing lost, nothing twice, nothing left."""
    if not (found.counted_once and found.ledger_verified and found.forgotten):
        raise SystemExit(f"The service did not keep what it promises: {found}")
    if found.users != users:
        raise SystemExit(f"Expected {users} users to be counted, found {found.users}.")


class Scales:
    """Weighs the shuffler while a study goes on."""

    def __init__(self, show: Demo) -> None:
        self._show = show
        self.quarter = self.largest = 0.0

    def __call__(self, sight: Sight) -> None:
        """Look once more."""
        pages = pathlib.Path(f"/proc/{self._show.shuffler.number}/statm").read_text().split()[1]
        size = int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20  # megabytes that it holds now
        if sight.users >= self._show.arrangement.users // 4:
            self.quarter = self.quarter or size
            self.largest = max(self.largest, size)


def soak(folder: pathlib.Path, users: int, seconds: float) -> None:
    """Studies through a spoiling proxy until the time is over."""
    last, number = time.monotonic() + seconds, 0
    while number < 2 or time.monotonic() < last:
        port, spared = free_port(), number % 2 == 1
        with FaultProxy(port, seed=number) as proxy:
            arrangement = Arrangement(users=users, seed=number)
            show = Demo(folder / f"soak-{number}", arrangement, port=port, through=proxy.url)
            scales = Scales(show)
            found = show.run(_KILLS, scales, spare=[show.shuffler] if spared else [])
        check(found, users)
        said: dict[str, Any] = {"soak": number, "users": found.users, "kills": found.kills_of}
        said |= {"batches": found.batches, "seconds": found.seconds, "faults": dict(proxy.faults)}
        if spared:
            said |= {"MB at a quarter": round(scales.quarter), "MB at most": round(scales.largest)}
        print(said, flush=True)
        if spared and scales.largest - scales.quarter > _GROWTH:
            raise SystemExit("The shuffler's memory grows.")
        number += 1


if __name__ == "__main__":
    main()
