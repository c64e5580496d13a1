"""Bands, paired comparisons, and a plain sentence on who wins.

Runs of different learners share their random numbers (same seed, same run), so comparisons are
paired. With ten runs or more, tests are by sign flips: exact when the differences are symmetric
around zero under the null, with no normality assumed. Fewer runs have too few sign flips to reach
any small level (five runs: 1/16), so Student's t is used for them.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from discreet._types import FloatArray, Plain
from discreet.errors import InvalidInputError
from discreet.lab.results import Entry, Facts, Results, Series
from discreet.lab.style import REGRET, RETURN, labels_of, pair_of

_DRAWS = 4_000
_SIGNIFICANT = 0.05
_ENOUGH_FLIPS = 10


@dataclass(frozen=True, eq=False)
class Band:
    """A mean with limits that hold at all points at once."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


@functools.lru_cache(maxsize=64)
def _signs(runs: int) -> FloatArray:
    """All sign vectors when there are few, a fixed random sample of them otherwise."""
    if 2**runs <= _DRAWS:
        return np.array(list(itertools.product((-1.0, 1.0), repeat=runs)))
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(_DRAWS, runs))


def band(values: FloatArray, level: float = 0.95, *, positive: bool = False) -> Band:
    """Simultaneous confidence band for the mean curve of ``values[runs, points]``.

    The half-width at a point is q times its standard error, with one q for all points: the
    ``level`` quantile of the largest studentised deviation under random sign flips of the
    residuals. With fewer than six runs there are too few flips: a Bonferroni-corrected Student t.
    ``positive`` applies the same half-width to the logarithm of the mean (delta method), so that
    the limits of a positive quantity such as regret stay positive.
    """
    runs, points = values.shape
    mean = values.mean(axis=0)
    if runs == 1:
        return Band(mean, mean, mean)
    error = values.std(axis=0, ddof=1) / np.sqrt(runs)
    if runs < 6:
        from scipy import stats

        factor = float(stats.t.ppf(1 - (1 - level) / (2 * points), runs - 1))
    else:
        residuals = values - mean
        spread = np.sqrt((residuals**2).mean(axis=0))
        shift = _signs(runs) @ (residuals / np.where(spread > 0, spread, 1.0)) / runs
        # Flipping signs keeps the second moment, so the flipped variance is 1 - shift².
        studentised = np.abs(shift) / np.sqrt(np.maximum(1 - shift**2, 1e-12) / (runs - 1))
        factor = float(np.quantile(studentised.max(axis=1), level))
    if positive and (mean > 0).all():
        stretch = np.exp(np.minimum(factor * error / mean, 50.0))
        return Band(mean, mean / stretch, mean * stretch)
    return Band(mean, mean - factor * error, mean + factor * error)


