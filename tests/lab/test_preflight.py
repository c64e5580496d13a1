"""Late failures of old: each is found before the first run, and nothing is left behind."""

import importlib.util
from dataclasses import replace

import pytest

from discreet.errors import DiscreetError, MissingExtraError
from discreet.lab.runner import check, environment_of, run_experiment
from discreet.lab.tasks import expand
from helpers.experiments import experiment

CENTRAL = {"model": "central", "epsilon": [1.0], "delta": 1e-6}


@pytest.mark.parametrize(
    ("learner", "keys", "words"),
    [
        ("psrl", {"plots": ["regert"]}, "did you mean 'regret'"),
        ({"name": "ucbvi", "settings": {"bonuses": 1}}, {}, "Unknown setting"),
        ({"name": "flow-ucb", "settings": {"nothing": 1}}, {}, "nothing"),
        ({"name": "flow-ucb", "settings": {"stationary": "yes"}}, {}, "True or False"),
        ({"name": "private-uc-o-reps", "settings": {"losses": "none"}}, {}, "losses"),
        ("psrl", {"episodes": [10**16]}, r"episodes <= 1e\+15"),
        ("psrl", {"environment": {"parameters": {"states": 0}}}, "states=0"),
        ("flow-ucb", {"trusts": [CENTRAL | {"mechanism": "laplac"}]}, "did you mean 'laplace'"),
        ("flow-ucb", {"trusts": [{"model": "shuffle", "epsilon": [1.0]}]}, "delta"),
    ],
)
def test_mistakes_are_found_before_anybody_is_simulated(tmp_path, learner, keys, words):
    wrong = experiment(learner, **keys)
    with pytest.raises(DiscreetError, match=words):
        run_experiment(wrong, tmp_path / "out", jobs=1, progress=pytest.fail)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("engine", "package"), [("local", "pyarrow"), ("local", "matplotlib"), ("ray", "ray")]
)
def test_a_missing_extra_is_named(monkeypatch, engine, package):
    real = importlib.util.find_spec
    missing = lambda name: None if name == package else real(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", missing)
    with pytest.raises(MissingExtraError, match=package):
        check(experiment(), engine=engine)


def test_a_keyword_that_a_plain_learner_does_not_take_is_one_sentence(monkeypatch):
    from discreet.learners import registry
    from discreet.learners.registry import LearnerSpec, get_learner

    class Plain(get_learner("flow-ucb").make):
        def __init__(self, problem, plan, rng):
            super().__init__(problem, plan, rng)

    spec = LearnerSpec("plain", "", "", "batch", ("none",), make=Plain)
    monkeypatch.setitem(registry._REGISTERED, "plain", spec)
    with pytest.raises(DiscreetError, match=r"'plain' cannot be made: .*unexpected keyword"):
        check(experiment({"name": "plain", "settings": {"explore": 1}}))


def test_what_varies_may_fail_in_some_runs_but_not_in_all():
    varied = experiment(environment={"vary": "states", "parameters": {"horizon": 2}}, runs=3)
    cell = expand(varied)[0]
    assert environment_of(cell, 3).shape.states == 1  # run 0 asks for no state at all
    with pytest.raises(DiscreetError, match="states=0"):
        environment_of(cell, 1)


def test_what_is_right_passes():
    check(experiment("psrl", "flow-ucb", "private-uc-o-reps", trusts=[{"model": "none"}, CENTRAL]))
    check(replace(experiment(), plots=()))
