"""Small studies with names that a page must escape, and their bundles."""

import json
import re

import numpy as np

import discreet
from discreet.mdp.simulation import sample_trajectories
from discreet.study.dossier.bundle import finished, members
from discreet.study.dossier.evidence import proofs
from helpers.studies import begin, reports_of

RIVER = discreet.make("RiverSwim", states=3, horizon=2, relabel=1)
NAMES = {
    "states": ["ill <b>", "better", "well"],
    "actions": ["wait", "treat & see"],
    "horizon": ["spring", "autumn"],
    "start_states": ["better"],
}


def small(path, trust=None, **changes):
    return begin(path, trust, **{"episodes": 300, **NAMES, **changes})


def told(study, seed, again=False, note=None):
    """The next batch; ``again``: the first user of the study is in it once more."""
    data = sample_trajectories(RIVER, study.ask(), study.batch_size, np.random.default_rng(seed))
    people = [f"user-{study.users + i}" for i in range(len(data))]
    if again:
        people[0] = "user-0"
    if study.encoded:
        study.tell(reports_of(study, data, seed), users=people, token=study.token, note=note)
    else:
        study.tell(data, users=people, note=note)


def bundled(study):
    """The files without the audit, which takes long."""
    sizes = [entry["users"] for entry in study.ledger if entry["kind"] == "batch"]
    return members(study, proofs(study.mechanism, sizes, lambda _: None), None)


def retold(files, **facts):
    """The same bundle of an operator who says something else, page and sums made for it."""
    said = json.loads(files["facts.json"]) | facts
    return finished(files | {"facts.json": json.dumps(said).encode()})


def page_of(files, number=None):
    """The dossier, or what it says below one of its numbered headings; 0: above the first."""
    page = files["dossier.html"].decode()
    return page if number is None else re.split(r"<h2>\d+\. ", page)[number]
