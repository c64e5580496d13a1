"""Simulated lives follow the manifest's policy."""

import numpy as np

from discreet.service.demo.users import episode_of
from helpers.services import WORLD, announced, charter

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