@dataclass(frozen=True)
class Comparison:
    """Paired differences of two learners' final regrets (first minus second).

    Attributes:
        p_value: corrected for the number of comparisons, once `holm` has seen them all.
        level: of the error that the interval may make; it leaves 0 out exactly if ``significant``.
    """

    first: str
    second: str
    differences: tuple[float, ...]
    p_value: float
    level: float = _SIGNIFICANT
    earned: bool = False
    """The numbers are returns with their sign changed: less is better, as of regret."""

    @property
    def difference(self) -> float:
        return float(np.mean(self.differences))

    @property
    def runs(self) -> int:
        return len(self.differences)

    @property
    def significant(self) -> bool:
        """At the five per cent level, after correction for the number of comparisons."""
        return self.p_value < _SIGNIFICANT

    @functools.cached_property
    def interval(self) -> tuple[float, float]:
        """The differences that the same test does not reject; endless where it rejects none."""
        values, mean = np.array(self.differences), self.difference
        if self.runs < 2:
            return -np.inf, np.inf
        if self.runs < _ENOUGH_FLIPS:
            from scipy import stats

            error = float(values.std(ddof=1)) / np.sqrt(self.runs)
            reach = float(stats.t.ppf(1 - self.level / 2, self.runs - 1)) * error
            return mean - reach, mean + reach
        ends = []
        for side in (-1.0, 1.0):
            far = 4 * float(np.abs(values - mean).max()) + 1e-12 * max(1.0, abs(mean))
            if _p_value(values - mean - side * far) >= self.level:
                ends.append(side * np.inf)
                continue
            near = 0.0
            for _ in range(50):
                middle = (near + far) / 2
                kept = _p_value(values - mean - side * middle) >= self.level
                near, far = (middle, far) if kept else (near, middle)
            ends.append(mean + side * far)
        return ends[0], ends[1]

    @property
    def difference_text(self) -> str:
        return f"{-self.difference:+.3g}" if self.earned else f"{self.difference:+,.0f}"

    @property
    def interval_text(self) -> tuple[str, str]:
        low, high = self.interval
        if self.earned:
            return f"{-high:.3g}", f"{-low:.3g}"
        return f"{low:,.0f}", f"{high:,.0f}"

    def __str__(self) -> str:
        facts = f"mean difference {self.difference_text}"
        if self.runs < 2:
            return f"{self.first} and {self.second}: {facts} in one run, which says little."
        low, high = self.interval
        if np.isfinite(high - low):
            facts += f", 95% interval [{', '.join(self.interval_text)}]"
        facts += f", paired over {self.runs} runs, p = {self.p_value:.2g}"
        if not self.significant:
            return f"No significant difference between {self.first} and {self.second} ({facts})."
        verb = "less" if (self.difference < 0) != self.earned else "more"
        what = "return" if self.earned else "regret"
        return f"{self.first} has {verb} {what} than {self.second} ({facts})."


def compare(first: str, a: FloatArray, second: str, b: FloatArray) -> Comparison:
    """Compare final regrets of two learners on common random numbers.

    >>> rng = np.random.default_rng(0)
    >>> b = rng.normal(100, 5, 12)
    >>> print(compare("ours", b - 10 + rng.normal(0, 1, 12), "theirs", b).significant)
    True
    """
    if len(a) != len(b):
        raise InvalidInputError(
            f"Expected paired runs, got {len(a)} of {first!r} and {len(b)} of {second!r}; "
            f"run the experiment again to fill in failed runs."
        )
    difference = np.asarray(a, float) - np.asarray(b, float)
    return Comparison(first, second, tuple(difference.tolist()), _p_value(difference))


def _p_value(difference: FloatArray) -> float:
    runs, mean = len(difference), float(difference.mean())
    if runs < 2 or not difference.any():
        return 1.0
    if runs >= _ENOUGH_FLIPS:
        flipped = np.abs(_signs(runs) @ difference) / runs
        extreme = int((flipped >= abs(mean) * (1 - 1e-12)).sum())
        # A sample of flips does not contain the observed one: count it, so that p is never zero.
        sampled = int(2**runs > _DRAWS)
        return (extreme + sampled) / (len(flipped) + sampled)
    from scipy import stats

    error = float(difference.std(ddof=1)) / np.sqrt(runs)
    return float(2 * stats.t.sf(abs(mean) / error, runs - 1)) if error > 0 else 0.0


