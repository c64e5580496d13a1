"""What flow-ucb is compared with: the first generation as reported, hindsight, files of rows."""

import json
import subprocess
import sys
from math import inf
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidInputError

ROOT = Path(__file__).parents[1]

FIRST = """
import json, discreet, benchmarks.flow_ucb_first
mdp = discreet.make("RiverSwim", states=4, horizon=6, relabel=31415)
trusts = discreet.Central(1, 1e-6), discreet.Shuffle(1, 1e-6), discreet.Local(1), None
found = [discreet.learn(mdp, learner="flow-ucb-first", trust=trust, episodes=20_000, seed=31415)
         for trust in trusts]
print(json.dumps([[one.mechanism, one.noise["rewards"], one.final_regret] for one in found]))
"""


@pytest.fixture
def comparison(monkeypatch):
    """The tools, from the clone."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import flow_problems, flow_rows
    from tools import flow_environments

    return flow_problems, flow_rows, flow_environments


def test_the_first_flow_ucb_is_what_it_was():
    """Plain sums, bits and one-step reports; run 0 of the tables of its time."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, cwd=ROOT, timeout=900
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == [
        ["gaussian", pytest.approx(20.6967, rel=1e-4), pytest.approx(2132.47, rel=1e-4)],
        ["bits", pytest.approx(20.7216, rel=1e-4), pytest.approx(2371.52, rel=1e-4)],
        ["one-step", pytest.approx(1329.55, rel=1e-4), pytest.approx(8883.39, rel=1e-4)],
        ["none", 0.0, pytest.approx(129.461, rel=1e-4)],
    ]


def test_the_list_of_problems_is_fixed(comparison):
    problems, _, _ = comparison
    assert list(problems.PROBLEMS) == [
        "RiverSwim-4x6",
        "RiverSwim-6x20",
        "DoubleChain",
        "GridWorld",
        "Treatment",
        "Recommender",
        "DemandResponse",
        "SixArms",
        "LowerBound",
        "FrozenLake-20",
        "CliffWalking-20",
        "Random-8x4x8",
        "RandomSteps-6x3x8",
        "SmallGaps",
        "ManyActions",
        "Lock",
        "OddReward",
        "OddTransition",
    ]
    for name in problems.PROBLEMS:
        one, again, other = (problems.problem(name, run) for run in (3, 3, 4))
        assert np.array_equal(one.transitions, again.transitions)
        same = np.array_equal(one.transitions, other.transitions)
        assert not (same and np.array_equal(one.rewards, other.rewards)), name


def row(rows, learner, episodes, run, regret, last=0.0, **other):
    key = {"problem": "Lock", "trust": "central", "epsilon": 1.0, "learner": learner}
    key |= {"episodes": episodes, "seed": 0, "run": run, "uniform": 1.0} | other
    return rows.Row(**key, regret=regret, last=last, batches=2, seconds=0.0)


def test_hindsight_takes_one_length_for_all_runs(comparison):
    _, rows, tools = comparison
    told = [
        row(rows, "uniform-etc", n, run, n, last)
        for n, lasts in ((10, (0.0, 0.9)), (100, (0.1, 0.1)), (1000, (0.0, 0.0)))
        for run, last in enumerate(lasts)
    ]
    cell = tools.Cell("Lock", "central", 1.0, 1000)
    length, regrets = tools.hindsight(told, cell, [(0, 0), (0, 1)])
    assert length == 100 and regrets.tolist() == [190.0, 190.0]
    length, regrets = tools.hindsight(told, cell._replace(episodes=100), [(0, 0), (0, 1)])
    assert length == 10 and regrets.tolist() == [10.0, 91.0]
    assert tools.hindsight(told, cell._replace(trust="local"), [(0, 0)]) is None


def test_ratios_are_paired(comparison):
    _, _, tools = comparison
    theirs = np.array([1.0, 10.0, 100.0])
    assert tools.ratio(theirs / 2, theirs) == pytest.approx((0.5, 0.5, 0.5))
    wide = tools.ratio(theirs[::-1], theirs)
    assert wide.low < 0.5 < wide.value == 1.0 < 2.0 < wide.high


