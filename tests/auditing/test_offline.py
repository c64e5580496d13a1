"""The rows of `fit` in an audit: its release holds, and a choice among draws is called out."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import Central
from discreet.auditing import offline as audited
from discreet.auditing.cases import find
from discreet.auditing.examine import examine
from discreet.auditing.offline import fit_cases, fit_path
from discreet.auditing.run import audit
from discreet.mdp import Shape
from discreet.offline import release as released
from discreet.privacy.mechanisms.registry import mechanisms
from discreet.privacy.sensitivity import CENTRED


def test_two_rows_for_every_central_mechanism_of_batches():
    found = [(case.mechanism, case.path[:3], case.kind) for case in fit_cases(find("central"))]
    known = [f"central/{name}" for name in mechanisms("central", "batch")]
    assert found == [(name, "fit", kind) for name in known for kind in ("batch", "returning")]
    assert "central/gaussian" in known


def test_the_release_of_a_fit_holds_its_guarantee():
    rows = [row for row in audit(["central/laplace"], quick=True) if row.path.startswith("fit")]
    assert [row.kind for row in rows] == ["batch", "returning"]
    assert all(row.holds and row.problems == () for row in rows)
    assert [row.exact_epsilon for row in rows] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_two_episodes_of_one_person_in_one_release_hold_and_less_noise_does_not(
    monkeypatch, mechanism
):
    """The noise for two batches with an episode in each is found to deliver less."""
    trust, shape = Central(1, 1e-6, mechanism=mechanism, participations=2), Shape(2, 3, 2)
    found = examine(fit_path(trust), secure=False)
    assert found.problems == ()
    assert 0.999 < found.view.curve(1.0, 1e-6)[0] <= 1 + 1e-7
    for less in (trust, replace(trust, participations=1)):
        plan = less.calibrate(shape, statistics=CENTRED, last_transitions=True)
        monkeypatch.setattr(released, "_calibrated", lambda *_, plan=plan: plan)
        assert examine(fit_path(trust), secure=False).view.curve(1.0, 1e-6)[0] > 1.03


def _twice(choose):
    release = audited.release

    def broken(*arguments, **named):
        first, second = (release(*arguments, **named) for _ in range(2))
        return choose(first, second)

    return broken


@pytest.mark.parametrize(
    "choose",
    [
        lambda a, b: min(a, b, key=lambda r: float(np.abs(r.row_transitions - 2).sum())),
        lambda a, b: b,
    ],
    ids=["nearer", "second"],
)
def test_two_draws_for_one_release_are_called_out(monkeypatch, choose):
    monkeypatch.setattr(audited, "release", _twice(choose))
    assert examine(fit_path(Central(1, 1e-6)), secure=True).problems
