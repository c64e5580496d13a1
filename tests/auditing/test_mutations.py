"""Deliberately broken mechanisms: each must be caught."""

import dataclasses

import numpy as np
import pytest

from discreet.auditing import check_mechanism
from discreet.auditing.attack import epsilon_low
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, SimulationSampler
from discreet.privacy.mechanisms.additive import AdditiveBatch, AdditiveContinual, AdditiveRelease
from discreet.privacy.mechanisms.base import noisy_batch
from discreet.privacy.mechanisms.noise import Laplace
from discreet.privacy.mechanisms.tree import TreeNoise
from discreet.privacy.statistics import PrivateCounts
from helpers.auditing import additive, samples
from helpers.mutations import HalvedInTheCode, as_type, said

SHAPE = Shape(states=2, actions=2, horizon=2)
TINY = Shape(states=1, actions=2, horizon=1)


def attack(plan, delta=0.0, runs=4000, **options):
    sampler = SimulationSampler(np.random.default_rng(7))
    return epsilon_low(*samples(plan, sampler, runs, **options), delta)


class RefusingStrays(AdditiveBatch):
    """No release for a batch in which somebody left the policy."""

    def release(self, counts, *, sampler, support=None):
        if support is not None and counts.outside(support):
            raise InvalidInputError("Expected users who follow the policy.")
        return super().release(counts, sampler=sampler, support=support)


class SharedBetweenCells(AdditiveBatch):
    """One draw for all counters of a statistic, as in public code for these papers."""

    def release(self, counts, *, sampler, support=None):
        return noisy_batch(
            self,
            counts,
            lambda _, n: np.repeat(sampler.discrete_laplace(self.noise.scale, 1), n),
            secure=False,
            support=support,
        )


class FloatNoise(AdditiveBatch):
    """Adds floating-point noise."""

    def release(self, counts, *, sampler, support=None):
        released = noisy_batch(
            self,
            counts,
            lambda _, n: sampler.discrete_gaussian(self.noise.sigma * 1000, n),
            secure=False,
            support=support,
        )
        raw = {name: getattr(counts, name) for name in ("transitions", "visits", "rewards")}
        values = {k: v + (getattr(released, k) - v) / 1000.0 for k, v in raw.items()}
        return PrivateCounts(
            counts.users,
            *values.values(),
            released.noise_variance,
            released.support,
            released.guarantee,
        )


class RedrawnNoise(TreeNoise):
    """Fresh noise at every release, of the size that a tree would have."""

    def rows(self, first, rows, state, sampler):
        return self.distribution.draw(sampler, (rows, state[1].size)) * 1.0


class RedrawnTree(AdditiveContinual):
    def open(self, sampler):
        noise = RedrawnNoise(**vars(self.noise))
        return AdditiveRelease(dataclasses.replace(self, noise=noise), sampler)


@pytest.fixture(scope="module")
def pure():
    return Central(epsilon=1).calibrate(SHAPE)


def test_the_originals_are_fine(pure):
    assert check_mechanism(pure).ok
    assert check_mechanism(Central(epsilon=1, delta=1e-6).calibrate(SHAPE)).ok


def test_halved_noise_in_the_code(pure):
    problems = said(as_type(pure, HalvedInTheCode))
    assert "wrong scale" in problems and "delivers epsilon=2" in problems


def test_halved_noise_is_seen_by_the_attack():
    plan = Central(epsilon=1).calibrate(TINY, statistics=("visits",))
    assert attack(plan) <= 1
    assert attack(as_type(plan, HalvedInTheCode), runs=10_000) > 1


def test_sensitivity_h_instead_of_2h():
    plan = Central(epsilon=1).calibrate(SHAPE)
    wrong = dataclasses.replace(plan, noise=Laplace(3.0 * SHAPE.horizon))
    assert additive(wrong).epsilon(0.0) == pytest.approx(2.0)
    assert "delivers epsilon=2" in said(wrong)


def test_sensitivity_of_one_statistic_for_three():
    plan = Central(epsilon=1, delta=1e-6, mechanism="gaussian").calibrate(SHAPE)
    alone = Central(epsilon=1, delta=1e-6, mechanism="gaussian").calibrate(
        SHAPE, statistics=("visits",)
    )
    assert "delivers epsilon=1.8" in said(dataclasses.replace(plan, noise=alone.noise))


def test_noise_shared_between_cells(pure):
    broken = as_type(pure, SharedBetweenCells)
    assert additive(broken).epsilon(0.0) == np.inf
    assert "share noise" in said(broken)
    assert attack(broken, runs=400) > 2


def test_noise_drawn_again_instead_of_a_tree():
    plan = Central(epsilon=1, mechanism="tree-laplace").calibrate_stream(
        TINY, episodes=16, statistics=("visits",)
    )
    broken = as_type(plan, RedrawnTree)
    assert additive(plan).epsilon(0.0) == pytest.approx(1.0)
    assert additive(broken).epsilon(0.0) == pytest.approx(16 / 4)  # 16 releases, 4 levels
    assert "delivers epsilon=4" in said(broken)


def test_averaging_sees_noise_that_is_drawn_again():
    plan = Central(epsilon=1, mechanism="tree-laplace").calibrate_stream(
        TINY, episodes=2048, statistics=("visits",)
    )
    assert attack(plan, runs=500) <= 1
    assert attack(as_type(plan, RedrawnTree), runs=500) > 1


def test_floating_point_noise():
    plan = Central(epsilon=1, delta=1e-6).calibrate(SHAPE)
    assert "Floating-point noise" in said(as_type(plan, FloatNoise))


def test_refusal_of_who_left_the_policy(pure):
    assert "leaves the policy is refused" in said(as_type(pure, RefusingStrays))


def test_printed_local_constants_deliver_twice_epsilon():
    with pytest.warns(UserWarning, match="deliver"):
        trust = Local(epsilon=1, mechanism="laplace", calibration="paper")
        plan = trust.calibrate_stream(SHAPE, episodes=4)
    assert additive(plan).epsilon(0.0) == pytest.approx(2.0)
    assert plan.guarantee.epsilon == pytest.approx(2.0)
    assert check_mechanism(plan).ok  # it says so itself