def test_tables_and_locks_say_what_the_rows_say(comparison, capsys):
    _, rows, tools = comparison
    told = [row(rows, "flow-ucb", 1000, run, 50.0 + run, 0.02 * run) for run in range(2)]
    told += [row(rows, "flow-ucb-first", 1000, run, 100.0 + 2 * run) for run in range(2)]
    told += [row(rows, "uniform-etc", 100, run, 100.0, 0.0) for run in range(2)]
    tools.print_table(told, "flow-ucb", "flow-ucb-first")
    shown = capsys.readouterr().out
    line = "| Lock | 1e3 | 50 | 5.05% | 101 | 100 (1e2) | 0.50 [0.50, 0.50] | "
    assert "Central, eps=1:" in shown and line in shown
    assert "| promise | K=1e3 |\n|---|---|\n| central, eps=1 | 0.500 (1) |" in shown
    tools.print_locks(told, ["flow-ucb", "uniform-etc"])
    shown = capsys.readouterr().out
    assert "Flow-ucb, K=1e3:" in shown and "uniform-etc" not in shown
    assert "| Lock | central, eps=1 | 1 of 2 | 2.000% | 5.0500% | 2 |" in shown
    told.append(row(rows, "flow-ucb", 10_000, 0, 100.0))
    tools.print_shares(told, "flow-ucb")
    shown = capsys.readouterr().out
    assert "Central, eps=1:" in shown and "| problem | K=1e3 | K=1e4 |" in shown
    assert "| Lock | 5.1% | 1% |" in shown
    tools.print_means(told, "flow-ucb")
    shown = capsys.readouterr().out
    assert "Lock:" in shown and "| central, eps=1 | 50 ± 1 (51) | 100 |" in shown


def test_promises_have_tables_of_their_own_in_the_order_of_the_page(comparison, capsys):
    _, rows, tools = comparison
    told = [
        row(rows, "flow-ucb", 1000, 0, 50.0, trust=trust, epsilon=epsilon)
        for trust, epsilon in (("shuffle", 0.3), ("central", 0.3), ("shuffle", 1.0), ("none", inf))
    ]
    tools.print_table(told, "flow-ucb", "flow-ucb-first")
    shown = capsys.readouterr().out
    titles = [line for line in shown.splitlines() if line.endswith("eps=1:") or "rivacy:" in line]
    assert titles == ["No privacy:", "Shuffle, eps=1:"]
    assert shown.index("Central, eps=0.3:") < shown.index("Shuffle, eps=0.3:")


def test_where_nothing_can_be_lost_nobody_is_locked_in(comparison, capsys):
    _, rows, tools = comparison
    tools.print_locks([row(rows, "flow-ucb", 1000, 0, 0.0, uniform=0.0)], ["flow-ucb"])
    assert capsys.readouterr().out == ""


def test_the_goal_is_a_point_and_a_lower_end(comparison, capsys):
    _, rows, tools = comparison
    ratio = tools.ratio(np.array([1.0]), np.array([1.0]))
    assert tools.within(ratio._replace(value=1.15, low=1.1))
    assert not tools.within(ratio._replace(value=1.16, low=1.0))
    assert not tools.within(ratio._replace(value=1.12, low=1.11))
    told = [row(rows, "flow-ucb", 1000, 0, 50.0), row(rows, "flow-ucb-first", 1000, 0, 40.0)]
    tools.print_table(told, "flow-ucb", "flow-ucb-first")
    assert "Within the goal: 0 of 0 cells with both rivals\n\n" in capsys.readouterr().out
    told.append(row(rows, "uniform-etc", 100, 0, 100.0))
    tools.print_table(told, "flow-ucb", "flow-ucb-first")
    shown = capsys.readouterr().out
    assert "Within the goal: 0 of 1 cells with both rivals" in shown
    assert "Above it: Lock (central, eps=1, K=1e3)" in shown


def test_a_file_that_is_none_of_rows_is_left_alone(comparison, tmp_path):
    _, rows, _ = comparison
    path = tmp_path / "other.csv"
    path.write_text("hello\n")
    with pytest.raises(InvalidInputError, match=r"begins with problem,trust.*hello") as wrong:
        list(rows.run_all(rows.tasks(["Lock"], ["none"], [1.0], ["etc"], [1000], 7, 1), path, 1))
    assert path.read_text() == "hello\n" and str(wrong.value).count("Expected") == 1


def test_rows_of_something_else_are_refused(comparison, tmp_path):
    from dataclasses import fields

    _, rows, _ = comparison
    path, head = tmp_path / "rows.csv", ",".join(item.name for item in fields(rows.Row))
    cells = "Lock,none,inf,etc,1000,7,0,1.0,1.0,0.0,2,0.1"
    for line in (cells.replace("1000", "abc"), f"{cells},1"):
        path.write_text(f"{head}\n{cells}\n{line}\n")
        with pytest.raises(InvalidInputError, match="line 3 of "):
            rows.read_rows(path)


