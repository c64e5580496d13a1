"""The value of behaviour at a step, by hand."""

import numpy as np
import pytest

from discreet.offline import improvement
from helpers.offline import evidence_of, slot_rows

pytestmark = pytest.mark.core

LATER = improvement.Later(np.array([0.0, 1.0]), np.zeros(2), np.array([0.0, 0.5]))
UNKNOWN = np.full((2, 2), np.nan)
P = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]])
R = np.array([[0.2, 0.6], [0.5, 0.5]])


def rows(probabilities, rewards, visits, noise=0.0):
    """Rows of any shape, with ``noise`` as the variance of their visits."""
    n = np.broadcast_to(visits, rewards.shape) * 1.0
    return slot_rows(probabilities * n[..., None], n, rewards * n, visit_noise=noise)


def evidence(visits, pooled_visits, noise=0.0):
    """One step, two states, two slots; the pool knows the rows ``P`` and ``R``."""
    own = rows(P[None], R[None], np.asarray(visits, float)[None], noise)
    total = own.visits.sum(axis=2)
    some = np.maximum(total, 1e-9)
    state = rows(
        own.rows.transitions.sum(axis=2) / some[..., None],
        own.rows.rewards.sum(axis=2) / some,
        total,
        noise,
    )
    pool = rows(P[None], R[None], np.asarray(pooled_visits, float))
    return evidence_of(int(total.sum()), own, state, pool, np.ones((2, 2), bool))


def both(found):
    own = improvement.own_step(found.behaviour.layer(0), LATER, 1)
    return own, improvement.with_pool(
        own, found, 0, improvement.action_rows(found, 0, UNKNOWN), LATER, 1
    )


def test_its_own_step_adds_up_what_people_did():
    own, _ = both(evidence([[30.0, 10.0], [20.0, 20.0]], 1.0))
    assert own.values == pytest.approx([0.75 * 0.2 + 0.25 * (0.6 + 0.5), 1.5])
    assert own.probabilities[0] == pytest.approx([0.875, 0.125])
    assert own.known.all()


def test_a_pool_that_knows_better_keeps_the_value_and_takes_variance_away():
    own, pooled = both(evidence([[30.0, 10.0], [20.0, 20.0]], 1e12))
    assert pooled.values == pytest.approx(own.values)
    assert pooled.probabilities == pytest.approx(own.probabilities)
    assert (pooled.variance < own.variance).all()
    # What is left is who took which action: 40 people, shares 3/4 and 1/4, values 0.2 and 1.1.
    spread = 0.75 * (0.2 - 0.425) ** 2 + 0.25 * (1.1 - 0.425) ** 2
    assert pooled.variance[0] == pytest.approx(spread / 40, rel=1e-6)
    assert pooled.variance[1] == pytest.approx(0, abs=1e-9)


def test_noise_on_the_visits_is_noise_on_the_shares():
    _, quiet = both(evidence([[3000.0, 1000.0]] * 2, 1e12))
    _, noisy = both(evidence([[3000.0, 1000.0]] * 2, 1e12, noise=100.0))
    more = 100 * ((0.2 - 0.425) ** 2 + (1.1 - 0.425) ** 2) / (4000 - 20) ** 2
    sampled = quiet.variance[0] * (4000 / 3980) ** 2
    assert noisy.variance[0] == pytest.approx(sampled + more, rel=1e-6)


def test_a_pool_that_knows_less_changes_nothing():
    own, pooled = both(evidence([[300.0, 100.0], [200.0, 200.0]], 1.0))
    for before, after in zip(own, pooled, strict=True):
        assert np.array_equal(before, after)


def test_a_state_in_which_nobody_was_stays_unknown():
    own, pooled = both(evidence([[30.0, 10.0], [0.0, 0.0]], 1e12))
    assert own.known.tolist() == pooled.known.tolist() == [True, False]
    assert pooled.variance[1] == own.variance[1]


def test_known_rewards_replace_estimates():
    known = np.array([[np.nan, 0.9], [np.nan, np.nan]])
    found = improvement.action_rows(evidence([[30.0, 10.0]] * 2, 1e12), 0, known)
    assert found.rewards.tolist() == [[0.2, 0.9], [0.5, 0.5]]


def test_what_is_won_later_is_carried_back_with_caution():
    found = evidence([[3000.0, 1000.0]] * 2, 1e12)
    rows_here = found.behaviour.layer(0)
    own = improvement.own_step(rows_here, LATER, 1)
    kept = improvement.kept_gain(rows_here, own, LATER.gain, 2.0)
    pooled = improvement.kept_gain_of_pool(
        found, 0, improvement.action_rows(found, 0, UNKNOWN), LATER.gain, 2.0
    )
    exact = np.array([0.125 * 0.5, 0.5])
    assert (kept < exact).all()
    assert (kept <= pooled).all()
    assert (pooled <= exact + 1e-12).all()
    assert improvement.kept_gain(rows_here, own, LATER.gain, 0.0) == pytest.approx(exact)
    assert improvement.kept_gain(rows_here, own, np.zeros(2), 2.0).tolist() == [0, 0]


def test_nothing_is_carried_back_through_unknown_behaviour():
    found = evidence([[3000.0, 1000.0], [0.0, 0.0]], 1e12)
    rows_here = found.behaviour.layer(0)
    own = improvement.own_step(rows_here, LATER, 1)
    assert improvement.kept_gain(rows_here, own, LATER.gain, 0.0)[1] == 0
    actions = improvement.action_rows(found, 0, UNKNOWN)
    assert improvement.kept_gain_of_pool(found, 0, actions, LATER.gain, 0.0)[1] == 0
    assert improvement.kept_gain_of_pool(found, 0, actions, np.zeros(2), 0.0).tolist() == [0, 0]


TOLD = np.array([[[0.75, 0.25], [0.5, 0.5]]])


def test_shares_that_are_told_have_no_variance():
    found = evidence([[30.0, 10.0], [20.0, 20.0]], 1e12)
    _, pooled = both(found)
    _, told = both(found._replace(told=TOLD))
    assert told.values == pytest.approx(pooled.values)
    assert told.variance == pytest.approx(0, abs=1e-9)
    assert pooled.variance[0] > 1e-4


def test_what_is_told_and_all_known_needs_nobody_at_this_step():
    found = evidence([[0.0, 0.0], [20.0, 20.0]], 1e12)
    _, pooled = both(found)
    _, told = both(found._replace(told=TOLD))
    assert pooled.known.tolist() == [False, True]
    assert told.known.tolist() == [True, True]
    assert told.values[0] == pytest.approx(0.75 * 0.2 + 0.25 * 1.1)
    actions = improvement.action_rows(found, 0, UNKNOWN)
    kept = [
        improvement.kept_gain_of_pool(one, 0, actions, LATER.gain, 2.0)
        for one in (found, found._replace(told=TOLD))
    ]
    assert kept[0][0] == 0
    assert kept[1][0] == pytest.approx(0.25 * 0.5 * 0.5, abs=1e-5)


def test_what_is_told_and_not_all_known_stays_unknown():
    found = evidence([[0.0, 0.0], [20.0, 20.0]], [[1e12, 0.0], [1e12, 1e12]])
    _, told = both(found._replace(told=TOLD))
    assert told.known.tolist() == [False, True]
