"""What each part of flow-ucb is worth: the ablation table of its documentation page.

Run ``python tools/flow_ablation.py [--runs 10]``; it prints a Markdown table of mean regret as a
share of the uniform policy's, for central (1, 1e-6)-JDP with counts per step.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import discreet
from discreet._seeds import RunSeeds
from discreet.learners.flow_ucb.learner import FloatArray, FlowUCB
from discreet.learners.learn import public_facts, run_batches
from discreet.mdp import uniform_policy
from discreet.mdp.planning import RegretMeter
from discreet.privacy.postprocess.flow import consistent_flow
from discreet.privacy.postprocess.looks import Looks, inflow_visits
from discreet.privacy.statistics import PrivateCounts


class NoFlow(FlowUCB):
    """Noisy counts as they are; visits are their sums."""

    def _flow(self, counts: PrivateCounts, variance: float) -> tuple[FloatArray, FloatArray]:
        transitions = np.asarray(counts.row_transitions, np.float64)
        where, horizon = np.nonzero(counts.played), self.problem.shape.horizon
        return transitions, inflow_visits(transitions, where, horizon)


class SignedFlow(FlowUCB):
    """Flow equations, but negative counts allowed."""

    def _flow(self, counts: PrivateCounts, variance: float) -> tuple[FloatArray, FloatArray]:
        flow = consistent_flow(
            np.asarray(counts.row_transitions, np.float64),
            users=counts.users,
            played=counts.played,
            start=self.problem.start,
            variance=variance,
            signed=True,
            looks=Looks(last_transitions=counts.last_transitions),
        )
        return flow.transitions, flow.visits


class CountedVisits(FlowUCB):
    """All counted visits are believed, also those that noise alone explains."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._factors = np.zeros_like(self._factors)


class BonusGoal(FlowUCB):
    """Batches shrink the bonus, however far it is above what can be earned."""

    def _goal(self, unknown: float, promised: float) -> float:
        return float(self.settings["shrink"] * unknown)


class FixedSchedule(FlowUCB):
    """Batches of 200, then growing by a factor of 1.2, whatever the policy needs."""

    def _size(self, enough: Callable[[int], bool], left: int) -> int:
        return min(left, max(200, self._told // 5))


class OptimisticEnd(FlowUCB):
    """The last batch still explores."""

    def _last_width(self, width: float) -> float:
        return width


class AllStatistics(FlowUCB):
    """Visits are released as well, and not used: 25.4 instead of 20.7 of noise at H = 6."""

    statistics = ("transitions", "visits", "rewards")


VARIANTS: dict[str, tuple[type[FlowUCB], dict[str, Any]]] = {
    "as shipped": (FlowUCB, {}),
    "no flow projection": (NoFlow, {}),
    "flow equations without x >= 0": (SignedFlow, {}),
    "no credit (all batches weigh the same)": (FlowUCB, {"ease": 1e15}),
    "all counted visits are certain": (CountedVisits, {}),
    "batches sized by the bonus alone": (BonusGoal, {}),
    "fixed batches (200, growth 1.2)": (FixedSchedule, {}),
    "last batch explores": (OptimisticEnd, {}),
    "visits released too": (AllStatistics, {}),
    "half the confidence": (FlowUCB, {"confidence": 0.5}),
    "twice the confidence": (FlowUCB, {"confidence": 2.0}),
}
PROBLEMS: dict[str, dict[str, Any]] = {
    "RiverSwim": {"states": 4, "horizon": 6},
    "DoubleChain": {},
    "Treatment": {},
}


def share(
    variant: tuple[type[FlowUCB], dict[str, Any]], name: str, episodes: int, runs: int
) -> tuple[float, float]:
    """Mean and largest regret over runs, as shares of the uniform policy's."""
    make, settings = variant
    regrets = []
    for run in range(runs):
        mdp = discreet.make(name, relabel=run, **PROBLEMS[name])
        seeds = RunSeeds(0, run)
        problem = public_facts(mdp, episodes)
        plan = discreet.Central(1, 1e-6).calibrate(
            mdp.shape,
            rhythm="batch",
            statistics=make.statistics,
            last_transitions=make.last_transitions,
        )
        learner = make(problem, plan, seeds.generator("policy"))
        factor = settings.get("confidence", 1.0)
        learner.settings["confidence"] *= factor
        learner.settings["ease"] = settings.get("ease", learner.settings["ease"])
        outcome = run_batches(mdp, learner, seeds)
        uniform = RegretMeter(mdp).regret(uniform_policy(mdp.shape)) * episodes
        regrets.append(outcome.regret.values[-1] / uniform)
    return float(np.mean(regrets)), float(np.max(regrets))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--episodes", type=int, nargs="+", default=[200_000, 20_000_000])
    options = parser.parse_args()
    columns = [(name, k) for name in PROBLEMS for k in options.episodes]
    print("| | " + " | ".join(f"{name}, K={k:.0e}" for name, k in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for label, variant in VARIANTS.items():
        cells = [share(variant, name, k, options.runs) for name, k in columns]
        print(
            f"| {label} | " + " | ".join(f"{m:.2%} ({w:.2%})" for m, w in cells) + " |", flush=True
        )


if __name__ == "__main__":
    main()
