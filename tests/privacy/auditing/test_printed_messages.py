"""The printed shuffle protocol: two users are enough to see it fail."""

import math

import numpy as np
import pytest

from discreet.mdp.shape import Shape
from discreet.privacy import SimulationSampler
from discreet.privacy.auditing.attack import epsilon_low
from discreet.privacy.auditing.run import IntegerMessages
from discreet.privacy.mechanisms.bits import printed_shuffle


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (2.0, 1e-3)])
def test_users_and_chances_are_those_of_the_papers(epsilon, delta):
    view = IntegerMessages(epsilon, delta, crowd=0)
    tau = printed_shuffle(Shape(states=4, actions=2, horizon=2), epsilon, delta).tau
    assert view.users == round(10 * tau)
    assert view.chance == pytest.approx(1 / (2 * 10), rel=1e-3)


@pytest.mark.parametrize(("crowd", "seen"), [(0, 0.05), (1, 0.95)])
def test_one_message_betrays_whatever_epsilon_is(crowd, seen):
    """Nobody else can have sent it: its probability is the delta, at every epsilon."""
    view = IntegerMessages(1.0, 1e-6, crowd)
    for epsilon in (0.1, 5.0, 40.0):
        assert view.delta(epsilon) == pytest.approx(seen, rel=1e-3)
    assert view.epsilon(1e-6) == math.inf
    assert view.epsilon(seen * 0.99) == math.inf
    assert view.epsilon(min(1.0, seen * 1.01)) < math.inf


@pytest.mark.parametrize("crowd", [0, 1])
def test_samples_are_the_odd_message(crowd):
    view = IntegerMessages(1.0, 1e-6, crowd)
    first, second = view.samples(SimulationSampler(np.random.default_rng(0)), 2000)
    assert first.shape == second.shape == (2000, 1)
    alone, other = (first, second) if crowd else (second, first)
    assert not other.any()  # who is like the crowd never sends it
    expected = 1 - view.chance if crowd else view.chance
    assert alone.mean() == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("crowd", [0, 1])
def test_an_attack_convicts(crowd):
    view = IntegerMessages(1.0, 1e-6, crowd)
    found = view.samples(SimulationSampler(np.random.default_rng(1)), 8000)
    assert epsilon_low(*found, 1e-6) > 1
