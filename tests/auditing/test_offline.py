"""The rows of `fit` in an audit: its release holds, and a choice among draws is called out."""

import numpy as np
import pytest

from discreet import Central
from discreet.auditing import offline as audited
from discreet.auditing.cases import find
from discreet.auditing.examine import examine
from discreet.auditing.offline import fit_cases, fit_path
from discreet.auditing.run import audit
from discreet.privacy.mechanisms.registry import mechanisms


def test_one_row_for_every_central_mechanism_of_batches():
    found = [(case.mechanism, case.path, case.kind) for case in fit_cases(find("central"))]
    known = [f"central/{name}" for name in mechanisms("central", "batch")]
    assert found == [(name, "fit", "batch") for name in known]
    assert "central/gaussian" in known


def test_the_release_of_a_fit_holds_its_guarantee():
    [row] = [row for row in audit(["central/laplace"], quick=True) if row.path == "fit"]
    assert row.holds and row.problems == ()
    assert row.exact_epsilon == pytest.approx(1.0)


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
