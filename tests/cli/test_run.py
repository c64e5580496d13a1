"""`discreet run`, `plot` and `report`: what a person types, mistypes and gets."""

import json
import re

import pytest

from discreet import __version__
from discreet.cli import run
from discreet.lab.results import load_results
from discreet.lab.summary import winners
from helpers.experiments import experiment_text

FILE = experiment_text(
    "flow-ucb",
    runs=2,
    episodes=[30],
    trusts=[{"model": "none"}, {"model": "central", "epsilon": [1.0], "delta": 1e-6}],
    variants={"quick": {"runs": 1}},
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(FILE)
    return tmp_path


def test_a_file_gives_a_table_a_sentence_and_a_report(discreet, here):
    code, out, err = discreet("run", "tiny.toml", "--jobs", "1")
    assert code == 0
    assert "Tiny: flow-ucb on RandomMDP" in out
    assert "(1, 0)-JDP" in out  # at this size the least noise is pure
    assert "Note: Noise came from the seeded simulation sampler" in out
    assert "p = " in out
    assert out.splitlines()[-1] == "Report: results/tiny/report.html"
    assert (here / "results/tiny/report.html").is_file()
    assert re.fullmatch(r"4 runs: about .*, \d+\.\d GB of memory\.", err.splitlines()[0])
    assert err.splitlines()[1] == "0 of 4 runs"
    assert err.splitlines()[-1].startswith("4 of 4 runs, ")
    again = discreet("run", "tiny.toml", "--jobs", "1")
    assert again[1] == out
    assert again[2].splitlines() == ["4 of 4 runs"]


def test_json_is_the_only_output(discreet, here):
    code, out, err = discreet("run", "tiny.toml", "--quick", "--jobs", "1", "--json")
    answer = json.loads(out)
    assert code == 0
    assert "Error" not in err
    assert answer["output"] == "results/tiny-quick"
    assert answer["failures"] == []
    open_row, private = answer["results"]
    assert open_row["runs"] == private["runs"] == 1
    assert open_row["epsilon"] is None  # no privacy: nothing is guaranteed
    assert private["epsilon"] == 1.0
    assert (open_row["mechanism"], private["requested_mechanism"]) == ("none", "auto")
    assert private["mechanism"] != "auto"
    assert set(private["noise_std"]) == {"transitions", "rewards", "visits"}
    assert min(private["noise_std"].values()) > 0
    assert {row["version"] for row in (open_row, private)} == {__version__}


def test_overrides_are_kept_in_the_resolved_file(discreet, here):
    discreet(
        "run", "tiny.toml", "--episodes", "20,1e1", "--runs", "1", "--seed", "7", "--jobs", "1"
    )
    resolved = load_results(here / "results/tiny").experiment
    assert (resolved.episodes, resolved.runs, resolved.seed) == ((20, 10), 1, 7)


def test_several_environments_stand_in_a_column(discreet, here):
    second = '[[environments]]\nname = "RiverSwim"\nparameters = {states = 3, horizon = 3}\n'
    text = FILE.replace("[[learners]]", second + "[[learners]]")
    (here / "two.toml").write_text(text.replace('model = "none"', 'model = "local"\nepsilon = 1'))
    _, out, _ = discreet("run", "two.toml", "--quick", "--jobs", "1")
    assert out.splitlines()[0].strip() == "Tiny: flow-ucb"
    rows = [line.split()[0] for line in out.splitlines() if re.search(r"  \(1, .*\)-[JL]DP", line)]
    assert sorted(rows) == ["RandomMDP", "RandomMDP", "RiverSwim", "RiverSwim"]


def test_failures_are_named_and_exit_with_one(discreet, here):
    text = FILE.replace("states = 2, ", "").replace("[[learners]]", 'vary = "states"\n[[learners]]')
    (here / "broken.toml").write_text(text)
    code, out, err = discreet("run", "broken.toml", "--jobs", "1")
    assert code == 1
    assert "Report: " in out
    assert "Run 0 of flow-ucb (none) on RandomMDP failed: Expected states" in err
    code, out, _ = discreet("run", "broken.toml", "--jobs", "1", "--json")
    assert code == 1
    assert len(json.loads(out)["failures"]) == 2


def test_one_learner_with_settings(discreet, here):
    arguments = ["run", "--learner", "flow-ucb", "--environment", "RiverSwim", "--trust", "central"]
    arguments += ["--epsilon", "2", "--delta", "1e-6", "--episodes", "50", "--runs", "1", "--json"]
    arguments += ["--set", "stationary=true", "--set", "env.states=3", "--set", "env.horizon=3"]
    arguments += ["--batches", "4"]
    code, out, _ = discreet(*arguments)
    row = json.loads(out)["results"][0]
    assert code == 0
    assert (row["trust"], row["epsilon"], row["delta"]) == ("central", 2.0, 1e-6)
    resolved = load_results(here / "results/flow-ucb-riverswim-central").experiment
    assert resolved.learners[0].settings == {"stationary": True, "batches": 4}
    assert resolved.environments[0].parameters == {"states": 3, "horizon": 3}


def test_options_change_an_experiment(discreet, here):
    arguments = ["run", "tiny.toml", "--epsilon", "3", "--learner", "flow-ucb", "--runs", "1"]
    code, out, _ = discreet(*arguments, "--jobs", "1", "--json")
    rows = json.loads(out)["results"]
    assert code == 0
    assert {row["epsilon"] for row in rows if row["trust"] != "none"} == {3.0}
    assert {row["learner"] for row in rows} == {"flow-ucb"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--epsilon", "2"], "--epsilon belongs to --learner"),
        (["tiny.toml", "--paper", "001"], "'tiny.toml' and --paper 001"),
        (["tiny.toml", "--set", "a=1"], "--set belongs to --learner"),
        (["tiny.toml", "--learner", "ucbvi"], "Unknown learner of experiment 'tiny' 'ucbvi'"),
        (["--learner", "ucbvi", "--quick"], "--quick belongs to shipped experiments"),
        (["--learner", "ucbvi", "--environment", "River"], "Unknown environment"),
        (["--learner", "ucbvi", "--trust", "shuffle", "--epsilon", "1"], "cannot run under"),
        (
            ["--learner", "flow-ucb", "--trust", "none", "--epsilon", "1"],
            "no --epsilon without pri",
        ),
        (
            ["--learner", "flow-ucb", "--trust", "none", "--delta", "0"],
            "got --delta 0.0 with --tru",
        ),
        (["--learner", "flow-ucb", "--mechanism", "laplace"], "leave it out, or choose --trust"),
        (["--learner", "flow-ucb", "--calibration", "paper"], "no --calibration without privacy"),
        (["tiny.toml", "--episodes", "1.5"], "whole numbers such as 2e5"),
        (["tiny.toml", "--episodes", "inf"], "whole numbers such as 2e5"),
        (["tiny.toml", "--episodes", "0"], "integer >= 1"),
        (["tiny.toml", "--episodes", "1e99", "--jobs", "1"], "episodes <= 1e+15"),
        (["tiny.toml", "--jobs", "-3", "--dry-run"], "0 for all cores, got --jobs -3"),
        (["tiny.toml", "--engine", "slurm"], "known: local, ray"),
        (["tiny.toml", "--engine", "slurm", "--dry-run"], "known: local, ray"),
        ([], "Try `discreet run price-of-trust --quick`"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_two(discreet, here, arguments, sentence):
    code, out, err = discreet("run", *arguments)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("Error: ")
    assert sentence in err.splitlines()[-1]


def test_an_option_of_zero_is_an_option(discreet, here):
    assert "--delta belongs to --learner" in discreet("run", "tiny.toml", "--delta", "0")[2]
    assert "epsilon > 0" in discreet("run", "tiny.toml", "--epsilon", "0")[2]
    code, _, err = discreet("run", "--learner", "dp-ucbvi", "--trust", "local", "--epsilon", "0")
    assert code == 2
    assert "epsilon > 0" in err


def test_results_of_another_version_are_left_alone(discreet, here, monkeypatch):
    import discreet as package

    assert discreet("run", "tiny.toml", "--quick", "--jobs", "1", "--json")[0] == 0
    monkeypatch.setattr(package, "__version__", "9.9.9")
    same = ["run", "tiny.toml", "--quick", "--jobs", "1", "--json"]
    code, out, err = discreet(*same, "--output", "results/tiny-quick")
    assert (code, err) == (2, "")
    assert "two versions are never mixed" in json.loads(out)["error"]
    code, out, err = discreet(*same)
    assert (code, json.loads(out)["output"]) == (0, "results/tiny-quick-2")
    assert "left alone" in err
    assert discreet("report", "results/tiny-quick")[0] == 0


def test_other_settings_go_to_a_folder_of_their_own(discreet, here):
    options = ["--learner", "psrl", "--episodes", "20", "--runs", "1", "--jobs", "1", "--json"]
    folders = [
        json.loads(discreet("run", *options, "--seed", seed)[1])["output"]
        for seed in ("1", "2", "1")
    ]
    first = "results/psrl-riverswim-none"
    assert folders == [first, f"{first}-2", first]
    assert load_results(here / first).experiment.seed == 1
    code, out, _ = discreet("run", *options, "--seed", "3", "--output", first)
    assert code == 2
    assert "1 runs of other settings, which would be lost" in json.loads(out)["error"]


def test_a_dry_run_says_what_it_takes_and_leaves_nothing(discreet, here):
    code, out, _ = discreet("run", "tiny.toml", "--dry-run")
    assert code == 0
    assert re.match(r"4 runs: about .* of memory\.", out)
    code, out, _ = discreet("run", "tiny.toml", "--dry-run", "--json")
    assert json.loads(out)["runs"] == 4
    assert not (here / "results").exists()


def test_a_dry_run_of_what_has_been_run_says_so(discreet, here):
    assert discreet("run", "tiny.toml", "--json")[0] == 0
    code, out, _ = discreet("run", "tiny.toml", "--dry-run")
    assert (code, out) == (0, "No runs: results/tiny has them all.\n")
    code, out, _ = discreet("run", "tiny.toml", "--dry-run", "--json")
    assert json.loads(out) == {
        "output": "results/tiny",
        "runs": 0,
        "seconds": 0,
        "bytes": 0,
        "rehearsal": 0,
        "problems": [],
    }


def test_environments_from_elsewhere(discreet, here):
    import numpy as np

    np.savez(here / "two.npz", transitions=np.full((2, 2, 2), 0.5), rewards=np.eye(2), horizon=3)
    options = ["--learner", "psrl", "--episodes", "20", "--runs", "1", "--jobs", "1", "--json"]
    for name, more in (("two.npz", []), ("FrozenLake-v1", ["--set", "env.horizon=4"])):
        code, out, err = discreet("run", *options, "--environment", name, *more)
        assert code == 0, err + out
        assert json.loads(out)["results"][0]["environment"] == name.removesuffix(".npz")
    code, out, _ = discreet("run", *options, "--environment", "FrozenLake-v1")
    assert code == 2
    assert "--set env.horizon=20" in json.loads(out)["error"]


def test_an_interruption_says_what_was_kept(discreet, here, monkeypatch):
    def interrupted(experiment, folder, progress, **rest):
        progress(None, 3, 4)
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.lab.runner.run_experiment", interrupted)
    code, out, err = discreet("run", "tiny.toml", "--jobs", "1")
    assert (code, out) == (130, "")
    assert "Stopped: 3 of 4 runs are kept in results/tiny; the same command goes on" in err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('name = "tiny"', 'plots = ["regrets"]\nname = "tiny"'), "did you mean 'regret'"),
        (('name = "flow-ucb"', 'name = "flow-ucb"\nsettings = {bonuss = 1}'), "bonuss"),
        (('name = "tiny"', 'name = "../../evil"'), "which also names the result folder"),
        (("variants = {quick", "variants = {slow"), "Unknown variant"),
        (('name = "RandomMDP"', 'name = "RandomMDPs"'), "Unknown environment"),
    ],
)
def test_mistakes_in_a_file_are_found_before_the_first_run(discreet, here, change, sentence):
    text = FILE.replace(*change)
    assert text != FILE
    (here / "wrong.toml").write_text(text)
    code, out, err = discreet("run", "wrong.toml", "--quick", "--jobs", "1")
    assert (code, out) == (2, "")
    assert sentence in err
    assert not (here / "results").exists()


