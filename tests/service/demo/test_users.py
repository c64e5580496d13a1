"""Worlds with names, lives in them, and who took part."""

import numpy as np
import pytest

from discreet.errors import UnknownNameError
from discreet.service.demo.users import WORLDS, answered, episode_of, get_world
from discreet.service.participant import Outbox
from helpers.services import WORLD, announced, charter


def test_who_took_part_is_known_from_the_outboxes(tmp_path):
    """A batch that was announced again is one; more answers than a ticket is worth are refusals."""
    one, two = Outbox(tmp_path / "outbox-0"), Outbox(tmp_path / "outbox-1")
    for name in ("0-aa", "0-bb", "1-cc", "2-dd"):
        one.write("x", name, b"")
    two.write("y", "1-cc", b"")
    two.write("z", "1-cc", b"sealed")
    assert [answered(tmp_path, most) for most in (1, 2, 3)] == [2, 3, 4]
    assert (one.times("x"), two.times("z")) == (3, 0)


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_names_fit_the_model_and_the_description_is_the_model(name):
    world = get_world(name)
    shape = world.mdp.shape
    assert (len(world.states), len(world.actions), len(world.steps)) == (
        shape.states,
        shape.actions,
        shape.horizon,
    )
    told = world.description()
    np.testing.assert_array_equal(told["transitions"], world.mdp.transitions)
    np.testing.assert_array_equal(told["rewards"], world.mdp.rewards)
    assert [told["initial"][s] > 0 for s in world.start] == [True] * len(world.start)


def test_an_unknown_world_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="treatment"):
        get_world("treatmnt")


ONE = announced(charter(), policy=[[1, 0], [0, 1]])


def test_a_life_takes_the_actions_that_the_policy_asks_for():
    rng = np.random.default_rng(3)
    lives = [episode_of(WORLD, ONE, rng) for _ in range(20)]
    policy = ONE.manifest.policy
    for life in lives:
        assert [len(life[name]) for name in ("states", "actions", "rewards")] == [3, 2, 2]
        assert life["actions"] == [policy[h][life["states"][h]] for h in range(2)]
        ONE.device.encode(life)  # a device takes it
    assert len({str(life) for life in lives}) > 1
