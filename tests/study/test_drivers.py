"""Courses: one learner under one trust model, whatever its schedule."""

import numpy as np
import pytest

import discreet
from discreet.errors import StudyError, UnknownNameError, UnsupportedError
from discreet.learners.learn import public_facts
from discreet.mdp.simulation import sample_trajectories
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.study.drivers import (
    BatchDriver,
    ContinualDriver,
    check_reports_or_episodes,
    make_driver,
)
from helpers.studies import RIVER

PROBLEM = public_facts(RIVER, 500)


def made(learner="flow-ucb", trust=None, **settings):
    rng = np.random.default_rng(1)
    sampler = SimulationSampler(np.random.default_rng(2))
    trust = trust or discreet.Central(1, 1e-6)
    return make_driver(learner, PROBLEM, trust, rng, settings, sampler=sampler, seal=None)


def told(driver, seed, users):
    data = sample_trajectories(RIVER, driver.ask().policy, users, np.random.default_rng(seed))
    sampler = SimulationSampler(np.random.default_rng(seed))
    released = driver.release(data, users, sampler=sampler, rounding=np.random.default_rng(0))
    driver.learn(released)
    return released


@pytest.mark.parametrize(
    ("learner", "kind", "size"), [("flow-ucb", BatchDriver, None), ("dp-ucbvi", ContinualDriver, 1)]
)
def test_both_schedules_ask_release_learn_and_go_on(learner, kind, size):
    driver, again = made(learner), made(learner)
    assert isinstance(driver, kind)
    assert size is None or driver.ask().users == size
    assert told(driver, 1, 5).users == 5
    question = driver.ask()
    again.restore(driver.state())
    assert again.ask().policy.key == question.policy.key
    assert again.ask().users == question.users


def test_who_is_trusted_decides_what_is_taken():
    central, local = made(), made(trust=discreet.Local(1))
    shuffle = made(trust=discreet.Shuffle(1, 1e-6))
    assert [one.encoded for one in (central, local, shuffle)] == [False, True, True]
    assert [one.fixed for one in (central, local, shuffle)] == [False, False, True]
    data = sample_trajectories(RIVER, central.ask().policy, 3, np.random.default_rng(0))
    check_reports_or_episodes(central, data, 3)
    check_reports_or_episodes(local, np.zeros((3, 3)), 3)
    with pytest.raises(StudyError, match="never raw trajectories"):
        check_reports_or_episodes(shuffle, data, 3)
    with pytest.raises(StudyError, match="got ndarray"):
        check_reports_or_episodes(central, np.zeros((3, 3)), 3)


def test_learners_without_a_course():
    with pytest.raises(UnsupportedError, match="runs only in simulations"):
        made("private-uob-lbps", discreet.NoPrivacy())
    with pytest.raises(UnsupportedError, match="releases after every user"):
        made("pucb", discreet.Shuffle(1, 1e-6))
    with pytest.raises(UnknownNameError, match="did you mean"):
        made(confidenze=2.0)
