"""Sensitivities against brute force over all pairs of episodes."""

import itertools
import math

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms.additive import episode_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.sensitivity import CENTRED, STATISTICS, Sensitivity
from discreet.privacy.statistics import flatten
from discreet.privacy.trust import NoPrivacy

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
    bound = Sensitivity.of(2, statistics, stationary=stationary)
    assert np.abs(moves).sum(1).max() == bound.l1
    assert np.sqrt((moves**2).sum(1).max()) == pytest.approx(bound.l2)
    assert np.maximum(moves, 0).sum(1).max() == bound.moves
    assert np.abs(moves).max() == bound.pile


@pytest.mark.core
def test_the_three_statistics_together():
    bound = Sensitivity.of(6)
    assert (bound.l1, bound.moves) == (36, 18)
    assert bound.l2 == pytest.approx(math.sqrt(36))
    assert Sensitivity.of(6, stationary=True).l2 == pytest.approx(6 * math.sqrt(6))


@pytest.mark.parametrize("statistics", [(), ("visits", "visits"), ("visit",)])
def test_bad_statistics(statistics):
    with pytest.raises(InvalidInputError):
        Sensitivity.of(6, statistics)


def test_bad_horizon():
    with pytest.raises(InvalidInputError, match="horizon"):
        Sensitivity.of(0)


@pytest.mark.core
@pytest.mark.parametrize("stationary", [False, True])
def test_users_who_leave_the_policy_move_no_more(stationary):
    """Every pair of episodes of a small problem, under a policy that most of them leave."""
    shape = Shape(states=2, actions=2, horizon=2)
    support = np.array([[[True, False], [False, False]], [[True, False], [False, True]]])
    vectors = []
    for states in itertools.product(range(2), repeat=3):
        for actions in itertools.product(range(2), repeat=2):
            for bits in itertools.product((0.0, 1.0), repeat=2):
                one = Trajectories(np.array([states]), np.array([actions]), np.array([bits]))
                counts = one.counts(shape, np.random.default_rng(0), support)
                vectors.append(flatten(counts, STATISTICS, stationary=stationary))
    every = np.array(vectors)
    moved = np.abs(every[:, None] - every[None])
    bound = Sensitivity.of(2, stationary=stationary)
    assert moved.sum(axis=-1).max() <= bound.l1
    assert np.sqrt((moved**2).sum(axis=-1).max()) <= bound.l2 + 1e-12
    assert not every.any(axis=1).all()  # some count as nothing at all


def cells_of_all_episodes(support, *, last_transitions):
    """What each episode of a small problem adds to the cells of a release, all groups together."""
    horizon, states, actions = support.shape
    shape, rng = Shape(states, actions, horizon), np.random.default_rng(0)
    mechanism = NoPrivacy().calibrate(shape, statistics=CENTRED, last_transitions=last_transitions)
    for path in itertools.product(range(states), repeat=horizon + 1):
        for chosen in itertools.product(range(actions), repeat=horizon):
            for bits in itertools.product((0.0, 1.0), repeat=horizon):
                one = Trajectories(np.array([path]), np.array([chosen]), np.array([bits]))
                counts = one.counts(shape, rng, support)
                found = mechanism.release(counts, sampler=SimulationSampler(rng), support=support)
                ones, zeros = (found.visits / 2 + sign * found.rewards for sign in (1, -1))
                parts = found.transitions, ones, zeros, *found.dropped_out.values()
                yield np.concatenate([part.ravel() for part in parts])


@pytest.mark.core
@pytest.mark.parametrize("last_transitions", [False, True])
@pytest.mark.parametrize(("horizon", "states", "actions"), [(1, 2, 2), (2, 2, 2), (3, 2, 1)])
@pytest.mark.parametrize("whole", [True, False])
def test_no_pair_moves_the_cells_further(horizon, states, actions, whole, last_transitions):
    """Every pair of episodes, where all can be played and under a policy that most of them leave.

    Every user is in one cell of every group, so what moves is a unit out of one and into another.
    """
    support = np.ones((horizon, states, actions), np.bool_)
    if not whole:
        support = np.random.default_rng(1).random(support.shape) < 0.6
        support[:, 0, 0] = True
    every = np.array(list(cells_of_all_episodes(support, last_transitions=last_transitions)))
    worst = Sensitivity.of(horizon, CENTRED, last_transitions=last_transitions)
    assert set(np.unique(every)) == {0.0, 1.0}
    assert (every.sum(axis=1) == worst.moves).all()
    moves = every[:, None] - every[None]
    moved = np.abs(moves).sum(axis=-1)
    assert (moved <= worst.l1).all()
    assert not whole or (moved == worst.l1).any()
    np.testing.assert_array_equal((moves > 0).sum(axis=-1), (moves < 0).sum(axis=-1))


def test_lengths_that_the_docs_give():
    both = ("transitions", "rewards")
    assert Sensitivity.of(6, both, last_transitions=False).l2 == pytest.approx(math.sqrt(22))
    assert Sensitivity.of(6, both).l2 == pytest.approx(math.sqrt(24))
    assert Sensitivity.of(1, both, last_transitions=False).l1 == 2
    assert Sensitivity.of(6, ("rewards",), last_transitions=False).moves == 6


def test_which_statistics_are_released_in_cells():
    def form(horizon, statistics, last):
        shape = Shape(2, 2, horizon)
        found = NoPrivacy().calibrate(shape, statistics=statistics, last_transitions=last)
        return found.centred, found.last_transitions

    assert form(6, CENTRED, True) == (True, True)
    assert form(1, CENTRED, False) == (True, False)  # visits are what its two cells sum to
    assert form(6, STATISTICS, False) == (False, True)
