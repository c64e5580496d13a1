"""The roster: names in any case, parameters, suggestions."""

import pytest

from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp import make
from discreet.mdp.environments import registry
from discreet.mdp.environments.registry import OPTIONAL, environment_names, get_environment

ALL = environment_names()


@pytest.mark.core
def test_the_roster_is_complete():
    assert ALL == [
        "DemandResponse",
        "DoubleChain",
        "GridWorld",
        "LowerBound",
        "RandomMDP",
        "Recommender",
        "RiverSwim",
        "SixArms",
        "Treatment",
    ]


@pytest.mark.parametrize("name", ["RiverSwim", "riverswim", "discreet/RiverSwim-v0"])
def test_a_name_is_known_in_any_case_and_as_a_gymnasium_id(name):
    assert get_environment(name).name == "RiverSwim"


def test_optional_environments_are_listed_if_asked_for():
    assert set(environment_names(optional=True)) - set(ALL) == set(OPTIONAL) == {"ICU-Sepsis"}
    assert get_environment("icu-sepsis").parameters == {"horizon": 20, "relabel": None}


def test_unknown_names_get_a_suggestion():
    with pytest.raises(UnknownNameError, match="did you mean 'SixArms'"):
        make("SixArm")
    with pytest.raises(UnknownNameError, match=r"parameter of SixArms 'horizont'"):
        make("SixArms", horizont=3)
    with pytest.raises(UnknownNameError, match="known: DemandResponse"):
        get_environment("zzz")


def test_a_parameter_of_the_wrong_kind_is_one_sentence(monkeypatch):
    def broken(*, states=1):
        return states + "one"

    monkeypatch.setattr(
        registry, "get_environment", lambda name: registry.EnvironmentSpec("Broken", "", broken)
    )
    with pytest.raises(InvalidInputError, match="Broken cannot be built: unsupported operand"):
        make("Broken", states=2)


def test_an_environment_of_ones_own_is_registered_under_a_public_name(monkeypatch):
    from discreet.mdp import environments

    monkeypatch.setattr(registry, "_REGISTERED", {})
    environments.register("Mine", lambda *, states=3: make("RiverSwim", states=states))
    assert make("mine", states=2).shape.states == 2
    assert "register" in environments.__all__
