"""Environments by name, from files and from Gymnasium."""

import inspect
import zipfile

import numpy as np
import pytest

from discreet.errors import DiscreetError, InvalidInputError, UnknownNameError
from discreet.mdp import TabularMDP, environments, evaluate, make, solve, uniform_policy
from discreet.mdp.environments import registry
from discreet.mdp.environments.registry import (
    OPTIONAL,
    environment_names,
    get_environment,
    register,
)
from discreet.mdp.tabular import relabelling

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


def constant_values(mdp):
    size = (mdp.horizon, mdp.shape.states)
    return [evaluate(mdp, np.full(size, a)) for a in range(mdp.shape.actions)]


@pytest.mark.parametrize("name", ALL)
def test_each_has_a_summary_parameters_and_a_gap(name):
    spec = get_environment(name)
    assert spec.summary.endswith(".")
    assert len(spec.summary) < 100
    assert {"horizon", "relabel"} <= set(spec.parameters)
    assert all(default is not inspect.Parameter.empty for default in spec.parameters.values())
    mdp = getattr(environments, name)()
    assert isinstance(mdp, TabularMDP)
    assert mdp.name == name
    assert solve(mdp).value > evaluate(mdp, uniform_policy(mdp.shape)) * 1.05
    assert make(name, horizon=11).horizon == 11


@pytest.mark.parametrize("name", ALL)
def test_relabelling_hides_the_actions_and_keeps_the_problem(name):
    plain, one, two, other = (make(name, relabel=seed) for seed in (None, 5, 5, 6))
    np.testing.assert_array_equal(one.transitions, two.transitions)
    np.testing.assert_array_equal(one.rewards, two.rewards)
    assert (one.rewards != plain.rewards).any() or (one.transitions != plain.transitions).any()
    assert solve(one).value == pytest.approx(solve(other).value)
    assert solve(one).value == pytest.approx(solve(plain).value)
    assert one.stationary == plain.stationary
    uniform = uniform_policy(plain.shape)
    assert evaluate(one, uniform) == pytest.approx(evaluate(plain, uniform))


@pytest.mark.parametrize("name", ["Treatment", "Recommender", "DemandResponse"])
@pytest.mark.parametrize("relabel", [None, 1, 2])
def test_the_domains_are_not_solved_by_a_fixed_action(name, relabel):
    mdp = make(name, relabel=relabel)
    best, uniform = solve(mdp).value, evaluate(mdp, uniform_policy(mdp.shape))
    assert max(constant_values(mdp)) <= best - 0.25 * (best - uniform)
    used = solve(mdp).policy.actions
    assert set(used.ravel().tolist()) == set(range(mdp.shape.actions))


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("GridWorld", {"layout": "S.|."}, "equally long rows"),
        ("GridWorld", {"layout": "S.x"}, "equally long rows"),
        ("GridWorld", {"layout": "S.."}, "one start S and a goal G"),
        ("GridWorld", {"layout": "SSG"}, "one start S and a goal G"),
        ("GridWorld", {"slip": 1.5}, "slip in"),
        ("LowerBound", {"advantage": 0.6}, "advantage <= 1/2"),
        ("LowerBound", {"actions": 1}, "actions=1"),
        ("LowerBound", {"depth": 4, "horizon": 4}, "horizon=4"),
        ("DoubleChain", {"length": 0}, "length=0"),
        ("DoubleChain", {"consolation": 2}, "consolation"),
        ("RandomMDP", {"concentration": 0}, "concentration > 0"),
        ("DemandResponse", {"capacity": 0}, "capacity=0"),
        ("RiverSwim", {"states": "four"}, "states='four'"),
        ("Treatment", {"horizon": 0}, "horizon=0"),
        ("Recommender", {"horizon": -2}, "horizon=-2"),
        ("SixArms", {"horizon": 2.5}, "horizon=2.5"),
    ],
)
def test_bad_parameters_get_one_sentence(name, parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        make(name, **parameters)


TRANSITIONS = np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.5, 0.5], [0.0, 1.0]]])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.npz"
    np.savez(path, transitions=TRANSITIONS, rewards=np.eye(2), horizon=3)
    return str(path)