def test_a_file_without_a_quick_variant_says_how_to_make_one(discreet, here):
    (here / "slow.toml").write_text(FILE.replace("variants = {quick = {runs = 1}}\n", ""))
    code, _, err = discreet("run", "slow.toml", "--quick")
    assert code == 2
    assert "has no quick variant: add a table [variants.quick]" in err


def test_a_large_delta_is_called_one(discreet, here):
    options = ["--learner", "dp-ucbvi", "--trust", "central", "--epsilon", "1", "--delta", "0.5"]
    _, _, err = discreet("run", *options, "--episodes", "20", "--runs", "1", "--dry-run")
    assert "Note: delta = 0.5 lets the guarantee fail altogether" in err


def test_nothing_cannot_be_written_into_a_file(discreet, here):
    code, _, err = discreet("run", "--learner", "psrl", "--set", "stationary=none", "--jobs", "1")
    assert code == 2
    assert "leave the key out" in err


def test_progress_on_a_terminal_and_elsewhere(capsys):
    from types import SimpleNamespace

    outcome = SimpleNamespace(task=SimpleNamespace(cell=SimpleNamespace(episodes=1000)))
    with run.Display("x", quiet=False) as display:
        display.update(None, 0, 2)
        display.update(outcome, 1, 2)
        display.update(outcome, 2, 2)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0 of 2 runs"
    assert lines[-1].startswith("2 of 2 runs, ")
    assert lines[-1].endswith(" users/s")
    with run.Display("x", quiet=True) as display:
        display.update(outcome, 2, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({}, []),
        ({"learner": "psrl"}, []),
        ({"settings": []}, []),
        ({"settings": ["a=1"], "trust": "none"}, ["trust", "set"]),
        ({"epsilon": 0.0}, ["epsilon"]),
    ],
)
def test_which_options_somebody_typed(options, given):
    assert run.OneLearner(**options).given == given


