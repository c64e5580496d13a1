"""What flow-ucb believes: sums over steps where pooled, and the lean of projected noise."""

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
def test_sums_are_over_steps_exactly_where_they_are_pooled(seed):
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


def seen_belief(moves, lean, states=2):
    """Two steps; state 0 had so many visits by one of two actions; the last step shows rewards."""
    evidence = Evidence.empty(2, states, 2)
    evidence.moves[0, 0, 0, VISITS], evidence.moves[0, 0, 0, BIAS] = moves, lean
    none = np.zeros((states, 2), bool)
    return believed(evidence, Pooled(none, none))


@pytest.mark.parametrize(("visits", "expected"), [(0, 1), (40, 1), (60, 0.5), (80, 0), (1e9, 0)])
def test_visits_that_projected_noise_explains_show_nobody(visits, expected):
    assert unseen_states(seen_belief(visits, 40.0))[0, 0] == pytest.approx(expected)


def test_noise_explains_more_visits_where_more_counters_lead():
    # Ten counters keep 0.4 standard deviations of nothing each, in the mean: four times the lean.
    found = [unseen_states(seen_belief(x, 40.0, states=10))[0, 0] for x in (150, 240, 330)]
    assert found == pytest.approx([1.0, 2 - 240 / (40 * 10 * 0.39894), 0.0], abs=1e-4)


def test_the_last_step_is_seen_by_its_rewards_unless_its_transitions_are_pooled():
    evidence = Evidence.empty(2, 2, 1)
    evidence.moves[0, :, 0, BIAS] = 40.0
    evidence.moves[0, 1, 0, VISITS] = evidence.gains[1, 0, 0, VISITS] = 100.0
    none = np.zeros((2, 1), bool)
    alone = unseen_states(believed(evidence, Pooled(none, none)))
    assert alone.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    evidence.moves[0, 0, 0, BIAS] = 60.0  # by the noise of the step before
    assert unseen_states(believed(evidence, Pooled(none, none)))[1, 0] == pytest.approx(1 / 3)
    evidence.moves[0, 0, 0, BIAS] = 40.0
    pooled = unseen_states(believed(evidence, Pooled(~none, none)))
    assert pooled.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_without_noise_anybody_is_seen():
    assert unseen_states(seen_belief(1.0, 0.0))[0].tolist() == [0.0, 1.0]


def test_of_a_declared_problem_the_visits_of_all_steps_count():
    evidence = Evidence.empty(1, 2, 1)
    evidence.moves[0, :, 0, VISITS], evidence.moves[0, :, 0, BIAS] = [100.0, 10.0], 40.0
    everything = np.ones((2, 1), bool)
    assert unseen_states(believed(evidence, Pooled(everything, everything))).tolist() == [[0, 1]]
