"""`check_learner` passes every stream learner and rejects broken ones."""

import numpy as np
import pytest

from discreet import check_learner
from discreet.errors import DiscreetError
from discreet.learners import registry
from discreet.learners.registry import LearnerSpec
from discreet.learners.streams.ucbvi import Ucbvi

STREAMS = [
    "ucbvi",
    "dp-ucbvi",
    "private-ucb-vi",
    "private-ucb-po",
    "pucb",
    "ldp-obi",
    "psrl",
    "ldp-psrl",
]


@pytest.mark.parametrize("name", STREAMS)
def test_the_roster_passes(name):
    report = check_learner(name)
    assert report.problems == ()
    assert len(report.passed) == 5


def register(monkeypatch, kind):
    """Put a learner class on the roster under the name 'broken'."""
    kind.name = "broken"
    spec = LearnerSpec("broken", "", "", "stream", ("none",), make=kind)
    monkeypatch.setitem(registry._REGISTERED, "broken", spec)


class NoBonus(Ucbvi):
    """Never optimistic: every unseen action looks worthless and the first one wins."""

    def coefficients(self, users):
        return self.table(users, minimum=-1)


class Forgetful(Ucbvi):
    """Draws from the operating system instead of its generator."""

    def coefficients(self, users):
        return super().coefficients(users) * np.random.default_rng().random()


class Holder(Ucbvi):
    """Keeps raw counts."""

    def __init__(self, *arguments):
        from discreet.mdp.counts import Counts

        super().__init__(*arguments)
        self.raw = Counts.zeros(self.problem.shape)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [(NoBonus, "sublinear"), (Forgetful, "determinism"), (Holder, "only private counts")],
)
def test_a_broken_learner_is_rejected(monkeypatch, kind, rule):
    register(monkeypatch, kind)
    report = check_learner("broken")
    assert any(problem.startswith(rule) for problem in report.problems)


class Crashes(Ucbvi):
    """Adds arrays that do not fit."""

    def coefficients(self, users):
        return np.stack([np.zeros(2), np.zeros(3)])


def test_a_mistake_in_a_learner_is_a_problem_with_its_place(monkeypatch):
    register(monkeypatch, Crashes)
    report = check_learner("broken")
    assert report.passed == ()
    (problem,) = report.problems
    assert "it raised ValueError: all input arrays must have the same shape" in problem
    assert "(in coefficients, test_check.py, line " in problem


def test_a_learner_that_favours_an_action_is_rejected(monkeypatch):
    from discreet.learners import check

    plain = check.learn

    def last_action_is_free(mdp, **settings):
        result = plain(mdp, **settings)
        favoured = mdp.rewards[0][-1, -1] == 1.0  # the good action has the last number
        if favoured:
            result.regret.values[:] = 0.0
        return result

    monkeypatch.setattr(check, "learn", last_action_is_free)
    report = check_learner("ucbvi")
    assert any("actions are renamed" in problem for problem in report.problems)


def test_adversarial_learners_are_refused(monkeypatch):
    spec = LearnerSpec(name="x", summary="", paper="", rhythm="adversarial", trusts=("none",))
    monkeypatch.setattr("discreet.learners.check.get_learner", lambda name: spec)
    with pytest.raises(DiscreetError, match="adversarial"):
        check_learner("x")
