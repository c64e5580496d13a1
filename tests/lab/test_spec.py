"""Experiment files: what is read is what was meant, and mistakes are named."""

import tomllib

import pytest

from discreet.errors import InvalidInputError, UnknownNameError
from discreet.lab.spec import experiment_names, load_experiment, parse_experiment

MINIMAL = """
name = "x"
title = "X"
episodes = [1e4, 20_000]
[[environments]]
name = "RiverSwim"
parameters = {states = 4}
[[learners]]
name = "flow-ucb"
settings = {stationary = true}
[[trusts]]
model = "central"
epsilon = 1
delta = 1e-6
[variants.quick]
runs = 2
"""


def test_reads_and_writes_back():
    experiment = parse_experiment(MINIMAL)
    assert experiment.episodes == (10_000, 20_000)
    assert experiment.trusts[0].epsilon == (1.0,)
    assert parse_experiment(experiment.to_toml()) == experiment


def test_variant_replaces_only_its_keys():
    quick = parse_experiment(MINIMAL).variant("quick")
    assert quick.runs == 2
    assert quick.episodes == (10_000, 20_000)


@pytest.mark.parametrize("name", experiment_names())
def test_shipped_experiments_are_valid_and_have_a_quick_variant(name):
    experiment = load_experiment(name)
    assert experiment.name == name
    assert experiment.expect, "every shipped experiment says what to expect"
    quick = experiment.variant("quick")
    assert parse_experiment(quick.to_toml()) == quick


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (("episodes =", "episode ="), UnknownNameError, "did you mean 'episodes'"),
        (("stationary = true}", "stationary = true}\nlable = 'a'"), UnknownNameError, "'label'"),
        (('model = "central"', 'model = "centrl"'), UnknownNameError, "did you mean 'central'"),
        (("epsilon = 1", "epsilon = -1"), InvalidInputError, "epsilon > 0"),
        (("epsilon = 1", 'epsilon = "one"'), InvalidInputError, "finite number"),
        (("[1e4, 20_000]", "[0.5]"), InvalidInputError, "integer >= 1"),
        (('title = "X"', "title = 3"), InvalidInputError, "expected title to be text"),
        (('title = "X"', ""), InvalidInputError, "needs the key 'title'"),
        (("runs = 2", "seeds = 2"), UnknownNameError, "key of a variant"),
        (('name = "x"', "name = x"), InvalidInputError, "not valid TOML"),
    ],
)
def test_mistakes_are_named(change, error, words):
    assert change[0] in MINIMAL
    with pytest.raises(error, match=words):
        parse_experiment(MINIMAL.replace(*change, 1))


def test_missing_file_and_unknown_name():
    with pytest.raises(InvalidInputError, match="no such file"):
        load_experiment("nowhere.toml")
    with pytest.raises(UnknownNameError, match="price-of-trust"):
        load_experiment("price-of-trus")


def test_toml_writer_escapes():
    from discreet.lab._toml import dumps

    value = {"text": 'quote " back\\slash é\nline', "list": [1, 2.5, True], "table": {"a": "b"}}
    assert tomllib.loads(dumps(value)) == value
