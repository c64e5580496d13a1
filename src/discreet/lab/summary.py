"""One row per learner and guarantee: what tables, JSON and the report show."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from discreet._plain import Plain
from discreet.lab.labels import labels_of, pair_of
from discreet.lab.results import Entry, Facts, Results, Series
from discreet.lab.statistics import Comparison, band, verdicts
from discreet.lab.tasks import Promise


@dataclass(frozen=True)
class Row:
    """Final regret of one cell, with everything needed to read it."""

    facts: Facts
    guarantee: Promise
    noise: Mapping[str, float]
    version: str
    runs: int
    mean: float
    std: float
    low: float
    high: float
    uniform: float
    seconds: float
    compile_seconds: float = 0.0

    @property
    def share(self) -> float:
        """Share of the uniform policy's regret that remains (1 = learned nothing)."""
        return self.mean / self.uniform if self.uniform > 0 else float("nan")

    @property
    def share_text(self) -> str:
        """The share as a percentage that never rounds to a bare zero."""
        return f"{self.share:.2%}" if self.share >= 1e-3 else f"{100 * self.share:.1g}%"

    def to_dict(self) -> dict[str, Plain]:
        """The shape that scripts rely on."""
        rate = self.facts["episodes"] / self.seconds if self.seconds > 0 else None
        return {
            "environment": self.facts["environment"],
            "learner": self.facts["learner"],
            "label": self.facts["label"],
            "trust": self.facts["trust"],
            "mechanism": self.facts["mechanism"],
            "requested_mechanism": self.facts["requested"],
            "noise_std": dict(self.noise),
            "epsilon": _finite(self.facts["epsilon"]),
            "delta": self.facts["delta"],
            "calibration": self.facts["calibration"],
            "constants": self.facts["constants"],
            "episodes": self.facts["episodes"],
            "runs": self.runs,
            "regret": {"mean": self.mean, "std": self.std, "low": self.low, "high": self.high},
            "uniform_regret": self.uniform,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "episodes_per_second": rate,
            "guarantee": {k: _finite(cast(Plain, v)) for k, v in self.guarantee.items()},
            "version": self.version,
        }


def _finite(value: Plain) -> Plain:
    """JSON has no infinity; nothing promised is null."""
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


def summarise(results: Results) -> list[Row]:
    """The rows of a results table, in the experiment's order."""
    return [_row(series) for series in results.series()]


def _row(series: Series) -> Row:
    limits = band(series.final[:, None], positive=True)
    spread = float(series.final.std(ddof=1)) if len(series.final) > 1 else 0.0
    return Row(
        facts=series.facts,
        guarantee=series.guarantee,
        noise=series.noise,
        version=series.version,
        runs=len(series.final),
        mean=float(limits.mean[0]),
        std=spread,
        low=float(limits.low[0]),
        high=float(limits.high[0]),
        uniform=float(series.uniform[-1]),
        seconds=series.seconds,
        compile_seconds=series.compile_seconds,
    )


def _kept(entry: Entry) -> bool:
    """Whether printed constants deliver what they claim."""
    epsilon, delta = entry["guarantee"]["epsilon"], entry["guarantee"]["delta"]
    return epsilon is not None and epsilon <= entry["epsilon"] and delta <= entry["delta"]


def _told(entry: Entry) -> str:
    """What printed constants deliver, or why nothing is promised: the last thing that was said."""
    promise = entry["guarantee"]
    if promise["epsilon"] is None:
        return "; ".join(["but nothing is promised", *promise.get("assumptions", [])[-1:]])
    said = "and" if _kept(entry) else "but"
    return f"{said} deliver {pair_of(promise)} under replace-one"


def warnings_of(results: Results) -> list[str]:
    """What a reader must know before believing a row."""
    found: dict[str, None] = {}
    for entry in results.guarantees:
        promise = entry["guarantee"]
        if promise.get("claimed"):
            found[
                f"{entry['label']} ({entry['trust']}): the paper's constants claim "
                f"{promise['claimed']} {_told(entry)}."
            ] = None
        if promise.get("simulated") and promise["notion"] != "none":
            found[
                "Noise came from the seeded simulation sampler: right for research, not a "
                "protection of real people."
            ] = None
    return list(found)


def winners(results: Results) -> list[tuple[str, list[Comparison]]]:
    """Per environment, at the largest K: the best line against every other, and trust models.

    Every pair of trust models is compared, each under one learner and at one epsilon.
    """
    by_environment: dict[str, list[Series]] = {}
    for series in results.series():
        by_environment.setdefault(series.facts["environment"], []).append(series)
    answers = []
    for environment, group in by_environment.items():
        longest = max(s.facts["episodes"] for s in group)
        same = [s for s in group if s.facts["episodes"] == longest]
        if len(same) > 1:
            pairs = functools.partial(_differ_in_trust, same)
            answers.append((environment, verdicts(labels_of(same), [s.final for s in same], pairs)))
    return answers


def _differ_in_trust(series: Sequence[Series], first: int, second: int) -> bool:
    """True for two trust models of one learner and one epsilon; no privacy goes with all."""
    one, other = series[first].facts, series[second].facts
    learner = one["label"] == other["label"]
    epsilons = {facts["epsilon"] for facts in (one, other) if facts["trust"] != "none"}
    return learner and one["trust"] != other["trust"] and len(epsilons) == 1
