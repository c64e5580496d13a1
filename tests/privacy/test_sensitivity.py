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
from discreet.privacy.sensitivity import STATISTICS, Form, Sensitivity
from discreet.privacy.statistics import flatten, half_units

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


def centred_vectors(support, *, last_transitions):
    """What each episode of a small problem adds to a centred release, in half units."""
    horizon, states, actions = support.shape
    shape, rng = Shape(states, actions, horizon), np.random.default_rng(0)
    for path in itertools.product(range(states), repeat=horizon + 1):
        for chosen in itertools.product(range(actions), repeat=horizon):
            for bits in itertools.product((0.0, 1.0), repeat=horizon):
                one = Trajectories(np.array([path]), np.array([chosen]), np.array([bits]))
                parts = half_units(
                    one.counts(shape, rng, support), last_transitions=last_transitions
                )
                yield np.concatenate([part.ravel() for part in parts.values()])


@pytest.mark.core
@pytest.mark.parametrize("last_transitions", [False, True])
@pytest.mark.parametrize(("horizon", "states", "actions"), [(1, 2, 2), (2, 2, 2), (3, 2, 1)])
@pytest.mark.parametrize("whole", [True, False])
def test_no_pair_moves_a_centred_release_further(horizon, states, actions, whole, last_transitions):
    """Every pair of episodes, where all can be played and under a policy that most of them leave.

    Each move of a counters by 2 and b by 1 is covered by the worst one: by leaving counters alone,
    and by splitting a shift of 2 into two shifts of 1.
    """
    support = np.ones((horizon, states, actions), np.bool_)
    if not whole:
        support = np.random.default_rng(1).random(support.shape) < 0.6
        support[:, 0, 0] = True
    every = np.unique(
        np.array(list(centred_vectors(support, last_transitions=last_transitions))), axis=0
    )
    moves = np.abs(every[:, None] - every[None]).reshape(-1, every.shape[1])
    assert moves.max() <= 2
    twos, ones = (moves == 2).sum(axis=1), (moves == 1).sum(axis=1)
    worst = Sensitivity.of_centred(horizon, last_transitions=last_transitions)
    split = np.maximum(0, -(-(ones - worst.singles) // 2))
    assert (twos <= worst.piles - split).all()
    assert (moves.sum(axis=1)).max() <= worst.l1
    reached = (twos == worst.piles) & (ones == worst.singles)
    assert not whole or reached.any()  # and the worst one is attained


@pytest.mark.core
@pytest.mark.parametrize("horizon", [1, 2, 5, 6, 20])
def test_the_worst_move_by_the_recursion_over_same_and_different_cells(horizon):
    """The longest sequence of same and different cells, step by step, in squared half units."""
    same = differ = 0.0  # of the steps so far, if the cells of the next step are the same or not
    for step in range(horizon):
        moved = 8.0 if step < horizon - 1 else 0.0
        stay, part, apart = same + 4, same + moved + 4, differ + moved + 2
        same, differ = max(stay, apart), max(part, apart)
    assert Sensitivity.of_centred(horizon, last_transitions=False).l2 ** 2 == pytest.approx(
        max(same, differ)
    )


def test_lengths_that_the_docs_give():
    assert Sensitivity.of_centred(6, last_transitions=False).l2 / 2 == pytest.approx(
        math.sqrt(14.5)
    )
    assert Sensitivity.of_centred(6, last_transitions=True).l2 / 2 == pytest.approx(math.sqrt(16.5))
    assert Sensitivity.of(6, ("transitions", "rewards")).l2 == pytest.approx(math.sqrt(24))


def test_which_statistics_are_centred():
    both = ("transitions", "rewards")
    assert Form.of(6, both, last_transitions=True) == (True, True)
    assert Form.of(1, both, last_transitions=False) == (True, True)  # else nothing tells visits
    assert Form.of(6, STATISTICS, last_transitions=False) == (False, True)
    assert Form().sensitivity(6, STATISTICS) == Sensitivity.of(6)
