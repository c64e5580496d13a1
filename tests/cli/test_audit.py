import json

import pytest
import typer

from discreet.cli import audit, check
from discreet.privacy.auditing.run import AuditRow


def test_json_for_scripts(capsys):
    audit.command(["tree-laplace"], quick=True, json=True)
    results = json.loads(capsys.readouterr().out)["results"]
    exact = [row for row in results if row["calibration"] == "exact"]
    assert all(row["holds"] and row["claimed"] == {"epsilon": 1, "delta": 0} for row in exact)
    assert {row["kind"] for row in exact} == {"stream", "stationary", "vector", "layered"}
    assert {"add", "block", "add (256 releases, secure)"} <= {row["path"] for row in exact}
    [paper] = [row for row in results if row["calibration"] == "paper"]
    assert not paper["holds"] and paper["exact_epsilon"] == pytest.approx(2)


def test_a_broken_exact_promise_is_an_error(monkeypatch, capsys):
    row = AuditRow("central/broken", "exact", 1.0, 0.0, 2.0, 0.1, 0.0, "JDP")
    monkeypatch.setattr("discreet.privacy.auditing.run.audit", lambda *_, **__: [row])
    with pytest.raises(typer.Exit) as stop:
        audit.command()
    assert stop.value.exit_code == 1
    shown = capsys.readouterr()
    assert "central/broken" in shown.out and "do not hold" in shown.err


def test_check_mechanism(capsys):
    check.check_mechanism("central/laplace", json=True)
    assert json.loads(capsys.readouterr().out) == {"name": "central/laplace", "problems": []}
