"""The catalogue of mutants fits the source: every bug can be planted, every killer exists."""

import importlib.util
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent


spec = importlib.util.spec_from_file_location("run", HERE / "run.py")
run = importlib.util.module_from_spec(spec)
sys.modules["run"] = run
spec.loader.exec_module(run)


def test_there_are_enough_mutants_with_names_of_their_own():
    names = [mutant.name for mutant in run.MUTANTS]
    assert len(names) == len(set(names)) >= 390


@pytest.mark.parametrize("mutant", run.MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_can_be_planted(mutant):
    where = run.place(mutant)
    text = where.read_text("utf-8")
    assert run.changed(where, mutant) != text
    assert run.files_of(mutant.tests)


def test_a_bug_that_is_nowhere_and_a_killer_that_is_not_there_are_refused():
    with pytest.raises(SystemExit, match="expected its text once"):
        run.place(run.Mutant("nowhere", "", "no such text §", "", ("x",)))
    with pytest.raises(SystemExit, match="No test is called"):
        run.files_of(("test_that_nobody_wrote_yet",))


def test_compiled_code_around_a_changed_kernel_is_forgotten():
    """Of its callers, of theirs, and of loops that are compiled around a caller's function."""
    folder = "src/discreet/learners/"
    around = run.affected("src/discreet/learners/continual.py")
    assert {folder + "continual.py", folder + "optimists.py"} <= around
    assert folder + "continual.py" in run.affected(folder + "ldp_obi.py")
    assert "src/discreet/adversarial/barrier.py" not in around


def test_samples_are_seeded():
    one, other = run.chosen([], 5, 1), run.chosen([], 5, 1)
    assert one == other
    assert len(one) == 5
    assert any(run.chosen([], 5, seed) != one for seed in range(2, 9))
