"""A simulated crowd: lives follow the manifest's policy, and users insist until they are heard."""

import numpy as np
import pytest

from discreet.service.client import UnreachableError
from discreet.service.demo import crowd
from helpers.services import WORLD, announced, charter

ONE = announced(charter(), policy=[[1, 0], [0, 1]])


def test_a_life_takes_the_actions_that_the_policy_asks_for():
    rng = np.random.default_rng(3)
    lives = [crowd.episode_of(WORLD, ONE, rng) for _ in range(20)]
    policy = ONE.manifest.policy
    for life in lives:
        assert [len(life[name]) for name in ("states", "actions", "rewards")] == [3, 2, 2]
        assert life["actions"] == [policy[h][life["states"][h]] for h in range(2)]
        ONE.device.encode(life)  # a device takes it
    assert len({str(life) for life in lives}) > 1


@pytest.fixture
def users(monkeypatch):
    """What attempts of users lead to, one after the other."""
    script, made, pauses = [], [], []

    class User:
        def __init__(self, chain, client, ticket, outbox):
            made.append(ticket)

        def attempt(self, live):
            state = script.pop(0)
            if state == "unreachable":
                raise UnreachableError("nobody there")
            return state

    monkeypatch.setattr(crowd, "Participant", User)
    made_of = crowd.Crowd(WORLD, None, None, np.random.default_rng(0), pauses.append)
    return made_of, script, made, pauses


def test_every_user_insists_with_one_ticket_until_it_is_answered(users):
    made_of, script, made, pauses = users
    script += ["noOpenBatch", "unreachable", "accepted", "ticketSpent"]
    assert list(made_of.send([b"a", b"b"], lambda: False)) == ["accepted", "ticketSpent"]
    assert made == [b"a", b"b"]
    assert len(pauses) == 2 and not script


def test_a_crowd_that_is_told_to_end_ends(users):
    made_of, script, made, _ = users
    script += ["accepted"] + ["noOpenBatch"] * 5
    left = iter([False, False, False, True])
    assert list(made_of.send([b"a", b"b", b"c"], lambda: next(left))) == ["accepted"]
    assert made == [b"a", b"b"]
