"""Sensitivities against brute force over all pairs of episodes."""

import itertools
import math

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.encoders import episode_counts
from discreet.privacy.noise import SimulationSampler
from discreet.privacy.release import flatten
from discreet.privacy.sensitivity import STATISTICS, sensitivity

SHAPE = Shape(states=2, actions=2, horizon=2)


def all_episodes():
    sampler = SimulationSampler(np.random.default_rng(0))
    for states in itertools.product(range(2), repeat=3):
        for actions in itertools.product(range(2), repeat=2):
            for rewards in itertools.product([0.0, 1.0], repeat=2):
                yield episode_counts(
                    SHAPE, np.array(states), np.array(actions), np.array(rewards), sampler
                )


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize(
    "statistics", [STATISTICS, ("transitions", "rewards"), ("visits",), ("rewards",)]
)
def test_no_pair_of_episodes_moves_further_and_one_moves_as_far(statistics, stationary):
    vectors = [flatten(c, statistics, stationary=stationary) for c in all_episodes()]
    moves = np.array([a - b for a in vectors for b in vectors])
    bound = sensitivity(2, statistics, stationary=stationary)
    assert np.abs(moves).sum(1).max() == bound.l1
    assert np.sqrt((moves**2).sum(1).max()) == pytest.approx(bound.l2)
    assert np.maximum(moves, 0).sum(1).max() == bound.moves
    assert np.abs(moves).max() == bound.pile


@pytest.mark.core
def test_the_three_statistics_together():
    bound = sensitivity(6)
    assert (bound.l1, bound.moves) == (36, 18)
    assert bound.l2 == pytest.approx(math.sqrt(36))
    assert sensitivity(6, stationary=True).l2 == pytest.approx(6 * math.sqrt(6))


@pytest.mark.parametrize("statistics", [(), ("visits", "visits"), ("visit",)])
def test_bad_statistics(statistics):
    with pytest.raises(InvalidInputError):
        sensitivity(6, statistics)


def test_bad_horizon():
    with pytest.raises(InvalidInputError, match="horizon"):
        sensitivity(0)
