"""Attacks: levels that hold, planted bugs that are convicted, sound mechanisms that are not."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.auditing.attack import discriminant, epsilon_bound, epsilon_low, watched
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from helpers import toys
from helpers.auditing import samples, target_path
from helpers.calibrating import calibrated
from helpers.curves import exact_binomial
from helpers.properties import given, st
from helpers.sampling import sampler

TINY = Shape(states=1, actions=2, horizon=1)


def fired(times, total):
    return np.arange(total) < times


def rng_samples(seed, runs, shift, scale=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(0, scale, (runs, 1)), rng.normal(shift, scale, (runs, 1))


# --- Clopper-Pearson -----------------------------------------------------------------------------


@pytest.mark.parametrize("total", [10, 25])
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_bounds_fail_no_more_often_than_allowed(total, level):
    """Exactly: the probability of all counts whose bound is above the true epsilon."""
    for p, q in ((0.5, 0.25), (0.75, 0.75), (0.9, 0.1)):
        truth = math.log(p / q)
        law_p, law_q = exact_binomial(total, p), exact_binomial(total, q)
        wrong = Fraction(0)
        for hits, one in law_p.items():
            for misses, other in law_q.items():
                if (
                    epsilon_bound(fired(hits, total), fired(misses, total), 0.0, level)
                    > truth + 1e-12
                ):
                    wrong += one * other
        assert wrong <= 1 - level


@pytest.mark.parametrize(("hits", "misses"), [(7, 2), (10, 0), (3, 3), (1, 9)])
def test_bounds_are_the_tails_of_binomials(hits, misses):
    """At the two bounds what was seen, or more extreme, has exactly the allowed probability."""
    total, level = 10, 0.9
    tail = (1 - level) / 2
    found = epsilon_bound(fired(hits, total), fired(misses, total), 0.0, level)

    def low():
        """The p at which so many hits or more have probability ``tail``."""
        return bisect(
            lambda p: sum(float(exact_binomial(total, p)[k]) for k in range(hits, total + 1))
        )

    def high():
        return bisect(
            lambda q: 1 - sum(float(exact_binomial(total, q)[k]) for k in range(misses + 1)),
            1 - tail,
        )

    def bisect(rising, goal=tail):
        a, b = 0.0, 1.0
        for _ in range(40):
            a, b = ((a + b) / 2, b) if rising((a + b) / 2) < goal else (a, (a + b) / 2)
        return a

    assert found == pytest.approx(math.log(low() / high()), abs=1e-6)


def test_no_hits_prove_nothing_and_delta_is_taken_off():
    assert epsilon_bound(fired(0, 50), fired(0, 50), 0.0, 0.9) == -math.inf
    plain, loose = (epsilon_bound(fired(45, 50), fired(2, 50), delta, 0.9) for delta in (0.0, 0.3))
    assert loose < plain
    assert epsilon_bound(fired(45, 50), fired(2, 50), 0.9, 0.9) == -math.inf
    assert epsilon_bound(fired(50, 50), fired(50, 50), 0.0, 0.9) <= 0


@given(st.integers(0, 20), st.integers(0, 20))
def test_more_confidence_proves_less(hits, misses):
    bounds = [
        epsilon_bound(fired(hits, 20), fired(misses, 20), 0.0, level) for level in (0.9, 0.999)
    ]
    assert bounds[1] <= bounds[0]


# --- the attack ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_an_attack_on_nothing_proves_nothing(seed):
    assert epsilon_low(*rng_samples(seed, 600, 0.0), 0.0) == 0.0


@pytest.mark.parametrize("flip", [0.1, 0.3])
def test_an_attack_stays_below_the_truth(flip):
    truth = math.log((1 - flip) / flip)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        one = (rng.random((2000, 1)) < flip).astype(float)
        other = (rng.random((2000, 1)) >= flip).astype(float)
        low = epsilon_low(one, other, 0.0)
        assert 0.5 * truth < low <= truth


def test_both_directions_are_attacked():
    """A test that fires rarely, and never on the other: only one order of the data convicts."""
    rng = np.random.default_rng(0)
    rare = (rng.random((4000, 1)) < 0.25).astype(float)
    never = np.zeros((4000, 1))
    assert epsilon_low(rare, never, 0.0) > 3
    assert epsilon_low(never, rare, 0.0) > 3


def test_delta_is_no_evidence():
    """What happens with probability delta proves no epsilon."""
    rng = np.random.default_rng(1)
    rare = (rng.random((4000, 1)) < 0.05).astype(float)
    assert epsilon_low(rare, 0 * rare, 0.0) > 0.5
    assert epsilon_low(rare, 0 * rare, 0.06) == 0.0


def test_the_halves_do_not_mix():
    """A test chosen on the second half as well would convict pure chance."""
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=(2, 200, 250))  # more outputs than runs: chance separates
    assert epsilon_low(first, second, 0.0) == 0.0


def test_a_combination_without_noise_gets_all_the_weight():
    """Shared noise: the difference of two numbers betrays the data, each alone hides it."""
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 100, (400, 1))
    first, second = noise + np.array([0.0, 1.0]), rng.permutation(noise) + np.array([0.0, 0.0])
    weights = discriminant(first, second)
    assert weights[0] == pytest.approx(-weights[1], rel=1e-6)
    assert epsilon_low(first, second, 0.0) > 2


def test_the_discriminant_of_equal_samples_is_nothing():
    same = np.ones((10, 2))
    assert not discriminant(same, same).any()


def test_the_discriminant_is_scaled_to_one():
    first, second = rng_samples(4, 100, 3.0)
    assert np.abs(discriminant(first, second)).max() == 1.0


@pytest.mark.parametrize(
    ("first", "second"),
    [((7, 1), (7, 1)), ((8, 1), (9, 1)), ((8, 1), (8, 2)), ((8,), (8,))],
)
def test_samples_that_do_not_match_are_refused(first, second):
    with pytest.raises(InvalidInputError, match=r"two equal \[runs >= 8, outputs\] arrays, got"):
        epsilon_low(np.zeros(first), np.zeros(second), 0.0)
    with pytest.raises(InvalidInputError, match="delta"):
        epsilon_low(np.zeros((8, 1)), np.zeros((8, 1)), 1.0)


# --- what is watched -----------------------------------------------------------------------------


def low(release, runs=2000, delta=0.0, **options):
    return epsilon_low(*watched(toys.toy(release, **options), sampler(), runs), delta)


def halved(data, sampler):
    return data + sampler.discrete_laplace(1.0, data.size)


def test_planted_bugs_are_convicted_and_sound_noise_is_not():
    """Two numbers that move by one at scale two: epsilon is 1."""
    assert low(toys.laplace) <= 1
    assert low(halved, 8000) > 1
    assert low(toys.shared, 300) > 2
    assert low(lambda d, s: d + 0.001 * s.discrete_laplace(2.0, d.size), 300) > 2


def test_outputs_that_never_vary_are_left_out():
    path = toys.toy(lambda d, s: np.r_[7.0, toys.laplace(d, s), 9.0])
    first, second = watched(path, sampler(), 20)
    assert first.shape == second.shape == (20, 2)


def test_outputs_that_tell_without_noise_are_kept():
    path = toys.toy(lambda d, s: np.r_[d[0], toys.laplace(d, s)])
    first, second = watched(path, sampler(), 20)
    assert first.shape[1] == 3
    assert (first[:, 0] == 0).all() and (second[:, 0] == 1).all()


def test_of_a_stream_the_first_the_last_and_the_average():
    def stream(data, sampler):
        return np.r_[1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 99.0] + data[0] + 0 * sampler.secure

    path = toys.toy(stream, (0,), other=(1,), path={"releases": 3, "cells": 2})
    first, second = watched(path, sampler(), 8)
    assert first[0].tolist() == [1, 2, 5, 9, 3, 5]  # what follows the releases is not looked at
    assert (second - first == 1).all()


def test_averages_betray_noise_that_is_drawn_again():
    def redrawn(data, sampler):
        return data[0] + sampler.discrete_laplace(4.0, 400)

    path = {"releases": 400, "cells": 1}
    assert low(redrawn, 300, base=(0,), other=(1,), path=path) > 0.5

    def kept(data, sampler):
        return data[0] + np.repeat(sampler.discrete_laplace(4.0, 1), 400)

    assert low(kept, 300, base=(0,), other=(1,), path=path) <= 0.25


# --- plans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trust", "options", "way"),
    [
        (Central(1), {}, "release"),
        (Local(1), {}, "release_reports"),
        (Shuffle(1, 1e-3, mechanism="bits"), {}, "release_reports"),
        (Central(1), {"schedule": "continual", "episodes": 3}, "block"),
        (Local(1, mechanism="one-step"), {"schedule": "continual", "episodes": 3}, "add"),
    ],
)
def test_the_way_that_an_attacker_would_choose(trust, options, way):
    plan = calibrated(trust, TINY, statistics=("visits",), **options)
    assert target_path(plan).name == way


def test_a_sound_plan_is_not_convicted():
    plan = Central(1).calibrate(TINY, statistics=("visits",))
    found = samples(plan, sampler(3), 400)
    assert epsilon_low(*found, 0.0) <= 1
    assert found[0].shape == found[1].shape
