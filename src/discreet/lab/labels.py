"""What tables, legends and pictures call things: every word of the lab that people read."""

from collections.abc import Mapping

from discreet.lab.results import Facts, Series
from discreet.lab.tasks import Promise
from discreet.privacy.guarantee import rounded_up

TITLES = {
    "regret": "Regret against users",
    "per-episode": "Regret per user so far",
    "by-episodes": "Final regret against the size of the study",
    "by-epsilon": "Final regret against epsilon",
    "cost": "What privacy costs",
    "noise": "Noise against signal",
}

CAPTIONS = {
    "regret": "Exact expected regret, mean over runs; shaded: 95% band that holds at all points at "
    "once. Dotted grey: always playing at random.",
    "per-episode": "A falling line is a learner that learns; dotted grey: playing at random.",
    "by-episodes": "Every point is a separate study of that size; shaded: 95% intervals.",
    "by-epsilon": "Smaller epsilon, stronger privacy; the solid black line has no privacy.",
    "noise": "Black: expected visits of each counter if all users followed the optimal policy. A "
    "counter below a line drowns in that guarantee's noise.",
    "cost": "Bars: final regret at the largest K, with 95% intervals; grey: no privacy.",
}


_STATISTICS = ("transitions", "visits", "rewards", "losses")


def label_of(series: Series, *, environment: bool = False) -> str:
    """A legend entry that says the guarantee: notion, epsilon, delta."""
    facts, promise = series.facts, series.guarantee
    name = name_of(facts)
    where = f" on {facts['environment']}" if environment else ""
    if promise["notion"] == "none":
        return f"{name}{where}, no privacy"
    printed = " (paper's constants)" if facts["calibration"] == "paper" else ""
    return f"{name}{where}, {pair_of(promise)}{printed}"


def name_of(facts: Facts) -> str:
    """The learner's label, with the mechanism if one was asked for."""
    if facts["requested"] in ("auto", "none"):
        return facts["label"]
    return f"{facts['label']} ({facts['requested']})"


def pair_of(promise: Promise) -> str:
    """``(1, 1e-06)-SDP``, or ``none``; an epsilon of None is infinite."""
    if promise["notion"] == "none":
        return "none"
    epsilon = float("inf") if promise["epsilon"] is None else promise["epsilon"]
    return f"({rounded_up(epsilon)}, {rounded_up(promise['delta'], 3)})-{promise['notion']}"


def noise_of(noise: Mapping[str, float]) -> str:
    """``transitions 25.4, rewards 25.4``: standard deviation on one counter of each statistic.

    >>> noise_of({"transitions": 2534.7, "rewards": 0.0})
    'transitions 2,535, rewards 0'
    """
    known = [name for name in _STATISTICS if name in noise]
    names = [*known, *sorted(noise.keys() - set(known))]
    return ", ".join(f"{name} {_four_digits(noise[name])}" for name in names) or "unknown"


def _four_digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"
