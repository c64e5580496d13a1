"""Everybody plays exactly once."""

import numpy as np
import pytest

from discreet.learners.base import PublicFacts
from discreet.learners.elimination.learner import (
    first_length,
    split_evenly,
    staged_schedule,
    write_script,
)
from discreet.learners.elimination.settings import EliminationSettings
from discreet.mdp.shape import Shape


@pytest.mark.core
@pytest.mark.parametrize("tail", [True, False])
@pytest.mark.parametrize("shares", [(1.0, 2.0), (1.0, 1.0), (0.3, 1.7)])
def test_schedule_sums_to_all_users(tail, shares):
    for episodes in [*range(1, 300), 20_000, 200_000, 10**9]:
        schedule = staged_schedule(episodes, 32, 2.0, shares, tail=tail)
        assert schedule.users == episodes
        assert all(users >= 0 for stage in schedule.stages for users in stage)


def test_paper_001_counts_three_lengths_per_stage():
    """Its stopping rule counts two, which would play 1.5 K episodes."""
    stages = staged_schedule(20_000, 32, 2.0, (1.0, 2.0), tail=False).stages
    assert [sum(stage) for stage in stages[:-1]] == [3 * 32 * 2**b for b in range(len(stages) - 1)]
    assert sum(map(sum, stages)) == 20_000


def test_tail_is_never_shorter_than_a_quarter_of_the_last_stage():
    for episodes in range(1000, 20_000, 37):
        schedule = staged_schedule(episodes, 32, 2.0, (1.0, 2.0), tail=True)
        assert schedule.tail >= sum(schedule.stages[-1]) / 4


def test_too_few_users_for_a_stage_all_go_to_the_tail():
    assert staged_schedule(50, 32, 2.0, (1.0, 2.0), tail=True).stages == ()


@pytest.mark.parametrize(
    ("shape", "length"), [((4, 2, 6), 32), ((6, 2, 20), 128), ((10, 2, 40), 512), ((1, 1, 1), 32)]
)
def test_first_length(shape, length):
    states, actions, horizon = shape
    assert first_length(Shape(states=states, actions=actions, horizon=horizon)) == length


def test_even_split():
    for total in range(40):
        parts = split_evenly(total, 6)
        assert sum(parts) == total
        assert max(parts) - min(parts) <= 1


@pytest.mark.parametrize("structure", ["paper", "practical"])
@pytest.mark.parametrize("fine", ["coverage", "mixture"])
@pytest.mark.parametrize("episodes", [1, 7, 31, 100, 20_000])
def test_every_user_is_in_exactly_one_batch(structure, fine, episodes):
    problem = PublicFacts(
        Shape(states=3, actions=2, horizon=3), episodes, np.array([True, False, False])
    )
    script = write_script(problem, EliminationSettings(structure=structure, fine=fine))
    assert sum(users for _, users, _ in script) == episodes
    assert all(users >= 1 for _, users, _ in script)
