"""Consistent counts that stay linear: against the equations written out, and without noise."""

import numpy as np
import pytest

from discreet import Central, NoPrivacy, make
from discreet.mdp import sample_counts, uniform_policy
from discreet.offline.release import People, Randomness, Slots, release
from discreet.privacy.projection.linear_flow import LinearFlow

MDP = make("RandomMDP", states=3, actions=2, horizon=3, concentration=0.5, seed=5)
SHAPE = MDP.shape
TRUST = Central(epsilon=1, delta=1e-6)


def released(users=5_000, statistics=("transitions", "rewards"), trust=TRUST):
    slots = Slots.of(np.broadcast_to(np.arange(2) == 0, SHAPE.visits), MDP.start)
    data = sample_counts(MDP, uniform_policy(SHAPE), users, np.random.default_rng(0))
    return release(
        data,
        slots,
        trust,
        statistics=statistics,
        last_transitions=False,
        randomness=Randomness.of("simulation", 0),
        people=People.given(None, data, trust),
    )


def flow_equations(support):
    """A ``[nodes, R·S]`` and, for n users, the right-hand side over n: out - in = b."""
    horizon, states, _ = support.shape
    steps, state, _ = np.nonzero(support)
    rows = np.zeros((1 + (horizon - 1) * states, len(steps), states))
    for r, (h, s) in enumerate(zip(steps, state, strict=True)):
        rows[0 if h == 0 else 1 + (h - 1) * states + s, r] += 1
        for after in range(states):
            if h + 1 < horizon:
                rows[1 + h * states + after, r, after] -= 1
    return rows.reshape(len(rows), -1), np.eye(len(rows))[0]


@pytest.mark.parametrize("statistics", [("transitions", "rewards"), ("transitions",)])
def test_the_projection_is_the_least_squares_solution(statistics):
    """Against the equations written out: all measurements, weighed by their variances."""
    counts = released(statistics=statistics)
    flow = LinearFlow.of(counts)
    equations, right = flow_equations(counts.support)
    steps, noise = np.nonzero(counts.support)[0], counts.noise_variance
    y = np.array(counts.row_transitions)
    last = steps == SHAPE.horizon - 1
    variance = np.where(last, noise["transitions"] / SHAPE.states, noise["transitions"])
    y[last] = y[last, :1] / SHAPE.states
    each = np.kron(np.eye(len(y)), np.ones(SHAPE.states))
    information = np.diag(np.repeat(1 / variance, SHAPE.states))
    target = information @ y.ravel()
    if counts.row_visits is not None:
        information += each.T @ each / noise["visits"]
        target += each.T @ counts.row_visits / noise["visits"]
    blank = np.zeros((len(equations), len(equations)))
    kkt = np.block([[information, equations.T], [equations, blank]])
    solved = np.linalg.solve(kkt, np.concatenate([target, right * counts.users]))
    assert np.allclose(flow.counts.ravel(), solved[: y.size], rtol=1e-9, atol=1e-6)
    covariance = np.linalg.inv(kkt)[: y.size, : y.size]
    g = np.random.default_rng(0).normal(size=y.shape)
    assert flow.noise(g) == pytest.approx(g.ravel() @ covariance @ g.ravel())


def test_exact_counts_are_consistent_as_they_are():
    counts = released(trust=NoPrivacy())
    flow = LinearFlow.of(counts)
    assert flow.noise(np.ones_like(flow.counts)) == 0.0
    equations, right = flow_equations(counts.support)
    assert np.allclose(equations @ flow.counts.ravel(), right * counts.users)
