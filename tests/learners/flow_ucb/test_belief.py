"""What flow-ucb believes: sums over steps where shared, and the lean of projected noise."""

import numpy as np
import pytest

from discreet.learners.flow_ucb.belief import LEAN, Pooled, believed, unseen_states
from discreet.learners.flow_ucb.evidence import BIAS, NOISE, VISITS, Evidence


def evidence_of(seed):
    rng = np.random.default_rng(seed)
    evidence = Evidence.empty(3, 2, 2)
    evidence.number[:] = np.arange(12).reshape(3, 2, 2)
    evidence.transitions[:] = rng.uniform(1, 5, (12, 2))
    evidence.moves[:] = rng.uniform(1, 5, evidence.moves.shape)
    evidence.moves[..., VISITS] = evidence.transitions.sum(axis=1).reshape(3, 2, 2)
    evidence.gains[:] = rng.uniform(1, 5, evidence.gains.shape)
    return evidence


@pytest.mark.parametrize("seed", range(3))
def test_sums_are_over_steps_exactly_where_they_are_shared(seed):
    evidence = evidence_of(seed)
    pooled = Pooled(
        np.array([[True, False], [False, True]]), np.array([[False, False], [False, True]])
    )
    belief = believed(evidence, pooled)
    for h in range(3):
        for s in range(2):
            for a in range(2):
                moves, gains = evidence.moves[h, s, a], evidence.gains[h, s, a]
                counts = evidence.transitions[evidence.number[h, s, a]]
                if pooled.moves[s, a]:
                    moves = evidence.moves[:, s, a].sum(axis=0)
                    counts = evidence.transitions[evidence.number[:, s, a]].sum(axis=0)
                if pooled.gains[s, a]:
                    gains = evidence.gains[:, s, a].sum(axis=0)
                expected = moves.copy()
                expected[NOISE] += (LEAN * moves[BIAS]) ** 2
                np.testing.assert_allclose(belief.moves[h, s, a], expected)
                np.testing.assert_allclose(belief.gains[h, s, a], gains)
                row = belief.probabilities[belief.number[h, s, a]]
                np.testing.assert_allclose(row, counts / counts.sum())


def test_the_lean_grows_with_batches_where_noise_averages_out():
    # A hundred batches of noise 1: the variance of their sum is 100, their lean 20 either way.
    evidence = Evidence.empty(1, 1, 1)
    evidence.moves[0, 0, 0, NOISE], evidence.moves[0, 0, 0, BIAS] = 100.0, 100.0
    pooled = Pooled(np.zeros((1, 1), bool), np.zeros((1, 1), bool))
    assert believed(evidence, pooled).moves[0, 0, 0, NOISE] == pytest.approx(100 + 400)


def test_evidence_is_left_as_it_is():
    evidence = evidence_of(0)
    before = [array.copy() for array in evidence]
    everything = np.ones((2, 2), bool)
    believed(evidence, Pooled(everything, everything))
    for one, other in zip(before, evidence, strict=True):
        np.testing.assert_array_equal(one, other)


def seen_belief(moves, gains, lean):
    """One step and one state per number; two actions, the second of which nobody tried."""
    evidence = Evidence.empty(1, len(moves), 2)
    evidence.moves[0, :, 0, VISITS], evidence.gains[0, :, 0, VISITS] = moves, gains
    evidence.moves[0, :, 0, BIAS] = lean
    none = np.zeros((len(moves), 2), bool)
    return believed(evidence, Pooled(none, none))


def test_visits_that_projected_noise_explains_show_nobody():
    # A lean of 40: up to 40 visits say nothing, 80 are somebody, by transitions or by rewards.
    belief = seen_belief([0.0, 40.0, 60.0, 80.0, 10.0], [0.0, 0.0, 0.0, 0.0, 80.0], 40.0)
    assert unseen_states(belief)[0] == pytest.approx([1.0, 1.0, 0.5, 0.0, 0.0])


def test_without_noise_anybody_is_seen():
    assert unseen_states(seen_belief([0.0, 1.0], [0.0, 0.0], 0.0))[0].tolist() == [1.0, 0.0]
