"""Evidence: rows of releases and their sums, a resumed learner, and the noise of visits by step."""

from types import SimpleNamespace

import numpy as np
import pytest

import discreet
from discreet.learners.estimate import (
    NOISE,
    TOTAL,
    VISITS,
    CountSums,
    ReleasedRows,
    mechanism_factors,
    visit_noise_factors,
)
from discreet.learners.learn import public_facts
from discreet.mdp import make
from discreet.mdp.shape import Shape
from discreet.privacy.projection.flow import consistent_flow
from discreet.privacy.projection.measurements import Measurements
from discreet.privacy.statistics import PrivateCounts

pytestmark = pytest.mark.core


def released(rows, transitions):
    visits = np.asarray(transitions, float).sum(axis=1)
    return ReleasedRows(
        rows, np.asarray(transitions, float), visits, visits / 2, visits, visits, 1.0, 2.0, 3.0
    )


def test_rows_get_their_places_in_the_order_in_which_they_are_filled():
    sums = CountSums.empty(2, 3, 2)
    rows = (np.array([1, 0, 1]), np.array([2, 0, 0]), np.array([0, 1, 1]))
    filled = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]])
    sums.add(released(rows, filled), 1.0, 1.0)
    assert sums.number[rows].tolist() == [1, -1, 0]
    assert sums.transitions[:3].tolist() == [[0, 3, 0], [1, 0, 2], [0, 0, 0]]
    sums.add(released(rows, np.ones((3, 3))), 0.5, 1.0)
    assert sums.number[rows].tolist() == [1, 2, 0]
    assert sums.transitions[:3].tolist() == [[0.5, 3.5, 0.5], [1.5, 0.5, 2.5], [0.5, 0.5, 0.5]]


def test_a_layer_has_sums_and_variances_with_weights_and_their_squares():
    sums = CountSums.empty(1, 2, 2)
    rows = (np.array([0, 1]), np.array([0, 0]), np.array([1, 1]))  # steps are one
    sums.add(released(rows, [[4, 0], [0, 2]]), 0.5, 0.5)
    layer = sums.layer(1)
    assert layer.transitions[0].tolist() == [[0, 0], [2, 1]]
    assert [float(part[0, 1]) for part in layer[1:]] == [3, 1.5, 1.5, 0.5, 1, 1.5]
    assert float(layer.certain(2)[0, 1]) == 3 - 2 * 1.5**0.5


def release_of(transitions, rewards, noise, last=True):
    """As a mechanism hands it out, with S = A = 2; visits are not released."""
    transitions = np.asarray(transitions, float)
    return PrivateCounts(
        users=int(transitions[0].sum()),
        transitions=transitions,
        visits=None,
        rewards=np.asarray(rewards, float),
        noise_variance={"transitions": noise, "rewards": noise},
        support=np.ones(transitions.shape[:3], np.bool_),
        guarantee=None,
        last_transitions=last,
    )


def mechanism_of(noise, per_visit, horizon, last=True):
    return SimpleNamespace(
        shape=Shape(2, 2, horizon),
        min_users=1,
        noise_variance=lambda users: {"transitions": noise, "rewards": noise},
        last_transitions=last,
        visit_variance=per_visit,
        reward_visit_variance=per_visit / 4,
    )


EVEN = np.full((1, 2, 2), 0.5)


def test_variances_are_of_the_visits_that_were_expected_where_noise_made_them_fewer():
    # All four rows were to have 16 visits; 6, 20, 19 and 19 were seen. Were variances of the 6, a
    # row that noise has emptied would look more certain than one that it has filled.
    visits, expected = np.array([6.0, 20.0, 19.0, 19.0]), np.full((1, 2, 2), 16.0)
    flow = np.stack([visits, 0 * visits], axis=-1).reshape(1, 2, 2, 2)
    counts = release_of(flow, visits.reshape(1, 2, 2) / 2, 4.0)
    mechanism, start = mechanism_of(4.0, 1.0, 1), np.ones(2, np.bool_)
    found = ReleasedRows.of(counts, EVEN, start, mechanism, expected)
    seen = np.array([16.0, 20.0, 19.0, 19.0])
    np.testing.assert_allclose(found.visits, visits)
    np.testing.assert_allclose(found.rewards, visits / 2)
    np.testing.assert_allclose(found.sampling, (1 + 1) * seen)
    np.testing.assert_allclose(found.reward_sampling, seen)
    np.testing.assert_allclose(found.reward_noise, 4 + seen / 4)
    factors = visit_noise_factors(2, 1, 2)
    np.testing.assert_allclose(found.visit_variance, 4 * factors[0] + seen / 2)
    plain = ReleasedRows.of(counts, EVEN, start, mechanism)
    np.testing.assert_allclose(plain.sampling, 2 * visits)


def test_who_took_which_action_at_a_last_step_that_is_not_counted_is_not_certain():
    policy = np.array([[[0.25, 0.75], [0.5, 0.5]]] * 2)
    flow = np.zeros((2, 2, 2, 2))
    flow[0, 0] = [[10.0, 10.0], [40.0, 20.0]]
    counts = release_of(flow, np.zeros((2, 2, 2)), 0.0, last=False)
    start, mechanism = np.array([True, False]), mechanism_of(0.0, 0.0, 2, last=False)
    found = ReleasedRows.of(counts, policy, start, mechanism)
    last = found.rows[0] == 1
    assert found.visits[last].tolist() == [12.5, 37.5, 15.0, 15.0]
    assert found.visit_variance[last].tolist() == [12.5 * 0.75, 37.5 * 0.25, 7.5, 7.5]
    assert not found.visit_variance[~last].any()
    assert (found.rows[1][~last] == 0).all()  # nobody begins elsewhere
    foretold = ReleasedRows.of(counts, policy, start, mechanism, np.ones((2, 2, 2)))
    assert not foretold.visit_variance.any()


