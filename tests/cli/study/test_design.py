"""Options over a design file: what is typed holds, and another trust model brings its own."""

import pytest

from discreet.cli.study._design import DesignOptions, Rehearsal
from discreet.errors import InvalidInputError


@pytest.fixture
def options(place):
    """Options beside the design file of the folder."""
    return lambda **typed: DesignOptions(design=place / "design.toml", **typed)


def test_a_file_alone_is_taken_as_it_is(options, place):
    from discreet.study.design import read_design

    assert options().read() == read_design(place / "design.toml")


def test_what_is_typed_holds_and_the_rest_stays(options):
    written, typed = options().read(), options(epsilon=0.25, start="a, b,").read()
    assert typed.trust == {**written.trust, "epsilon": 0.25}
    assert list(typed.start_states) == ["a", "b"]
    assert typed.states == written.states


def test_another_trust_model_keeps_epsilon_and_delta_alone():
    written = {"model": "shuffle", "epsilon": 2.0, "delta": 1e-6, "mechanism": "bits", "honest": 1}
    other = DesignOptions(trust="central")._trust(written)
    assert other == {"model": "central", "epsilon": 2.0, "delta": 1e-6}
    assert DesignOptions(trust="none")._trust(written) == {"model": "none"}
    assert DesignOptions(trust="shuffle", honest=0.5)._trust(written) == {**written, "honest": 0.5}


@pytest.mark.parametrize(
    ("text", "names"),
    [("4", 4), ("ill", ["ill"]), ("ill, well", ["ill", "well"]), (" ill ", ["ill"])],
)
def test_a_number_or_names(text, names):
    assert DesignOptions(states=text, actions="2", steps="3").read().states == names


def test_settings_of_file_and_command_are_joined(options):
    written = options().read()
    found = options().read({"settings": {"shrink": 0.5}})
    assert found.settings == {**written.settings, "shrink": 0.5}


def test_nobody_is_protected_by_a_seed():
    assert Rehearsal().arguments() == {"sampler": "secure", "seed": None}
    assert Rehearsal(rehearse=True, seed=3).arguments() == {"sampler": "simulation", "seed": 3}
    with pytest.raises(InvalidInputError, match="--seed 0; leave it out, or give --rehearse"):
        Rehearsal(seed=0).arguments()
