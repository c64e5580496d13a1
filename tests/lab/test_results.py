"""Result folders: what made them stays written in them, and damage is named."""

import builtins
import json
import shutil
from dataclasses import replace
from importlib import metadata

import pytest

import discreet
from discreet.errors import DiscreetError, InvalidInputError, MissingExtraError
from discreet.lab import results as results_module
from discreet.lab.report import render, write_figures, write_report
from discreet.lab.results import ResultFolder, load_results, write_file
from discreet.lab.runner import free_folder, run_experiment
from discreet.lab.summary import summarise
from discreet.lab.tasks import SCHEMA_VERSION, Outcome, tasks_of
from helpers.experiments import experiment, series, without

LOCAL = {"model": "local", "epsilon": [1.0]}
EXPERIMENT = experiment("psrl", "dp-ucbvi", trusts=[{"model": "none"}, LOCAL])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "results"
    return run_experiment(EXPERIMENT, folder, jobs=1).results.path


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def aged(folder, version="0.0.7"):
    """The folder as another version of discreet would have left it."""
    import pyarrow.parquet as pq

    for path in [folder / "environment.json", folder / "guarantees.json", *folder.glob("parts/*")]:
        text = path.read_text()
        path.write_text(text.replace(f'"{discreet.__version__}"', f'"{version}"'))
    table = pq.read_table(folder / "results.parquet")
    number = table.column_names.index("version")
    column = [[version] * len(table)]
    pq.write_table(table.set_column(number, "version", column), folder / "results.parquet")
    return folder


def test_every_file_says_which_version_made_it(made):
    version = discreet.__version__
    results = load_results(made)
    assert results.version == version
    assert json.loads((made / "environment.json").read_text())["packages"]["discreet"] == version
    assert {entry["version"] for entry in results.guarantees} == {version}
    assert set(results.table["version"].to_pylist()) == {version}
    parts = [json.loads(path.read_text()) for path in made.glob("parts/*.json")]
    assert {part["version"] for part in parts} == {version}


def test_the_resolved_mechanism_stands_beside_the_requested_one(made):
    private = [entry for entry in load_results(made).guarantees if entry["trust"] == "local"]
    assert {entry["requested"] for entry in private} == {"auto"}
    assert "auto" not in {entry["mechanism"] for entry in private}
    table = load_results(made).table
    assert set(table["mechanism"].to_pylist()) == {
        e["mechanism"] for e in load_results(made).guarantees
    }
    assert private[0]["settings"], "settings as the run resolved them"


def test_results_of_another_version_keep_their_stamp(folder):
    before = contents(aged(folder))
    results = load_results(folder)
    assert results.version == "0.0.7"
    assert {row.facts["version"] for row in summarise(results)} == {"0.0.7"}
    page = render(results)
    assert "Made by discreet 0.0.7." in page
    assert f"discreet {discreet.__version__}." not in page
    write_report(results)
    write_figures(results)
    after = contents(folder)
    assert {path: after[path] for path in before} == before


def test_results_of_two_versions_are_never_mixed(folder):
    aged(folder)
    before = contents(folder)
    more = replace(EXPERIMENT, runs=2)
    with pytest.raises(InvalidInputError, match=r"discreet 0\.0\.7.*never mixed.*--output"):
        run_experiment(more, folder, jobs=1)
    assert contents(folder) == before


def test_a_single_part_of_another_version_is_enough_to_refuse(folder):
    part = next(folder.glob("parts/*.json"))
    part.write_text(json.dumps(json.loads(part.read_text()) | {"version": "9.0"}))
    with pytest.raises(InvalidInputError, match=r"results of discreet 9\.0, and this is"):
        run_experiment(EXPERIMENT, folder, jobs=1)


def test_a_folder_of_another_schema_is_not_filled_up(folder):
    path = folder / "environment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 0}))
    with pytest.raises(InvalidInputError, match="another schema"):
        run_experiment(EXPERIMENT, folder, jobs=1)


def test_other_dependencies_on_the_way_are_added_to_the_stamp(folder, monkeypatch):
    first = json.loads((folder / "environment.json").read_text())
    monkeypatch.setattr(metadata, "version", lambda package: "99")
    for _ in range(2):  # the second time nothing is new
        run_experiment(EXPERIMENT, folder, jobs=1)
    stamp = json.loads((folder / "environment.json").read_text())
    (later,) = stamp.pop("resumed_with")
    assert later["numpy"] == "99"
    assert stamp == first


def test_the_same_dependencies_change_nothing(folder):
    before = (folder / "environment.json").read_bytes()
    assert run_experiment(EXPERIMENT, folder, jobs=1).executed == 0
    assert (folder / "environment.json").read_bytes() == before


@pytest.mark.parametrize("name", ["spec.toml", "guarantees.json", "timings.json", "policies.json"])
def test_a_missing_file_of_a_folder_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InvalidInputError, match=rf"{name}': No such file.*finished runs are kept"):
        load_results(folder)


@pytest.mark.parametrize("name", ["results.parquet", "guarantees.json"])
def test_a_damaged_file_is_named_and_made_again(folder, name):
    (folder / name).write_bytes(b"nothing useful")
    with pytest.raises(InvalidInputError, match=f"Cannot read .*{name}"):
        load_results(folder)
    assert run_experiment(EXPERIMENT, folder, jobs=1).executed == 0
    assert len(load_results(folder).series()) == 3


@pytest.mark.parametrize("content", [b"", b"[]", b'{"other": 1}', b"\xff\xfe"])
def test_a_damaged_part_counts_as_not_finished(tmp_path, content):
    folder, (task,) = ResultFolder(tmp_path), tasks_of(experiment())
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / f"{task.name}.json").write_bytes(content)
    assert folder.finished(task) is None


