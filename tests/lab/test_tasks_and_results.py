"""Tasks that go wrong, folders that are damaged, warnings that a reader must see."""

import builtins
import json
import shutil
from dataclasses import replace

import pytest

from discreet.errors import InvalidInputError, MissingExtraError, UnsupportedError
from discreet.lab import results as results_module
from discreet.lab.labels import name_of
from discreet.lab.report import render
from discreet.lab.results import load
from discreet.lab.runner import run_experiment
from discreet.lab.spec import parse_experiment
from discreet.lab.summary import summarise, warnings_of, winners
from discreet.lab.tasks import bundles, execute, expand, tasks_of
from discreet.learners import registry

TEXT = """
name = "alone"
title = "Alone"
runs = 1
episodes = [20]
[[environments]]
name = "RandomMDP"
parameters = {states = 2, actions = 2, horizon = 2}
[[learners]]
name = "psrl"
[[trusts]]
model = "none"
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "results"
    return run_experiment(parse_experiment(TEXT), folder, jobs=1).results


@pytest.fixture
def folder(alone, tmp_path):
    return shutil.copytree(alone.path, tmp_path / "copy")


def changed_trust(**row):
    lines = "\n".join(f"{key} = {value!r}" for key, value in row.items())
    return parse_experiment(TEXT.replace('model = "none"', lines.replace("'", '"')))


def test_nothing_to_run_is_one_sentence():
    with pytest.raises(UnsupportedError, match="'alone' has nothing to run"):
        expand(changed_trust(model="shuffle", epsilon=1.0))


def test_a_learner_skips_environments_and_lengths():
    experiment = parse_experiment(TEXT)
    row = experiment.learners[0]
    for change in ({"environments": ("other",)}, {"max_episodes": 19}):
        with pytest.raises(UnsupportedError, match="nothing to run"):
            expand(replace(experiment, learners=(replace(row, **change),)))
    kept = replace(row, environments=("RandomMDP",), max_episodes=20)
    assert len(expand(replace(experiment, learners=(kept,)))) == 1


def test_a_bug_in_a_learner_is_named_with_its_place(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by nothing")

    spec = replace(registry.get_learner("psrl"), name="broken", run=broken)
    monkeypatch.setitem(registry._REGISTERED, "broken", spec)
    experiment = parse_experiment(TEXT.replace('"psrl"', '"broken"'))
    (outcome,) = execute(bundles(tasks_of(experiment))[0])
    assert outcome.record is None
    assert outcome.error.startswith("ZeroDivisionError: by nothing (in broken, line ")


def test_the_fingerprint_knows_what_changes_a_result_and_nothing_else():
    experiment = parse_experiment(TEXT)
    (cell,) = expand(experiment)
    relabelled = replace(cell.learner, label="Another name", max_episodes=10**6)
    assert replace(cell, learner=relabelled).key == cell.key
    different = [
        replace(cell, seed=1),
        replace(cell, episodes=21),
        replace(cell, learner=replace(cell.learner, settings={"prior": 2.0})),
        replace(cell, environment=replace(cell.environment, relabel=False)),
        replace(cell, environment=replace(cell.environment, parameters={"states": 3})),
    ]
    assert len({cell.key, *(one.key for one in different)}) == 6


def test_one_learner_has_nobody_to_beat(alone):
    assert winners(alone) == []
    page = render(alone)
    assert "Only one learner ran: nothing to compare." in page
    assert '<div class="warn">' not in page


def test_no_privacy_warns_of_nothing_and_simulated_noise_does(alone):
    assert warnings_of(alone) == []
    entry = dict(alone.guarantees[0])
    promise = {**entry["guarantee"], "notion": "LDP", "epsilon": 1.0, "simulated": True}
    marked = replace(alone, guarantees=[entry | {"guarantee": promise}] * 2)
    assert len(warnings_of(marked)) == 1
    assert "not a protection of real people" in warnings_of(marked)[0]
    claimed = replace(
        alone, guarantees=[entry | {"guarantee": promise | {"claimed": "(0.5, 0)-LDP"}}]
    )
    assert "claim (0.5, 0)-LDP but deliver (1, 0)-LDP" in warnings_of(claimed)[0]
    assert render(claimed).count('<div class="warn">') == 2


def test_a_policy_too_large_for_a_picture_is_left_out(alone):
    assert "<h2>Learned policies</h2>" in render(alone)
    without = replace(alone, policies=dict.fromkeys(alone.policies))
    assert "<h2>Learned policies</h2>" not in render(without)


def test_a_share_never_rounds_to_a_bare_zero(alone):
    (row,) = summarise(alone)
    assert replace(row, mean=0.5, uniform=100.0).share_text == "0.50%"
    assert replace(row, mean=1e-4, uniform=100.0).share_text == "0.0001%"
    assert replace(row, uniform=0.0).share_text == "nan%"


def test_tables_tell_mechanisms_apart(alone):
    (row,) = summarise(alone)
    assert name_of(row.facts) == "psrl"
    assert name_of({**row.facts, "mechanism": "laplace"}) == "psrl (laplace)"
    entry = {**alone.guarantees[0], "mechanism": "laplace"}
    assert '<td class="">psrl (laplace)</td>' in render(replace(alone, guarantees=[entry]))
    assert row.to_dict()["mechanism"] == "none"


def test_json_has_null_for_what_is_not_promised(alone):
    (row,) = summarise(alone)
    plain = row.to_dict()
    assert plain["epsilon"] is None
    assert plain["guarantee"]["notion"] == "none"
    json.dumps(plain, allow_nan=False)
    assert replace(row, seconds=0.0).to_dict()["episodes_per_second"] is None


@pytest.mark.parametrize("name", ["spec.toml", "guarantees.json", "timings.json", "policies.json"])
def test_a_missing_file_of_a_folder_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InvalidInputError, match=rf"{name}': No such file.*finished runs are kept"):
        load(folder)


@pytest.mark.parametrize("name", ["results.parquet", "guarantees.json"])
def test_a_damaged_file_is_named(folder, name):
    (folder / name).write_bytes(b"nothing useful")
    with pytest.raises(InvalidInputError, match=f"Cannot read .*{name}"):
        load(folder)
    run_experiment(parse_experiment(TEXT), folder, jobs=1)
    assert len(load(folder).series()) == 1


def test_a_table_without_a_schema_version_is_refused(folder):
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "results.parquet").replace_schema_metadata(None)
    pq.write_table(table, folder / "results.parquet")
    with pytest.raises(InvalidInputError, match="schema version none"):
        load(folder)


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("pyarrow", lambda alone: load(alone.path)),
        ("matplotlib", render),
    ],
)
def test_without_the_extra_it_is_named(alone, monkeypatch, package, call):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == package:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match="lab"):
        call(alone)


def test_versions_of_what_is_not_installed(monkeypatch):
    monkeypatch.setattr(results_module, "_VERSIONED", ("numpy", "no-such-package"))
    found = results_module._versions()["packages"]
    assert found["no-such-package"] == "not installed"
    assert found["numpy"][0].isdigit()


@pytest.mark.parametrize(
    ("learner", "trust", "noisy"),
    [("flow-ucb", "central", True), ("private-uc-o-reps", "central", False)],
)
def test_noise_beside_the_signal(learner, trust, noisy):
    from discreet.lab.tasks import _noise_std
    from discreet.mdp.shape import Shape

    text = TEXT.replace('"psrl"', f'"{learner}"')
    text = text.replace('model = "none"', f'model = "{trust}"\nepsilon = 1\ndelta = 1e-6')
    (cell,) = expand(parse_experiment(text))
    assert (_noise_std(cell, Shape(states=2, actions=2, horizon=2)) > 0) is noisy
