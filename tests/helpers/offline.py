"""Evidence of `discreet.offline` from arrays, and back."""

import numpy as np

from discreet.learners.estimate import CountSums, ReleasedRows, RowSums
from discreet.offline.improvement import Evidence, SlotRows


def slot_rows(transitions, visits, rewards, noise=0.0, reward_noise=0.0, visit_noise=0.0, **known):
    """Rows of any shape, each visit a sample."""
    n, zero = np.asarray(visits, float), np.zeros(np.shape(visits))
    variances = zero + noise, zero + reward_noise, zero + visit_noise
    rows = RowSums(transitions, n, rewards, n, *variances)
    return SlotRows(rows, zero + known.get("anchor", 0.0), zero + known.get("drawn", 1.0))


def sums_of(slots):
    """`CountSums` of rows ``[H, S, K]``."""
    rows = slots.rows
    where = np.nonzero(np.ones(rows.visits.shape, bool))
    transitions, *others = (np.asarray(part)[where] for part in rows)
    visits, rewards, sampling, *variances = others
    released = ReleasedRows(where, transitions, visits, rewards, sampling, sampling, *variances)
    room = np.zeros((rows.visits.size, transitions.shape[1]))
    sums = CountSums.empty(*rows.visits.shape)._replace(transitions=room)
    sums.add(released, 1.0, 1.0)
    return released, sums


def evidence_of(users, slots, behaviour, pool=None, stationary=None):
    """Evidence of rows ``[H, S, K]``, of states ``[H, S]`` and perhaps of a pool ``[1, S, K]``."""
    released, sums = sums_of(slots)
    pooled = None if pool is None else sums_of(pool)[1]
    support = np.ones(slots.visits.shape, bool)
    known = slots.anchor, slots.drawn
    return Evidence(users, released, sums, *known, behaviour, support, pooled, stationary)


def dense(sums):
    """The rows ``[H, S, K]`` of sums."""
    layers = [sums.layer(step) for step in range(len(sums.number))]
    return RowSums(*(np.stack(parts) for parts in zip(*layers, strict=True)))
