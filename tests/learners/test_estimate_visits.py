"""Noise of visits by step: against the variance of the projection, and by hand."""

import numpy as np
import pytest

import discreet
from discreet.learners.estimate import mechanism_factors, visit_noise_factors
from discreet.learners.learn import public_facts
from discreet.mdp import make
from discreet.privacy.projection.flow import consistent_flow
from discreet.privacy.projection.measurements import Measurements


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
