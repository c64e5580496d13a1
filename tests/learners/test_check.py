"""`check_learner` passes every continual learner and rejects broken ones."""

from functools import partial

import numpy as np
import pytest

from discreet import check_learner
from discreet.errors import DiscreetError
from discreet.learners import check, registry
from discreet.learners.base import Batch
from discreet.learners.continual import run_continual
from discreet.learners.explore_then_commit import ExploreThenCommit
from discreet.learners.optimists import DpUcbvi, Ucbvi
from discreet.learners.registry import LearnerSpec
from discreet.mdp.counts import Counts
from discreet.mdp.policies import DeterministicPolicy

CONTINUAL = [
    "ucbvi",
    "dp-ucbvi",
    "private-ucb-vi",
    "private-ucb-po",
    "pucb",
    "ldp-obi",
    "psrl",
    "ldp-psrl",
]


@pytest.mark.parametrize("name", CONTINUAL)
def test_every_registered_one_passes(name):
    report = check_learner(name)
    assert report.problems == ()
    assert len(report.passed) == 5


def register(monkeypatch, kind):
    """Put a learner class on the registry under the name 'broken'."""
    kind.name = "broken"
    spec = LearnerSpec("broken", "", "", "continual", ("none",), make=kind)
    monkeypatch.setitem(registry._REGISTERED, "broken", spec)


class NoBonus(Ucbvi):
    """Never optimistic: every unseen action looks worthless and the first one wins."""

    def coefficients(self, users):
        return self.table(users, minimum=-1)


class Forgetful(Ucbvi):
    """Draws from the operating system instead of its generator."""

    def coefficients(self, users):
        rows = super().coefficients(users)  # each episode its own: two runs never agree by chance
        return rows * np.random.default_rng().random((len(rows), 1))


class Holder(Ucbvi):
    """Keeps raw counts."""

    def __init__(self, *arguments):
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


class Spied:
    """A mechanism that shows its learner what it releases."""

    def __init__(self, mechanism, seen):
        self._mechanism, self._seen = mechanism, seen

    def __getattr__(self, name):
        return getattr(self._mechanism, name)

    def simulate(self, draw, users, **options):
        def shown(users):
            self._seen.append(draw(users))
            return self._seen[-1]

        return self._mechanism.simulate(shown, users, **options)


class Peeker(ExploreThenCommit):
    """Explores as it should, then commits to what raw rewards say."""

    def begin(self):
        super().begin()
        self._seen = []
        self.mechanism = Spied(self.mechanism, self._seen)

    def ask(self):
        batch = super().ask()
        if not self._seen:
            return batch
        return Batch(DeterministicPolicy(self._seen[-1].rewards.argmax(axis=-1)), batch.users)


class Boxed(ExploreThenCommit):
    """Keeps raw counts among other things."""

    def begin(self):
        super().begin()
        self.boxes = {"first": [Counts.zeros(self.problem.shape)]}


class SpiedContinual(Spied):
    """The same for a stream."""

    def open(self, sampler):
        release, seen = self._mechanism.open(sampler), self._seen

        class Shown:
            def __getattr__(self, name):
                return getattr(release, name)

            def add(self, counts):
                seen.append(counts)
                return release.add(counts)

        return Shown()


class ContinualPeeker(DpUcbvi):
    """Plays what earned something, as raw counts say."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._seen = []
        self.mechanism = SpiedContinual(self.mechanism, self._seen)

    def planner(self):
        return None

    def next_policy(self, counts):
        if not self._seen:
            return DeterministicPolicy(self.rng.integers(0, 2, self.problem.shape.visits[:2]))
        raw = sum(seen.rewards for seen in self._seen)
        return DeterministicPolicy(raw.argmax(axis=-1))


@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_continual_learner_that_looks_behind_the_release_is_rejected(trust):
    spec = LearnerSpec("broken", "", "", "continual", (trust,), make=ContinualPeeker)
    assert "depends on more than it was told" in check.peeks(spec, {})


class Keeper(ExploreThenCommit):
    """Keeps raw counts, and does nothing with them yet."""

    def begin(self):
        super().begin()
        self.raw = Counts.zeros(self.problem.shape)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Peeker, "depends on more than it was told"),
        (Keeper, "holds the model or raw counts: raw"),
        (Boxed, "holds the model or raw counts: boxes"),
    ],
)
@pytest.mark.parametrize("trust", ["central", "none"])
def test_a_batch_learner_that_looks_behind_the_release_is_rejected(monkeypatch, kind, why, trust):
    kind.name = "broken"
    spec = LearnerSpec("broken", "", "", "batch", (trust,), make=kind)
    monkeypatch.setitem(registry._REGISTERED, "broken", spec)
    report = check_learner("broken", episodes=400)
    assert [problem for problem in report.problems if why in problem]
    assert "only private counts" not in report.passed


@pytest.mark.parametrize("name", ["flow-ucb", "explore-then-commit", "pe", "sdp-pe"])
def test_batch_learners_of_the_registry_ask_by_what_they_are_told(name):
    assert check.peeks(registry.get_learner(name), {}) is None


def test_what_nobody_can_look_at_is_not_said_to_hold(monkeypatch):
    plain = registry.get_learner("ucbvi")
    run = partial(run_continual, plain.make)
    spec = LearnerSpec("whole", "", "", "continual", ("none",), run=run)
    monkeypatch.setitem(registry._REGISTERED, "whole", spec)
    report = check_learner("whole")
    assert "only private counts" not in report.passed
    assert report.problems == ()
    (said,) = report.to_dict()["unchecked"]
    assert said.startswith("only private counts: it is handed the model")


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
    spec = LearnerSpec(name="x", summary="", paper="", schedule="adversarial", trusts=("none",))
    monkeypatch.setattr("discreet.learners.check.get_learner", lambda name: spec)
    with pytest.raises(DiscreetError, match="adversarial"):
        check_learner("x")