def test_one_paper_as_printed(discreet, here):
    """The printed protocol's own view, beside the claim."""
    code, out, err = discreet(
        "run", "--paper", "003-ldp", "--episodes", "60", "--runs", "1", "--jobs", "1",
        "--set", "env.states=3", "--set", "env.horizon=3",
    )  # fmt: skip
    assert code == 0, err
    assert "DP-UCBVI, paper 003-ldp" in out
    assert "(2, 0)-LDP" in out
    said = " ".join(out.split())
    assert "claim (1)-LDP by papers 003 and 004 (local) but deliver (2, 0)-LDP" in said
    assert (here / "results/paper-003-ldp-riverswim/report.html").is_file()


def test_a_paper_with_exact_noise_keeps_its_claim(discreet, here):
    code, out, _ = discreet(
        "run", "--paper", "003-ldp", "--epsilon", "2", "--calibration", "exact", "--json",
        "--episodes", "60", "--runs", "1", "--jobs", "1", "--set", "env.states=3",
    )  # fmt: skip
    assert code == 0
    [row] = json.loads(out)["results"]
    assert (row["guarantee"]["epsilon"], row["guarantee"]["claimed"]) == (2.0, None)
    assert row["constants"] == "theory"
    assert row["label"] == "DP-UCBVI, paper 003-ldp, exact noise"
    assert (here / "results/paper-003-ldp-exact-riverswim/report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--paper", "001", "--trust", "local"), "without --trust"),
        (("--paper", "001", "--learner", "pe"), "without --learner"),
        (("--paper", "001", "--mechanism", "bits"), "without --mechanism"),
        (("--paper", "01"), "Unknown paper '01'"),
        (("tiny.toml", "--paper", "001"), "an experiment or --paper"),
        (("--paper", "001", "--quick"), "--quick belongs to shipped experiments"),
    ],
)
def test_a_paper_has_its_own_learner_and_trust(discreet, here, arguments, words):
    code, _, err = discreet("run", *arguments)
    assert code == 2
    assert words in err


