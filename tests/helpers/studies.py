"""Studies of a small river, their users, and what those send."""

import contextlib
import sqlite3
from dataclasses import replace

import numpy as np

import discreet
from discreet.mdp import make
from discreet.mdp.simulation import sample_trajectories
from discreet.privacy.mechanisms.bits import shuffle
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.study.study import Study

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
    return discreet.start_study(path, **given)


def rehearsed(path, design, seed=None, **changes):
    """A study of a design, as a rehearsal."""
    return Study.begin(path, replace(design, sampler="simulation", seed=seed, **changes))


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


def log_of(path):
    """Where SQLite keeps the write-ahead log of a file."""
    return path.with_name(f"{path.name}-wal")


def log_of_a_tell(study):
    """Tell a batch, and what the log of it holds before it is taken into the file."""
    with contextlib.closing(sqlite3.connect(study.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM ledger").fetchone()  # holds the log back
        advance(study, 1)
        return log_of(study.path).read_bytes()


def edits_of(path):
    """Every table of a study with one thing changed: name, and the statement that changes it."""
    for table in ("config", "ledger", "users", "evidence"):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            rows = connection.execute(f"SELECT * FROM {table}")
            columns = [column[0] for column in rows.description]
            first = rows.fetchone()
        for column, value in zip(columns, first, strict=True):
            other = value + 1_000 if isinstance(value, int) else f"{value}0"
            if isinstance(value, bytes):
                other = bytes([value[0] ^ 1]) + value[1:] if value else b"0"
            change = f"UPDATE {table} SET {column} = ? WHERE {columns[0]} = ?"
            yield f"{table}.{column}", (change, other, first[0])
        yield f"{table}, a row less", (f"DELETE FROM {table} WHERE {columns[0]} = ?", first[0])
    yield "a new table", ("CREATE TABLE note (text TEXT)",)
