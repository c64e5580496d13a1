"""What tables, legends and pictures call things: every word of the lab that people read."""

from collections.abc import Mapping, Sequence

from discreet.lab.results import Facts, Series
from discreet.lab.tasks import Promise
from discreet.privacy.guarantee import rounded_noise, rounded_up

TITLES = {
    "regret": "Regret against users",
    "per-episode": "Regret per user so far",
    "deviation": "Regret against users, with standard deviations",
    "range": "Regret against users, from the least run to the worst",
    "bounds": "Regret and the slopes of its bounds",
    "by-episodes": "Final regret against the size of the study",
    "by-epsilon": "Final regret against epsilon",
    "cost": "What privacy costs",
    "noise": "Noise against signal",
}

CAPTIONS = {
    "regret": "Exact expected regret, mean over runs; shaded: 95% band that holds at all points at "
    "once. Dotted grey: always playing at random.",
    "per-episode": "A falling line is a learner that learns; dotted grey: playing at random.",
    "deviation": "Mean over runs, shaded: one standard deviation on either side; dotted grey: "
    "playing at random. Axes and bands as in paper 001.",
    "range": "Mean over runs, shaded: from the least run to the worst; dotted grey: playing at "
    "random. Axes and bands as in paper 002.",
    "bounds": "Dotted: how the printed bound of each learner under its trust model grows, through "
    "the end of its line (bounds hold up to constants); black: the same of what no learner can "
    "beat, through the end of the lowest line. X of paper 004 counts the states of all layers.",
    "by-episodes": "Every point is a separate study of that size; shaded: 95% intervals. Dotted "
    "grey: playing at random.",
    "by-epsilon": "Smaller epsilon, stronger privacy; dotted grey: playing at random.",
    "noise": "Black: expected visits of each counter if all users followed the best policy. A "
    "counter below a line drowns in that trust model's noise.",
    "cost": "Final regret at the largest K, with 95% intervals; dotted grey: playing at random.",
}


REGRET = (
    "Regret: the reward that K users lost, in all, against the best policy; computed exactly from "
    "the model, never from realised rewards. Of uniform: as a share of playing at random."
)
NOTIONS = (
    "Guarantee: (ε, δ), and who is kept out: everybody but a trusted learner (JDP, joint "
    "differential privacy), also the analyser, by a shuffler (SDP), or everybody (LDP, local). For "
    "one user's whole episode, replace-one."
)
"""What the words in tables mean, for people who meet them here first."""

_STATISTICS = ("transitions", "visits", "rewards", "losses")


def labels_of(group: Sequence[Series]) -> list[str]:
    """What tells the lines of one picture apart, in words: ``central, ε = 1``.

    The learner and its mechanism are named only if there are several; delta stands in tables.
    """
    kinds = {(one.facts["label"], one.facts["trust"], one.facts["requested"]) for one in group}
    mechanisms = len(kinds) > len({kind[:2] for kind in kinds})
    called = [name_of(one.facts) if mechanisms else one.facts["label"] for one in group]
    several = len(set(called)) > 1
    labels = [
        _words(one, learner=name if several else "")
        for one, name in zip(group, called, strict=True)
    ]
    deltas = {label: set[float]() for label in labels}
    for label, one in zip(labels, group, strict=True):
        deltas[label].add(one.facts["delta"])
    return [
        f"{label}, δ = {rounded_up(one.facts['delta'], 3)}" if len(deltas[label]) > 1 else label
        for label, one in zip(labels, group, strict=True)
    ]


def _words(one: Series, *, learner: str) -> str:
    """What a line's learner is called (if it is to be), its trust model and epsilon."""
    words = trust_words(one.facts, one.guarantee)
    return f"{learner}, {words}" if learner else words


def trust_words(facts: Facts, promise: Promise) -> str:
    """``no privacy``, or the trust model with its epsilon: ``shuffle, ε = 1``."""
    if promise["notion"] == "none":
        return "no privacy"
    if promise["epsilon"] is None:  # several claims may deliver nothing: their lines need names
        return f"{facts['trust']}, no ε (claimed {rounded_up(facts['epsilon'])})"
    epsilon = promise["epsilon"]
    printed = " (paper's constants)" if facts["calibration"].startswith("paper") else ""
    return f"{facts['trust']}, ε = {rounded_up(epsilon)}{printed}"


def label_of(series: Series) -> str:
    """One line by itself, everything said: learner, trust model, epsilon, delta."""
    text = _words(series, learner=name_of(series.facts))
    private = series.guarantee["notion"] != "none"
    return f"{text}, δ = {rounded_up(series.facts['delta'], 3)}" if private else text


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
    'transitions 2,534, rewards 0'
    """
    known = [name for name in _STATISTICS if name in noise]
    names = [*known, *sorted(noise.keys() - set(known))]
    return ", ".join(f"{name} {rounded_noise(noise[name])}" for name in names) or "unknown"