def test_a_line_that_was_cut_off_is_no_row(comparison, tmp_path):
    from dataclasses import fields

    _, rows, _ = comparison
    path, head = tmp_path / "rows.csv", ",".join(item.name for item in fields(rows.Row))
    cells = "Lock,none,inf,etc,1000,7,0,1.0,1.0,0.0,2,"
    for cut in (cells, cells[:-1], cells[:20]):
        path.write_text(f"{head}\n{cut}\n{cells}0.1\n{cut}")
        assert len(rows.read_rows(path)) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["table", "missing.csv"],
        ["run", "x.csv", "--learners", "never-pooled"],
        ["run", "x.csv", "--learners", "flow-ucb:shrink=foo"],
        ["run", "x.csv", "--learners", "flow-ucb:shrink=7"],
        ["run", "x.csv", "--learners", "flow-ucb:HIDING=nan"],
        ["run", "x.csv", "--learners", "flow-ucb:FEW_ROUTES=1.5"],
        ["run", "x.csv", "--learners", "flow-ucb:SPECS=1"],
        ["run", "x.csv", "--trusts", "shuffle", "--learners", "flow-ucb:plain-rewards"],
        ["run", str(ROOT / "docs")],
        ["run", "x.csv", "--episodes", "1.5"],
        ["run", "x.csv", "--episodes", "inf"],
        ["table", str(ROOT / "README.md")],
        ["run", "x.csv", "--runs", "0"],
        ["run", "x.csv", "--jobs", "0"],
        ["run", "x.csv", "--seed", "-4"],
        ["run", "x.csv", "--epsilons", "1e-300"],
        ["run", "/dev/null/x.csv", "--problems", "Lock", "--runs", "1"],
    ],
)
def test_a_command_that_cannot_be_run_is_refused_in_a_sentence(
    comparison, monkeypatch, capsys, words
):
    _, _, tools = comparison
    monkeypatch.setattr(sys, "argv", ["flow_environments", *words])
    with pytest.raises(SystemExit) as ended:
        tools.main()
    assert ended.value.code == 2 and "error: " in capsys.readouterr().err
    assert not Path("x.csv").exists()


def test_what_is_shown_is_what_was_asked_for(comparison, monkeypatch, tmp_path, capsys):
    _, rows, tools = comparison
    path = tmp_path / "rows.csv"
    wanted = rows.tasks(["Lock", "LowerBound"], ["none", "central"], [1.0], ["etc"], [1000], 7, 1)
    assert len(list(rows.run_all(wanted, path, 1))) == 4

    def shown(*words):
        monkeypatch.setattr(
            sys, "argv", ["flow_environments", "locks", str(path), "--learners", "etc", *words]
        )
        tools.main()
        lines = capsys.readouterr().out.splitlines()
        return [line.split("|")[1:3] for line in lines if line.startswith("| L")]

    assert len(shown()) == 4
    assert shown("--problems", "Lock", "--trusts", "central") == [[" Lock ", " central, eps=1 "]]
    monkeypatch.setattr(sys, "argv", ["flow_environments", "means", str(path)])
    with pytest.raises(SystemExit):
        tools.main()
    assert "Expected rows of flow-ucb that were asked for" in capsys.readouterr().err


def test_an_ablation_runs_a_part_only_where_it_has_a_mechanism(comparison, monkeypatch, capsys):
    from tools import flow_ablation

    words = ["run", "x.csv", "--trusts", "shuffle", "--learners", "flow-ucb:plain-rewards"]
    monkeypatch.setattr(sys, "argv", ["flow_ablation", *words])
    with pytest.raises(SystemExit) as ended:
        flow_ablation.main(None, ["Lock"], [])
    assert ended.value.code == 2 and "--trusts out of central" in capsys.readouterr().err
    run = []
    monkeypatch.setattr(flow_ablation, "run", run.append)
    for trust in ("shuffle", "central"):
        monkeypatch.setattr(sys, "argv", ["flow_ablation", "run", "x.csv", "--trusts", trust])
        flow_ablation.main(None, ["Lock"], [])
    shuffled, central = (options.learners for options in run)
    assert set(central) - set(shuffled) == {"flow-ucb:plain-rewards"}


def test_a_file_of_rows_is_filled_up_and_never_twice(comparison, tmp_path):
    _, rows, _ = comparison
    path = tmp_path / "rows.csv"
    wanted = rows.tasks(["Lock"], ["none"], [1.0], ["etc", "uniform-etc"], [1000, 2000], 7, 1)
    assert [task.learner for task in wanted] == ["etc", "etc", "uniform-etc"]
    assert len(list(rows.run_all(wanted[:1], path, 1))) == 1
    path.write_text(path.read_text().rsplit(",", 2)[0])  # killed while it wrote
    assert rows.missing(wanted, rows.read_rows(path)) == wanted
    assert len(list(rows.run_all(wanted, path, 1))) == 3
    assert list(rows.run_all(wanted, path, 1)) == []
    told = rows.read_rows(path)
    assert {one.learner for one in told} == {"etc", "uniform-etc"}
    assert [one.episodes for one in told if one.learner == "uniform-etc"] == [316, 562, 1000, 1778]
    for one in told:
        assert 0 <= one.last <= 2 * one.uniform and one.epsilon == float("inf")


