"""Digests of what `discreet.learn` returns: did a change of the code change one bit of it?

    python -m research.baseline --record     # writes baseline.json beside this file
    python -m research.baseline --compare    # names every run that is not the same; exit code 1

Every learner runs under every trust model and mechanism that it takes, and every paper's preset as
printed, with exact noise and repaired, with three seeds each: per step, summed over steps and with
theory constants, or against two kinds of losses. A digest is of all numbers of the results at
full precision, but of no name and no setting, so that renaming shows as a missing row beside a new
one with the same digests. Half a minute.

Digests are those of one kind of processor: on another one, record them from the old code first.
"""

import dataclasses
import hashlib
import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet.learners.registry import get_learner, learner_names
from discreet.papers.presets import get_preset, preset_names
from discreet.privacy.mechanisms.registry import mechanisms
from discreet.privacy.trust import make_trust
from research import asked_to_record

FILE = Path(__file__).with_suffix(".json")
SEEDS = (0, 1, 2)
EPISODES = {"batch": 30_000, "continual": 600, "adversarial": 600}
VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "batch": ({}, {"stationary": True}),
    "continual": ({"stationary": False}, {"stationary": True}, {"constants": "theory"}),
    "adversarial": ({"losses": "stochastic"}, {"losses": "switching"}),
}
REFUSED = "refused"


def main() -> int:
    """Record, or compare."""
    record = asked_to_record("research.baseline", __doc__)
    warnings.simplefilter("ignore")  # papers' constants warn
    found = {name: [digest(how, seed) for seed in SEEDS] for name, how in runs()}
    if record:
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
        FILE.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
        print(f"{len(found)} rows, {len(SEEDS)} seeds each")
        return 0
    return compare(json.loads(FILE.read_text(encoding="utf-8")), found)


def compare(known: Mapping[str, list[str]], found: Mapping[str, list[str]]) -> int:
    """Prints what differs; 1 if anything does."""
    said = [f"missing: {name}" for name in known if name not in found]
    said += [f"new: {name}" for name in found if name not in known]
    said += [f"changed: {name}" for name, row in known.items() if found.get(name, row) != row]
    same = sum(found.get(name) == row for name, row in known.items())
    print(*said, f"{same} of {len(known)} rows are the same", sep="\n")
    return int(bool(said))


def runs() -> Iterator[tuple[str, dict[str, Any]]]:
    """A name, and what `discreet.learn` takes beside the problem and its variants."""
    for name in learner_names():
        spec = get_learner(name)
        for trust in spec.trusts:
            schedule = "batch" if spec.schedule == "batch" else "continual"
            for mechanism in ["auto", *mechanisms(trust, schedule)]:
                budget = {"epsilon": 1.0, "delta": 1e-5, "mechanism": mechanism}
                model = make_trust(trust, **({} if trust == "none" else budget))
                if trust != "none" or mechanism == "auto":
                    yield f"{name} {trust} {mechanism}", {"learner": name, "trust": model}
    for paper in preset_names():
        yield f"paper {paper} printed", {"paper": paper}
        yield f"paper {paper} exact", {"paper": paper, "calibration": "exact"}
        if get_preset(paper).repairs:
            yield f"paper {paper} repaired", {"paper": paper, "literal": False}


def digest(how: dict[str, Any], seed: int) -> str:
    """Of the results of one seed, in all variants; a refusal is a result, too."""
    paper = how.get("paper")
    learner = get_preset(paper).learner if paper else how["learner"]
    schedule = get_learner(learner).schedule
    budget = {"epsilon": 3.0} if paper else {}
    mdp = discreet.make("RiverSwim", states=3, horizon=4)
    kept, refused = hashlib.sha256(), 0
    for variant in VARIANTS[schedule]:
        try:
            what = {**how, **budget, **variant, "episodes": EPISODES[schedule], "seed": seed}
            run = discreet.run_paper if paper else discreet.learn
            result = run(mdp=mdp, **what)
        except discreet.errors.UnsupportedError:
            refused += 1
            kept.update(REFUSED.encode())
            continue
        guarantee = result.guarantee
        parts = (result.regret, result.policy, guarantee.epsilon, guarantee.delta)
        for array in numbers((*parts, result.noise, result.extras)):
            kept.update(f"{array.dtype}{array.shape}".encode())
            kept.update(array.tobytes())
    return REFUSED if refused == len(VARIANTS[schedule]) else kept.hexdigest()[:16]


def numbers(value: Any) -> Iterable[np.ndarray]:
    """All numbers inside, depth first, in the order in which they stand."""
    if value is None or isinstance(value, str):
        return
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from numbers(part)
        return
    array = np.ascontiguousarray(value)
    if array.dtype.kind not in "bifu":
        raise TypeError(f"Expected numbers, got {value!r}; say here what they are.")
    yield array.astype({"b": "u1", "i": "i8", "u": "u8", "f": "f8"}[array.dtype.kind])


if __name__ == "__main__":
    sys.exit(main())
