"""What tables, legends and pictures call things: every word of the lab that people read."""

from collections.abc import Mapping
from typing import Any

from discreet.lab.results import Series
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


def label_of(series: Series, *, environment: bool = False) -> str:
    """A legend entry that says the guarantee: notion, epsilon, delta."""
    facts, promise = series.facts, series.guarantee
    name = name_of(facts)
    where = f" on {facts['environment']}" if environment else ""
    if promise["notion"] == "none":
        return f"{name}{where}, no privacy"
    printed = " (paper's constants)" if facts["calibration"] == "paper" else ""
    return f"{name}{where}, {pair_of(promise)}{printed}"


def name_of(facts: Mapping[str, Any]) -> str:
    """The learner's label, with the mechanism if one was asked for."""
    if facts["mechanism"] in ("auto", "none"):
        return str(facts["label"])
    return f"{facts['label']} ({facts['mechanism']})"


def pair_of(promise: Mapping[str, Any]) -> str:
    """``(1, 1e-06)-SDP``, or ``none``; an epsilon of None is infinite."""
    if promise["notion"] == "none":
        return "none"
    epsilon = float("inf") if promise["epsilon"] is None else promise["epsilon"]
    return f"({rounded_up(epsilon)}, {rounded_up(promise['delta'], 3)})-{promise['notion']}"
