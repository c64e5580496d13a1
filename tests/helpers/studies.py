"""Studies of a small river, their users, and what those send."""

import contextlib
import sqlite3

import numpy as np

import discreet
from discreet.mdp import make
from discreet.mdp.simulation import sample_trajectories
from discreet.privacy.mechanisms.bits import shuffle
from discreet.privacy.sampling.samplers import SimulationSampler

RIVER = make("RiverSwim", states=3, horizon=4, relabel=1)


def begin(path, trust=None, **changes):
    """A rehearsal with 2,000 users, unless something else is asked for."""
    arguments = {
        "learner": "flow-ucb",
        "trust": trust or discreet.Central(epsilon=1, delta=1e-6),
        "states": 3,
        "actions": 2,
        "horizon": 4,
        "episodes": 2_000,
        "start_states": [0],
        "sampler": "simulation",
        "seed": 5,
    }
    given = arguments | changes
    if given["learner"] == "flow-ucb":  # one action per state: users can then leave the policy
        given = {"mixing": False} | given
    return discreet.start(path, **given)


def episodes_of(study, seed, users=None):
    """Users of the pending batch, who follow its policy."""
    rng = np.random.default_rng(seed)
    return sample_trajectories(RIVER, study.ask(), users or study.batch_size, rng)


def names(study, users=None):
    return [f"user-{study.users + i}" for i in range(users or study.batch_size)]


def reports_of(study, data, seed=3):
    """What the devices of these users send, shuffled if somebody shuffles."""
    device = SimulationSampler(np.random.default_rng(seed))
    encoder, users = study.encoder(), range(len(data))
    made = [encoder.encode(data.states[i], data.actions[i], data.rewards[i], device) for i in users]
    reports = np.concatenate(made)
    return shuffle(reports, device) if study.guarantee.notion == "SDP" else reports


def advance(study, seed=0, users=None, people=None):
    """Tell the pending batch, or some of its users."""
    data, people, token = episodes_of(study, seed, users), people or names(study, users), None
    if study.encoded:
        data, token = reports_of(study, data, seed), study.token
    study.tell(data, users=people, token=token)


def sql(path, statement, *values):
    """Run one statement on a file, as somebody with an editor could."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


def everything_in(folder):
    files = (p for p in folder.rglob("*") if p.is_file())
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in files}
