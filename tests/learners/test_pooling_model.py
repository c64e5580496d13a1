"""What flow-ucb believes: sums over steps where pooled, and the lean of projected noise."""

import numpy as np
import pytest

from discreet.learners.estimate import BIAS, NOISE, VISITS, CountSums
from discreet.learners.flow_ucb.planning import unseen_states
from discreet.learners.pooling import PROJECTION_BIAS, Pooled, estimated


def evidence_of(seed):
    rng = np.random.default_rng(seed)
    sums = CountSums.empty(3, 2, 2)
    sums.number[:] = np.arange(12).reshape(3, 2, 2)
    sums.transitions[:] = rng.uniform(1, 5, (12, 2))
    sums.transition_sums[:] = rng.uniform(1, 5, sums.transition_sums.shape)
    sums.transition_sums[..., VISITS] = sums.transitions.sum(axis=1).reshape(3, 2, 2)
    sums.reward_sums[:] = rng.uniform(1, 5, sums.reward_sums.shape)
    return sums


@pytest.mark.parametrize("seed", range(3))
def test_sums_are_over_steps_exactly_where_they_are_pooled(seed):
    sums = evidence_of(seed)
    pooled = Pooled(
        np.array([[True, False], [False, True]]), np.array([[False, False], [False, True]])
    )
    model = estimated(sums, pooled)
    for h in range(3):
        for s in range(2):
            for a in range(2):
                transition_sums, reward_sums = (
                    sums.transition_sums[h, s, a],
                    sums.reward_sums[h, s, a],
                )
                counts = sums.transitions[sums.number[h, s, a]]
                if pooled.transitions[s, a]:
                    transition_sums = sums.transition_sums[:, s, a].sum(axis=0)
                    counts = sums.transitions[sums.number[:, s, a]].sum(axis=0)
                if pooled.rewards[s, a]:
                    reward_sums = sums.reward_sums[:, s, a].sum(axis=0)
                expected = transition_sums.copy()
                expected[NOISE] += (PROJECTION_BIAS * transition_sums[BIAS]) ** 2
                np.testing.assert_allclose(model.transition_sums[h, s, a], expected)
                np.testing.assert_allclose(model.reward_sums[h, s, a], reward_sums)
                row = model.probabilities[model.number[h, s, a]]
                np.testing.assert_allclose(row, counts / counts.sum())


def test_the_lean_grows_with_batches_where_noise_averages_out():
    # A hundred batches of noise 1: the variance of their sum is 100, their lean 20 either way.
    sums = CountSums.empty(1, 1, 1)
    sums.transition_sums[0, 0, 0, NOISE], sums.transition_sums[0, 0, 0, BIAS] = 100.0, 100.0
    pooled = Pooled(np.zeros((1, 1), bool), np.zeros((1, 1), bool))
    assert estimated(sums, pooled).transition_sums[0, 0, 0, NOISE] == pytest.approx(100 + 400)


def test_evidence_is_left_as_it_is():
    sums = evidence_of(0)
    before = [array.copy() for array in sums]
    everything = np.ones((2, 2), bool)
    estimated(sums, Pooled(everything, everything))
    for one, other in zip(before, sums, strict=True):
        np.testing.assert_array_equal(one, other)


def seen_belief(transition_sums, lean, states=2):
    """Two steps; state 0 had so many visits by one of two actions; the last step shows rewards."""
    sums = CountSums.empty(2, states, 2)
    sums.transition_sums[0, 0, 0, VISITS], sums.transition_sums[0, 0, 0, BIAS] = (
        transition_sums,
        lean,
    )
    none = np.zeros((states, 2), bool)
    return estimated(sums, Pooled(none, none))


@pytest.mark.parametrize(("visits", "expected"), [(0, 1), (40, 1), (60, 0.5), (80, 0), (1e9, 0)])
def test_visits_that_projected_noise_explains_show_nobody(visits, expected):
    assert unseen_states(seen_belief(visits, 40.0))[0, 0] == pytest.approx(expected)


def test_noise_explains_more_visits_where_more_counters_lead():
    # Ten counters keep 0.4 standard deviations of nothing each, in the mean: four times the lean.
    found = [unseen_states(seen_belief(x, 40.0, states=10))[0, 0] for x in (150, 240, 330)]
    assert found == pytest.approx([1.0, 2 - 240 / (40 * 10 * 0.39894), 0.0], abs=1e-4)


def test_the_last_step_is_seen_by_its_rewards_unless_its_transitions_are_pooled():
    sums = CountSums.empty(2, 2, 1)
    sums.transition_sums[0, :, 0, BIAS] = 40.0
    sums.transition_sums[0, 1, 0, VISITS] = sums.reward_sums[1, 0, 0, VISITS] = 100.0
    none = np.zeros((2, 1), bool)
    alone = unseen_states(estimated(sums, Pooled(none, none)))
    assert alone.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    sums.transition_sums[0, 0, 0, BIAS] = 60.0  # by the noise of the step before
    assert unseen_states(estimated(sums, Pooled(none, none)))[1, 0] == pytest.approx(1 / 3)
    sums.transition_sums[0, 0, 0, BIAS] = 40.0
    pooled = unseen_states(estimated(sums, Pooled(~none, none)))
    assert pooled.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_without_noise_anybody_is_seen():
    assert unseen_states(seen_belief(1.0, 0.0))[0].tolist() == [0.0, 1.0]


def test_of_a_declared_problem_the_visits_of_all_steps_count():
    sums = CountSums.empty(1, 2, 1)
    sums.transition_sums[0, :, 0, VISITS], sums.transition_sums[0, :, 0, BIAS] = [100.0, 10.0], 40.0
    everything = np.ones((2, 1), bool)
    assert unseen_states(estimated(sums, Pooled(everything, everything))).tolist() == [[0, 1]]
