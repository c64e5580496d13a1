"""One release, one draw of each of its noises: counted with the real secure sampler.

Whoever draws twice may choose, and a choice that knows the data is no noise.
"""

import numpy as np
import pytest

from discreet.auditing.cases import entries
from discreet.auditing.draws import RecordingSampler
from discreet.auditing.paths import short_paths
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy import Central

EXACT = [e for e in entries(epsilon=2.0, delta=1e-2) if e.calibration == "exact"]
# Batches are of H = 6, S = 2, A = 2 (96 counters; centred: 40 + 24 + 5), streams of 5 releases of
# 12 counters with H = 2, S = 1, A = 2; those that randomise data are of that shape.
ADDED = {"release": 96, "simulate": 96, "release_reports": 96}
CENTRED = {"release": 99, "simulate": 99}
STREAM = {"add": 60, "block": 60}
USUAL = ADDED | STREAM
DRAWS = {
    # How many report each slot but the last (1 + 1); kept and false bits of one slot with 4 cells.
    # A report: its statistic, its step, its false bits, and whether the true one is kept.
    "local/split": {"simulate": {10, 6, 14}, "release_reports": {5, 7}},
    "local/randomized-response": {"add": 4, "block": 4},
    "local/bounded": {"add": 20, "block": 20},
    "local/one-step": {"add": 6, "block": 6},
    "shuffle/histogram": {"release": 13, "simulate": 13},
    "shuffle/bits": {"release": 12, "simulate": 12},
}
"""Where it is not one number on every counter."""


@pytest.mark.parametrize("entry", EXACT, ids=lambda e: e.name)
def test_a_release_draws_what_its_mechanism_states(entry):
    expected, seen = DRAWS.get(entry.name, CENTRED if entry.centred else USUAL), set()
    for path in short_paths(entry.small()):
        if path.name in seen:
            continue
        seen.add(path.name)
        sampler = RecordingSampler()
        path.base(sampler)
        drawn = sum(draw.values.size for draw in sampler.draws)
        stated = expected.get(path.name)
        if stated is not None:
            assert drawn in (stated if isinstance(stated, set) else {stated}), path.name
    assert set(expected) & seen


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("centred", [False, True])
def test_a_central_release_is_its_counts_plus_its_draw(mechanism, centred):
    """Nothing else: not the nearer of two, and no digit of the data behind the point."""
    shape = Shape(2, 2, 3)
    rng = np.random.default_rng(0)
    transitions = rng.integers(0, 9, shape.transitions)
    rewards = rng.integers(0, transitions.sum(axis=-1) + 1)
    users = int(transitions.sum(axis=(1, 2, 3)).max()) + 3
    counts = Counts(users, transitions, rewards)
    plan = Central(1, 1e-3, mechanism=mechanism).calibrate(
        shape,
        last_transitions=False,
        **({"statistics": ("transitions", "rewards")} if centred else {}),
    )
    assert plan.centred is centred
    sampler = RecordingSampler()
    found = plan.release(counts, sampler=sampler)
    asked = {draw.asked[:2] for draw in sampler.draws}
    assert asked == {(f"discrete_{mechanism}", *vars(plan.noise).values())}
    noise = [draw.values for draw in sampler.draws]
    if not centred:
        raw = [transitions, transitions.sum(axis=-1), rewards]
        seen = [found.transitions, found.visits, found.rewards]
        assert len(noise) == 3
        for value, true, drawn in zip(seen, raw, noise, strict=True):
            assert np.array_equal(value, true + drawn.reshape(true.shape))
        return
    moved, earned, *left = noise
    here = transitions.sum(axis=-1)
    assert np.array_equal(found.transitions[:2], transitions[:2] + moved.reshape(2, 2, 2, 2))
    assert not found.transitions[2].any()
    zeros, ones = earned.reshape(2, *here.shape)
    assert np.array_equal(2 * found.rewards, 2 * rewards - here + ones - zeros)
    assert np.array_equal(found.visits, here + ones + zeros)
    gone = users - here.sum(axis=(1, 2))
    assert np.array_equal(found.dropped_out["transitions"], gone[:2] + left[0])
    assert np.array_equal(found.dropped_out["rewards"], gone + left[1])
