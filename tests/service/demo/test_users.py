"""Worlds with names, lives in them, and who has finished."""

import numpy as np
import pytest

from discreet.errors import UnknownNameError
from discreet.service.demo.users import WORLDS, Diary, diaries, episode_of, get_world
from helpers.services import WORLD, announced, charter


def test_a_diary_with_a_line_cut_short(tmp_path):
    path = tmp_path / "users" / "0.diary"
    diary = Diary(path)
    assert diary.entries() == {}
    diary.write(4, "accepted")
    diary.write(6, "ticketSpent")
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        known = Diary(path).entries()
        assert list(known.items()) == [(4, 1), (6, 1)][: len(known)]
        assert len(known) == whole[:cut].count(b"\n")
        diary.write(8, "accepted")  # a torn line is closed, never mixed up with the next
        assert Diary(path).entries()[8] == 1
        assert set(Diary(path).entries()) <= {4, 6, 8}


def test_diaries_of_all_parts(tmp_path):
    Diary(tmp_path / "users" / "0.diary").write(0, "accepted")
    for _ in range(2):
        Diary(tmp_path / "users" / "1.diary").write(1, "accepted")
    assert diaries(tmp_path) == {0: 1, 1: 2}


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