def test_figures_as_svg_and_png(discreet, finished):
    figures = json.loads(discreet("plot", str(finished), "--json")[1])["figures"]
    assert [name.rpartition(".")[2] for name in figures] == ["svg", "png"]
    assert discreet("plot", str(finished))[:2] == (0, "\n".join(figures) + "\n")


def test_a_folder_without_results_is_one_sentence(discreet, tmp_path):
    code, out, err = discreet("plot", str(tmp_path))
    assert (code, out) == (2, "")
    assert "no results.parquet" in err
    assert err.count("\n") == 1


def test_the_page_is_written_and_named(discreet, finished):
    assert discreet("report", str(finished))[:2] == (0, f"{finished}/report.html\n")
    page = (finished / "report.html").read_bytes()
    answer = json.loads(discreet("report", str(finished), "--json")[1])
    assert answer == {"report": f"{finished}/report.html", "tables": []}
    assert (finished / "report.html").read_bytes() == page


def test_no_page_without_results(discreet, tmp_path):
    assert discreet("report", str(tmp_path))[0] == 2


def test_pictures_and_tables_for_a_paper(discreet, here):
    discreet("run", "tiny.toml", "--jobs", "1", "--json")
    arguments = [
        "plot",
        "results/tiny",
        "--format",
        "pdf",
        "--width",
        "3.3",
        "--no-title",
        "--json",
    ]
    code, out, _ = discreet(*arguments)
    drawn = [here / path for path in json.loads(out)["figures"]]
    assert code == 0 and {path.suffix for path in drawn} == {".pdf"}
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", drawn[0].read_bytes())
    assert float(box[1]) == pytest.approx(3.3 * 72, abs=1)
    code, out, _ = discreet("report", "results/tiny", "--latex", "--csv", "--json")
    table, tex = ((here / path).read_text() for path in json.loads(out)["tables"])
    rows = table.splitlines()
    assert code == 0 and tex.count(r"\\") == len(rows) == 3
    assert rows[0].startswith("environment,learner,guarantee,episodes,runs,regret,standard error")
    assert r"\toprule" in tex and r"\%" in tex
    for option, words in (
        (("--format", "gif"), "format of pictures"),
        (("--width", "1"), "2.0 to"),
    ):
        code, _, err = discreet("plot", "results/tiny", *option)
        assert code == 2 and words in err