VARIED = """
import json, discreet, benchmarks.flow_variants
from benchmarks.flow_problems import problem
from discreet.learners.registry import learner_names
mdps = discreet.make("DoubleChain"), problem("changing", 0)
trust = discreet.Central(1, 1e-6)
names = [name for name in learner_names() if name.startswith("flow-ucb:")] + ["flow-ucb"]
found = {name: [discreet.learn(mdp, learner=name, trust=trust, episodes=3000).final_regret
                for mdp in mdps] for name in names}
print(json.dumps(found))
"""


def test_every_variant_of_the_ablation_runs_and_is_one():
    """A part that changes nothing is not taken out; users are scarce enough for several plans."""
    done = subprocess.run(
        [sys.executable, "-c", VARIED], capture_output=True, text=True, cwd=ROOT, timeout=900
    )
    assert done.stderr == ""
    found = json.loads(done.stdout)
    shipped = found.pop("flow-ucb")
    same = [name for name, regret in found.items() if regret == shipped]
    # Their rules begin with more users than these.
    late = {f"flow-ucb:{part}" for part in ("no-own-step-check", "no-hiding", "no-close-calls")}
    assert len(found) == 19 and set(same) <= late


@pytest.mark.parametrize("name", ["no-hiding", "no-close-calls", "one-plan", "reward-width"])
def test_a_variant_takes_out_what_the_learner_has(comparison, name):
    from benchmarks.flow_variants import VARIANTS

    from discreet.learners.flow_ucb.learner import FlowUCB

    taken = {part for part in vars(VARIANTS[name]) if part.startswith("_") and part[1] != "_"}
    assert taken - {"_abc_impl"} and all(hasattr(FlowUCB, part) for part in taken)


CHANGED = """
import json, discreet
from benchmarks.flow_rows import Task, run_task
names = "flow-ucb", "flow-ucb:shrink=0.5", "flow-ucb:FEW_ROUTES=1", "flow-ucb:one-plan", "flow-ucb"
tasks = [Task("rooms", "central", 1.0, name, 20_000, 0, 0) for name in names]
print(json.dumps([run_task(task)[0].regret for task in tasks]))
"""


def test_settings_and_constants_are_changed_by_name_and_for_their_learner_alone():
    done = subprocess.run(
        [sys.executable, "-c", CHANGED], capture_output=True, text=True, cwd=ROOT, timeout=900
    )
    assert done.stderr == ""
    shipped, shrunk, single, one_plan, again = json.loads(done.stdout)
    assert shipped == again and single == one_plan
    assert len({shipped, shrunk, single}) == 3


def test_a_change_that_would_have_no_effect_is_refused(comparison):
    from benchmarks.flow_variants import known

    for name in ("SURE=1", "PROMISE=1", "Planner=1", "nothing"):
        with pytest.raises(ValueError, match="Expected a part, a setting or a constant"):
            known(f"flow-ucb:{name}")
    assert known("uniform-etc") == "uniform-etc"


def test_an_ablation_says_where_a_variant_is_no_variant(comparison, tmp_path, capsys):
    import csv
    from dataclasses import astuple, fields

    from tools import flow_ablation

    _, rows, _ = comparison
    told = [row(rows, "flow-ucb", 1000, run, 50.0 + run) for run in range(2)]
    told += [row(rows, "flow-ucb:one-plan", 1000, run, 50.0 + run) for run in range(2)]
    told += [row(rows, "flow-ucb:no-lean", 1000, run, 101.0) for run in range(2)]
    told += [row(rows, "uniform-etc", 1000, run, 1000.0) for run in range(2)]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([item.name for item in fields(rows.Row)])
        writer.writerows(astuple(one) for one in told)
    flow_ablation.print_table(tmp_path / "rows.csv")
    shown = capsys.readouterr().out
    assert "uniform-etc" not in shown
    assert "| `one-plan`: one route per batch, however scarce users are" in shown
    assert "| 1.00 (1.00, Lock; the same runs in 1 of 1) |" in shown
    assert "it neither leans nor hides | 2.00 (2.00, Lock) |" in shown