def holm(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same comparisons with p-values corrected for their number (Holm 1979).

    Their intervals are corrected by the same factor, that of the first one that fails for all after
    it, so that an interval and its p-value never disagree.
    """
    corrected = list(comparisons)
    worst, factor = 0.0, len(comparisons)
    for rank, index in enumerate(np.argsort([c.p_value for c in comparisons])):
        one = comparisons[index]
        factor = len(comparisons) - rank if worst < _SIGNIFICANT else factor
        worst = max(worst, min(1.0, one.p_value * (len(comparisons) - rank)))
        corrected[index] = replace(one, p_value=worst, level=_SIGNIFICANT / factor)
    return corrected


def verdicts(
    names: Sequence[str],
    finals: Sequence[FloatArray],
    groups: Sequence[object] = (),
    also: Callable[[int, int], bool] = lambda first, second: False,
) -> list[Comparison]:
    """Who wins, and whether it is significant, corrected for the number of comparisons.

    The best mean of each group (all, if there are none) against every other of it; then every other
    pair that ``also`` asks for, the better one first.
    """
    order = [int(i) for i in np.argsort([f.mean() for f in finals], kind="stable")]
    group = groups or [None] * len(order)
    best = {group[i]: i for i in reversed(order)}
    pairs = [
        (a, b)
        for a, b in itertools.combinations(order, 2)
        if len(finals[a]) == len(finals[b])
        and ((group[a] == group[b] and best[group[a]] == a) or also(a, b))
    ]
    return holm([compare(names[a], finals[a], names[b], finals[b]) for a, b in pairs])


# One row per learner and guarantee: what tables, JSON and the report show.


@dataclass(frozen=True)
class Row:
    """Final regret of one cell, with everything needed to read it."""

    series: Series
    mean: float
    std: float
    low: float
    high: float
    error: float = math.nan
    """Standard error of the mean."""

    @property
    def facts(self) -> Entry:
        """What the cell's first run stated."""
        return self.series.facts

    @property
    def measure(self) -> Literal["regret", "return"]:
        """What its numbers are."""
        return "regret" if self.series.returns is None else "return"

    @property
    def uniform(self) -> float:
        """The same of random play."""
        return float(self.series.uniform[-1])

    @property
    def runs(self) -> int:
        return len(self.series.final)

    def text(self, value: float) -> str:
        """A regret in whole numbers, a return in four digits, and a bar for nothing."""
        if math.isnan(value):
            return "-"
        return f"{value:,.0f}" if self.measure == "regret" else f"{value:.4g}"

    @property
    def spread_text(self) -> str:
        """The standard deviation of regret, the standard error of a return."""
        return self.text(self.std) if self.measure == "regret" else f"{self.error:.2g}"

    @property
    def share(self) -> float:
        """Share of the uniform policy's regret that remains (1 = learned nothing)."""
        known = self.uniform > 0 and self.measure == "regret"
        return self.mean / self.uniform if known else float("nan")

    @property
    def share_text(self) -> str:
        """The share as a percentage that never rounds to a bare zero; random play's return."""
        if self.measure == "return":
            return self.text(self.uniform)
        if math.isnan(self.share):
            return "-"
        return f"{self.share:.2%}" if self.share >= 1e-3 else f"{100 * self.share:.1g}%"

    def to_dict(self) -> dict[str, Plain]:
        """The shape that scripts rely on."""
        facts, seconds = self.facts, self.series.seconds
        own = {name: facts[name] for name in Facts.__annotations__}  # type: ignore[literal-required]
        own["requested_mechanism"] = own.pop("requested")
        return {
            **own,
            "noise_std": dict(facts["noise"]),
            "epsilon": _finite(facts["epsilon"]),
            "runs": self.runs,
            self.measure: {
                "mean": self.mean,
                "std": self.std,
                "low": self.low,
                "high": self.high,
                **({"error": self.error} if self.measure == "return" else {}),
            },
            f"uniform_{self.measure}": self.uniform,
            "seconds": seconds,
            "compile_seconds": self.series.compile_seconds,
            "episodes_per_second": facts["episodes"] / seconds if seconds > 0 else None,
            "guarantee": {k: _finite(cast(Plain, v)) for k, v in facts["guarantee"].items()},
            "version": facts["version"],
        }


def _finite(value: Plain) -> Plain:
    """JSON has no infinity; without a guarantee it is null."""
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


def measured_by(rows: Sequence[Row]) -> str:
    """What the numbers of these rows are, for the head of their column."""
    return " or ".join(dict.fromkeys(row.measure for row in rows)) or "regret"


def beside_random(rows: Sequence[Row]) -> str:
    """The head of the column of `Row.share_text`."""
    heads = {"regret": "of uniform", "return": "at random"}
    return " or ".join(dict.fromkeys(heads[row.measure] for row in rows)) or "of uniform"


def meanings(rows: Sequence[Row]) -> list[str]:
    """What the measures of these rows mean, a sentence or two each."""
    said = {"regret": REGRET, "return": RETURN}
    return [said[measure] for measure in dict.fromkeys(row.measure for row in rows)]


def summarise(results: Results) -> list[Row]:
    """The rows of a results table, in the experiment's order."""
    rows = []
    for series in results.series():
        played, runs = series.errors is not None, len(series.final)
        limits = band(series.final[:, None], positive=not played)
        deviation = float(series.final.std(ddof=1)) if runs > 1 else 0.0
        error = deviation / math.sqrt(runs)
        if series.errors is not None and runs == 1:
            error = float(series.errors[0, -1])
            limits = Band(limits.mean, limits.mean - 1.96 * error, limits.mean + 1.96 * error)
        mean, low, high = (float(line[0]) for line in (limits.mean, limits.low, limits.high))
        rows.append(Row(series, mean, deviation, low, high, error))
    return rows


def warnings_of(results: Results) -> list[str]:
    """What a reader must know before believing a row."""
    found: dict[str, None] = {}
    for entry in results.guarantees:
        guarantee = entry["guarantee"]
        if guarantee.get("claimed"):
            epsilon, delta = guarantee["epsilon"], guarantee["delta"]
            if epsilon is None:  # why: the last thing that was said
                why = guarantee.get("assumptions", [])[-1:]
                told = "; ".join(["but nothing is guaranteed", *why])
            else:
                kept = epsilon <= entry["epsilon"] and delta <= entry["delta"]
                told = f"{'and' if kept else 'but'} deliver {pair_of(guarantee)} under replace-one"
            found[
                f"{entry['label']} ({entry['trust']}): the paper's constants claim "
                f"{guarantee['claimed']} {told}."
            ] = None
        for note in entry.get("notes", ()):
            found[f"{entry['label']} ({entry['trust']}): {note}"] = None
        if guarantee.get("simulated") and guarantee["notion"] != "none":
            found[
                "Noise came from the seeded simulation sampler: right for research, not a "
                "protection of real people."
            ] = None
    return list(found)


def winners(results: Results) -> list[tuple[str, list[Comparison]]]:
    """Per environment, at the largest K: learners at equal epsilon, and trust models.

    The best line of each epsilon is compared with every other of it, and every pair of trust models
    under one learner and at one epsilon.
    """
    by_environment: dict[str, list[Series]] = {}
    for series in results.series():
        by_environment.setdefault(series.facts["environment"], []).append(series)
    answers = []
    for environment, group in by_environment.items():
        longest = max(s.facts["episodes"] for s in group)
        same = [s for s in group if s.facts["episodes"] == longest]
        if len(same) > 1:
            trusts = functools.partial(_differ_in_trust, same)
            epsilons = [s.facts["epsilon"] for s in same]
            earned = same[0].returns is not None
            finals = [-s.final if earned else s.final for s in same]
            found = verdicts(labels_of(same), finals, epsilons, trusts)
            answers.append((environment, [replace(one, earned=earned) for one in found]))
    return answers


def _differ_in_trust(series: Sequence[Series], first: int, second: int) -> bool:
    """True for two trust models of one learner and one epsilon; no privacy goes with all."""
    one, other = series[first].facts, series[second].facts
    epsilons = {facts["epsilon"] for facts in (one, other) if facts["trust"] != "none"}
    same = one["label"] == other["label"] and len(epsilons) == 1
    return same and one["trust"] != other["trust"]
