import json

import pytest
import typer

from discreet.cli import audit, check
from discreet.privacy.auditing.run import AuditRow
from helpers.audits import audit_row as row


def test_json_for_scripts(capsys):
    audit.command(["tree-laplace"], quick=True, json=True)
    results = json.loads(capsys.readouterr().out)["results"]
    exact = [row for row in results if row["calibration"] == "exact"]
    assert all(row["holds"] and row["claimed"] == {"epsilon": 1, "delta": 0} for row in exact)
    assert {row["kind"] for row in exact} == {"continual", "stationary", "vector", "layered"}
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


def shown(monkeypatch, capsys, *rows):
    """What the table says of these rows, and the exit code."""
    monkeypatch.setattr("discreet.privacy.auditing.run.audit", lambda *_, **__: list(rows))
    code = 0
    try:
        audit.command()
    except typer.Exit as stop:
        code = stop.exit_code
    return code, capsys.readouterr()


def test_promises_that_hold_are_a_table_and_no_error(monkeypatch, capsys):
    code, text = shown(monkeypatch, capsys, row(), row(mechanism="local/one-step", notion="LDP"))
    assert code == 0
    assert text.err == ""
    assert "local/one-step" in text.out
    assert "yes" in text.out
    assert "NO" not in text.out


def test_a_broken_printed_promise_is_told_and_no_error(monkeypatch, capsys):
    """That printed constants fail is what the audit is there to say."""
    code, text = shown(monkeypatch, capsys, row(calibration="paper", exact_epsilon=2.0))
    assert code == 0
    assert "(printed)" in text.out
    assert "promises 1 and delivers 2" in " ".join(text.out.split())


def test_no_epsilon_at_all_is_said_in_words(monkeypatch, capsys):
    code, text = shown(monkeypatch, capsys, row(exact_epsilon=float("inf")))
    assert code == 1
    assert "no epsilon at all" in " ".join(text.out.split())
    assert "central/laplace" in text.err


def test_an_attack_is_shown_as_a_lower_bound(monkeypatch, capsys):
    _, text = shown(monkeypatch, capsys, row(empirical_epsilon_low=0.4567))
    assert ">= 0.45" in text.out


def test_unknown_mechanisms_get_a_suggestion(discreet):
    code, out, err = discreet("audit", "central/laplase")
    assert (code, out) == (2, "")
    assert "central/laplace" in err
    assert err.count("\n") == 1
