"""Environments from files and from other packages, by name."""

import numpy as np
import pytest

from discreet import make
from discreet.errors import DiscreetError, InvalidInputError, UnknownNameError
from discreet.mdp.environments import registry
from discreet.mdp.environments._relabel import relabelling
from discreet.mdp.environments.registry import get_environment, register

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
    (tmp_path / "text.npz").write_text("no arrays")
    with pytest.raises(InvalidInputError, match=r"Cannot read .* as \.npz"):
        make(str(tmp_path / "text.npz"))


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
    assert registry.listing("Own") == ("One line.", {"horizon": 2, "relabel": None})
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
