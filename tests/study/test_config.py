"""Configurations as plain values, the guarantee that follows from them."""

import json

import pytest

import discreet
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import NO_GUARANTEE, REHEARSED, Rehearsal
from discreet.privacy.trust import Central, Local, Shuffle
from discreet.study import config as configs
from discreet.study.config import OPERATOR, PUBLIC, study_guarantee


def made(**changes):
    given = {
        "learner": "flow-ucb",
        "trust": discreet.Shuffle(1, 1e-6, honest=0.9),
        "names": {"states": ["a", "b"], "actions": 2, "steps": 3},
        "episodes": 10,
        "start_states": None,
        "stationary": False,
        "sampler": "simulation",
        "seed": 4,
        "settings": {"confidence": 0.5},
    }
    return configs.make_config(**(given | changes))


def test_it_survives_a_file():
    config = json.loads(json.dumps(made()))
    assert config == made()
    assert configs.trust_of(config) == discreet.Shuffle(1, 1e-6, honest=0.9)
    assert configs.vocabulary_of(config).states == ("a", "b")
    assert configs.problem_of(config).shape == discreet.mdp.Shape(2, 2, 3)
    assert configs.problem_of(config).start.tolist() == [True, True]


def test_names_may_be_any_iterable_and_are_read_once():
    config = made(names={"states": iter("ab"), "actions": (1, 2), "steps": range(1, 4)})
    assert configs.vocabulary_of(config).steps == ("1", "2", "3")
    assert made(start_states=["b"])["start_states"] == [1]


def test_a_secure_study_has_a_seed_of_its_own_for_ties():
    seeds = {made(sampler="secure", seed=None)["seed"] for _ in range(3)}
    assert len(seeds) == 3


def test_generators_follow_from_the_seed_and_differ():
    one, two = configs.generators(made()), configs.generators(made())
    draws = {name: int(rng.integers(2**60)) for name, rng in one.items()}
    assert len(set(draws.values())) == 3
    assert draws == {name: int(rng.integers(2**60)) for name, rng in two.items()}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"start_states": "ab"}, "as a list of states"),
        ({"start_states": ["c"]}, "among the 2 states"),
        ({"start_states": [None]}, "among the 2 states"),
        ({"settings": {"confidence": {1, 2}}}, "which a file can keep"),
        ({"names": {"states": 40_000, "actions": 2, "steps": 3}}, "merge states"),
        ({"names": {"states": {"a": 1}, "actions": 2, "steps": 3}}, "a list of names"),
    ],
)
def test_what_is_refused(changes, said):
    with pytest.raises(InvalidInputError, match=said):
        made(**changes)


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