def test_a_part_of_another_schema_is_not_finished(tmp_path):
    folder, (task,) = ResultFolder(tmp_path), tasks_of(experiment())
    folder.keep(Outcome(task, 0.5, {"version": "1"}))
    seconds = {"seconds": 0.5, "compile_seconds": 0.0}
    assert folder.finished(task) == {"schema": SCHEMA_VERSION, **seconds, "version": "1"}
    path = tmp_path / "parts" / f"{task.name}.json"
    path.write_text(path.read_text().replace(f'"schema": {SCHEMA_VERSION}', '"schema": 0'))
    assert folder.finished(task) is None


@pytest.mark.parametrize(("version", "words"), [(None, "none"), ({"schema_version": "99"}, "99")])
def test_an_unknown_schema_version_is_refused(folder, version, words):
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "results.parquet").replace_schema_metadata(version)
    pq.write_table(table, folder / "results.parquet")
    with pytest.raises(InvalidInputError, match=f"schema version {words}; .* reads 2\\."):
        load_results(folder)


def test_not_a_result_folder(tmp_path):
    with pytest.raises(InvalidInputError, match=r"no results\.parquet"):
        load_results(tmp_path)


def test_without_pyarrow_the_extra_is_named(made, monkeypatch):
    monkeypatch.setattr(builtins, "__import__", without("pyarrow"))
    with pytest.raises(MissingExtraError, match="lab"):
        load_results(made)


def test_results_read_back(made):
    results = load_results(made)
    assert results.experiment == EXPERIMENT
    found = results.series()
    assert [(s.facts["learner"], s.facts["trust"]) for s in found] == [
        ("psrl", "none"),
        ("dp-ucbvi", "none"),
        ("dp-ucbvi", "local"),
    ]
    for one in found:
        assert one.regret.shape == (1, len(one.episodes))
        assert one.final.tolist() == one.regret[:, -1].tolist()
        assert one.seconds > 0
    frame = results.to_pandas()
    assert set(frame["trust"]) == {"none", "local"}
    assert (frame["uniform_regret"] > 0).all()


def test_the_noise_on_counts_leaves_rewards_and_losses_out():
    assert series("local", 2.0).count_noise == 5.0  # 99 is on the rewards
    assert series(noise={"losses": 3.0}).count_noise == 0.0
    assert series(noise={"transitions": 1.0, "visits": 2.0}).count_noise == 2.0


def test_a_package_that_is_not_installed_is_said_so(tmp_path, monkeypatch):
    monkeypatch.setattr(results_module, "_DEPENDENCIES", ("numpy", "no-such-package"))
    run_experiment(experiment(), tmp_path, jobs=1)
    packages = json.loads((tmp_path / "environment.json").read_text())["packages"]
    assert packages["no-such-package"] == "not installed"
    assert packages["numpy"][0].isdigit()


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DiscreetError, match=r"Cannot write .*--output"):
        write_file(tmp_path / "file" / "below", b"")
    write_file(tmp_path / "new" / "deep" / "file", b"x")
    assert (tmp_path / "new" / "deep" / "file").read_bytes() == b"x"


def test_every_run_knows_the_source_of_its_learner_environment_and_mechanism(made):
    from discreet import _registry

    for entry in load_results(made).guarantees:
        assert entry["source"] == {
            "version": discreet.__version__,
            "learner": _registry.logic(),
            "environment": _registry.logic(),
            "mechanism": _registry.logic(),
        }


def test_an_edited_learner_reuses_nothing(folder, monkeypatch):
    """One changed line of the logic: other names of all parts, and the folder is refused."""
    from discreet import _registry

    before, names = contents(folder), {task.name for task in tasks_of(EXPERIMENT)}
    _registry.of_object.cache_clear()
    monkeypatch.setattr(_registry, "logic", lambda: "edited")
    try:
        assert not names & {task.name for task in tasks_of(EXPERIMENT)}
        with pytest.raises(
            InvalidInputError, match=r"3 runs of a learner .* edited since.*--output"
        ):
            run_experiment(EXPERIMENT, folder, jobs=1)
        assert free_folder(EXPERIMENT, folder) == folder.with_name("copy-2")
    finally:
        _registry.of_object.cache_clear()
    assert contents(folder) == before


def test_another_version_reuses_nothing(monkeypatch):
    names = {task.name for task in tasks_of(EXPERIMENT)}
    monkeypatch.setattr(discreet, "__version__", "99")
    assert not names & {task.name for task in tasks_of(EXPERIMENT)}


def test_other_settings_never_replace_a_folder(folder):
    before = contents(folder)
    other = replace(EXPERIMENT, seed=5)
    with pytest.raises(InvalidInputError, match=r"3 runs of other settings, which would be lost"):
        run_experiment(other, folder, jobs=1)
    fewer = replace(EXPERIMENT, learners=EXPERIMENT.learners[:1])
    with pytest.raises(InvalidInputError, match="2 runs of other settings"):
        run_experiment(fewer, folder, jobs=1)
    assert contents(folder) == before
    assert free_folder(other, folder) == folder.with_name("copy-2")
    assert free_folder(EXPERIMENT, folder) == folder


def test_compilation_has_a_column_of_its_own(folder):
    timings = folder / "timings.json"
    times = {
        name: {"seconds": 0.5, "compile_seconds": 7.0} for name in json.loads(timings.read_text())
    }
    timings.write_text(json.dumps(times))
    rows = [row.to_dict() for row in summarise(load_results(folder))]
    assert {(row["seconds"], row["compile_seconds"]) for row in rows} == {(0.5, 7.0)}
