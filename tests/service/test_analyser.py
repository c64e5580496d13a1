"""The analyser: which policies and studies it takes, copies it finds, and when it tries again."""

from types import SimpleNamespace

import numpy as np
import pytest

from discreet.errors import DiscreetError
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy
from discreet.service.analyser import Analyser, AttackError, check_distinct, policy_of
from discreet.service.client import UnreachableError
from discreet.service.problems import Refusal
from helpers.services import charter


def asking(policy):
    return SimpleNamespace(ask=lambda: policy)


def test_a_policy_is_plain_lists_of_numbers():
    plain = policy_of(asking(DeterministicPolicy(np.array([[0, 1], [1, 1]]))))
    assert plain == [[0, 1], [1, 1]]
    assert {type(action) for row in plain for action in row} == {int}


def test_a_mixture_is_refused_with_a_remedy():
    with pytest.raises(DiscreetError, match="'flow-ucb'"):
        policy_of(asking(StochasticPolicy(np.full((2, 2, 2), 0.5))))


def envelopes(*heads):
    """With these encapsulated keys, and other contents every time."""
    return b"".join(bytes([head]) * 32 + bytes([i]) * 20 for i, head in enumerate(heads))


def test_copies_are_found_within_a_class_and_between_classes():
    check_distinct([envelopes(1, 2, 3), envelopes(4, 5)])
    for messages in ([envelopes(1, 2, 1)], [envelopes(1, 2), envelopes(2)]):
        with pytest.raises(AttackError, match="Nothing was counted"):
            check_distinct(messages)


def test_keys_that_differ_in_one_byte_are_no_copies():
    almost = bytes(31) + b"\1" + bytes(20)
    check_distinct([bytes(52) + almost])


class Scripted(Analyser):
    """One whose steps are known beforehand."""

    def __init__(self, *states, rehearsal=False):
        self.left = list(states)
        self.charter = charter(rehearsal=rehearsal)
        self.study = SimpleNamespace(batches=2, users=7)

    def step(self):
        state = self.left.pop(0)
        if isinstance(state, Exception):
            raise state
        return state


def test_it_waits_between_steps_and_not_after_a_batch():
    pauses = []
    one = Scripted("waiting", "counted", "expired", "finished", "never")
    assert one.run(pauses.append, lambda: False) == "finished"
    assert pauses == [0.2, 0.2] and one.left == ["never"]


def test_a_shuffler_that_is_away_or_busy_is_tried_again():
    pauses = []
    away = (UnreachableError("away"), Refusal("busy"), Refusal("broken"))
    assert Scripted(*away, "finished").run(pauses.append, lambda: False) == "finished"
    assert pauses == [1.0] * 3


@pytest.mark.parametrize("error", [Refusal("unauthorised"), AttackError("copies")])
def test_what_waiting_does_not_mend_ends_it(error):
    with pytest.raises(type(error)):
        Scripted(error, "finished").run(lambda _: None, lambda: False)


def test_it_ends_when_it_is_told_to():
    answers = iter([False, True])
    one = Scripted("waiting", "waiting")
    assert one.run(lambda _: None, lambda: next(answers)) == "waiting"
    assert one.left == ["waiting"]


def test_progress_of_a_rehearsal_says_so():
    assert Scripted().progress() == "2 batches of 7 users counted"
    assert Scripted(rehearsal=True).progress().startswith("SIMULATED, protects nobody")
