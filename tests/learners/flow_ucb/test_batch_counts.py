"""What a batch is taken to have shown: without bias, rows that sum to the visits of its flow."""

import numpy as np
import pytest

import discreet
from discreet.learners.flow_ucb.batch_counts import DESERTED, batch_counts
from discreet.mdp import TabularMDP
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.simulation import sample_counts
from discreet.privacy.postprocess.flow import released_flow
from discreet.privacy.sampling.samplers import SimulationSampler

USERS, RARE, BATCHES = 600, 0.02, 300
START = np.array([True, False, False, False])
TRUSTS = [discreet.Central(1, 1e-6), discreet.Shuffle(1, 1e-6), discreet.Local(2)]


def doors():
    """State 0 leads to 1 or, rarely, to 2; nobody ever comes to state 3."""
    moves = np.zeros((4, 1, 4))
    moves[0, 0] = [0.5 - RARE, 0.5, RARE, 0.0]
    moves[1, 0] = moves[2, 0] = [1.0, 0.0, 0.0, 0.0]
    moves[3, 0, 3] = 1.0
    return TabularMDP(transitions=moves, rewards=np.zeros((4, 1)), horizon=4)


def releases(trust, batches):
    """The same policy for one batch after another, with the law of all people's counts."""
    mdp, rng = doors(), np.random.default_rng(5)
    plan = trust.calibrate(mdp.shape, statistics=("transitions", "rewards"), last_transitions=False)
    policy = DeterministicPolicy(np.zeros((4, 4), np.int64))
    played = policy.played(mdp.shape, START)
    for _ in range(batches):
        counts = sample_counts(mdp, policy, USERS, rng)
        yield plan.release(counts, sampler=SimulationSampler(rng), played=played)


def counted(release):
    return batch_counts(release, START, np.ones(int(release.played.sum())))


@pytest.mark.parametrize("trust", TRUSTS)
def test_rows_sum_to_the_visits_of_the_flow(trust):
    (release,) = releases(trust, 1)
    transitions, visits = counted(release)
    flow, expected = released_flow(release, START, np.ones(len(visits)))
    np.testing.assert_array_equal(visits, expected)
    steps = np.nonzero(release.played)[0]
    np.testing.assert_allclose(transitions[steps < 3].sum(axis=1), visits[steps < 3], atol=1e-6)
    assert not transitions[steps == 3].any()  # nothing is released of the last step
    assert (transitions < 0).any() and not (flow < 0).any()


def test_exact_counts_stay_as_they_are():
    (release,) = releases(discreet.NoPrivacy(), 1)
    transitions, visits = counted(release)
    np.testing.assert_array_equal(transitions, release.row_transitions)
    assert visits.sum() == 4 * USERS


@pytest.mark.parametrize("trust", TRUSTS[:2])
def test_a_rare_way_is_counted_without_bias_where_the_flow_leans(trust):
    # 12 of 600 users take it, less than the noise of one batch; the flow's own counts are off by
    # many standard deviations of their mean over 300 batches.
    found, leaning, visits = np.zeros(4), np.zeros(4), 0.0
    for release in releases(trust, BATCHES):
        transitions, seen = counted(release)
        flow, _ = released_flow(release, START, np.ones(len(seen)))
        found, leaning, visits = found + transitions[0], leaning + flow[0], visits + seen[0]
    assert visits == pytest.approx(BATCHES * USERS)
    variance = release.noise_variance["transitions"] / BATCHES
    deviation = np.sqrt(variance + USERS * RARE / BATCHES)
    truth = USERS * RARE
    assert truth < np.sqrt(release.noise_variance["transitions"])
    assert abs(leaning[2] / BATCHES - truth) > 6 * deviation
    assert abs(found[2] / BATCHES - truth) < 4 * deviation


def test_places_where_the_flow_has_hardly_anybody_keep_its_counts():
    alone = 0
    for release in releases(discreet.Central(1, 1e-6), 20):
        transitions, visits = counted(release)
        flow, _ = released_flow(release, START, np.ones(len(visits)))
        steps = np.nonzero(release.played)[0]
        limit = DESERTED * np.sqrt(release.noise_variance["transitions"])
        for i, h in enumerate(steps):
            for j in np.flatnonzero(flow[steps == h].sum(axis=0) <= limit):
                assert transitions[i, j] == flow[i, j]
                alone += 1
            if visits[i] == 0:
                assert not transitions[i].any()
    assert alone > 20
