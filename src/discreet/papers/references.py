"""What to cite: BibTeX of discreet and of the papers behind a learner (``references.bib``)."""

import re
from collections.abc import Iterable
from importlib import resources

import discreet

CITED = {
    "dp-ucbvi": ("qiao2023near",),
    "explore-then-commit": (),
    "flow-ucb": (),
    "ldp-obi": ("garcelon2021local",),
    "ldp-psrl": ("garcelon2021local", "osband2013more"),
    "pe": ("bai2024shuffle", "bai2025secure"),
    "private-uc-o-reps": ("bai2024adversarial",),
    "private-ucb-po": ("chowdhury2022differentially",),
    "private-ucb-vi": ("chowdhury2022differentially",),
    "private-uob-lbps": ("bai2024adversarial",),
    "psrl": ("osband2013more",),
    "pucb": ("vietri2020private",),
    "sdp-pe": ("bai2024shuffle", "bai2025secure"),
    "trial": (),
    "ucbvi": ("azar2017minimax",),
}
"""Learner -> keys; those of ours are cited by citing discreet."""


def bibtex(learners: Iterable[str]) -> str:
    """The entry of discreet, and those of what these learners come from.

    >>> bibtex(["psrl"]).count("@")
    2
    >>> bibtex(["trial"]).splitlines()[-1]
    '% No paper is known for trial: cite discreet.'
    """
    learners = list(learners)
    text = (resources.files("discreet.papers") / "references.bib").read_text("utf-8")
    entries = re.split(r"\n\n(?=@)", text.replace("VERSION", discreet.__version__))
    wanted = {"discreet", *(key for learner in learners for key in CITED.get(learner, ()))}
    found = [e.strip() for e in entries if e.partition("{")[2].split(",")[0] in wanted]
    own = [name for name in dict.fromkeys(learners) if not CITED.get(name)]
    more = [f"% No paper is known for {', '.join(own)}: cite discreet."] if own else []
    return "\n\n".join([*found, *more])
