"""Colours, line styles and panels: how the lines of a picture are told apart.

Colours are those of Okabe and Ito (2008), distinguishable with any common colour blindness; lines
also differ in style, so that pictures survive a black-and-white printer.
"""

from collections.abc import Sequence
from typing import TypeAlias

from discreet.lab.results import Series
from discreet.lab.spec import LearnerRow
from discreet.privacy.guarantee import rounded_up

Style: TypeAlias = str | tuple[int, tuple[int, ...]]
"""A line style as Matplotlib names it, or as dashes."""
Line: TypeAlias = tuple[Series, str, tuple[str, Style]]
"""A line with its name and its looks."""

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


def looks_of(series: Sequence[Series]) -> list[tuple[str, Style]]:
    """Colour and line style of each line: colour by learner and mechanism, style by epsilon.

    With one learner, each trust model has its colour in every picture. With at most one epsilon per
    family every line has a style of its own as well, for printers without colours.
    """
    families: dict[tuple[str, ...], list[tuple[float | str, ...]]] = {}
    keys = [(_family(s), _strength(s)) for s in series]
    for family, strength in keys:
        families.setdefault(family, []).append(strength)
    single = all(len(strengths) == 1 for strengths in families.values())
    names = list(families)
    trusts = are_trust_models(series)
    looks = []
    for family, strength in keys:
        number = names.index(family)
        style = number if single else families[family].index(strength)
        colour = TRUST_COLOURS[family[2]] if trusts else COLOURS[number % 8]
        looks.append((colour, STYLES[style % 8]))
    return looks


def are_trust_models(series: Sequence[Series]) -> bool:
    """True if lines differ in their trust model (and epsilon) alone."""
    return len({_family(one)[:2] for one in series if one.facts["trust"] != "none"}) <= 1


def _family(series: Series) -> tuple[str, ...]:
    facts = series.facts
    return facts["label"], facts["requested"], facts["trust"]


def _strength(series: Series) -> tuple[float | str, ...]:
    facts = series.facts
    return facts["epsilon"], facts["delta"], facts["calibration"]


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
