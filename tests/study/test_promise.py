"""The guarantee of a study that follows from that of its releases."""

import pytest

from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import NO_GUARANTEE, REHEARSED, Rehearsal
from discreet.privacy.trust import Central, Local, Shuffle
from discreet.study.promise import OPERATOR, PUBLIC, study_guarantee

SMALL = Shape(2, 2, 2)
TRUSTS = [Central(1), Local(1), Shuffle(1, 1e-6)]


@pytest.mark.parametrize("trust", TRUSTS, ids=lambda trust: trust.name)
def test_a_secure_study_guarantees_what_its_releases_do(trust):
    released = trust.calibrate(SMALL).guarantee
    made = study_guarantee(released, secure=True)
    assert (made.notion, made.epsilon, made.delta) == (released.notion, 1.0, released.delta)
    assert not made.simulated
    assert REHEARSED not in str(made)


@pytest.mark.parametrize("trust", TRUSTS, ids=lambda trust: trust.name)
def test_nobody_takes_a_rehearsal_for_a_study_guarantee(trust):
    made = study_guarantee(trust.calibrate(SMALL).guarantee, secure=False)
    assert isinstance(made, Rehearsal)
    assert made.simulated
    assert str(made).startswith(REHEARSED)


def test_only_a_central_study_has_an_operator_to_trust():
    central = study_guarantee(Central(1).calibrate(SMALL).guarantee, secure=True)
    local = study_guarantee(Local(1).calibrate(SMALL).guarantee, secure=True)
    assert set(OPERATOR) <= set(central.assumptions)
    assert not set(OPERATOR) & set(local.assumptions)


def test_the_assumptions_of_the_release_stay():
    released = Central(1).calibrate(SMALL).guarantee
    assert study_guarantee(released, secure=True).assumptions[: len(released.assumptions)] == (
        released.assumptions
    )


def test_without_privacy_there_is_nothing_to_rehearse():
    made = study_guarantee(NO_GUARANTEE, secure=False)
    assert not isinstance(made, Rehearsal)
    assert made.notion == "none"


@pytest.mark.parametrize("trust", TRUSTS, ids=lambda trust: trust.name)
def test_who_took_part_is_public_and_the_guarantee_says_so(trust):
    assert PUBLIC in study_guarantee(trust.calibrate(SMALL).guarantee, secure=True).assumptions


def test_users_who_reported_twice_are_charged_twice():
    released = Shuffle(1, 1e-6).calibrate(SMALL).guarantee
    made = study_guarantee(released, secure=True, releases=2)
    assert (made.epsilon, made.delta) == (2 * released.epsilon, 2 * released.delta)
    assert "reported 2 times" in made.assumptions[-1]
