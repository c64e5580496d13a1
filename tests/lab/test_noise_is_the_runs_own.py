"""The noise in a report is that of the plan which made the run, for every learner and trust model.

The lab must not calibrate again: it does not know which statistics a learner releases, whether its
counters are pooled over steps, nor how its budget is split.
"""

import math

import pytest

from discreet.lab import tasks
from discreet.lab.report import render
from discreet.lab.runner import run_experiment
from discreet.lab.style import noise_of
from discreet.lab.summary import summarise
from discreet.learners.registry import get_learner, learner_names
from discreet.privacy.trust import TrustModel
from helpers.experiments import experiment
from helpers.registries import learners_and_trusts

EPISODES = 40
CASES = [
    (name, trust)
    for name in learner_names()
    for trust in get_learner(name).trusts
    if get_learner(name).schedule != "adversarial"
]


@pytest.fixture
def plans(monkeypatch):
    """Every plan that is calibrated while a test runs, but for the check before it."""
    monkeypatch.setattr("discreet.lab.runner.check", lambda experiment, engine: None)
    made = []
    calibrated = TrustModel._calibrated

    def recorded(self, *arguments):
        made.append(calibrated(self, *arguments))
        return made[-1]

    monkeypatch.setattr(TrustModel, "_calibrated", recorded)
    return made


def trust_row(trust):
    return (
        {"model": "none"} if trust == "none" else {"model": trust, "epsilon": [1.0], "delta": 1e-3}
    )


@pytest.mark.parametrize(("learner", "trust"), CASES)
def test_noise_and_mechanism_are_those_of_the_only_plan(learner, trust, plans, tmp_path):
    one = experiment(learner, trusts=[trust_row(trust)], episodes=[EPISODES])
    results = run_experiment(one, tmp_path, jobs=1).results
    (plan,) = plans  # nothing was calibrated beside the run
    (row,) = summarise(results)
    stated = {name: math.sqrt(v) for name, v in plan.noise_variance(EPISODES).items()}
    assert row.facts["noise"] == pytest.approx(stated)
    assert row.facts["mechanism"] == plan.name
    if trust != "none":
        assert min(row.facts["noise"].values()) > 0
        assert noise_of(stated) in render(results)


ADVERSARIAL = learners_and_trusts("adversarial")


@pytest.mark.parametrize(("learner", "trust"), ADVERSARIAL)
def test_adversarial_runs_state_their_noise(learner, trust):
    one = experiment(learner, trusts=[trust_row(trust)], episodes=[EPISODES])
    outcome = tasks.execute(tasks.tasks_of(one)[0])
    assert outcome.error is None
    noise = outcome.record["noise"]
    assert (noise.get("transitions", 0.0) > 0) == (trust != "none")


def test_the_lab_knows_no_formula():
    from pathlib import Path

    text = Path(tasks.__file__).read_text()
    assert "calibrate(" not in text
    assert "noise_variance" not in text
