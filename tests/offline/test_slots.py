"""Declared actions in slots, everything else in OTHER."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import Counts, Shape, Trajectories, make, sample_trajectories, uniform_policy
from discreet.offline.release import OTHER, Slots

pytestmark = pytest.mark.core

SHAPE = Shape(states=3, actions=3, horizon=4)
EVERYWHERE = np.ones(3, bool)


@pytest.fixture
def some():
    """Two of three actions in state 0, none in state 1, all in state 2."""
    declared = np.zeros(SHAPE.visits, bool)
    declared[:, 0, [0, 2]] = True
    declared[:, 2] = True
    return Slots.of(declared, EVERYWHERE)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return Trajectories(
        rng.integers(0, 3, (500, 5)), rng.integers(0, 3, (500, 4)), rng.integers(0, 2, (500, 4))
    )


def test_all_declared_leaves_actions_as_they_are():
    slots = Slots.of(np.ones(SHAPE.visits, bool), EVERYWHERE)
    assert slots.shape == SHAPE
    assert (slots.slot_of == np.arange(3)).all()
    assert (slots.action_of == np.arange(3)).all()
    assert slots.support.all() and slots.named.all()


def test_undeclared_actions_share_the_last_slot(some):
    assert some.shape == Shape(states=3, actions=4, horizon=4)
    assert some.slot_of[0].tolist() == [[0, 3, 1], [3, 3, 3], [0, 1, 2]]
    assert some.action_of[0].tolist() == [
        [0, 2, OTHER, OTHER],
        [OTHER] * 4,
        [0, 1, 2, OTHER],
    ]


def test_a_state_has_other_exactly_if_it_does_not_declare_everything(some):
    assert some.support[2].tolist() == [
        [True, True, False, True],
        [False, False, False, True],
        [True, True, True, False],
    ]
    assert not some.named[..., 3].any()


def test_the_first_step_has_slots_in_start_states_only():
    slots = Slots.of(np.ones(SHAPE.visits, bool), np.array([False, True, False]))
    assert slots.support[0].tolist() == [[False] * 3, [True] * 3, [False] * 3]
    assert slots.support[1:].all()


def test_a_known_behaviour_in_slots_adds_up_what_shares_a_slot(some):
    told = np.broadcast_to([0.5, 0.3, 0.2], SHAPE.visits)
    assert some.shares(told)[0].round(6).tolist() == [
        [0.5, 0.2, 0.0, 0.3],
        [0.0, 0.0, 0.0, 1.0],
        [0.5, 0.3, 0.2, 0.0],
    ]


def test_nobody_is_lost_on_the_way_to_slots(some, people):
    moved = some.episodes(people, last_transitions=True)
    counts = moved.counts(some.shape, np.random.default_rng(0), some.support)
    assert (counts.visits.sum(axis=(1, 2)) == 500).all()
    raw = people.counts(SHAPE, np.random.default_rng(0), np.ones(SHAPE.visits, bool))
    assert np.array_equal(counts.visits[:, 0, 3], raw.visits[:, 0, 1])
    assert np.array_equal(counts.visits[:, 1, 3], raw.visits[:, 1].sum(axis=1))
    assert np.array_equal(counts.transitions[:, 2, :3], raw.transitions[:, 2])


@pytest.mark.parametrize("last_transitions", [True, False])
@pytest.mark.parametrize("started", [EVERYWHERE, np.array([True, True, False])])
def test_sums_of_episodes_in_slots_are_slots_of_sums(people, last_transitions, started):
    declared = np.random.default_rng(1).random(SHAPE.visits) < 0.5
    slots = Slots.of(declared, started)
    inside = people[: len(people)]
    if not started.all():  # sums cannot tell who began elsewhere
        kept = started[people.states[:, 0]]
        inside = Trajectories(people.states[kept], people.actions[kept], people.rewards[kept])
    one = slots.episodes(inside, last_transitions=last_transitions).counts(
        slots.shape, np.random.default_rng(0), slots.support
    )
    raw = inside.counts(SHAPE, np.random.default_rng(0))
    other = slots.counts(raw, last_transitions=last_transitions)
    assert np.array_equal(one.row_transitions, other.row_transitions)
    assert np.array_equal(one.row_rewards, other.row_rewards)


def test_the_state_after_the_last_step_is_written_down_as_state_0(some, people):
    moved = some.episodes(people, last_transitions=False)
    assert (moved.states[:, -1] == 0).all()
    assert np.array_equal(moved.states[:, :-1], people.states[:, :-1])
    assert some.episodes(people, last_transitions=True).states is not None
    assert (some.episodes(people, last_transitions=True).states[:, -1] != 0).any()


def test_one_user_is_one_user_after_the_map(some, people):
    other = Trajectories(
        np.vstack([people.states[:-1], [[0, 1, 2, 0, 1]]]),
        np.vstack([people.actions[:-1], [[1, 1, 1, 1]]]),
        people.rewards,
    )
    one, two = (some.episodes(p, last_transitions=False) for p in (people, other))
    assert np.array_equal(one.actions[:-1], two.actions[:-1])
    assert np.array_equal(one.states[:-1], two.states[:-1])


def test_steps_outside_the_declared_starts_count_as_nothing():
    mdp = make("RiverSwim", states=3, horizon=3)
    people = sample_trajectories(mdp, uniform_policy(mdp.shape), 50, np.random.default_rng(0))
    raw = people.counts(mdp.shape, np.random.default_rng(0))
    nowhere = np.array([False, False, True])
    counts = Slots.of(np.ones(mdp.shape.visits, bool), nowhere).counts(raw, last_transitions=False)
    assert isinstance(counts, Counts)
    assert counts.users == 50
    assert counts.visits[0].sum() == 0


def test_episodes_of_another_size_are_refused(some):
    short = Trajectories(np.zeros((2, 3), int), np.zeros((2, 2), int), np.zeros((2, 2)))
    with pytest.raises(InvalidInputError, match="Expected episodes of 4 steps, got 2"):
        some.episodes(short, last_transitions=False)