def test_what_to_cite(discreet, finished):
    alone = discreet("cite")[1]
    assert alone.startswith("@software{discreet,") and alone.count("@") == 1
    assert f"version = {{{__version__}}}" in alone
    used = json.loads(discreet("cite", str(finished), "--json")[1])
    assert used["learners"] and used["bibtex"].startswith(alone.strip())
    assert "@inproceedings{qiao2023near," in discreet("cite", "dp-ucbvi")[1]
    assert "No paper" not in discreet("cite", "dp-ucbvi")[1]
    assert "\n% No paper is known for trial: cite discreet.\n" in discreet("cite", "trial")[1]
    code, _, err = discreet("cite", "dp-ucb")
    assert code == 2 and "did you mean" in err


def test_what_has_no_model_has_returns_in_json_table_and_page(discreet, here):
    played = ["--environment", "FrozenLake-v1", "--set", "env.reward_range=[0,1]"]
    options = [*played, "--set", "env.horizon=6", "--runs", "2", "--jobs", "1", "--output", "out"]
    start = ["run", "--learner", "ucbvi", "--episodes", "60"]
    code, out, _ = discreet(*start, *options, "--json")
    (row,) = json.loads(out)["results"]
    assert code == 0 and "regret" not in row and "uniform_regret" not in row
    found = row["return"]
    assert 0 <= found["low"] <= found["mean"] <= found["high"] <= 1
    assert found["error"] == pytest.approx(found["std"] / 2**0.5)
    assert 0 <= row["uniform_return"] < 0.1
    code, out, _ = discreet(*start, *options)
    assert code == 0 and "± se" in out and "no model, so nobody knows" in out
    assert "regret " not in out.split("Return:")[0]
    page = (here / "out" / "report.html").read_text("utf-8")
    assert "Final return" in page and "no model, so nobody knows" in page
    assert "Final regret" not in page and "Return of an episode" in page
    assert discreet("report", "out", "--csv", "--latex")[0] == 0
    head, line = (here / "out" / "table.csv").read_text("utf-8").splitlines()
    assert head.endswith("runs,return,standard error,at random")
    assert float(line.split(",")[-1]) == row["uniform_return"]
    assert "& at random" in (here / "out" / "table.tex").read_text("utf-8")


def test_a_table_for_a_paper_holds_no_nan(discreet, here):
    options = ["--environment", "RiverSwim", "--set", "env.horizon=4", "--set", "env.states=3"]
    run = ["run", "--learner", "ucbvi", "--episodes", "60", "--runs", "1", "--output", "out"]
    assert discreet(*run, *options)[0] == 0
    assert discreet("report", "out", "--csv", "--latex")[0] == 0
    for name in ("table.csv", "table.tex"):
        text = (here / "out" / name).read_text("utf-8")
        assert "of uniform" in text and "nan" not in text


def test_returns_are_compared_and_more_is_better(discreet, here):
    lake = {"horizon": 6, "reward_range": [0, 1], "is_slippery": False}
    place = {"name": "FrozenLake-v1", "parameters": lake}
    text = experiment_text("ucbvi", "psrl", runs=3, episodes=[200], environment=place)
    (here / "two.toml").write_text(text)
    code, out, _ = discreet("run", "two.toml", "--jobs", "1", "--json")
    results = {row["learner"]: row["return"]["mean"] for row in json.loads(out)["results"]}
    ((_, (one,)),) = winners(load_results(here / "results" / "tiny"))
    better = max(results, key=results.get)
    assert code == 0 and one.first.startswith(better) and one.earned
    gain = results[better] - min(results.values())
    assert float(one.difference_text) == pytest.approx(gain, rel=0.01)