def test_a_file_is_an_environment(file):
    mdp = make(file)
    assert (mdp.name, mdp.horizon) == ("model", 3)
    assert make(file, horizon=5).horizon == 5


def test_actions_of_any_environment_can_be_renamed(file):
    plain, renamed = make(file), make(file, relabel=7)
    order = relabelling(plain, 7)
    assert np.array_equal(order, relabelling(renamed, 7))
    for state in range(2):
        for action in range(2):
            original = order[0, state, action]
            same = renamed.transitions[0, state, action] == plain.transitions[0, state, original]
            assert same.all()


def test_a_gymnasium_id_is_an_environment():
    mdp = make("FrozenLake-v1", horizon=5, is_slippery=False, relabel=1)
    assert (mdp.shape.states, mdp.shape.actions, mdp.horizon) == (16, 4, 5)


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("FrozenLake-v1", {}, "Expected a horizon for FrozenLake-v1"),
        ("FrozenLake-v1", {"horizon": 3, "speed": 1}, "Gymnasium cannot make"),
        ("NoSuchLake-v1", {"horizon": 3}, "Gymnasium cannot make"),
        ("missing.npz", {}, "does not exist"),
    ],
)
def test_mistakes_are_named(name, parameters, words):
    with pytest.raises(InvalidInputError, match=words):
        make(name, **parameters)


def test_files_with_other_arrays_are_refused(tmp_path, file):
    with pytest.raises(UnknownNameError, match="array in model"):
        make(file, discount=0.9)
    np.savez(tmp_path / "half.npz", transitions=TRANSITIONS)
    with pytest.raises(InvalidInputError, match="to hold an array 'rewards'"):
        make(str(tmp_path / "half.npz"))


def flagged_as_encrypted(data):
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = data.find(mark)
        while start >= 0:
            data[start + place] |= 1
            start = data.find(mark, start + 1)
    return data


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: b"no arrays",
        lambda data: data[: len(data) // 2],
        lambda data: data[:70] + bytes(byte ^ 0x5A for byte in data[70:150]) + data[150:],
        flagged_as_encrypted,
    ],
    ids=["empty", "text", "half", "damaged", "encrypted"],
)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, spoil):
    path = tmp_path / "spoilt.npz"
    np.savez_compressed(path, transitions=TRANSITIONS, rewards=np.eye(2), horizon=3)
    path.write_bytes(spoil(bytearray(path.read_bytes())))
    with pytest.raises(InvalidInputError, match=r"an \.npz file of real numbers.* numpy\.savez"):
        make(str(path))


@pytest.mark.parametrize("kind", ["array", "text", "complex", "pickled"])
def test_a_file_of_other_things_is_refused(tmp_path, kind):
    path = tmp_path / "other.npz"
    if kind == "array":
        with path.open("wb") as file:
            np.save(file, TRANSITIONS)
    elif kind == "text":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("transitions.npy", "words")
    else:
        of = complex if kind == "complex" else object
        np.savez(path, transitions=TRANSITIONS.astype(of), rewards=np.eye(2), horizon=3)
    with pytest.raises(InvalidInputError, match=r"an \.npz file of real numbers.* numpy\.savez"):
        make(str(path))


@pytest.fixture
def own(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})

    def build(*, horizon=2):
        """One line."""
        return make("RiverSwim", horizon=horizon)

    register("Own", build)


def test_an_environment_of_ones_own(own):
    assert make("own", horizon=4).horizon == 4
    assert get_environment("Own").summary == "One line."
    assert registry.listing("Own").parameters == {"horizon": 2, "relabel": None}
    assert get_environment("Own").relabelled_by_us
    with pytest.raises(UnknownNameError, match="parameter of Own"):
        make("Own", states=4)


def test_shipped_names_cannot_be_taken(own):
    with pytest.raises(DiscreetError, match="which discreet ships"):
        register("riverswim", make)


def test_what_is_no_mdp_is_refused(own):
    register("Wrong", lambda: "an mdp")
    with pytest.raises(InvalidInputError, match="to be a TabularMDP, got 'an mdp'"):
        make("Wrong")
