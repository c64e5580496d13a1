"""What a study promises: the promise of its releases, its assumptions, and no rehearsal as one."""

import pytest

from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import NO_GUARANTEE, REHEARSED, Rehearsal
from discreet.privacy.trust import Central, Local, Shuffle
from discreet.study.config import COPIES, OPERATOR, PUBLIC, study_guarantee

SHAPE = Shape(2, 2, 2)
TRUSTS = [Central(1), Local(1), Shuffle(1, 1e-6)]


@pytest.mark.parametrize("trust", TRUSTS, ids=lambda trust: trust.name)
def test_a_secure_study_promises_what_its_releases_do(trust):
    released = trust.calibrate(SHAPE).guarantee
    made = study_guarantee(released, secure=True)
    assert (made.notion, made.epsilon, made.delta) == (released.notion, 1.0, released.delta)
    assert not made.simulated
    assert REHEARSED not in str(made)


@pytest.mark.parametrize("trust", TRUSTS, ids=lambda trust: trust.name)
def test_nobody_takes_a_rehearsal_for_a_study_guarantee(trust):
    made = study_guarantee(trust.calibrate(SHAPE).guarantee, secure=False)
    assert isinstance(made, Rehearsal)
    assert made.simulated
    assert str(made).startswith(REHEARSED)


def test_only_a_central_study_has_an_operator_to_trust():
    central = study_guarantee(Central(1).calibrate(SHAPE).guarantee, secure=True)
    local = study_guarantee(Local(1).calibrate(SHAPE).guarantee, secure=True)
    assert set(OPERATOR) <= set(central.assumptions)
    assert not set(OPERATOR) & set(local.assumptions)
    stream = study_guarantee(Central(1).calibrate(SHAPE).guarantee, secure=True, stream=True)
    assert not set(OPERATOR) & set(stream.assumptions)


def test_a_central_stream_says_that_two_copies_of_its_file_tell_all():
    released = Central(1).calibrate(SHAPE).guarantee
    assert set(COPIES) <= set(study_guarantee(released, secure=True, stream=True).assumptions)
    assert not set(COPIES) & set(study_guarantee(released, secure=True).assumptions)
    local = Local(1).calibrate(SHAPE).guarantee
    assert not set(COPIES) & set(study_guarantee(local, secure=True, stream=True).assumptions)


def test_the_assumptions_of_the_release_stay():
    released = Central(1).calibrate(SHAPE).guarantee
    assert study_guarantee(released, secure=True).assumptions[: len(released.assumptions)] == (
        released.assumptions
    )


def test_without_privacy_there_is_nothing_to_rehearse():
    made = study_guarantee(NO_GUARANTEE, secure=False)
    assert not isinstance(made, Rehearsal)
    assert made.notion == "none"


@pytest.mark.parametrize("trust", TRUSTS, ids=lambda trust: trust.name)
def test_who_took_part_is_public_and_the_promise_says_so(trust):
    assert PUBLIC in study_guarantee(trust.calibrate(SHAPE).guarantee, secure=True).assumptions


def test_users_who_reported_twice_are_charged_twice():
    released = Shuffle(1, 1e-6).calibrate(SHAPE).guarantee
    made = study_guarantee(released, secure=True, releases=2)
    assert (made.epsilon, made.delta) == (2 * released.epsilon, 2 * released.delta)
    assert "reported 2 times" in made.assumptions[-1]
