"""Wrote the files beside it, with the code and the helpers of commit 9cea6499.

    git worktree add OLD 9cea6499
    PYTHONPATH=OLD/src:OLD/tests python tests/recorded/record.py tests/recorded

They stand for what people keep, so they are not written anew when a format changes. What later
code does with them is in `tests/test_recorded.py`.
"""

import base64
import contextlib
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import discreet
from discreet.cli.app import main
from discreet.mdp import sample_trajectories, uniform_policy
from discreet.privacy import Budget, Ledger
from helpers import postgres, services, studies

HERE = Path(sys.argv[1]).resolve()
STUDIES = {
    "central": {},
    "central-laplace": {"trust": discreet.Central(1, mechanism="laplace")},
    "continual": {"learner": "dp-ucbvi", "episodes": 20},
    "local-flips": {"trust": discreet.Local(2, mechanism="randomized-response")},
    "local-gaussian": {"trust": discreet.Local(2, 1e-6, mechanism="gaussian")},
    "local-laplace": {"trust": discreet.Local(2, mechanism="laplace")},
    "local-one-step": {"trust": discreet.Local(2, mechanism="one-step")},
    "local-split": {"trust": discreet.Local(2, mechanism="split")},
    "shuffle": {"trust": discreet.Shuffle(4, 1e-4), "episodes": 100},
}
PEOPLE = [f"person {i}" for i in range(40)]
TICKETS = [bytes([i]) * 32 for i in range(7)]
EXPERIMENT = """
name = "tiny"
title = "Tiny"
runs = 2
episodes = [20]
environments = [{name = "RandomMDP", parameters = {states = 2, actions = 2, horizon = 2}}]
learners = [{name = "flow-ucb"}]
trusts = [{model = "none"}, {model = "central", epsilon = [1.0], delta = 1e-6}]

[variants.quick]
episodes = [10]
"""


def keep(name, *files):
    """Files in the folder of their row; what is no text, or long, is packed."""
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        data = file.read_bytes()
        if len(data) > 4_000 or file.suffix in (".key", ".parquet"):
            text = base64.encodebytes(lzma.compress(data, preset=9))
            (folder / f"{file.name}.xz.b64").write_bytes(text)
        else:
            (folder / file.name).write_bytes(data)


def one_study(folder, name, arguments):
    """Begun, and two batches told."""
    path, options = folder / "study.db", {"episodes": 60, "sampler": "secure", "seed": None}
    study = studies.begin(path, **(options | arguments))
    for seed in range(2):
        studies.advance(study, seed)
    if name == "central":
        bundle, policy = folder / "study.zip", folder / "policy.json"
        study.bundle(bundle)
        study.save_policy(policy)
        keep("bundle", bundle)
        keep("policy", policy)
        bundle.unlink()
        policy.unlink()
    keep(name, *folder.iterdir())
    return {"guarantee": str(study.guarantee), "head": study.head, "users": study.users}


def logged(folder):
    """A policy by `fit`, and what it is worth: the ledger of both."""
    world = discreet.make("RandomMDP", states=2, actions=2, horizon=2)
    told = sample_trajectories(
        world, uniform_policy(world.shape), len(PEOPLE), np.random.default_rng(0)
    )
    rows = ["user,step,state,action,reward"]
    rows += [
        f"{PEOPLE[i]},{h},{told.states[i, h]},{told.actions[i, h]},{told.rewards[i, h]}"
        for i in range(len(PEOPLE))
        for h in range(2)
    ]
    os.chdir(folder)  # paths stand in what is written
    table, policy = Path("people.csv"), Path("fit.json")
    table.write_text("\n".join(rows) + "\n")
    sizes = ("--states", "2", "--actions", "2", "--steps", "2")
    trust = ("--trust", "central", "--epsilon", "1", "--delta", "1e-6")
    fit = ("fit", str(table), *sizes, *trust)
    command(*fit, "--budget", "3,1e-5", "--output", str(policy))
    command(*fit, "--policy", str(policy))
    keep("ledger", Path("people.ledger"))
    keep("policy", policy)


def command(*words):
    sys.argv[1:] = words
    with contextlib.suppress(SystemExit):
        main()


def store(address, of):
    """One batch counted; of the next, two of three reports have come."""
    made = services.new_store(address, of, TICKETS)
    first = services.announced(of)
    made.announce(first)
    made.submit(services.submissions(first, TICKETS[:3]))
    made.shuffle()
    services.messages(made, 0, first.sizes)
    made.done(0)
    second = services.announced(of, 1, before=first.manifest)
    made.announce(second)
    assert made.submit(services.submissions(second, TICKETS[3:5])) == ["accepted"] * 2
    made.close()


def dumped(address):
    """All of a schema, as statements that make it in another one."""
    schema = re.search("search_path%3D(\\w+)", address)[1]
    plain = re.sub("&options=.*", "", address)
    words = ["pg_dump", "--inserts", "--no-owner", f"--schema={schema}", plain]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    unwanted = re.compile(r"--|\\|SET |SELECT pg_catalog.set_config|CREATE SCHEMA|$")
    lines = [line for line in text.splitlines() if not unwanted.match(line)]
    return "\n".join(lines).replace(f"{schema}.", "") + "\n"


def spelled(folder):
    """A person who is 7 and 7.0, in a ledger and in a study in which people come twice."""
    ledger = Ledger(folder / "people.ledger", budget=Budget(3))
    ledger.record(1, users=["7", "8"])
    ledger.record(0.5, users=["7.0", "9"])
    keep("ledger-spellings", ledger.path)
    (path := folder / "study").mkdir()
    trust = discreet.Central(1, 1e-6, participations=2)
    study = studies.begin(path / "study.db", trust, sampler="secure", seed=None)
    for seed, seven in enumerate(("7", "7.0")):
        data = studies.episodes_of(study, seed, 3)
        study.tell(data, users=[seven, f"{seed}{seed}", "100000.0"])
    keep("spellings", *path.iterdir())
    return {"guarantee": str(study.guarantee), "head": study.head, "users": study.users}


def services_of(folder):
    """A charter, and a store of each kind that goes on with it."""
    of = services.charter()
    (charter := folder / "charter.json").write_bytes(of.data)
    keep("charter", charter)
    store(folder / "store.db", of)
    keep("store-sqlite", folder / "store.db")
    server = postgres.Server()
    try:
        address = server.database()
        store(address, of)
        (text := folder / "store.pgsql").write_text(dumped(address))
    finally:
        server.stop()
    keep("store-postgres", text)
    return {"id": of.id.hex(), "guarantee": of.guarantee}


def results(folder):
    """What `discreet run --quick` leaves."""
    (experiment := folder / "tiny.toml").write_text(EXPERIMENT)
    command("run", str(experiment), "--quick", "--output", str(folder / "tiny"))
    made = folder / "tiny"
    keep("run", *(file for file in made.iterdir() if file.suffix in (".json", ".toml")))
    keep("run", made / "results.parquet")
    keep("run/parts", *(made / "parts").iterdir())
    return {one.facts["trust"]: one.regret[:, -1].tolist() for one in discreet.load(made).series()}


def record():
    facts = {}
    with tempfile.TemporaryDirectory() as place:
        for name, arguments in STUDIES.items():
            (folder := Path(place) / name).mkdir()
            facts[name] = one_study(folder, name, arguments)
        jobs = {"ledger": logged, "spellings": spelled, "charter": services_of, "run": results}
        for name, job in jobs.items():
            (folder := Path(place) / name).mkdir()
            if told := job(folder):
                facts[name] = told
    (HERE / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    record()