def test_pooled_sums_are_those_of_all_steps():
    sums = CountSums.empty(2, 2, 2)
    rows = (np.array([0, 1, 1]), np.array([1, 0, 1]), np.array([0, 1, 0]))
    sums.add(released(rows, [[3, 0], [1, 1], [0, 2]]), 1.0, 0.5)
    pooled = sums.pooled()
    assert pooled.layer(0).transitions[1, 0].tolist() == [3, 2]
    assert pooled.layer(0).transitions[0, 1].tolist() == [1, 1]
    assert pooled.reward_sums[0, 1, 0, VISITS] == 2.5
    assert pooled.transition_sums[0, 1, 0, NOISE] == 2.0
    assert (pooled.number[0] >= 0).tolist() == [[False, True], [True, False]]


def test_plain_values_and_back():
    sums = CountSums.empty(1, 2, 2)
    rows = (np.array([0]), np.array([1]), np.array([0]))
    sums.add(released(rows, [[3.0, 4.0]]), 1.0, 1.0)
    assert sums.transition_sums[0, 1, 0, VISITS] == 7.0
    assert sums.reward_sums[0, 1, 0, TOTAL] == 3.5
    again = CountSums.from_dict(sums.to_dict())
    for one, other in zip(sums, again, strict=True):
        assert np.array_equal(one, other)
    assert len(sums.to_dict()["transitions"]) == 1  # rows that are not in use are left out


def test_nothing_and_back():
    nothing = CountSums.empty(1, 2, 3)
    assert (CountSums.from_dict(nothing.to_dict()).number == -1).all()


def test_visit_noise_factors_match_the_projection():
    # Far above zero the projection is linear: its variance is that of 4,000 draws, to 20%.
    rng = np.random.default_rng(5)
    support = np.ones((4, 3, 1), bool)
    support[0, 1:] = False
    start, visits = np.array([True, False, False]), []
    for _ in range(4000):
        noisy = (rng.normal(1e6, 1, (4, 3, 1, 3))) * support[..., None]
        flow = consistent_flow(noisy, users=9e6, support=support, start=start)
        ending = Measurements(last_transitions=False)
        short = consistent_flow(noisy, users=9e6, support=support, start=start, measurements=ending)
        visits.append([flow.visits[..., 0], short.visits[..., 0]])
    whole, short = np.var(visits, axis=0)
    expected = visit_noise_factors(3, 4, 1)
    np.testing.assert_allclose(whole[0], 0, atol=1e-9)
    np.testing.assert_allclose(whole[1].mean(), expected[1], rtol=0.2)
    np.testing.assert_allclose(whole[2].mean(), expected[2], rtol=0.2)
    without = visit_noise_factors(3, 4, 1, last_transitions=False)
    np.testing.assert_allclose(short[3].mean(), without[3], rtol=0.2)
    np.testing.assert_array_equal(without[:3], expected[:3])


@pytest.mark.parametrize("starts", [1, 2, 3])
def test_after_two_steps_visits_are_what_came_in_from_the_starts(starts):
    # Far above zero it is linear: its variance is the sum over counters of how far each moves it.
    start, ending = np.arange(3) < starts, Measurements(last_transitions=False)
    support = np.ones((2, 3, 1), bool)
    support[0, ~start] = False

    def visits(noisy):
        flow = consistent_flow(noisy, users=9e6, support=support, start=start, measurements=ending)
        return flow.visits[-1, :, 0]

    counters = np.eye(18)[: 3 * starts].reshape(-1, 2, 3, 1, 3)
    moved = np.array([visits(1e3 + noisy) for noisy in counters]) - visits(
        np.full((2, 3, 1, 3), 1e3)
    )
    factors = visit_noise_factors(3, 2, starts, last_transitions=False)
    np.testing.assert_allclose((moved**2).sum(axis=0), factors[-1])


def test_a_second_look_lowers_the_doubt_by_its_precision():
    # 3 states, 2 of 3 parts free: outflow and inflow have the variance 3 each, the look 2.
    plain, measured_twice = (
        visit_noise_factors(3, 4, 1),
        visit_noise_factors(3, 4, 1, visits_ratio=0.5),
    )
    assert measured_twice[0] == plain[0] == 0
    assert measured_twice[2] == pytest.approx((2 / 3) / (1 / 3 + 1 / 3 + 1 / 2))
    alone = visit_noise_factors(3, 1, 3, visits_ratio=0.5, last_transitions=True)
    assert alone.tolist() == pytest.approx([(2 / 3) / (1 / 3 + 1 / 2)])


def test_a_plan_says_whether_it_looks_twice_and_ends_early():
    mdp = make("RiverSwim", states=4, horizon=6)
    problem = public_facts(mdp, 1000, stationary=False)

    def factors(trust, **what):
        plan = trust.calibrate(mdp.shape, **what)
        return mechanism_factors(mdp.shape, problem.start, plan).tolist()

    central = discreet.Central(1, 1e-6)
    both = ("transitions", "rewards")
    assert (
        factors(central, statistics=both) == visit_noise_factors(4, 6, 1, visits_ratio=0.5).tolist()
    )
    short = factors(central, statistics=both, last_transitions=False)
    assert short == visit_noise_factors(4, 6, 1, last_transitions=False, visits_ratio=0.5).tolist()
    assert factors(central, statistics=("transitions",)) == visit_noise_factors(4, 6, 1).tolist()
    measured_twice = factors(central, statistics=(*both, "visits"))
    assert measured_twice[2] < factors(central, statistics=both)[2]
