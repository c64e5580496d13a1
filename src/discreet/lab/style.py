"""What tables, legends and pictures call things: every word of the lab that people read."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from discreet.lab.results import Entry, Facts, Series
from discreet.lab.spec import LearnerRow
from discreet.lab.tasks import GuaranteeDict
from discreet.privacy.guarantee import rounded_noise, rounded_up

REGRET = (
    "Regret: the reward that K users lost, in all, against the best policy; computed exactly from "
    "the model, never from realised rewards. Of uniform: as a share of playing at random."
)
RETURN = (
    "Return: what an episode earned, mean over all K users, with its standard error. The "
    "environment has no model, so nobody knows its best policy, and the regret against it. At "
    "random: what random actions earned."
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
    words = [trust_words(one.facts) for one in group]
    labels = [
        f"{name}, {said}" if several else said for name, said in zip(called, words, strict=True)
    ]
    deltas = {label: set[float]() for label in labels}
    for label, one in zip(labels, group, strict=True):
        deltas[label].add(one.facts["delta"])
    return [
        f"{label}, δ = {rounded_up(one.facts['delta'], 3)}" if len(deltas[label]) > 1 else label
        for label, one in zip(labels, group, strict=True)
    ]


def trust_words(facts: Entry) -> str:
    """``no privacy``, or the trust model with its epsilon: ``shuffle, ε = 1``."""
    guarantee = facts["guarantee"]
    if guarantee["notion"] == "none":
        return "no privacy"
    if guarantee["epsilon"] is None:  # several claims may deliver nothing: their lines need names
        return f"{facts['trust']}, no ε (claimed {rounded_up(facts['epsilon'])})"
    epsilon = guarantee["epsilon"]
    printed = " (paper's constants)" if facts["calibration"].startswith("paper") else ""
    return f"{facts['trust']}, ε = {rounded_up(epsilon)}{printed}"


def label_of(series: Series) -> str:
    """One line by itself, everything said: learner, trust model, epsilon, delta."""
    text = f"{name_of(series.facts)}, {trust_words(series.facts)}"
    private = series.facts["guarantee"]["notion"] != "none"
    return f"{text}, δ = {rounded_up(series.facts['delta'], 3)}" if private else text


def name_of(facts: Facts) -> str:
    """The learner's label, with the mechanism if one was asked for."""
    if facts["requested"] in ("auto", "none"):
        return facts["label"]
    return f"{facts['label']} ({facts['requested']})"


def pair_of(guarantee: GuaranteeDict) -> str:
    """``(1, 1e-06)-SDP``, or ``none``; an epsilon of None is infinite."""
    if guarantee["notion"] == "none":
        return "none"
    epsilon = float("inf") if guarantee["epsilon"] is None else guarantee["epsilon"]
    return f"({rounded_up(epsilon)}, {rounded_up(guarantee['delta'], 3)})-{guarantee['notion']}"


def noise_of(noise: Mapping[str, float]) -> str:
    """``transitions 25.4, rewards 25.4``: standard deviation on one counter of each statistic.

    >>> noise_of({"transitions": 2534.7, "rewards": 0.0})
    'transitions 2,534, rewards 0'
    """
    known = [name for name in _STATISTICS if name in noise]
    names = [*known, *sorted(noise.keys() - set(known))]
    return ", ".join(f"{name} {rounded_noise(noise[name])}" for name in names) or "unknown"


# Colours, line styles and panels: how the lines of a picture are told apart.
#
# Colours are those of Okabe and Ito (2008), distinguishable with any common colour blindness; lines
# also differ in style, so that pictures survive a black-and-white printer.


Style: TypeAlias = str | tuple[int, tuple[int, ...]]
"""A line style as Matplotlib names it, or as dashes."""
Line: TypeAlias = tuple[Series, str, tuple[str, Style]]
"""A line with its name, colour and style."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
STYLES: tuple[Style, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
    (0, (1, 1)),
    (0, (7, 2)),
)
TRUST_COLOURS = {
    "none": "#444444",
    "central": COLOURS[0],
    "shuffle": COLOURS[2],
    "local": COLOURS[1],
}


def styles_of(series: Sequence[Series]) -> list[tuple[str, Style]]:
    """Colour and line style of each line: colour by learner and mechanism, style by epsilon.

    With one learner, each trust model has its colour in every picture. With at most one epsilon per
    family every line has a style of its own as well, for printers without colours.
    """
    families: dict[tuple[str, ...], list[tuple[float | str, ...]]] = {}
    facts = [(_family(s), s.facts) for s in series]
    keys = [(own, (f["epsilon"], f["delta"], f["calibration"])) for own, f in facts]
    for family, strength in keys:
        families.setdefault(family, []).append(strength)
    single = all(len(strengths) == 1 for strengths in families.values())
    names = list(families)
    trusts = are_trust_models(series)
    styles = []
    for family, strength in keys:
        number = names.index(family)
        style = number if single else families[family].index(strength)
        colour = TRUST_COLOURS[family[2]] if trusts else COLOURS[number % 8]
        styles.append((colour, STYLES[style % 8]))
    return styles


def are_trust_models(series: Sequence[Series]) -> bool:
    """True if lines differ in their trust model (and epsilon) alone."""
    return len({_family(one)[:2] for one in series if one.facts["trust"] != "none"}) <= 1


def _family(series: Series) -> tuple[str, ...]:
    facts = series.facts
    return facts["label"], facts["requested"], facts["trust"]


def panels_of(learners: Sequence[LearnerRow], series: Sequence[Series]) -> dict[str, list[Series]]:
    """The lines of every panel, in the experiment's order; one without a name if it has none."""
    panel = {row.title: row.panel for row in learners}
    found: dict[str, list[Series]] = {}
    for one in series:
        found.setdefault(panel.get(one.facts["label"], ""), []).append(one)
    return found


def lines_by_claim(series: Sequence[Series]) -> list[Line]:
    """Lines of several panels: one algorithm has one colour in all, one claimed epsilon one style.

    With one epsilon per line the style is the algorithm's, for printers without colours.
    What an algorithm is called stands behind ``: `` in its label (``printed: SDP-PE``). The claim
    is what panels have in common; what is delivered stands in tables, where that may differ.
    """
    names = [one.facts["label"].partition(": ")[2] or one.facts["label"] for one in series]
    algorithms = list(dict.fromkeys(names))
    private = [one.facts for one in series if one.facts["trust"] != "none"]
    claims = sorted({facts["epsilon"] for facts in private})
    kept = all(facts["calibration"] == "exact" for facts in private)
    pairs = {(facts["label"], facts["epsilon"]) for facts in private}
    single = len(pairs) == len({label for label, _ in pairs})
    lines: list[Line] = []
    for one, name in zip(series, names, strict=True):
        colour = COLOURS[algorithms.index(name) % len(COLOURS)]
        if one.facts["trust"] == "none":
            lines.append((one, name, (colour, "-")))
            continue
        epsilon = one.facts["epsilon"]
        number = algorithms.index(name) if single else claims.index(epsilon)
        style = STYLES[(1 + number) % len(STYLES)]
        said = "ε" if kept else "claimed ε"
        lines.append((one, f"{name}, {said} = {rounded_up(epsilon)}", (colour, style)))
    return lines
