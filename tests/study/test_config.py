"""Configurations: plain values, read back as what they were."""

import json

import pytest

import discreet
from discreet.errors import InvalidInputError
from discreet.study import config as configs


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
        "settings": {"shrink": 0.5},
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
        ({"settings": {"shrink": {1, 2}}}, "which a file can keep"),
        ({"names": {"states": 40_000, "actions": 2, "steps": 3}}, "merge states"),
        ({"names": {"states": {"a": 1}, "actions": 2, "steps": 3}}, "a list of names"),
    ],
)
def test_what_is_refused(changes, said):
    with pytest.raises(InvalidInputError, match=said):
        made(**changes)
