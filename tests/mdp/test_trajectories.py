"""Who leaves the public policy counts up to that step, and as nothing from there on."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import make
from discreet.mdp.policies import DeterministicPolicy, uniform_policy
from discreet.mdp.simulation import sample_trajectories
from discreet.mdp.trajectories import Trajectories

RIVER = make("RiverSwim", states=3, horizon=5)
POLICY = DeterministicPolicy(np.random.default_rng(0).integers(0, 2, (5, 3)))
PLAYED = POLICY.support(RIVER.shape, RIVER.start)
ANYTHING = sample_trajectories(RIVER, uniform_policy(RIVER.shape), 400, np.random.default_rng(1))


@pytest.mark.core
def test_only_steps_before_the_first_stray_one_count():
    expected = np.zeros(RIVER.shape.transitions, np.int64)
    for states, actions in zip(ANYTHING.states, ANYTHING.actions, strict=True):
        for h in range(5):
            if not PLAYED[h, states[h], actions[h]]:
                break
            expected[h, states[h], actions[h], states[h + 1]] += 1
    counts = ANYTHING.counts(RIVER.shape, np.random.default_rng(2), PLAYED)
    np.testing.assert_array_equal(counts.transitions, expected)
    np.testing.assert_array_equal(counts.support, PLAYED)
    assert counts.users == 400
    assert 0 < expected[4].sum() < expected[0].sum() < 400  # some stay, some go late, some at once


@pytest.mark.core
def test_rewards_after_a_stray_step_count_as_nothing():
    sure = Trajectories(ANYTHING.states, ANYTHING.actions, np.ones((400, 5)))
    counts = sure.counts(RIVER.shape, np.random.default_rng(2), PLAYED)
    np.testing.assert_array_equal(counts.rewards, counts.visits)


@pytest.mark.core
def test_the_rounding_draws_as_much_for_strays():
    """The position of the generator, which a study stores, does not tell who left."""
    halves = Trajectories(ANYTHING.states, ANYTHING.actions, np.full((400, 5), 0.5))
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    halves.counts(RIVER.shape, one, PLAYED)
    halves.counts(RIVER.shape, two, np.zeros_like(PLAYED))
    assert one.bit_generator.state == two.bit_generator.state


@pytest.mark.core
def test_the_rounding_draws_as_much_whatever_the_rewards():
    """Nor does it tell how many rewards were strictly between 0 and 1."""
    positions = []
    for rewards in (0.0, 0.5, 1.0, np.arange(2000).reshape(400, 5) % 3 / 2):
        rng = np.random.default_rng(3)
        told = Trajectories(ANYTHING.states, ANYTHING.actions, np.zeros((400, 5)) + rewards)
        told.counts(RIVER.shape, rng, PLAYED)
        positions.append(rng.bit_generator.state)
    expected = np.random.default_rng(3)
    expected.random(2000)
    assert positions == [expected.bit_generator.state] * 4


@pytest.mark.core
def test_a_foreign_start_is_a_stray_step():
    states = np.zeros((1, 6), np.int64)
    states[0, 0] = 2
    actions = POLICY.actions[np.arange(5), states[0, :-1]][None]
    episode = Trajectories(states, actions, np.ones((1, 5)))
    assert not episode.followed(PLAYED).any()
    assert episode.followed(POLICY.support(RIVER.shape)).all()


@pytest.mark.core
def test_a_mask_of_another_problem_is_refused():
    with pytest.raises(InvalidInputError, match="bool"):
        ANYTHING.followed(PLAYED.astype(int))
    with pytest.raises(InvalidInputError, match="episodes of 4 steps"):
        ANYTHING.followed(PLAYED[:4])
    with pytest.raises(InvalidInputError, match="Expected states"):
        ANYTHING.followed(PLAYED[:, :1])
