"""Sensitivities against brute force over all pairs of episodes."""

import itertools
import math

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms._encoders import episode_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.sensitivity import STATISTICS, sensitivity
from discreet.privacy.statistics import flatten

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


@pytest.mark.core
@pytest.mark.parametrize("stationary", [False, True])
def test_users_who_leave_the_policy_move_no_more(stationary):
    """Every pair of episodes of a small problem, under a policy that most of them leave."""
    shape = Shape(states=2, actions=2, horizon=2)
    played = np.array([[[True, False], [False, False]], [[True, False], [False, True]]])
    vectors = []
    for states in itertools.product(range(2), repeat=3):
        for actions in itertools.product(range(2), repeat=2):
            for bits in itertools.product((0.0, 1.0), repeat=2):
                one = Trajectories(np.array([states]), np.array([actions]), np.array([bits]))
                counts = one.counts(shape, np.random.default_rng(0), played)
                vectors.append(flatten(counts, STATISTICS, stationary=stationary))
    every = np.array(vectors)
    moved = np.abs(every[:, None] - every[None])
    bound = sensitivity(2, stationary=stationary)
    assert moved.sum(axis=-1).max() <= bound.l1
    assert np.sqrt((moved**2).sum(axis=-1).max()) <= bound.l2 + 1e-12
    assert not every.any(axis=1).all()  # some count as nothing at all
